#include "builder/build.h"
#include "builder/child.h"
#include "builder/hint.h"
#include "common/fs.h"
#include "common/proc.h"
#include "common/progress.h"
#include "common/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const mariadb_parts[] = {"sql", "sql/share", "scripts", NULL};
static const char *const mysql_parts[] = {"sql", "share", "scripts", NULL};

static const struct feature_set sets[] = {
    {"minimal", FLAVOUR_MARIADB, "mariadbd", "bin/mariadbd", mariadb_parts},
    {"minimal", FLAVOUR_MYSQL, "mysqld", "bin/mysqld", mysql_parts},
    {"upstream", FLAVOUR_MARIADB, "all", "bin/mariadbd", NULL},
    {"upstream", FLAVOUR_MYSQL, "all", "bin/mysqld", NULL},
};

const struct feature_set *feature_set_find(const char *name, enum flavour f, struct err *e)
{
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (!strcmp(sets[i].name, name) && sets[i].flavour == f)
            return &sets[i];
    err_set(e, EXIT_CANNOT_ASK, "%s: no such feature set; there are: minimal, upstream", name);
    return NULL;
}

int plan_resolve(struct plan *p, const char *feature_set, bool look, struct err *e)
{
    p->set = feature_set_find(feature_set, p->source.flavour, e);
    if (!p->set)
        return -1;
    char *file =
        store_share("profiles/features/%s-%s.ini", p->set->name, flavour_name(p->set->flavour));
    int rc = profile_load(file, &p->feature, e);
    free(file);
    if (rc ||
        tools_find(profile_value(&p->profile, "profile", "toolchain", "gcc"), look, &p->tools, e))
        return -1;
    char *boost = p->source.dir ? xasprintf("%s/boost", p->source.dir) : NULL;
    struct target t = {.flavour = p->source.flavour,
                       .version = p->source.version,
                       .compiler = p->tools.compiler_version,
                       .toolchain_file = p->tools.toolchain_file,
                       .home = store_home(),
                       .boost = boost && fs_is_dir(boost) ? boost : NULL,
                       .feature = &p->feature};
    rc = resolve(&p->profile, &t, &p->r, e);
    free(boost);
    return rc;
}

void plan_command(const struct plan *p, struct strv *argv)
{
    strv_add(argv, "cmake");
    strv_add(argv, "-G");
    strv_add(argv, "Ninja");
    strv_add(argv, "-S");
    strv_add(argv, p->source.dir);
    strv_add(argv, "-B");
    strv_add(argv, ".");
    for (size_t i = 0; i < p->r.n; i++) {
        char *v = cmake_arg_value(&p->r.args[i]);
        strv_addf(argv, "-D%s=%s", p->r.args[i].name, v);
        free(v);
    }
}

// Two builds with the same inputs are the same build. Where kiln itself lies is none of them: a
// toolchain counts by its name and its compiler.
static char *hash_inputs(const struct plan *p, struct err *e)
{
    struct str t = {0};
    str_addf(&t, "kiln.manifest/1\n%s\n%s\n%s\n%s\n%s\n%s\n", p->source.name, p->source.checksum,
             p->set->name, p->r.toolchain, p->tools.compiler, p->tools.linker);
    for (size_t i = 0; i < p->r.n; i++) {
        if (!strcmp(p->r.args[i].name, "CMAKE_TOOLCHAIN_FILE"))
            continue;
        char *v = cmake_arg_value(&p->r.args[i]);
        str_addf(&t, "%s=%s\n", p->r.args[i].name, v);
        free(v);
    }
    if (p->r.pad) // what is not padded keeps the sum that it had before there was padding
        str_add(&t, "pad=yes\n");
    char *sum = sha256_text(str_text(&t), e);
    str_free(&t);
    return sum;
}

static int check_name(const char *name, struct err *e)
{
    bool bad = !*name || *name == '.' || *name == '-' || strlen(name) > 80 ||
               strpbrk(name, "/@,= \t\n") || !strcmp(name, "system");
    return bad ? err_set(e, EXIT_CANNOT_ASK, "%s: not a name for a build", name) : 0;
}

int plan_build(struct plan *p, const char *feature_set, const char *name, struct err *e)
{
    p->name = xstrdup(name ? name : p->profile.name);
    if (check_name(p->name, e) || plan_resolve(p, feature_set, true, e) ||
        tools_check(&p->tools, p->r.linker, e))
        return -1;
    p->work = store_path("work/%s", p->name);
    p->log = xasprintf("%s/kiln.log", p->work);
    p->inputs = hash_inputs(p, e);
    return p->inputs ? 0 : -1;
}

void plan_free(struct plan *p)
{
    profile_free(&p->profile);
    profile_free(&p->feature);
    tools_free(&p->tools);
    resolution_free(&p->r);
    free(p->name);
    free(p->work);
    free(p->log);
    free(p->inputs);
}

// The lock is on the directory itself, so that nothing stays when it is removed; whoever locked a
// directory that was removed meanwhile sees that its name now stands for another, or for none.
static int lock_dir(const char *dir, struct err *e)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, EXIT_NO, "%s", dir);
    struct stat mine, there;
    bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (locked && fstat(fd, &mine) == 0 && stat(dir, &there) == 0 && mine.st_ino == there.st_ino)
        return fd;
    close(fd);
    return err_set(e, EXIT_NO, "%s: another kiln is building there", dir);
}

static bool same_inputs(const char *stamp, const char *inputs)
{
    struct str text = {0};
    bool same = fs_exists(stamp) && fs_read(stamp, &text, NULL) == 0 &&
                !strcmp(trim(text.s ? text.s : (char[]){0}), inputs);
    str_free(&text);
    return same;
}

// A tree that was configured with the same inputs is gone on with; any other is started afresh,
// also after a configuration that failed, because cmake keeps the result of a failed check.
int work_open(const struct plan *p, struct err *e)
{
    if (fs_mkdirs(p->work, 0755, e))
        return -1;
    int fd = lock_dir(p->work, e);
    if (fd < 0)
        return -1;
    char *stamp = xasprintf("%s/kiln.configured", p->work);
    bool same = same_inputs(stamp, p->inputs);
    free(stamp);
    if (same)
        return fd;
    close(fd);
    if (fs_remove_tree(p->work, e) || fs_mkdirs(p->work, 0755, e))
        return -1;
    return lock_dir(p->work, e);
}

// The deepest directory above both; "/" is none, since then system headers would be rewritten.
static char *common_ancestor(const char *a, const char *b)
{
    size_t last = 0, i = 0;
    for (;; i++) {
        bool end_a = !a[i] || a[i] == '/', end_b = !b[i] || b[i] == '/';
        if (end_a && end_b)
            last = i;
        if (!a[i] || a[i] != b[i])
            break;
    }
    return xstrndup(a, last ? last : strlen(a));
}

// Paths under the base directory are hashed relative to the work directory, and the work directory
// itself is not hashed: so two builds of one source share all objects.
static void set_environment(const struct plan *p)
{
    char *base = common_ancestor(store_home(), p->source.dir), *dir = store_path("ccache");
    char *log = xasprintf("%s/kiln.ccache", p->work);
    setenv("CCACHE_DIR", dir, 1);
    setenv("CCACHE_BASEDIR", base, 1);
    setenv("CCACHE_NOHASHDIR", "1", 1);
    setenv("CCACHE_STATSLOG", log, 1);
    // The checks of a configuration are compiled through ccache as well.
    setenv("CMAKE_C_COMPILER_LAUNCHER", "ccache", 1);
    setenv("CMAKE_CXX_COMPILER_LAUNCHER", "ccache", 1);
    setenv("NINJA_STATUS", "[%f/%t] ", 1);
    // Messages are read; and ccache hashes all four, so that another locale would find nothing.
    setenv("LC_ALL", "C", 1);
    setenv("LANG", "C.UTF-8", 1);
    unsetenv("LC_CTYPE");
    unsetenv("LC_MESSAGES");
    // These would get into the configuration unseen.
    static const char *const foreign[] = {
        "CFLAGS", "CXXFLAGS",        "LDFLAGS",          "CPPFLAGS",      "CC",
        "CXX",    "CMAKE_GENERATOR", "CMAKE_BUILD_TYPE", "CCACHE_DISABLE"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        unsetenv(foreign[i]);
    free(base);
    free(dir);
    free(log);
}

// What is remembered of a step's output.
struct watch {
    const char *title;
    struct strv errors; // the first lines that tell of an error
    const char *hint;
    bool disk_full;
    bool in_unused; // in cmake's list of variables that it did not use
    struct strv unused;
    bool started;                   // progress
    unsigned lines, expected_lines; // of cmake, which counts no steps
};

enum {
    KEPT_ERRORS = 6,
    // Lines that cmake printed for MariaDB 10.11 and MySQL 8.0: only for the estimate of the time.
    MARIADB_LINES = 980,
    MYSQL_LINES = 910,
};

static void watch_errors(struct watch *w, const char *line)
{
    if (strstr(line, "No space left on device"))
        w->disk_full = true;
    // cmake's message stands under its "CMake Error at FILE:LINE:".
    bool after = w->errors.n && starts_with(w->errors.v[w->errors.n - 1], "CMake Error at");
    char *copy = xstrdup(line), *text = trim(copy);
    if (*text && w->errors.n < KEPT_ERRORS && (after || is_error_line(text)))
        strv_add(&w->errors, text);
    const char *hint = w->errors.n ? hint_for(text) : NULL;
    if (hint && (!w->hint || w->disk_full))
        w->hint = hint;
    free(copy);
}

static void watch_progress(struct watch *w, const char *line)
{
    unsigned done = ++w->lines, total = w->expected_lines;
    if (total) {
        if (done > total)
            return;
        line = ""; // what it checks just now tells nobody anything
    } else if (sscanf(line, "[%u/%u] ", &done, &total) != 2) {
        return;
    }
    if (!w->started)
        progress_begin(w->title, total, 0);
    w->started = true;
    const char *file = strrchr(line, '/');
    progress_update(done, file ? file + 1 : "");
}

static void on_line(void *user, const char *line)
{
    struct watch *w = user;
    if (strstr(line, "Manually-specified variables were not used"))
        w->in_unused = true;
    else if (w->in_unused && starts_with(line, "    "))
        strv_add(&w->unused, line + 4);
    else if (w->in_unused && *line)
        w->in_unused = false;
    watch_progress(w, line);
    watch_errors(w, line);
}

static void watch_free(struct watch *w)
{
    strv_free(&w->errors);
    strv_free(&w->unused);
    if (w->started)
        progress_end();
}

// A full disk is given back: the compiled objects are in ccache, and the space is needed.
static int disk_full(const struct plan *p, struct err *e)
{
    fs_remove_tree(p->work, NULL);
    return err_set(e, EXIT_NO,
                   "%s: no space left on device in %s; the work directory is removed, what was "
                   "compiled stays in ccache; KILN_HOME=DIR chooses another place",
                   p->name, store_home());
}

static int explain(const struct plan *p, const struct watch *w, const char *what, struct err *e)
{
    if (w->disk_full)
        return disk_full(p, e);
    char *first = w->errors.n ? strv_join(&w->errors, "\n  ") : xstrdup("no error line in its log");
    err_set(e, EXIT_NO, "%s: %s failed:\n  %.600s\nlog: %s%s%s", p->name, what, first, p->log,
            w->hint ? "\nhint: " : "", w->hint ? w->hint : "");
    free(first);
    return -1;
}

// Runs a step in the work directory with its output in the log.
static int step(const struct plan *p, const char *const *argv, struct watch *w, struct err *e)
{
    FILE *log = fopen(p->log, "ae");
    if (!log)
        return errno == ENOSPC ? disk_full(p, e) : err_sys(e, EXIT_NO, "%s", p->log);
    struct err why = {0};
    struct child_job job = {.argv = argv, .cwd = p->work, .log = log, .line = on_line, .user = w};
    int rc = child_run(&job, &why);
    bool unwritten = fclose(log) != 0;
    if (rc < 0 && why.code == EXIT_INTERRUPTED)
        return err_set(e, why.code, "interrupted; run the same command again to go on");
    if (unwritten || (rc < 0 && strstr(why.msg, "No space left")))
        return disk_full(p, e);
    if (rc < 0)
        *e = why;
    return rc;
}

// The server's cmake must know every option that is given to it. Options of cmake's own may go
// unused (a toolchain file on a second run).
static int check_unused(const struct plan *p, const struct watch *w, struct err *e)
{
    for (size_t i = 0; i < w->unused.n; i++) {
        const struct cmake_arg *a = resolution_arg(&p->r, w->unused.v[i]);
        if (!a || (starts_with(a->name, "CMAKE_") && !strcmp(a->parts[0].origin, "kiln")))
            continue;
        return err_set(e, EXIT_CANNOT_ASK, "%s: %s does not know the cmake option %s",
                       a->parts[0].origin, p->source.name, a->name);
    }
    return 0;
}

static int configure(const struct plan *p, struct err *e)
{
    struct strv argv = {0};
    struct watch w = {.title = "configuring",
                      .expected_lines =
                          p->set->flavour == FLAVOUR_MYSQL ? MYSQL_LINES : MARIADB_LINES};
    plan_command(p, &argv);
    int rc = step(p, (const char *const *)argv.v, &w, e);
    if (rc > 0)
        rc = explain(p, &w, "cmake", e);
    if (rc == 0 && check_unused(p, &w, e)) {
        fs_remove_tree(p->work, NULL);
        rc = -1;
    }
    watch_free(&w);
    strv_free(&argv);
    return rc;
}

static int write_stamp(const struct plan *p, const char *stamp, struct err *e)
{
    if (fs_write_atomic(stamp, p->inputs, e))
        return strstr(e->msg, "No space left") ? disk_full(p, e) : -1;
    return 0;
}

static double children_cpu(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

int build_configure(const struct plan *p, struct outcome *o, struct err *e)
{
    char *stamp = xasprintf("%s/kiln.configured", p->work);
    double start = now_seconds();
    int rc = 0;
    o->cpu_before = children_cpu();
    set_environment(p);
    if (!fs_exists(stamp)) {
        note("configuring %s as %s", p->source.name, p->name);
        rc = configure(p, e);
        if (rc == 0)
            rc = write_stamp(p, stamp, e);
    }
    free(stamp);
    o->configure_seconds = now_seconds() - start;
    if (rc)
        return -1;
    char *commands = xasprintf("%s/compile_commands.json", p->work);
    rc = levels_read(commands, p->source.dir, p->r.level, &o->levels, e);
    free(commands);
    return rc ? -1 : levels_verify(&o->levels, p->r.level, e);
}

// ccache writes one word for each thing that happened to a call.
static void count_ccache(const struct plan *p, struct outcome *o)
{
    char *path = xasprintf("%s/kiln.ccache", p->work), line[400];
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        o->ccache_hits +=
            !strcmp(line, "direct_cache_hit") || !strcmp(line, "preprocessed_cache_hit");
        o->ccache_misses += !strcmp(line, "cache_miss");
    }
    if (f)
        fclose(f);
    free(path);
}

int build_compile(const struct plan *p, struct outcome *o, struct err *e)
{
    char *jobs = xasprintf("-j%u", p->jobs), *cache = xasprintf("%s/kiln.ccache", p->work);
    const char *argv[] = {"ninja", p->jobs ? jobs : p->set->target, p->jobs ? p->set->target : NULL,
                          NULL};
    struct watch w = {.title = p->name};
    double start = now_seconds();
    unlink(cache);
    set_environment(p);
    int rc = step(p, argv, &w, e);
    if (rc > 0)
        rc = explain(p, &w, "the build", e);
    watch_free(&w);
    free(jobs);
    free(cache);
    o->wall_seconds = now_seconds() - start + o->configure_seconds;
    o->cpu_seconds = children_cpu() - o->cpu_before;
    count_ccache(p, o);
    return rc;
}

int build_run(const struct plan *p, const char *const *argv, const char *what, struct err *e)
{
    struct watch w = {.title = what};
    int rc = step(p, argv, &w, e);
    if (rc > 0)
        rc = explain(p, &w, what, e);
    watch_free(&w);
    return rc;
}
