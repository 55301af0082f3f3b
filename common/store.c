#include "common/store.h"
#include "common/fs.h"
#include "common/json.h"

#include <errno.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *env(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

// A relative $KILN_HOME would mean another place after every chdir.
static char *absolute(const char *path)
{
    if (*path == '/')
        return xstrdup(path);
    char *cwd = getcwd(NULL, 0), *p = xasprintf("%s/%s", cwd ? cwd : "", path);
    free(cwd);
    return p;
}

const char *store_home(void)
{
    static char *home;
    if (home)
        return home;
    if (env("KILN_HOME"))
        home = absolute(env("KILN_HOME"));
    else if (geteuid() == 0)
        home = xstrdup("/var/lib/kiln");
    else if (env("XDG_DATA_HOME"))
        home = xasprintf("%s/kiln", env("XDG_DATA_HOME"));
    else
        home = xasprintf("%s/.local/share/kiln", env("HOME") ? env("HOME") : "/tmp");
    return home;
}

__attribute__((format(printf, 2, 0))) static char *join(const char *base, const char *fmt,
                                                        va_list ap)
{
    char rest[3000];
    vsnprintf(rest, sizeof rest, fmt, ap);
    return xasprintf("%s/%s", base, rest);
}

char *store_path(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = join(store_home(), fmt, ap);
    va_end(ap);
    return p;
}

int store_init(struct err *e)
{
    static const char *const dirs[] = {"sources", "builds", "datasets", "runs", "work"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char *p = store_path("%s", dirs[i]);
        int rc = fs_mkdirs(p, 0755, e);
        free(p);
        if (rc)
            return rc;
    }
    return 0;
}

const char *store_run_dir(void)
{
    static char *run;
    if (run)
        return run;
    if (env("KILN_RUN"))
        run = absolute(env("KILN_RUN"));
    else if (geteuid() == 0)
        run = xstrdup("/run/kiln");
    else if (env("XDG_RUNTIME_DIR"))
        run = xasprintf("%s/kiln", env("XDG_RUNTIME_DIR"));
    else
        run = xasprintf("/tmp/kiln-%u", geteuid());
    return run;
}

int store_init_run(struct err *e)
{
    const char *run = store_run_dir();
    if (fs_mkdirs(run, 0755, e))
        return -1;
    struct stat st;
    if (lstat(run, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(e, EXIT_CANNOT_ASK,
                       "%s: not a directory of uid %u that only it can write; set KILN_RUN", run,
                       geteuid());
    return 0;
}

const char *store_bin_dir(void)
{
    static char *dir;
    if (!dir) {
        char *exe = realpath("/proc/self/exe", NULL);
        dir = xstrdup(exe ? dirname(exe) : ".");
        free(exe);
    }
    return dir;
}

char *store_share(const char *fmt, ...)
{
    static char *share;
    if (!share) {
        char *installed = xasprintf("%s/../share/kiln", store_bin_dir());
        if (env("KILN_SHARE"))
            share = absolute(env("KILN_SHARE"));
        else if (fs_is_dir(installed))
            share = realpath(installed, NULL);
        else
            share = xasprintf("%s/..", store_bin_dir());
        free(installed);
    }
    va_list ap;
    va_start(ap, fmt);
    char *p = join(share, fmt, ap);
    va_end(ap);
    char *real = realpath(p, NULL);
    if (!real)
        return p;
    free(p);
    return real;
}

// Debian keeps messages in /usr/share/mysql (or mariadb), a build of ours in share/.
static void find_messages(struct build *b)
{
    static const char *const tries[] = {"%s/share", "%s/share/mysql", "%s/share/mariadb"};
    for (size_t i = 0; i < sizeof tries / sizeof *tries && !b->messages; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        char *dir = xasprintf(tries[i], b->basedir);
#pragma GCC diagnostic pop
        char *file = xasprintf("%s/english/errmsg.sys", dir);
        if (fs_exists(file))
            b->messages = dir;
        else
            free(dir);
        free(file);
    }
}

// .../bin/mariadbd -> ...; /usr/sbin/mariadbd -> /usr
static void from_server(struct build *b, const char *server)
{
    b->server = realpath(server, NULL);
    char *copy = xstrdup(b->server), *up = dirname(copy);
    b->basedir = xstrdup(dirname(up));
    free(copy);
    find_messages(b);
}

int build_find(const char *name, struct build *b, struct err *e)
{
    *b = (struct build){.name = xstrdup(name)};
    char *path = NULL;
    if (!strcmp(name, "system")) {
        path = fs_find_program("mariadbd");
        if (!path)
            path = fs_find_program("mysqld");
        if (!path)
            return err_set(e, EXIT_CANNOT_ASK,
                           "system: no mariadbd or mysqld in PATH or /usr/sbin; install a server "
                           "package (Debian: mariadb-server-core)");
    } else if (strchr(name, '/')) {
        path = xstrdup(name);
        if (!fs_exists(path)) {
            free(path);
            errno = ENOENT;
            return err_sys(e, EXIT_CANNOT_ASK, "%s", name);
        }
    } else {
        char *file = store_path("builds/%s/manifest.json", name);
        if (!fs_exists(file)) {
            free(file);
            return err_set(e, EXIT_CANNOT_ASK,
                           "%s: no such build in %s/builds; 'kiln list' shows what is there", name,
                           store_home());
        }
        b->manifest = json_open(file, "kiln.manifest/1", e);
        free(file);
        if (!b->manifest)
            return -1;
        path = store_path("builds/%s/%s", name,
                          json_text(json_object_get(b->manifest, "server"), "path"));
        if (!fs_exists(path)) {
            int rc = err_set(e, EXIT_CANNOT_ASK, "%s: the build's server %s is gone", name, path);
            free(path);
            return rc;
        }
    }
    from_server(b, path);
    free(path);
    return 0;
}

void build_free(struct build *b)
{
    free(b->name);
    free(b->server);
    free(b->basedir);
    free(b->messages);
    json_decref(b->manifest);
    *b = (struct build){0};
}
