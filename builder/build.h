// One build: plan, configure, compile, verify, install.
#ifndef KILN_BUILD_H
#define KILN_BUILD_H

#include "builder/levels.h"
#include "builder/resolve.h"
#include "builder/tools.h"

#include <stdint.h>

// What the builder does for a feature set of a flavour. Its cmake options are in
// profiles/features/NAME-FLAVOUR.ini.
struct feature_set {
    const char *name;
    enum flavour flavour;
    const char *target;       // of ninja
    const char *server;       // path in the installed tree
    const char *const *parts; // directories whose server files are installed; NULL: everything
};

struct plan {
    struct source source;
    struct profile profile, feature;
    const struct feature_set *set;
    struct tools tools;
    struct resolution r;
    char *name;   // of the build in the store
    char *work;   // work directory
    char *log;    // its log
    char *inputs; // sha256 of all that decides the result
    unsigned jobs;
};

struct outcome {
    struct levels levels;
    double wall_seconds, cpu_seconds, configure_seconds;
    double cpu_before; // of this process's children, before this build
    unsigned ccache_hits, ccache_misses;
};

const struct feature_set *feature_set_find(const char *name, enum flavour f, struct err *e);
// Fills p->feature, tools and r for p->profile and p->source. look: the compiler must be there.
int plan_resolve(struct plan *p, const char *feature_set, bool look, struct err *e);
// name, work, log, inputs; resolves. p->profile and p->source must be filled.
int plan_build(struct plan *p, const char *feature_set, const char *name, struct err *e);
void plan_free(struct plan *p); // leaves the source alone
// The whole cmake command.
void plan_command(const struct plan *p, struct strv *argv);

// Locks and prepares the work directory; the descriptor holds the lock, -1 with *e filled.
int work_open(const struct plan *p, struct err *e);
// Each 0 or -1 with *e filled. A failure's message has the first error, the log and a hint.
int build_configure(const struct plan *p, struct outcome *o, struct err *e);
int build_compile(const struct plan *p, struct outcome *o, struct err *e);
// Any other command in the work directory, logged and explained the same way; what names it.
int build_run(const struct plan *p, const char *const *argv, const char *what, struct err *e);

#endif
