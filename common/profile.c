#include "common/profile.h"
#include "common/fs.h"
#include "common/ini.h"
#include "common/store.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

// The sections whose keys are known. [cmake...] takes any key: the source tree says what it knows.
static const struct {
    const char *section, *keys;
} known[] = {
    {"profile", "description inherits toolchain linker optimisation text-alignment pie "
                "separate-code c-flags cxx-flags server-link-flags pad"},
    // The rules of kiln check (elfcheck/rules.c).
    {"promises",
     "relro-in-load host compiler linker optimisation march isa-level frame-pointers lto pgo bolt "
     "fast-math sanitizers assertions text-alignment load-segments modes text-coverage padded "
     "needed flavour server-version performance-schema allocator libnuma debug-info build-id "
     "symbols pie relro bind-now stack-protector fortify stack-clash branch-protection exec-stack "
     "writable-text text-relocations rpath"},
};
enum { NKNOWN = sizeof known / sizeof *known };

// One file on its way into a profile.
struct reader {
    struct profile own; // the file's keys alone
    const char *path;
    const char *file; // its last part, for origins
    int inherits_line;
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void key_free(struct profile_key *k)
{
    free(k->section);
    free(k->key);
    free(k->value);
    free(k->origin);
}

void profile_free(struct profile *p)
{
    for (size_t i = 0; i < p->n; i++)
        key_free(&p->keys[i]);
    free(p->keys);
    free(p->name);
    free(p->path);
    strv_free(&p->chain);
    *p = (struct profile){0};
}

const struct profile_key *profile_find(const struct profile *p, const char *section,
                                       const char *key)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->keys[i].section, section) && !strcmp(p->keys[i].key, key))
            return &p->keys[i];
    return NULL;
}

const char *profile_value(const struct profile *p, const char *section, const char *key,
                          const char *fallback)
{
    const struct profile_key *k = profile_find(p, section, key);
    return k ? k->value : fallback;
}

// Takes k over; one that is there already is replaced where it stands.
static void put(struct profile *p, struct profile_key k)
{
    struct profile_key *old = (struct profile_key *)profile_find(p, k.section, k.key);
    if (old) {
        key_free(old);
        *old = k;
        return;
    }
    p->keys = xrealloc(p->keys, (p->n + 1) * sizeof *p->keys);
    p->keys[p->n++] = k;
}

// "cmake", "cmake.mysql", "cmake.mysql<8.0.31": a flavour, then a comparison with a version.
static bool is_cmake_section(const char *s)
{
    if (!strcmp(s, "cmake"))
        return true;
    if (starts_with(s, "cmake.mariadb"))
        s += strlen("cmake.mariadb");
    else if (starts_with(s, "cmake.mysql"))
        s += strlen("cmake.mysql");
    else
        return false;
    if (!*s)
        return true;
    size_t op = strspn(s, "<>=");
    bool known_op = op == 1 || (op == 2 && s[0] != '=' && s[1] == '=');
    return known_op && isdigit((unsigned char)s[op]) &&
           strspn(s + op, "0123456789.") == strlen(s + op);
}

static bool has_word(const char *words, const char *word)
{
    struct strv l = {0};
    strv_split(&l, words, " ");
    bool yes = strv_has(&l, word);
    strv_free(&l);
    return yes;
}

static int check_key(const char *section, const char *key, struct err *e)
{
    if (is_cmake_section(section))
        return 0;
    for (size_t i = 0; i < NKNOWN; i++) {
        if (strcmp(known[i].section, section))
            continue;
        if (has_word(known[i].keys, key))
            return 0;
        return err_set(e, EXIT_CANNOT_ASK, "unknown key '%s' in [%s]; there are: %s", key, section,
                       known[i].keys);
    }
    return err_set(e, EXIT_CANNOT_ASK,
                   "unknown section [%s]; there are: profile, promises, cmake, cmake.mariadb, "
                   "cmake.mysql (both also with a version, as in cmake.mysql<8.0.31)",
                   section);
}

static int on_key(void *user, const char *section, const char *key, const char *value, int line,
                  struct err *e)
{
    struct reader *r = user;
    if (check_key(section, key, e))
        return -1;
    const struct profile_key *twice = profile_find(&r->own, section, key);
    if (twice)
        return err_set(e, EXIT_CANNOT_ASK, "'%s' is given twice in [%s], first at %s", key, section,
                       twice->origin);
    if (!strcmp(key, "inherits"))
        r->inherits_line = line;
    put(&r->own, (struct profile_key){xstrdup(section), xstrdup(key), xstrdup(value),
                                      xasprintf("%s:%d", r->file, line)});
    return 0;
}

static char *path_of(const char *name)
{
    if (strchr(name, '/') || ends_with(name, ".ini"))
        return xstrdup(name);
    return store_share("profiles/build/%s.ini", name);
}

// A profile's parent is looked for beside it, then among kiln's own.
static char *parent_path(const char *child_path, const char *name)
{
    if (strchr(name, '/'))
        return xstrdup(name);
    size_t dir = (size_t)(last_part(child_path) - child_path);
    char *beside = xasprintf("%.*s%s.ini", (int)dir, child_path, name);
    if (fs_exists(beside))
        return beside;
    free(beside);
    return store_share("profiles/build/%s.ini", name);
}

static int unknown(const char *where, int line, const char *name, struct err *e)
{
    struct strv names = {0};
    profile_names(&names, NULL);
    char *list = names.n ? strv_join(&names, ", ") : xstrdup("none");
    char *place = line ? xasprintf("%s:%d: ", where, line) : xstrdup("");
    err_set(e, EXIT_CANNOT_ASK, "%s%s: no such profile; there are: %s", place, name, list);
    free(place);
    free(list);
    strv_free(&names);
    return -1;
}

static int load_file(const char *name, const char *path, struct profile *p, struct err *e);

static int load_parent(const struct reader *r, const char *parent, struct profile *p, struct err *e)
{
    if (strv_has(&p->chain, parent)) {
        char *way = strv_join(&p->chain, " -> ");
        err_set(e, EXIT_CANNOT_ASK, "%s:%d: profiles inherit in a circle: %s -> %s", r->path,
                r->inherits_line, way, parent);
        free(way);
        return -1;
    }
    char *path = parent_path(r->path, parent);
    int rc = fs_exists(path) ? load_file(parent, path, p, e)
                             : unknown(r->path, r->inherits_line, parent, e);
    free(path);
    return rc;
}

// The parent's keys come first, so that what is nearer replaces what is farther.
static int load_file(const char *name, const char *path, struct profile *p, struct err *e)
{
    struct reader r = {.path = path, .file = last_part(path)};
    strv_add(&p->chain, name);
    int rc = ini_load(path, on_key, &r, e);
    const char *parent = profile_value(&r.own, "profile", "inherits", "");
    if (rc == 0 && *parent)
        rc = load_parent(&r, parent, p, e);
    for (size_t i = 0; i < r.own.n; i++)
        put(p, r.own.keys[i]);
    free(r.own.keys);
    return rc;
}

// A description that was inherited would describe another profile.
static void drop_foreign_description(struct profile *p)
{
    size_t kept = 0, own = strlen(last_part(p->path));
    for (size_t i = 0; i < p->n; i++) {
        struct profile_key *k = &p->keys[i];
        bool foreign = !strcmp(k->key, "description") &&
                       (strncmp(k->origin, last_part(p->path), own) || k->origin[own] != ':');
        if (foreign)
            key_free(k);
        else
            p->keys[kept++] = *k;
    }
    p->n = kept;
}

int profile_load(const char *name, struct profile *p, struct err *e)
{
    char *path = path_of(name), *base = xstrdup(last_part(name));
    if (ends_with(base, ".ini"))
        base[strlen(base) - 4] = 0;
    *p = (struct profile){.name = base, .path = path};
    int rc = fs_exists(path) ? load_file(base, path, p, e) : unknown(NULL, 0, name, e);
    if (rc) {
        profile_free(p);
        return rc;
    }
    drop_foreign_description(p);
    return 0;
}

static int is_ini(const struct dirent *d)
{
    return d->d_name[0] != '.' && ends_with(d->d_name, ".ini");
}

int profile_names(struct strv *names, struct err *e)
{
    char *dir = store_share("profiles/build");
    struct dirent **list = NULL;
    int n = scandir(dir, &list, is_ini, alphasort);
    if (n < 0)
        err_sys(e, EXIT_CANNOT_ASK, "%s", dir);
    for (int i = 0; i < n; i++) {
        strv_addf(names, "%.*s", (int)strlen(list[i]->d_name) - 4, list[i]->d_name);
        free(list[i]);
    }
    free(list);
    free(dir);
    return n < 0 ? -1 : 0;
}
