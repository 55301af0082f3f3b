#include "builder/source.h"
#include "builder/apt.h"
#include "builder/child.h"
#include "common/fs.h"
#include "common/store.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const flavours[] = {
    [FLAVOUR_NONE] = "unknown", [FLAVOUR_MARIADB] = "mariadb", [FLAVOUR_MYSQL] = "mysql"};

const char *flavour_name(enum flavour f)
{
    return flavours[f];
}

bool version_parse(const char *text, struct version *v)
{
    struct version r = {0};
    int n = 0, used = 0;
    n = sscanf(text, "%5u%n.%5u%n.%5u%n", &r.major, &used, &r.minor, &used, &r.patch, &used);
    if (n < 1 || text[used] || text[0] < '0' || text[0] > '9')
        return false;
    *v = r;
    return true;
}

int version_compare(struct version a, struct version b)
{
    if (a.major != b.major)
        return a.major < b.major ? -1 : 1;
    if (a.minor != b.minor)
        return a.minor < b.minor ? -1 : 1;
    return a.patch < b.patch ? -1 : a.patch > b.patch;
}

// The number after "KEY=" at the start of a line.
static bool read_number(const char *text, const char *key, unsigned *out)
{
    size_t n = strlen(key);
    for (const char *p = text; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
        if (!strncmp(p, key, n) && p[n] == '=')
            return sscanf(p + n + 1, "%5u", out) == 1;
    return false;
}

static bool has_key(const char *text, const char *key)
{
    const char *p = strstr(text, key);
    return p && (p == text || p[-1] == '\n');
}

bool source_read_version(const char *text, enum flavour *f, struct version *v)
{
    if (!read_number(text, "MYSQL_VERSION_MAJOR", &v->major) ||
        !read_number(text, "MYSQL_VERSION_MINOR", &v->minor) ||
        !read_number(text, "MYSQL_VERSION_PATCH", &v->patch))
        return false;
    // Both write the same keys. MariaDB adds SERVER_MATURITY. MySQL adds MYSQL_VERSION_MATURITY
    // (8.2 and later) or _STABILITY (late 8.0), and MYSQL_VERSION_EXTRA in all its versions.
    if (has_key(text, "SERVER_MATURITY="))
        *f = FLAVOUR_MARIADB;
    else if (has_key(text, "MYSQL_VERSION_MATURITY=") ||
             has_key(text, "MYSQL_VERSION_STABILITY=") || has_key(text, "MYSQL_VERSION_EXTRA="))
        *f = v->major >= 10 ? FLAVOUR_MARIADB : FLAVOUR_MYSQL;
    else
        return false;
    return true;
}

bool source_parse_name(const char *name, enum flavour *f, struct version *v)
{
    for (enum flavour i = FLAVOUR_MARIADB; i <= FLAVOUR_MYSQL; i++) {
        size_t n = strlen(flavours[i]);
        if (!strncmp(name, flavours[i], n) && name[n] == '-' && version_parse(name + n + 1, v)) {
            *f = i;
            return true;
        }
    }
    return false;
}

static bool detect_in(const char *dir, struct source *s)
{
    static const char *const files[] = {"MYSQL_VERSION", "VERSION"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = xasprintf("%s/%s", dir, files[i]);
        struct str text = {0};
        bool ok = fs_exists(path) && !fs_is_dir(path) && fs_read(path, &text, NULL) == 0 &&
                  source_read_version(str_text(&text), &s->flavour, &s->version);
        str_free(&text);
        free(path);
        if (ok)
            return true;
    }
    return false;
}

int source_detect(const char *dir, struct source *s, struct err *e)
{
    char *cmake = xasprintf("%s/CMakeLists.txt", dir);
    bool ok = detect_in(dir, s) && fs_exists(cmake);
    free(cmake);
    if (!ok)
        return err_set(e, EXIT_CANNOT_ASK,
                       "%s: neither a MySQL nor a MariaDB source tree (no MYSQL_VERSION or VERSION "
                       "file of theirs beside a CMakeLists.txt)",
                       dir);
    s->name = xasprintf("%s-%u.%u.%u", flavour_name(s->flavour), s->version.major, s->version.minor,
                        s->version.patch);
    s->dir = realpath(dir, NULL);
    return s->dir ? 0 : err_sys(e, EXIT_CANNOT_ASK, "%s", dir);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

// A stand-in for hashing half a gigabyte: names and sizes change with every release and with
// nearly every edit, and the manifest says that this is what was hashed.
static int checksum_dir(struct source *s, struct err *e)
{
    char *roots[] = {s->dir, NULL};
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    if (!fts)
        return err_sys(e, EXIT_CANNOT_ASK, "%s", s->dir);
    struct str list = {0};
    size_t skip = strlen(s->dir);
    for (FTSENT *f; (f = fts_read(fts));) {
        if (f->fts_info == FTS_D && !strcmp(f->fts_name, ".git"))
            fts_set(fts, f, FTS_SKIP);
        else if (f->fts_info == FTS_F)
            str_addf(&list, "%s %lld\n", f->fts_path + skip, (long long)f->fts_statp->st_size);
    }
    fts_close(fts);
    s->checksum = sha256_text(str_text(&list), e);
    s->checksum_how = xstrdup("sha256 of the sorted list of files with their sizes, without .git");
    str_free(&list);
    return s->checksum ? 0 : -1;
}

int source_adopt(const char *tree, struct source *s, struct err *e)
{
    if (source_detect(tree, s, e))
        return -1;
    char *home = store_path("sources/%s", s->name);
    int rc = 0;
    if (fs_is_dir(home))
        note("%s stands already in %s; it is used", s->name, home);
    else if (rename(tree, home))
        rc = err_sys(e, EXIT_NO, "%s", home);
    free(s->dir);
    s->dir = home;
    return rc;
}

// The only directory in dir, or dir itself.
static char *single_top(const char *dir)
{
    char *roots[] = {(char *)dir, NULL}, *found = NULL;
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    size_t n = 0;
    for (FTSENT *f; fts && (f = fts_read(fts));) {
        if (f->fts_level != 1 || f->fts_info == FTS_DP)
            continue;
        n++;
        if (f->fts_info == FTS_D) {
            fts_set(fts, f, FTS_SKIP);
            free(found);
            found = xstrdup(f->fts_path);
        }
    }
    if (fts)
        fts_close(fts);
    if (n == 1 && found)
        return found;
    free(found);
    return xstrdup(dir);
}

// tar itself refuses absolute names and "..".
static int unpack(const char *tarball, const char *tmp, struct err *e)
{
    const char *argv[] = {"tar", "--no-same-owner", "-xf", tarball, "-C", tmp, NULL};
    struct str out = {0};
    int rc = child_capture(argv, NULL, &out, e);
    if (rc > 0) {
        char *line = strtok(out.s ? out.s : (char[]){0}, "\n");
        rc = err_set(e, EXIT_CANNOT_ASK, "%s: cannot be unpacked whole: %s", tarball,
                     line ? line : "tar failed");
    }
    str_free(&out);
    return rc;
}

static int open_tarball(const char *tarball, struct source *s, struct err *e)
{
    char *tmp = store_path("sources/.unpack.XXXXXX");
    if (!mkdtemp(tmp)) {
        free(tmp);
        return err_sys(e, EXIT_NO, "%s/sources", store_home());
    }
    int rc = unpack(tarball, tmp, e);
    if (rc == 0) {
        char *top = single_top(tmp);
        chmod(top, 0755);
        rc = source_adopt(top, s, e);
        free(top);
        // The temporary name means nothing to the reader.
        if (rc && e && e->code == EXIT_CANNOT_ASK)
            err_set(e, EXIT_CANNOT_ASK, "%s: holds neither a MySQL nor a MariaDB source tree",
                    tarball);
    }
    fs_remove_tree(tmp, NULL);
    free(tmp);
    if (rc)
        return -1;
    s->checksum = sha256_file(tarball, e);
    s->checksum_how = xstrdup("sha256 of the tarball");
    return s->checksum ? 0 : -1;
}

int source_open(const char *spec, struct source *s, struct err *e)
{
    *s = (struct source){.from = xstrdup(spec)};
    if (starts_with(spec, "apt:"))
        return apt_source(spec + 4, s, e);
    if (!fs_exists(spec)) {
        errno = ENOENT;
        return err_sys(e, EXIT_CANNOT_ASK, "%s", spec);
    }
    if (!fs_is_dir(spec))
        return open_tarball(spec, s, e);
    return source_detect(spec, s, e) ? -1 : checksum_dir(s, e);
}

void source_free(struct source *s)
{
    free(s->name);
    free(s->dir);
    free(s->from);
    free(s->checksum);
    free(s->checksum_how);
    *s = (struct source){0};
}
