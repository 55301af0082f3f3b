#include "builder/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How each linker is told what a profile wants. What each of them makes of these flags was tried:
// gold ends with an error on separate-code in either form, lld and mold leave the text where the
// rodata ends unless separate-code moves it to a page of its own, and common-page-size is nowhere
// needed while lld before 18 makes a binary with it that does not start.
struct linker {
    const char *name;
    const char *align;      // added to max-page-size, or NULL
    const char *joint_code; // separate-code=no, or NULL: the linker cannot
    const char *split_code; // separate-code=yes
};

static const struct linker linkers[] = {
    {"bfd", NULL, "-Wl,-z,noseparate-code", "-Wl,-z,separate-code"},
    {"gold", NULL, NULL, NULL},
    {"lld", "-Wl,-z,separate-code", "-Wl,-z,noseparate-code", "-Wl,-z,separate-code"},
    {"mold", "-Wl,-z,separate-code", "-Wl,-z,noseparate-code", "-Wl,-z,separate-code"},
};

// What kiln itself always says to a server's cmake. from is included, below is not; 0 is no bound.
struct always {
    enum flavour flavour;
    struct version from, below;
    const char *name, *value;
};

static const struct always always_rows[] = {
    {FLAVOUR_MARIADB, {0}, {0}, "MYSQL_MAINTAINER_MODE", "OFF"},
    {FLAVOUR_MARIADB, {0}, {0}, "WITH_UNIT_TESTS", "OFF"},
    {FLAVOUR_MARIADB, {0}, {0}, "CONC_WITH_UNITTEST", "OFF"},
    {FLAVOUR_MYSQL, {0}, {0}, "WITH_UNIT_TESTS", "OFF"},
    // 8.0 links with lld or gold on its own when it finds them; the profile names the linker.
    {FLAVOUR_MYSQL, {5, 7, 0}, {8, 0, 31}, "USE_LD_GOLD", "OFF"},
    {FLAVOUR_MYSQL, {8, 0, 16}, {8, 3, 0}, "USE_LD_LLD", "OFF"},
    // Else RelWithDebInfo takes the distribution's own flags on top.
    {FLAVOUR_MYSQL, {8, 0, 17}, {0}, "WITH_PACKAGE_FLAGS", "OFF"},
};

static const char *const levels[] = {"-O0", "-O1", "-O2", "-O3", "-Os", "-Ofast"};

static struct cmake_arg *arg_get(struct resolution *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (!strcmp(r->args[i].name, name))
            return &r->args[i];
    r->args = xrealloc(r->args, (r->n + 1) * sizeof *r->args);
    r->args[r->n] = (struct cmake_arg){.name = xstrdup(name)};
    return &r->args[r->n++];
}

static void arg_clear(struct cmake_arg *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->parts[i].text);
        free(a->parts[i].origin);
    }
    free(a->parts);
    a->parts = NULL;
    a->n = 0;
}

static void arg_append(struct resolution *r, const char *name, const char *text, const char *origin)
{
    struct cmake_arg *a = arg_get(r, name);
    a->parts = xrealloc(a->parts, (a->n + 1) * sizeof *a->parts);
    a->parts[a->n++] = (struct part){.text = xstrdup(text), .origin = xstrdup(origin)};
}

static void arg_set(struct resolution *r, const char *name, const char *text, const char *origin)
{
    arg_clear(arg_get(r, name));
    arg_append(r, name, text, origin);
}

const struct cmake_arg *resolution_arg(const struct resolution *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (!strcmp(r->args[i].name, name))
            return &r->args[i];
    return NULL;
}

char *cmake_arg_value(const struct cmake_arg *arg)
{
    struct str v = {0};
    for (size_t i = 0; i < arg->n; i++) {
        str_add(&v, i ? " " : "");
        str_add(&v, arg->parts[i].text);
    }
    char *text = xstrdup(str_text(&v));
    str_free(&v);
    return text;
}

static bool compare_holds(const char *op, int cmp)
{
    switch (op[0]) {
    case '<':
        return op[1] == '=' ? cmp <= 0 : cmp < 0;
    case '>':
        return op[1] == '=' ? cmp >= 0 : cmp > 0;
    default:
        return cmp == 0;
    }
}

int cmake_section_applies(const char *section, enum flavour f, struct version v)
{
    if (!starts_with(section, "cmake"))
        return -1;
    const char *p = section + 5;
    if (!*p)
        return 1;
    size_t n = strcspn(p, "<>=");
    if (*p != '.' || n < 2)
        return -1;
    const char *name = flavour_name(f), *op = p + n;
    bool same = strlen(name) == n - 1 && !strncmp(p + 1, name, n - 1);
    if (!*op)
        return same;
    struct version bound;
    if (!version_parse(op + strspn(op, "<>="), &bound))
        return -1;
    return same && compare_holds(op, version_compare(v, bound));
}

static bool in_range(const struct always *row, const struct target *t)
{
    return row->flavour == t->flavour && version_compare(t->version, row->from) >= 0 &&
           (row->below.major == 0 || version_compare(t->version, row->below) < 0);
}

static const struct linker *find_linker(const char *name)
{
    for (size_t i = 0; i < sizeof linkers / sizeof *linkers; i++)
        if (!strcmp(linkers[i].name, name))
            return &linkers[i];
    return NULL;
}

static int bad_value(struct err *e, const struct profile_key *k, const char *why)
{
    return err_set(e, EXIT_CANNOT_ASK, "%s: %s = %s: %s", k->origin, k->key, k->value, why);
}

// The target's link flags, collected before it is known to which option they go.
struct link {
    struct resolution *r;
    const char *arg;
};

static void link_add(struct link *l, const char *flag, const char *origin)
{
    arg_append(l->r, l->arg, flag, origin);
    strv_add(&l->r->server_link_flags, flag);
}

static int link_alignment(const struct profile *p, const struct linker *ld, struct link *l,
                          struct err *e)
{
    const struct profile_key *k = profile_find(p, "profile", "text-alignment");
    if (!k || !strcmp(k->value, "default"))
        return 0;
    uint64_t bytes;
    if (parse_size(k->value, &bytes) || bytes < 4096 || (bytes & (bytes - 1)))
        return bad_value(e, k, "not a page size (4k, 64k, 2M, default)");
    char *flag = xasprintf("-Wl,-z,max-page-size=%llu", (unsigned long long)bytes);
    link_add(l, flag, k->origin);
    free(flag);
    if (ld->align)
        link_add(l, ld->align, k->origin);
    return 0;
}

static int link_separate_code(const struct profile *p, const struct linker *ld, struct link *l,
                              struct err *e)
{
    const struct profile_key *k = profile_find(p, "profile", "separate-code");
    if (!k || !strcmp(k->value, "default"))
        return 0;
    bool yes = !strcmp(k->value, "yes");
    if (!yes && strcmp(k->value, "no"))
        return bad_value(e, k, "not one of yes, no, default");
    const char *flag = yes ? ld->split_code : ld->joint_code;
    if (!flag)
        return bad_value(e, k, "the profile's linker does not know -z separate-code");
    if (yes && ld->align && profile_find(p, "profile", "text-alignment"))
        return 0; // said already
    link_add(l, flag, k->origin);
    return 0;
}

static int link_pie(const struct profile *p, struct link *l, struct err *e)
{
    const struct profile_key *k = profile_find(p, "profile", "pie");
    if (!k || !strcmp(k->value, "default"))
        return 0;
    bool yes = !strcmp(k->value, "yes");
    if (!yes && strcmp(k->value, "no"))
        return bad_value(e, k, "not one of yes, no, default");
    // At the link alone: objects compiled for PIE serve both, so nothing is compiled again.
    link_add(l, yes ? "-pie" : "-no-pie", k->origin);
    return 0;
}

// Layout flags go to the server alone where the tree allows it (MariaDB): its target's link flags
// come after all others, so that -no-pie wins over the -pie of SECURITY_HARDENED, and a profile
// that differs in them compiles nothing again.
static int resolve_linker(const struct profile *p, const struct target *t, struct resolution *r,
                          struct err *e)
{
    const struct profile_key *k = profile_find(p, "profile", "linker");
    const char *name = k ? k->value : "bfd", *origin = k ? k->origin : "kiln";
    const struct linker *ld = find_linker(name);
    if (!ld)
        return bad_value(e, k, "not one of bfd, gold, lld, mold");
    const struct version gcc_with_mold = {12, 1, 0};
    if (!strcmp(name, "mold") && starts_with(r->toolchain, "gcc") && t->compiler.major &&
        version_compare(t->compiler, gcc_with_mold) < 0)
        return bad_value(e, k, "gcc before 12.1 knows no -fuse-ld=mold");
    r->linker = xstrdup(name);
    struct link l = {r, t->flavour == FLAVOUR_MARIADB ? "WITH_MYSQLD_LDFLAGS"
                                                      : "CMAKE_EXE_LINKER_FLAGS"};
    char *use = xasprintf("-fuse-ld=%s", name);
    link_add(&l, use, origin);
    free(use);
    if (link_alignment(p, ld, &l, e) || link_separate_code(p, ld, &l, e) || link_pie(p, &l, e))
        return -1;
    k = profile_find(p, "profile", "server-link-flags");
    if (k)
        link_add(&l, k->value, k->origin);
    return 0;
}

// Refused before the build where the profile itself says that it would be refused after it.
static int resolve_pad(const struct profile *p, struct resolution *r, struct err *e)
{
    const struct profile_key *k = profile_find(p, "profile", "pad");
    r->pad = k && !strcmp(k->value, "yes");
    r->pad_origin = xstrdup(k ? k->origin : "kiln");
    if (k && !r->pad && strcmp(k->value, "no"))
        return bad_value(e, k, "not one of yes, no");
    if (!r->pad)
        return 0;
    if (!strcmp(r->linker, "gold"))
        return bad_value(e, k, "gold puts data where the padding would be; take bfd, lld or mold");
    if (!strcmp(profile_value(p, "profile", "separate-code", "default"), "no"))
        return bad_value(e, k, "data follows the text where separate-code = no; take it out");
    uint64_t bytes = 0;
    parse_size(profile_value(p, "profile", "text-alignment", "default"), &bytes);
    if (bytes >= 2 << 20 ||
        strstr(profile_value(p, "profile", "server-link-flags", ""), "max-page-size"))
        return 0;
    return bad_value(e, k, "needs text-alignment = 2M");
}

static int resolve_level(const struct profile *p, struct resolution *r, struct err *e)
{
    const struct profile_key *k = profile_find(p, "profile", "optimisation");
    const char *level = k ? k->value : "-O2", *origin = k ? k->origin : "kiln";
    bool known = false;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        known |= !strcmp(level, levels[i]);
    if (!known)
        return bad_value(e, k, "not one of -O0, -O1, -O2, -O3, -Os, -Ofast");
    r->level = xstrdup(level);
    // In the build type's own variable, which comes after CMAKE_CXX_FLAGS: the last -O wins.
    static const char *const vars[] = {"CMAKE_C_FLAGS_RELWITHDEBINFO",
                                       "CMAKE_CXX_FLAGS_RELWITHDEBINFO"};
    for (size_t i = 0; i < 2; i++) {
        arg_set(r, vars[i], level, origin);
        arg_append(r, vars[i], "-g -DNDEBUG", "kiln");
    }
    return 0;
}

static void resolve_compile_flags(const struct profile *p, const struct target *t,
                                  struct resolution *r)
{
    static const struct {
        const char *key, *arg;
    } rows[] = {{"c-flags", "CMAKE_C_FLAGS"}, {"cxx-flags", "CMAKE_CXX_FLAGS"}};
    char *map = xasprintf("-ffile-prefix-map=%s=/kiln", t->home);
    for (size_t i = 0; i < 2; i++) {
        arg_set(r, rows[i].arg, map, "kiln");
        const struct profile_key *k = profile_find(p, "profile", rows[i].key);
        if (k)
            arg_append(r, rows[i].arg, k->value, k->origin);
    }
    free(map);
}

static void resolve_always(const struct target *t, struct resolution *r)
{
    static const char *const rows[][2] = {
        {"CMAKE_BUILD_TYPE", "RelWithDebInfo"},  {"CMAKE_EXPORT_COMPILE_COMMANDS", "ON"},
        {"CMAKE_C_COMPILER_LAUNCHER", "ccache"}, {"CMAKE_CXX_COMPILER_LAUNCHER", "ccache"},
        {"CMAKE_INSTALL_PREFIX", "/opt/kiln"},
    };
    arg_set(r, "CMAKE_TOOLCHAIN_FILE", t->toolchain_file, "kiln");
    if (t->flavour == FLAVOUR_MYSQL && t->boost)
        arg_set(r, "WITH_BOOST", t->boost, "kiln");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        arg_set(r, rows[i][0], rows[i][1], "kiln");
    for (size_t i = 0; i < sizeof always_rows / sizeof *always_rows; i++)
        if (in_range(&always_rows[i], t))
            arg_set(r, always_rows[i].name, always_rows[i].value, "kiln");
}

static int resolve_options(const struct profile *p, const struct target *t, struct resolution *r,
                           struct err *e)
{
    for (size_t i = 0; p && i < p->n; i++) {
        const struct profile_key *k = &p->keys[i];
        if (!starts_with(k->section, "cmake"))
            continue;
        int applies = cmake_section_applies(k->section, t->flavour, t->version);
        if (applies < 0)
            return err_set(e, EXIT_CANNOT_ASK,
                           "%s: [%s] is not [cmake], [cmake.FLAVOUR] or [cmake.FLAVOUR<VERSION]",
                           k->origin, k->section);
        if (applies)
            arg_set(r, k->key, k->value, k->origin);
    }
    return 0;
}

int resolve(const struct profile *p, const struct target *t, struct resolution *r, struct err *e)
{
    *r = (struct resolution){.toolchain = xstrdup(profile_value(p, "profile", "toolchain", "gcc"))};
    resolve_always(t, r);
    resolve_compile_flags(p, t, r);
    if (resolve_level(p, r, e) || resolve_linker(p, t, r, e) || resolve_pad(p, r, e) ||
        resolve_options(t->feature, t, r, e) || resolve_options(p, t, r, e)) {
        resolution_free(r);
        return -1;
    }
    return 0;
}

void resolution_free(struct resolution *r)
{
    for (size_t i = 0; i < r->n; i++) {
        arg_clear(&r->args[i]);
        free(r->args[i].name);
    }
    free(r->args);
    free(r->toolchain);
    free(r->linker);
    free(r->level);
    free(r->pad_origin);
    strv_free(&r->server_link_flags);
    *r = (struct resolution){0};
}
