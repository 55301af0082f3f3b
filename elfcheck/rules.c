#include "elfcheck/rules.h"
#include "common/ini.h"
#include "elfcheck/rules_private.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PADS                                                                                       \
    "link with -Wl,-z,max-page-size=2097152 -Wl,-z,separate-code, and do not rewrite the file "    \
    "with patchelf"

struct rule {
    const char *name;
    rule_fn *fn;       // NULL: the fact of this name has the value
    const char *words; // the first words that the fact can have, or that fn takes; NULL: see values
    const char *values;     // what it takes, when that is no list of words
    const char *advised;    // what kiln advises for a server; NULL: nothing
    enum severity severity; // of the advice
    bool by_flags;          // known from recorded flags alone
    const char *seps;       // between several values, each judged alone; NULL: one value
    const char *advice;     // which flag to change
    const char *pads;       // the same for lld and mold; NULL: as for the others
};

static const char no_evidence[] =
    "keep debug information, and with clang give -grecord-command-line, so that flags are recorded";

// The order is that of the output.
static const struct rule rules[] = {
    {.name = "relro-in-load",
     .words = "yes no",
     .advised = "yes",
     .advice = "it does not start: link without -z common-page-size, or with lld 18 or newer"},
    {.name = "host",
     .fn = rule_host,
     .words = "yes",
     .advice = "install what is missing, or build with -march of the oldest host"},
    {.name = "compiler",
     .fn = rule_compiler,
     .words = "gcc clang",
     .advice = "build with the profile's toolchain file, and keep .comment or debug information"},
    {.name = "linker",
     .fn = rule_linker,
     .words = "bfd gold lld mold",
     .advice = "give -fuse-ld=LINKER last on the link line; cmake options of the server may set "
               "another"},
    {.name = "optimisation",
     .fn = rule_optimisation,
     .words = "-O0 -O1 -O2 -O3 -Ofast -Os -Oz -Og",
     .by_flags = true,
     .advice = "the last -O on the line wins: set CMAKE_CXX_FLAGS_RELWITHDEBINFO"},
    {.name = "march",
     .fn = rule_march,
     .values = "as given to -march or -mcpu",
     .by_flags = true,
     .advice = "the last -march on the line wins: set it in CMAKE_C_FLAGS and CMAKE_CXX_FLAGS"},
    {.name = "isa-level",
     .fn = rule_isa,
     .words = "x86-64 x86-64-v2 x86-64-v3 x86-64-v4",
     .by_flags = true,
     .advice = "build with -march=x86-64-vN of the oldest host"},
    {.name = "frame-pointers",
     .words = "yes no partial",
     .by_flags = true,
     .advice = "-fno-omit-frame-pointer after -O keeps them, -fomit-frame-pointer does not"},
    {.name = "lto",
     .words = "yes no partial",
     .by_flags = true,
     .advice = "-flto on compile and link lines makes it, -fno-lto or its absence does not"},
    {.name = "pgo",
     .words = "yes no partial instrumented",
     .by_flags = true,
     .advice = "-fprofile-use=FILE uses a profile; -fprofile-generate only records one"},
    {.name = "bolt", .words = "yes no", .advice = "run llvm-bolt after the link, or leave it out"},
    {.name = "fast-math",
     .words = "no yes partial",
     .advised = "no",
     .by_flags = true,
     .advice = "link without -ffast-math and -Ofast: their start-up code changes rounding for all "
               "libraries"},
    {.name = "sanitizers",
     .words = "none address undefined thread memory leak hwaddress",
     .advised = "none",
     .advice = "build without -fsanitize"},
    {.name = "assertions",
     .words = "off on some",
     .advised = "off",
     .severity = SEVERITY_WARNING,
     .advice = "build with -DNDEBUG"},
    {.name = "text-alignment",
     .fn = rule_alignment,
     .values = "a size such as 2M",
     .advised = "2M",
     .severity = SEVERITY_WARNING,
     .advice = "link with -Wl,-z,max-page-size=2097152, and do not rewrite the file with patchelf",
     .pads = PADS},
    {.name = "load-segments",
     .fn = rule_segments,
     .values = "a number",
     .advice = "-Wl,-z,noseparate-code makes two, -Wl,-z,separate-code four"},
    {.name = "modes",
     .fn = rule_mode,
     .values = "modes such as hugetlbfs:R+pagecache",
     .seps = "+ ",
     .advice = "see the reason; 'kiln check FILE' shows the segments"},
    {.name = "text-coverage",
     .fn = rule_coverage,
     .values = "a percentage, or MODE:PERCENTAGE",
     .advice = "link with -Wl,-z,max-page-size=2097152; 'kiln check --pad' covers the tail",
     .pads = PADS},
    {.name = "padded",
     .fn = rule_padded,
     .words = "yes no",
     .advice =
         "run 'kiln check --pad FILE' last: GNU strip and objcopy undo it, eu-strip keeps it"},
    {.name = "needed",
     .fn = rule_needed,
     .values = "names of libraries",
     .seps = " +,",
     .advice = "--as-needed drops a library that nothing refers to: -Wl,--no-as-needed before it"},
    {.name = "flavour",
     .words = "mariadb mysql percona postgresql",
     .advice = "this is another server"},
    {.name = "server-version",
     .fn = rule_version,
     .values = "a version or its start, such as 10.11",
     .advice = "this is another version"},
    {.name = "performance-schema",
     .words = "yes no",
     .advice = "MariaDB: -DPLUGIN_PERFSCHEMA=NO leaves it out; MySQL 8.0 always has it"},
    {.name = "allocator",
     .words = "libc jemalloc tcmalloc mimalloc",
     .advice = "link with -DWITH_JEMALLOC=yes and the like, or preload it at the start"},
    {.name = "libnuma",
     .words = "yes no",
     .advice = "configure with -DWITH_NUMA=ON; innodb_numa_interleave exists only then"},
    {.name = "debug-info",
     .words = "inside separate none",
     .advice = "build with -g, and keep a separate file with objcopy --only-keep-debug when it is "
               "stripped"},
    {.name = "build-id",
     .fn = rule_build_id,
     .values = "the build-id in hex, or its start",
     .advice = "this is another build, or it was linked without -Wl,--build-id=sha1"},
    {.name = "symbols",
     .words = "full dynamic none",
     .advice = "do not strip, or keep the symbols in a separate file"},
    {.name = "pie",
     .fn = rule_pie,
     .words = "yes no",
     .advice = "the last of -pie and -no-pie on the link line wins; MariaDB's SECURITY_HARDENED "
               "adds -pie"},
    {.name = "relro", .words = "full partial none", .advice = "link with -Wl,-z,relro -Wl,-z,now"},
    {.name = "bind-now", .words = "yes no", .advice = "link with -Wl,-z,now"},
    {.name = "stack-protector",
     .words = "yes no partial",
     .advice = "compile with -fstack-protector-strong"},
    {.name = "fortify",
     .words = "yes no",
     .advice = "compile with -D_FORTIFY_SOURCE=2 and at least -O1"},
    {.name = "stack-clash",
     .words = "yes no partial",
     .by_flags = true,
     .advice = "compile with -fstack-clash-protection"},
    {.name = "branch-protection",
     .values = "IBT+SHSTK, BTI+PAC, one of them, or none",
     .advice = "x86: -fcf-protection, AArch64: -mbranch-protection=standard, in every object that "
               "is linked"},
    {.name = "exec-stack",
     .words = "no yes",
     .advised = "no",
     .advice = "link with -Wl,-z,noexecstack; an assembler file without .note.GNU-stack asks for "
               "it"},
    {.name = "writable-text",
     .words = "no yes",
     .advised = "no",
     .advice = "link without -Wl,-N and -Wl,--omagic"},
    {.name = "text-relocations",
     .words = "no yes",
     .advised = "no",
     .advice = "compile every object with -fPIE or -fPIC: relocated text is private and cannot be "
               "huge"},
    {.name = "rpath",
     .values = "none, or the path",
     .advice = "configure with -DCMAKE_SKIP_INSTALL_RPATH=ON"},
};
enum { NRULES = sizeof rules / sizeof *rules };

// "yes, no or partial"; malloc'ed.
static char *values_text(const struct rule *rule)
{
    struct strv words = {0};
    struct str b = {0};
    strv_split(&words, rule->words ? rule->words : "", " ");
    for (size_t i = 0; i < words.n; i++)
        str_addf(&b, "%s%s", i == 0 ? "" : i + 1 == words.n ? " or " : ", ", words.v[i]);
    strv_free(&words);
    return b.s ? b.s : xstrdup(rule->values);
}

// --- answers ---

int rule_answer(struct rule_result *r, enum answer a, const char *fmt, ...)
{
    va_list ap;
    char text[600];
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->answer = a;
    r->evidence = xstrdup(text);
    return 0;
}

enum answer yes_if(bool yes)
{
    return yes ? ANSWER_YES : ANSWER_NO;
}

int yes_or_no(const char *value)
{
    return !strcmp(value, "yes") ? 1 : !strcmp(value, "no") ? 0 : -1;
}

// "full" matches "full; ...", "10.11" matches "10.11.18", "sanit" does not match "sanitizers".
static bool matches(const char *value, const char *want, size_t n)
{
    return n && !strncasecmp(value, want, n) && (!value[n] || strchr(" ;,:.(+", value[n]));
}

// Alternatives are told apart by '|'; each must be a word that the fact can have.
static bool is_sensible(const struct rule *rule, const char *want)
{
    struct strv words = {0}, alternatives = {0};
    strv_split(&words, rule->words ? rule->words : "", " ");
    strv_split(&alternatives, want, "|");
    bool good = alternatives.n > 0;
    for (size_t i = 0; i < alternatives.n && words.n; i++) {
        for (char *p = alternatives.v[i]; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        good &= strv_has(&words, alternatives.v[i]);
    }
    strv_free(&words);
    strv_free(&alternatives);
    return good;
}

static int by_fact(const struct check *c, const struct rule *rule, const char *want,
                   struct rule_result *r)
{
    const struct fact *f = facts_find(&c->facts, rule->name);
    bool fits = false;
    if (!is_sensible(rule, want))
        return -1;
    if (!f || !f->value)
        return rule_answer(r, ANSWER_CANNOT_KNOW, "%s", f ? f->evidence : "not looked for");
    for (const char *at = want; *at && !fits; at += at[0] == '|') {
        size_t n = strcspn(at, "|");
        fits = matches(f->value, at, n);
        at += n;
    }
    return rule_answer(r, yes_if(fits), "%s (%s)", f->value, f->evidence);
}

static bool pads_itself(const struct check *c)
{
    return c->elf.linker &&
           (starts_with(c->elf.linker, "LLD") || starts_with(c->elf.linker, "mold"));
}

static const char *advice_for(const struct rule *rule, const struct check *c, enum answer a)
{
    if (a == ANSWER_YES)
        return "";
    if (a == ANSWER_CANNOT_KNOW && rule->by_flags)
        return no_evidence;
    return rule->pads && pads_itself(c) ? rule->pads : rule->advice;
}

static int refuse(const struct rule *rule, const char *origin, const char *value, struct err *e)
{
    char *values = values_text(rule);
    err_set(e, EXIT_CANNOT_ASK, "%s: %s%s%s: must be %s", origin, rule->name, value ? " = " : "",
            value ? value : "", values);
    free(values);
    return -1;
}

static int judge(const struct rule *rule, const struct check *c, const char *value,
                 const char *origin, enum severity severity, struct rule_results *out,
                 struct err *e)
{
    struct rule_result r = {0};
    if (rule->fn ? rule->fn(c, value, &r) : by_fact(c, rule, value, &r))
        return refuse(rule, origin, value, e);
    r.rule = xstrdup(rule->name);
    r.value = xstrdup(value);
    r.origin = xstrdup(origin);
    r.severity = severity;
    r.advice = xstrdup(advice_for(rule, c, r.answer));
    out->v = xrealloc(out->v, (out->n + 1) * sizeof *out->v);
    out->v[out->n++] = r;
    return 0;
}

static const struct rule *find_rule(const char *name)
{
    for (size_t i = 0; i < NRULES; i++)
        if (!strcmp(rules[i].name, name))
            return &rules[i];
    return NULL;
}

static int unknown_rule(const char *origin, const char *name, struct err *e)
{
    struct str names = {0};
    for (size_t i = 0; i < NRULES; i++)
        str_addf(&names, "%s%s", i ? " " : "", rules[i].name);
    err_set(e, EXIT_CANNOT_ASK, "%s: no rule '%s'; there are: %s", origin, name, names.s);
    str_free(&names);
    return -1;
}

// What --require asks for when it gives no value: what kiln advises, else a plain yes.
static const char *own_value(const struct rule *rule)
{
    if (rule->advised)
        return rule->advised;
    return rule->words && starts_with(rule->words, "yes") ? "yes" : NULL;
}

// One rule with all its values; value NULL: its own.
static int ask(const char *name, const char *value, const char *origin, enum severity severity,
               const struct check *c, struct rule_results *out, struct err *e)
{
    const struct rule *rule = find_rule(name);
    if (!rule)
        return unknown_rule(origin, name, e);
    value = value ? value : own_value(rule);
    if (!value)
        return refuse(rule, origin, NULL, e);
    if (!rule->seps || !*value)
        return judge(rule, c, value, origin, severity, out, e);
    struct strv values = {0};
    strv_split(&values, value, rule->seps);
    int rc = 0;
    for (size_t i = 0; i < values.n && rc == 0; i++)
        rc = judge(rule, c, values.v[i], origin, severity, out, e);
    strv_free(&values);
    return rc;
}

// --- where rules come from ---

int rules_profile(const struct check *c, const struct profile *p, struct rule_results *r,
                  struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < NRULES && rc == 0; i++) {
        const struct profile_key *k = profile_find(p, "promises", rules[i].name);
        if (k)
            rc = ask(k->key, k->value, k->origin, SEVERITY_ERROR, c, r, e);
    }
    return rc;
}

int rules_require(const struct check *c, const char *list, struct rule_results *r, struct err *e)
{
    struct strv words = {0};
    int rc = 0;
    strv_split(&words, list, ",");
    for (size_t i = 0; i < words.n && rc == 0; i++) {
        char *value = strchr(words.v[i], '=');
        if (value)
            *value++ = 0;
        rc = ask(words.v[i], value, "--require", SEVERITY_ERROR, c, r, e);
    }
    if (rc == 0 && !words.n)
        rc = err_set(e, EXIT_CANNOT_ASK, "--require: no rule named; see --list-rules");
    strv_free(&words);
    return rc;
}

struct policy {
    const struct check *c;
    struct rule_results *r;
    const char *path;
    size_t asked;
};

static int policy_key(void *user, const char *section, const char *key, const char *value, int line,
                      struct err *e)
{
    struct policy *p = user;
    bool require = !strcmp(section, "require");
    if (!require && strcmp(section, "advise"))
        return err_set(e, EXIT_CANNOT_ASK, "unknown section [%s]; there are: require, advise",
                       section);
    char *origin = xasprintf("%s:%d", p->path, line);
    struct err inner = {0};
    int rc =
        ask(key, value, origin, require ? SEVERITY_ERROR : SEVERITY_WARNING, p->c, p->r, &inner);
    // ini_load puts file and line in front itself.
    if (rc)
        err_set(e, inner.code, "%s", inner.msg + strlen(origin) + 2);
    p->asked += require;
    free(origin);
    return rc;
}

int rules_file(const struct check *c, const char *path, struct rule_results *r, struct err *e)
{
    struct policy p = {.c = c, .r = r, .path = path};
    if (ini_load(path, policy_key, &p, e))
        return -1;
    return p.asked ? 0 : err_set(e, EXIT_CANNOT_ASK, "%s: it requires nothing ([require])", path);
}

void rules_advice(const struct check *c, struct rule_results *r)
{
    for (size_t i = 0; i < NRULES; i++)
        if (rules[i].advised)
            judge(&rules[i], c, rules[i].advised, "kiln", rules[i].severity, r, NULL);
}

enum answer rules_verdict(const struct rule_results *r)
{
    enum answer verdict = ANSWER_YES;
    size_t asked = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (r->v[i].severity != SEVERITY_ERROR)
            continue;
        asked++;
        if (r->v[i].answer == ANSWER_NO)
            return ANSWER_NO;
        if (r->v[i].answer == ANSWER_CANNOT_KNOW)
            verdict = ANSWER_CANNOT_KNOW;
    }
    return asked ? verdict : ANSWER_CANNOT_KNOW;
}

// --- words ---

const char *rule_word(enum answer a)
{
    return a == ANSWER_YES ? "pass" : a == ANSWER_NO ? "fail" : "cannot-know";
}

const char *severity_word(enum severity s)
{
    return s == SEVERITY_ERROR ? "error" : s == SEVERITY_WARNING ? "warning" : "note";
}

json_t *rules_json(const struct rule_results *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n; i++) {
        const struct rule_result *v = &r->v[i];
        json_array_append_new(
            list, json_pack("{ss ss ss ss ss* ss ss}", "rule", v->rule, "value", v->value,
                            "severity", severity_word(v->severity), "verdict", rule_word(v->answer),
                            "evidence", v->evidence, "advice", v->advice, "origin", v->origin));
    }
    return list;
}

void rules_list(void)
{
    for (size_t i = 0; i < NRULES; i++) {
        char *values = values_text(&rules[i]);
        printf("%-19s %s", rules[i].name, values);
        if (rules[i].advised)
            printf(" (%s unless %s)", severity_word(rules[i].severity), rules[i].advised);
        printf("\n");
        free(values);
    }
}

void rules_free(struct rule_results *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->v[i].rule);
        free(r->v[i].value);
        free(r->v[i].origin);
        free(r->v[i].evidence);
        free(r->v[i].advice);
    }
    free(r->v);
    *r = (struct rule_results){0};
}
