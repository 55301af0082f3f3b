#include "builder/apt.h"
#include "builder/child.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/store.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// "http://mirror.example.org/debian", "http://old.example.org/archive/debian-security/2026..."
static bool is_archive(const char *uri, const char *id)
{
    const char *host = strstr(uri, "://");
    const char *path = host ? strchr(host + 3, '/') : NULL;
    char *part = xasprintf("/%s", id);
    bool yes = path && strstr(path, part);
    free(part);
    return yes;
}

// "bookworm", "bookworm-updates", "bookworm/updates"
static bool is_release(const char *suite, const char *codename)
{
    size_t n = strlen(codename);
    return !strncmp(suite, codename, n) && (!suite[n] || suite[n] == '-' || suite[n] == '/');
}

// Of "[arch=amd64 signed-by=/x.gpg]": the value of signed-by, malloc'ed, or NULL.
static char *signed_by(const char *options)
{
    const char *p = strstr(options, "signed-by=");
    return p ? xstrndup(p + 10, strcspn(p + 10, " ]")) : NULL;
}

static unsigned convert_line(char *line, const char *id, const char *codename, struct str *out)
{
    if (strncmp(line, "deb", 3) || !strpbrk(line, " \t"))
        return 0;
    char *options = strchr(line, '['), *end = options ? strchr(options, ']') : NULL;
    char *key = end ? signed_by(options) : NULL;
    char *rest = end ? end + 1 : line + strcspn(line, " \t");
    struct strv words = {0};
    strv_split(&words, rest, " \t");
    unsigned taken = 0;
    if (words.n >= 3 && is_archive(words.v[0], id) && is_release(words.v[1], codename)) {
        str_addf(out, "Types: deb-src\nURIs: %s\nSuites: %s\nComponents:", words.v[0], words.v[1]);
        for (size_t i = 2; i < words.n; i++)
            str_addf(out, " %s", words.v[i]);
        str_addf(out, key ? "\nSigned-By: %s\n\n" : "\n\n%.0s", key ? key : "");
        taken = 1;
    }
    strv_free(&words);
    free(key);
    return taken;
}

unsigned apt_convert_list(const char *text, const char *id, const char *codename, struct str *out)
{
    struct strv lines = {0};
    unsigned n = 0;
    strv_split(&lines, text, "\n");
    for (size_t i = 0; i < lines.n; i++)
        n += convert_line(trim(lines.v[i]), id, codename, out);
    strv_free(&lines);
    return n;
}

struct stanza {
    struct str uris, suites, kept; // kept: Components and Signed-By, with their further lines
    bool disabled;
};

static void stanza_line(struct stanza *s, const char *line, struct str **into)
{
    if (*line == ' ' || *line == '\t') {
        if (*into)
            str_addf(*into, *into == &s->kept ? "%s\n" : "%s", line);
        return;
    }
    *into = NULL;
    if (!strncasecmp(line, "URIs:", 5))
        str_add(*into = &s->uris, line + 5);
    else if (!strncasecmp(line, "Suites:", 7))
        str_add(*into = &s->suites, line + 7);
    else if (!strncasecmp(line, "Enabled:", 8))
        s->disabled = strstr(line, "no") != NULL;
    else if (!strncasecmp(line, "Components:", 11) || !strncasecmp(line, "Signed-By:", 10))
        str_addf(*into = &s->kept, "%s\n", line);
}

static void keep_words(const char *text, bool (*keep)(const char *, const char *), const char *arg,
                       struct strv *out)
{
    struct strv words = {0};
    strv_split(&words, text, " \t");
    for (size_t i = 0; i < words.n; i++)
        if (keep(words.v[i], arg))
            strv_add(out, words.v[i]);
    strv_free(&words);
}

static unsigned stanza_end(struct stanza *s, const char *id, const char *codename, struct str *out)
{
    struct strv uris = {0}, suites = {0};
    keep_words(str_text(&s->uris), is_archive, id, &uris);
    keep_words(str_text(&s->suites), is_release, codename, &suites);
    unsigned taken = uris.n && suites.n && !s->disabled;
    if (taken) {
        char *u = strv_join(&uris, " "), *v = strv_join(&suites, " ");
        str_addf(out, "Types: deb-src\nURIs: %s\nSuites: %s\n%s\n", u, v, str_text(&s->kept));
        free(u);
        free(v);
    }
    strv_free(&uris);
    strv_free(&suites);
    str_free(&s->uris);
    str_free(&s->suites);
    str_free(&s->kept);
    *s = (struct stanza){0};
    return taken;
}

unsigned apt_convert_deb822(const char *text, const char *id, const char *codename, struct str *out)
{
    struct stanza s = {0};
    struct str *into = NULL;
    unsigned n = 0;
    while (*text) {
        size_t len = strcspn(text, "\n");
        char *line = xstrndup(text, len);
        if (!line[strspn(line, " \t")])
            n += stanza_end(&s, id, codename, out);
        else if (*line != '#')
            stanza_line(&s, line, &into);
        free(line);
        text += len + (text[len] == '\n');
    }
    return n + stanza_end(&s, id, codename, out);
}

// A value of /etc/os-release, malloc'ed.
static char *os_release(const char *key)
{
    struct str text = {0};
    struct strv lines = {0};
    char *value = NULL;
    fs_read("/etc/os-release", &text, NULL);
    strv_split(&lines, str_text(&text), "\n");
    for (size_t i = 0; i < lines.n && !value; i++) {
        char *eq = strchr(lines.v[i], '=');
        if (eq && (size_t)(eq - lines.v[i]) == strlen(key) && starts_with(lines.v[i], key))
            value = xstrndup(eq + 1 + (eq[1] == '"'), strcspn(eq + 1 + (eq[1] == '"'), "\""));
    }
    strv_free(&lines);
    str_free(&text);
    return value ? value : xstrdup("");
}

static unsigned convert_files(struct str *out)
{
    char *id = os_release("ID"), *codename = os_release("VERSION_CODENAME");
    static const char *const patterns[] = {"/etc/apt/sources.list",
                                           "/etc/apt/sources.list.d/*.list",
                                           "/etc/apt/sources.list.d/*.sources"};
    glob_t files = {0};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &files);
    unsigned n = 0;
    for (size_t i = 0; *codename && i < files.gl_pathc; i++) {
        struct str text = {0};
        if (fs_read(files.gl_pathv[i], &text, NULL) == 0)
            n += (ends_with(files.gl_pathv[i], ".sources") ? apt_convert_deb822 : apt_convert_list)(
                str_text(&text), id, codename, out);
        str_free(&text);
    }
    globfree(&files);
    free(id);
    free(codename);
    return n;
}

static int write_config(const char *apt, struct err *e)
{
    static const char *const dirs[] = {"sources.d", "lists/partial", "cache/archives/partial"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char *d = xasprintf("%s/%s", apt, dirs[i]);
        int rc = fs_mkdirs(d, 0755, e);
        free(d);
        if (rc)
            return rc;
    }
    struct str text = {0};
    char *file = xasprintf("%s/sources.d/kiln.sources", apt);
    int rc = convert_files(&text) ? fs_write_atomic(file, str_text(&text), e)
                                  : err_set(e, EXIT_NOT_HERE,
                                            "no archive entry of this release in "
                                            "/etc/apt/sources.list or sources.list.d");
    free(file);
    str_free(&text);
    return rc;
}

// program with the options that point it to kiln's own configuration, then words.
static int run_apt(const char *apt, const char *program, const char *const *words, const char *cwd,
                   struct str *out, struct err *e)
{
    struct strv argv = {0};
    strv_add(&argv, program);
    strv_add(&argv, "-oDir::Etc::sourcelist=/dev/null");
    strv_addf(&argv, "-oDir::Etc::sourceparts=%s/sources.d", apt);
    strv_addf(&argv, "-oDir::State::lists=%s/lists", apt);
    strv_addf(&argv, "-oDir::Cache=%s/cache", apt);
    strv_add(&argv, "-oDir::Cache::pkgcache=");
    strv_add(&argv, "-oDir::Cache::srcpkgcache=");
    for (; *words; words++)
        strv_add(&argv, *words);
    int rc = child_capture((const char *const *)argv.v, cwd, out, e);
    strv_free(&argv);
    return rc;
}

// apt's own complaint: its first line with "E:", else its last line.
static char *complaint(const char *text)
{
    struct strv lines = {0};
    strv_split(&lines, text, "\n");
    const char *found = lines.n ? lines.v[lines.n - 1] : "it failed";
    for (size_t i = lines.n; i--;)
        if (starts_with(lines.v[i], "E: "))
            found = lines.v[i] + 3;
    char *copy = xstrdup(found);
    strv_free(&lines);
    return copy;
}

static bool newer(const char *a, const char *b)
{
    const char *argv[] = {"dpkg", "--compare-versions", a, "gt", b, NULL};
    struct str out = {0};
    int rc = child_capture(argv, NULL, &out, NULL);
    str_free(&out);
    return rc == 0;
}

static void add_sorted(struct strv *versions, const char *v)
{
    if (strv_has(versions, v))
        return;
    strv_add(versions, v);
    for (size_t i = versions->n - 1; i && newer(versions->v[i], versions->v[i - 1]); i--) {
        char *t = versions->v[i];
        versions->v[i] = versions->v[i - 1];
        versions->v[i - 1] = t;
    }
}

// Newest first.
static int list_versions(const char *apt, const char *package, struct strv *versions, struct err *e)
{
    struct str out = {0};
    struct strv lines = {0};
    const char *words[] = {"showsrc", "--only-source", package, NULL};
    int rc = run_apt(apt, "apt-cache", words, NULL, &out, e);
    strv_split(&lines, str_text(&out), "\n");
    for (size_t i = 0; i < lines.n; i++)
        if (starts_with(lines.v[i], "Version: "))
            add_sorted(versions, lines.v[i] + 9);
    strv_free(&lines);
    str_free(&out);
    if (rc >= 0 && !versions->n)
        rc = err_set(e, EXIT_CANNOT_ASK, "apt:%s: no such source package", package);
    return rc < 0 ? -1 : 0;
}

// Tries the versions in turn: a mirror may list one that it has not.
static int download(const char *apt, const char *package, const char *tmp, char **taken,
                    struct err *e)
{
    struct strv versions = {0};
    int rc = list_versions(apt, package, &versions, e);
    for (size_t i = 0; rc == 0 && !*taken && i < versions.n; i++) {
        struct str out = {0};
        char *what = xasprintf("%s=%s", package, versions.v[i]);
        const char *words[] = {"source", "--download-only", "--only-source", what, NULL};
        note("fetching %s", what);
        int code = run_apt(apt, "apt-get", words, tmp, &out, e);
        if (code == 0)
            *taken = xstrdup(versions.v[i]);
        else if (code < 0)
            rc = -1;
        else {
            char *why = complaint(str_text(&out));
            err_set(e, EXIT_NO, "apt:%s: cannot be fetched: %s", package, why);
            if (i + 1 < versions.n)
                warning("%s: %s; trying the version before", what, why);
            free(why);
        }
        free(what);
        str_free(&out);
    }
    strv_free(&versions);
    return *taken ? 0 : -1;
}

static char *one_file(const char *dir, const char *pattern)
{
    char *full = xasprintf("%s/%s", dir, pattern), *found = NULL;
    glob_t g = {0};
    if (glob(full, 0, NULL, &g) == 0 && g.gl_pathc)
        found = xstrdup(g.gl_pathv[0]);
    globfree(&g);
    free(full);
    return found;
}

static int unpack_dsc(const char *tmp, struct source *s, struct err *e)
{
    char *dsc = one_file(tmp, "*.dsc"), *tar = one_file(tmp, "*.orig.tar.*");
    char *tree = xasprintf("%s/tree", tmp);
    const char *argv[] = {"dpkg-source", "-x", dsc, tree, NULL};
    struct str out = {0};
    int rc = dsc ? child_capture(argv, NULL, &out, e) : 1;
    if (rc > 0)
        rc = err_set(e, EXIT_NO, "%s: dpkg-source cannot unpack it", dsc ? dsc : tmp);
    if (rc == 0)
        rc = source_adopt(tree, s, e);
    if (rc == 0) {
        s->checksum = sha256_file(dsc, e);
        s->checksum_how = xstrdup("sha256 of the source package's .dsc, which lists the sha256 of "
                                  "its tarballs");
        rc = s->checksum ? 0 : -1;
    }
    str_free(&out);
    free(dsc);
    free(tar);
    free(tree);
    return rc;
}

static void remember(const char *file, const char *version, const struct source *s)
{
    json_t *j = json_new("kiln.source/1");
    json_object_set_new(j, "package_version", json_string(version));
    json_object_set_new(j, "dir", json_string(s->dir));
    json_object_set_new(j, "checksum", json_string(s->checksum));
    json_object_set_new(j, "checksum_of", json_string(s->checksum_how));
    json_save(j, file, NULL);
    json_decref(j);
}

static bool recall(const char *file, const char *package, struct source *s)
{
    json_t *j = fs_exists(file) ? json_open(file, "kiln.source/1", NULL) : NULL;
    bool ok =
        j && fs_is_dir(json_text(j, "dir")) && source_detect(json_text(j, "dir"), s, NULL) == 0;
    if (ok) {
        s->checksum = xstrdup(json_text(j, "checksum"));
        s->checksum_how = xstrdup(json_text(j, "checksum_of"));
        note("%s %s was fetched before: %s", package, json_text(j, "package_version"), s->dir);
    }
    json_decref(j);
    return ok;
}

static int fetch(const char *apt, const char *package, char **version, struct source *s,
                 struct err *e)
{
    // apt downloads as its own user, which must be able to write here.
    char *tmp = store_path("sources/.apt.XXXXXX");
    struct str out = {0};
    const char *update[] = {"update", NULL};
    int rc = mkdtemp(tmp) ? 0 : err_sys(e, EXIT_NO, "%s/sources", store_home());
    if (rc == 0)
        chmod(tmp, 0755);
    if (rc == 0 && (rc = run_apt(apt, "apt-get", update, NULL, &out, e)) > 0) {
        char *why = complaint(str_text(&out));
        rc = err_set(e, EXIT_NO, "apt-get update: %s", why);
        free(why);
    }
    if (rc == 0)
        rc = download(apt, package, tmp, version, e);
    if (rc == 0)
        rc = unpack_dsc(tmp, s, e);
    str_free(&out);
    fs_remove_tree(tmp, NULL);
    free(tmp);
    return rc;
}

static int check_programs(struct err *e)
{
    static const char *const rows[][2] = {{"apt-get", "apt"}, {"dpkg-source", "dpkg-dev"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *p = fs_find_program(rows[i][0]);
        if (!p)
            return err_set(e, EXIT_NOT_HERE, "%s is not installed (package %s)", rows[i][0],
                           rows[i][1]);
        free(p);
    }
    return 0;
}

int apt_source(const char *package, struct source *s, struct err *e)
{
    if (!*package || strspn(package, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != strlen(package))
        return err_set(e, EXIT_CANNOT_ASK, "apt:%s: not a package name", package);
    char *apt = store_path("sources/apt"), *file = xasprintf("%s/%s.json", apt, package);
    char *version = NULL;
    int rc = 0;
    if (!recall(file, package, s)) {
        if (check_programs(e) || write_config(apt, e) || fetch(apt, package, &version, s, e))
            rc = -1;
        else
            remember(file, version, s);
        if (rc == 0)
            note("took %s %s: %s", package, version, s->dir);
    }
    free(version);
    free(file);
    free(apt);
    return rc;
}
