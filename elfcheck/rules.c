#include "elfcheck/rules.h"
#include "common/ini.h"
#include "elfcheck/rules_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PADS                                                                                       \
    "link with -Wl,-z,max-page-size=2097152 -Wl,-z,separate-code, and do not rewrite the "         \
    "file with patchelf"
#define NO_EVIDENCE                                                                                \
    "keep debug information, and with clang give -grecord-command-line, so that flags are "        \
    "recorded"

struct rule {
    const char *name;
    rule_fn *fn; // NULL: the fact of this name has the value
    enum severity severity;
    const char *advised; // what kiln advises for a server, and --require RULE asks for; NULL: none
    const char *values;  // for --list-rules and for the message about a wrong one
    const char *seps;    // between several values, each judged alone; NULL: one value
    const char *advice;  // which flag to change
    const char *pads;    // the same for lld and mold; NULL: as for the others
};

// The order is that of the output.
static const struct rule rules[] = {
    {"relro-in-load", NULL, SEVERITY_ERROR, "yes", "yes", NULL,
     "link without -z common-page-size, or with lld 18 or newer: GNU_RELRO must end in its segment",
     NULL},
    {"host", rule_host, SEVERITY_ERROR, NULL, "yes", NULL,
     "install what is missing, or build with -march of the oldest host", NULL},
    {"compiler", rule_compiler, SEVERITY_ERROR, NULL, "gcc or clang", NULL,
     "build with the profile's toolchain file, and keep .comment or debug information", NULL},
    {"linker", rule_linker, SEVERITY_ERROR, NULL, "bfd, gold, lld or mold", NULL,
     "give -fuse-ld=LINKER last on the link line; cmake options of the server may set another",
     NULL},
    {"optimisation", rule_optimisation, SEVERITY_WARNING, NULL,
     "-O0, -O1, -O2, -O3, -Ofast, -Os, -Oz or -Og", NULL,
     "the last -O on the line wins: set CMAKE_CXX_FLAGS_RELWITHDEBINFO; clang records flags only "
     "with -grecord-command-line",
     NULL},
    {"march", NULL, SEVERITY_NOTE, NULL, "as given to -march, -mcpu", NULL, NO_EVIDENCE, NULL},
    {"isa-level", rule_isa, SEVERITY_WARNING, NULL, "x86-64, x86-64-v2, x86-64-v3 or x86-64-v4",
     NULL, "build with -march=x86-64-vN of the oldest host", NULL},
    {"frame-pointers", NULL, SEVERITY_NOTE, NULL, "yes or no", NULL,
     "give -fno-omit-frame-pointer after -O, and keep debug information", NULL},
    {"lto", NULL, SEVERITY_NOTE, NULL, "yes or no", NULL, NO_EVIDENCE, NULL},
    {"pgo", NULL, SEVERITY_ERROR, NULL, "no, used or instrumented", NULL,
     "-fprofile-use=FILE uses a profile; -fprofile-generate only records one", NULL},
    {"bolt", NULL, SEVERITY_NOTE, NULL, "yes or no", NULL, "run llvm-bolt after the link", NULL},
    {"fast-math", NULL, SEVERITY_ERROR, "no", "yes or no", NULL,
     "link without -ffast-math and -Ofast: their start-up code changes rounding for all libraries",
     NULL},
    {"sanitizers", NULL, SEVERITY_ERROR, "none", "none, or asan, ubsan, tsan, msan", NULL,
     "build without -fsanitize", NULL},
    {"assertions", NULL, SEVERITY_WARNING, "off", "on or off", NULL, "build with -DNDEBUG", NULL},
    {"text-alignment", rule_alignment, SEVERITY_WARNING, "2M", "a size such as 2M", NULL,
     "link with -Wl,-z,max-page-size=2097152, and do not rewrite the file with patchelf", PADS},
    {"load-segments", rule_segments, SEVERITY_ERROR, NULL, "a number", NULL,
     "-Wl,-z,noseparate-code makes two, -Wl,-z,separate-code four", NULL},
    {"modes", rule_mode, SEVERITY_ERROR, NULL, "modes such as hugetlbfs:R+pagecache", "+ ",
     "see the reason; 'kiln check FILE' shows the segments", NULL},
    {"text-coverage", rule_coverage, SEVERITY_WARNING, NULL, "a percentage, or MODE:PERCENTAGE",
     NULL, "link with -Wl,-z,max-page-size=2097152; 'kiln check --pad' covers the tail", PADS},
    {"padded", rule_padded, SEVERITY_WARNING, NULL, "yes or no", NULL,
     "run 'kiln check --pad FILE' last: GNU strip and objcopy undo it, eu-strip keeps it", NULL},
    {"needed", rule_needed, SEVERITY_ERROR, NULL, "names of libraries", " +,",
     "--as-needed drops a library that nothing refers to: -Wl,--no-as-needed before it", NULL},
    {"flavour", NULL, SEVERITY_ERROR, NULL, "mariadb, mysql or percona", NULL,
     "this is another server", NULL},
    {"server-version", NULL, SEVERITY_ERROR, NULL, "a version or its start, such as 10.11", NULL,
     "this is another version", NULL},
    {"performance-schema", NULL, SEVERITY_NOTE, NULL, "yes or no", NULL,
     "MariaDB: -DPLUGIN_PERFSCHEMA=NO leaves it out; MySQL always has it", NULL},
    {"allocator", NULL, SEVERITY_NOTE, NULL, "libc, jemalloc, tcmalloc or mimalloc", NULL,
     "link with -DWITH_JEMALLOC=yes and the like, or preload it at the start", NULL},
    {"libnuma", NULL, SEVERITY_WARNING, NULL, "yes or no", NULL,
     "configure with -DWITH_NUMA=ON; innodb_numa_interleave exists only then", NULL},
    {"debug-info", NULL, SEVERITY_WARNING, NULL, "inside, separate or none", NULL,
     "build with -g, and keep a separate file with objcopy --only-keep-debug when it is stripped",
     NULL},
    {"build-id", NULL, SEVERITY_WARNING, NULL, "the build-id in hex, or its start", NULL,
     "link with -Wl,--build-id=sha1", NULL},
    {"symbols", NULL, SEVERITY_NOTE, NULL, "full or dynamic", NULL,
     "do not strip, or keep the symbols in a separate file", NULL},
    {"pie", rule_pie, SEVERITY_NOTE, NULL, "yes or no", NULL,
     "the last of -pie and -no-pie on the link line wins; MariaDB's SECURITY_HARDENED adds -pie",
     NULL},
    {"relro", NULL, SEVERITY_WARNING, NULL, "full, partial or none", NULL,
     "link with -Wl,-z,relro -Wl,-z,now", NULL},
    {"bind-now", NULL, SEVERITY_NOTE, NULL, "yes or no", NULL, "link with -Wl,-z,now", NULL},
    {"stack-protector", NULL, SEVERITY_NOTE, NULL, "yes or no", NULL,
     "compile with -fstack-protector-strong", NULL},
    {"fortify", NULL, SEVERITY_NOTE, NULL, "yes or no", NULL,
     "compile with -D_FORTIFY_SOURCE=2 and at least -O1", NULL},
    {"stack-clash", NULL, SEVERITY_NOTE, NULL, "yes or no", NULL,
     "compile with -fstack-clash-protection", NULL},
    {"branch-protection", NULL, SEVERITY_NOTE, NULL, "IBT+SHSTK, BTI+PAC, ... or none", NULL,
     "x86: -fcf-protection, AArch64: -mbranch-protection=standard, in every object that is linked",
     NULL},
    {"exec-stack", NULL, SEVERITY_ERROR, "no", "yes or no", NULL,
     "link with -Wl,-z,noexecstack; an assembler file without .note.GNU-stack asks for it", NULL},
    {"writable-text", NULL, SEVERITY_ERROR, "no", "yes or no", NULL,
     "link without -Wl,-N and -Wl,--omagic", NULL},
    {"text-relocations", NULL, SEVERITY_ERROR, "no", "yes or no", NULL,
     "compile every object with -fPIE or -fPIC: relocated text is private and cannot be huge",
     NULL},
    {"rpath", NULL, SEVERITY_NOTE, NULL, "none, or the path", NULL,
     "configure with -DCMAKE_SKIP_INSTALL_RPATH=ON", NULL},
};
enum { NRULES = sizeof rules / sizeof *rules };

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

// Alternatives are told apart by '|'.
static int by_fact(const struct check *c, const char *name, const char *want, struct rule_result *r)
{
    const struct fact *f = facts_find(&c->facts, name);
    bool fits = false;
    if (!*want)
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

static int judge(const struct rule *rule, const struct check *c, const char *value,
                 const char *origin, enum severity severity, struct rule_results *out,
                 struct err *e)
{
    struct rule_result r = {0};
    int rc = rule->fn ? rule->fn(c, value, &r) : by_fact(c, rule->name, value, &r);
    if (rc)
        return err_set(e, EXIT_CANNOT_ASK, "%s: %s = %s: must be %s", origin, rule->name, value,
                       rule->values);
    r.rule = xstrdup(rule->name);
    r.value = xstrdup(value);
    r.origin = xstrdup(origin);
    r.severity = severity;
    const char *advice = rule->pads && pads_itself(c) ? rule->pads : rule->advice;
    r.advice = xstrdup(r.answer == ANSWER_YES ? "" : advice);
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

// One rule with all its values; value NULL: what kiln advises.
static int ask(const char *name, const char *value, const char *origin, enum severity severity,
               const struct check *c, struct rule_results *out, struct err *e)
{
    const struct rule *rule = find_rule(name);
    if (!rule)
        return unknown_rule(origin, name, e);
    value = value ? value : rule->advised ? rule->advised : "yes";
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
    for (size_t i = 0; i < NRULES; i++)
        printf("%-19s %-8s %s%s%s%s\n", rules[i].name, severity_word(rules[i].severity),
               rules[i].values, rules[i].advised ? " (advised: " : "",
               rules[i].advised ? rules[i].advised : "", rules[i].advised ? ")" : "");
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
