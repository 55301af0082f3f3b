#include "builder/commands.h"
#include "builder/install.h"
#include "builder/manifest.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/opt.h"
#include "common/proc.h"
#include "common/store.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *source, *feature_set, *name;
    struct strv profiles;
    uint64_t jobs;
    bool rebuild, configure_only, keep_work, json;
} o;

static const struct opt opts[] = {
    {"source", 's', OPT_STR, &o.source, "TREE", "directory, tarball or apt:PACKAGE (apt:mariadb)"},
    {"profile", 'p', OPT_LIST, &o.profiles, "NAME", "build profile, may be repeated; a path works"},
    {"feature-set", 0, OPT_STR, &o.feature_set, "SET",
     "minimal (default: server, no plugins) or upstream"},
    {"name", 'n', OPT_STR, &o.name, "NAME", "of the build in the store (default: the profile's)"},
    {"jobs", 'j', OPT_UINT, &o.jobs, "N", "compile N files at once (default: ninja's choice)"},
    {"rebuild", 0, OPT_FLAG, &o.rebuild, NULL, "build even if the same build stands"},
    {"configure-only", 0, OPT_FLAG, &o.configure_only, NULL,
     "let cmake prove the options and stop"},
    {"keep-work", 0, OPT_FLAG, &o.keep_work, NULL, "keep the work directory after a good build"},
    {"json", 0, OPT_FLAG, &o.json, NULL, "print the manifests as JSON"},
    {0},
};

static const struct command command = {
    .name = "kiln build",
    .synopsis = "[OPTIONS] --source TREE --profile NAME...",
    .about = "Configures and compiles a MySQL or MariaDB server with a build profile, proves that\n"
             "the profile's optimisation level is the one the compiler used, checks the binary\n"
             "against the profile's promises, and installs it in the store with a manifest.\n"
             "A build whose inputs have not changed is used again. Ctrl-C stops; the same command\n"
             "goes on. Objects are shared between profiles through ccache: one that differs only\n"
             "in link flags compiles nothing.",
    .opts = opts,
    .examples = "  kiln build --source apt:mariadb --profile gcc-o2 --profile gcc-o2-hugetext\n"
                "  kiln build --source ~/mysql-8.0.45 --profile clang-o3 --configure-only",
};

static void print_levels(const struct levels *l)
{
    for (size_t i = 0; i < l->n; i++)
        note("compiled with %s: %u files, %u of them the server's own", l->rows[i].level,
             l->rows[i].files, l->rows[i].server_files);
}

static void print_done(const json_t *m, const char *how)
{
    const json_t *server = json_object_get(m, "server");
    char *path = store_path("builds/%s/%s", json_text(m, "name"), json_text(server, "path"));
    printf("%s: %s, %s, check: %s\n  %s\n", json_text(m, "name"), how,
           json_text(json_object_get(m, "source"), "name"),
           json_text(json_object_get(m, "check"), "answer"), path);
    free(path);
}

// The manifest of a build that stands with the same inputs, or NULL.
static json_t *standing(const struct plan *p)
{
    json_t *m = manifest_open(p->name, NULL);
    char *server =
        store_path("builds/%s/%s", p->name, json_text(json_object_get(m, "server"), "path"));
    bool same = m && !strcmp(json_text(m, "inputs"), p->inputs) && fs_exists(server);
    free(server);
    if (same)
        return m;
    json_decref(m);
    return NULL;
}

static int configure_only(struct plan *p, struct err *e)
{
    // A directory of its own, so that an interrupted build keeps what it has.
    char *work = xasprintf("%s.configure", p->work);
    free(p->work);
    free(p->log);
    p->work = work;
    p->log = xasprintf("%s/kiln.log", work);
    struct outcome out = {0};
    int lock = work_open(p, e);
    int rc = lock < 0 ? -1 : build_configure(p, &out, e);
    if (rc == 0) {
        char *flags = strv_join(&p->r.server_link_flags, " ");
        print_levels(&out.levels);
        if (!o.json)
            printf("%s: %s knows every option; the server links with: %s\n", p->name,
                   p->source.name, flags);
        free(flags);
        if (!o.keep_work)
            fs_remove_tree(p->work, NULL);
    }
    if (lock >= 0)
        close(lock);
    return rc;
}

static int compile(const struct plan *p, json_t **manifest, struct err *e)
{
    struct outcome out = {0};
    int lock = work_open(p, e);
    if (lock < 0)
        return -1;
    int rc = build_configure(p, &out, e);
    if (rc == 0)
        rc = build_compile(p, &out, e);
    if (rc == 0)
        rc = install_build(p, &out, manifest, e);
    if (rc == 0) {
        char *how =
            xasprintf("built in %.0f s (%.0f s of CPU; ccache: %u hits, %u misses)",
                      out.wall_seconds, out.cpu_seconds, out.ccache_hits, out.ccache_misses);
        print_levels(&out.levels);
        if (!o.json)
            print_done(*manifest, how);
        free(how);
        if (!o.keep_work)
            fs_remove_tree(p->work, NULL);
    }
    close(lock);
    return rc;
}

static int build_one(struct plan *p, json_t *results, struct err *e)
{
    if (plan_build(p, o.feature_set, o.name, e))
        return -1;
    if (o.configure_only)
        return configure_only(p, e);
    json_t *m = o.rebuild ? NULL : standing(p);
    if (m && !o.json)
        print_done(m, "stands already with the same inputs (--rebuild builds it again)");
    if (!m && compile(p, &m, e))
        return -1;
    json_array_append_new(results, m);
    return 0;
}

// Every profile is read before the first build starts.
static struct plan *load_profiles(void)
{
    struct plan *plans = xcalloc(o.profiles.n, sizeof *plans);
    struct err e = {0};
    for (size_t i = 0; i < o.profiles.n; i++)
        if (profile_load(o.profiles.v[i], &plans[i].profile, &e))
            exit(err_report(&e));
    return plans;
}

static int build_all(struct plan *plans, const struct source *source)
{
    json_t *results = json_array();
    struct err e = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < o.profiles.n; i++) {
        plans[i].source = *source;
        plans[i].jobs = (unsigned)o.jobs;
        rc = build_one(&plans[i], results, &e);
        plan_free(&plans[i]);
    }
    if (rc == 0 && o.json) {
        json_t *j = json_new("kiln.builds/1");
        json_object_set(j, "builds", results);
        json_print(j);
        json_decref(j);
    }
    json_decref(results);
    return rc ? err_report(&e) : EXIT_YES;
}

int cmd_build(int argc, char **argv)
{
    o.feature_set = "minimal";
    struct strv args = {0};
    opt_parse(&command, argc, argv, &args, NULL);
    if (!o.source || !o.profiles.n)
        die(EXIT_CANNOT_ASK, "--source and --profile are needed; see 'kiln build --help'");
    if (o.name && o.profiles.n > 1)
        die(EXIT_CANNOT_ASK, "--name goes with one profile only");
    if (o.jobs > 4096)
        die(EXIT_CANNOT_ASK, "--jobs=%llu: too many", (unsigned long long)o.jobs);
    struct err e = {0};
    struct source source = {0};
    struct plan *plans = load_profiles();
    intr_install();
    if (store_init(&e) || source_open(o.source, &source, &e))
        return err_report(&e);
    int rc = build_all(plans, &source);
    source_free(&source);
    free(plans);
    strv_free(&args);
    return rc;
}
