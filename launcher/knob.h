// A condition of a start: how it is prepared, applied and read back. One table, one row each.
#ifndef KILN_KNOB_H
#define KILN_KNOB_H

#include "common/err.h"
#include "common/store.h"
#include "common/str.h"
#include "common/subject.h"
#include "elfcheck/elf_facts.h"
#include "launcher/instance.h"
#include "launcher/journal.h"
#include "launcher/launch.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct knob;

// A condition on its way: asked, prepared, verified.
struct knob_state {
    const struct knob *knob;
    const char *value;
    bool prefer, skipped; // skipped: preferred, and could not be had
    json_t *seen;         // what was read back
    char why[400];        // why it was skipped
    void *plan;           // the knob's own, freed with free()
};

struct launch {
    struct subject subject;
    struct build build;
    struct elf_facts elf;
    struct launch_options opt;
    bool mysql;    // MySQL, not MariaDB
    char *version; // the server's --version line
    struct journal *journal;
    struct instance in;
    char *exec; // the file that is run: the build's server, or a copy
    struct strv env, preload;
    struct strv argv;
    struct knob_state *knobs;
    size_t nknobs;
    pid_t pid;
    int exit_status; // of the server, once it has been waited for
    bool waited;
    json_t *facts;
};

// A value that a condition can have, for a person who thinks of asking for it; a line each.
struct explanation {
    const char *name; // as written behind KNOB=
    const char *does, *needs, *costs, *verified;
};

struct knob {
    const char *name, *values, *about;
    // The explanation of its ith value, or NULL behind the last.
    const struct explanation *(*explain)(size_t i);
    // In the parent, before the start: checks the value, plans, changes the host (journalled).
    int (*prepare)(struct launch *l, struct knob_state *s, struct err *e);
    // In the child, before the uid is dropped: 0, or -errno and *what. NULL: nothing to do.
    int (*child)(const struct launch *l, const struct knob_state *s, const char **what);
    // With the live process; fills s->seen. -1 with *e: not as asked.
    int (*verify)(const struct launch *l, struct knob_state *s, struct err *e);
    // Frees what the plan holds beyond its memory. NULL: nothing.
    void (*release)(struct knob_state *s);
};

extern const struct knob knob_text, knob_cpus, knob_numa, knob_malloc, knob_idle;
// All knobs, NULL at the end.
extern const struct knob *const knobs[];

#endif
