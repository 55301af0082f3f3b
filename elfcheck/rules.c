#include "elfcheck/rules.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// A rule fills answer and evidence; it returns -1 when the value makes no sense.
typedef int rule(const struct check_subject *s, const char *value, struct promise_result *r);

// Units that a promise about "the" compiler or level may miss: libraries that come with the source
// bring flags of their own.
enum { ALLOWED_STRAYS_PERCENT = 10 };

__attribute__((format(printf, 3, 4))) static int answer(struct promise_result *r, enum answer a,
                                                        const char *fmt, ...)
{
    va_list ap;
    char text[500];
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->answer = a;
    r->evidence = xstrdup(text);
    return 0;
}

static enum answer yes_if(bool yes)
{
    return yes ? ANSWER_YES : ANSWER_NO;
}

// Too many strays is a no whatever the rest is; a yes needs evidence from nearly all units.
static enum answer by_units(size_t as_promised, size_t strays, size_t units)
{
    if (strays * 100 > units * ALLOWED_STRAYS_PERCENT)
        return ANSWER_NO;
    return as_promised * 100 >= units * (100 - ALLOWED_STRAYS_PERCENT) ? ANSWER_YES
                                                                       : ANSWER_CANNOT_KNOW;
}

static int rule_compiler(const struct check_subject *s, const char *value, struct promise_result *r)
{
    const struct dwarf_facts *d = s->dwarf;
    const struct elf_facts *f = s->elf;
    bool gcc = !strcmp(value, "gcc");
    if (!gcc && strcmp(value, "clang"))
        return -1;
    if (d->units) {
        size_t right = gcc ? d->gcc : d->clang, no_name = d->other_compiler;
        return answer(r, by_units(right, d->units - right - no_name, d->units),
                      "%zu of %zu compilation units by %s", right, d->units, value);
    }
    if (!f->compiler)
        return answer(r, ANSWER_CANNOT_KNOW, "no debug information and no .comment");
    bool right = gcc ? f->comment_gcc && !f->comment_clang : f->comment_clang;
    return answer(r, yes_if(right), "%s (%s)", f->compiler, f->compiler_evidence);
}

static const char *const linkers[] = {"bfd", "gold", "lld", "mold"};

static int rule_linker(const struct check_subject *s, const char *value, struct promise_result *r)
{
    bool known = false;
    for (size_t i = 0; i < sizeof linkers / sizeof *linkers; i++)
        known |= !strcmp(value, linkers[i]);
    if (!known)
        return -1;
    const struct elf_facts *f = s->elf;
    if (!f->linker)
        return answer(r, ANSWER_CANNOT_KNOW,
                      "no linker's mark, and the layout (which several make) "
                      "does not tell");
    return answer(r, yes_if(!strncasecmp(f->linker, value, strlen(value))), "%s: %s", f->linker,
                  f->linker_evidence);
}

// "-O2" as on the command line, or "O2".
static int level_index(const char *value)
{
    value += *value == '-';
    for (int i = 0; i < OPT_LEVELS; i++)
        if (!strcmp(value, opt_level_names[i]))
            return i;
    return -1;
}

static int rule_optimisation(const struct check_subject *s, const char *value,
                             struct promise_result *r)
{
    const struct dwarf_facts *d = s->dwarf;
    int level = level_index(value);
    if (level < 0)
        return -1;
    if (!d->units)
        return answer(r, ANSWER_CANNOT_KNOW, "no debug information");
    size_t right = d->by_level[level], strays = d->units - d->level_unknown - right;
    return answer(r, by_units(right, strays, d->units),
                  "-%s in %zu of %zu compilation units, another level in %zu, not recorded in %zu",
                  opt_level_names[level], right, d->units, strays, d->level_unknown);
}

static int rule_alignment(const struct check_subject *s, const char *value,
                          struct promise_result *r)
{
    uint64_t want;
    unsigned texts = 0;
    if (parse_size(value, &want) || !want)
        return -1;
    for (size_t i = 0; i < s->elf->nloads; i++) {
        const struct segment *l = &s->elf->loads[i];
        if (!segment_is_text(l))
            continue;
        texts++;
        if (l->align < want || l->align % want || !segment_congruent(l, want))
            return answer(r, ANSWER_NO,
                          "text segment %zu: p_align 0x%llx, address 0x%llx, offset "
                          "0x%llx",
                          i, (unsigned long long)l->align, (unsigned long long)l->vaddr,
                          (unsigned long long)l->offset);
    }
    if (!texts)
        return answer(r, ANSWER_CANNOT_KNOW, "no text segment");
    return answer(r, ANSWER_YES, "%u text segment%s with p_align of %s, address and offset agree",
                  texts, texts > 1 ? "s" : "", value);
}

static int rule_pie(const struct check_subject *s, const char *value, struct promise_result *r)
{
    bool want = !strcmp(value, "yes");
    if (!want && strcmp(value, "no"))
        return -1;
    if (s->elf->type != ET_EXEC && !s->elf->pie)
        return answer(r, ANSWER_CANNOT_KNOW, "%s: no program", elf_type_name(s->elf));
    return answer(r, yes_if(s->elf->pie == want), "%s", elf_type_name(s->elf));
}

// "libfoo.so" also names libfoo.so.1.
static int rule_needed(const struct check_subject *s, const char *value, struct promise_result *r)
{
    const struct strv *needed = &s->elf->needed;
    size_t n = strlen(value);
    if (!n)
        return -1;
    for (size_t i = 0; i < needed->n; i++)
        if (starts_with(needed->v[i], value) && (!needed->v[i][n] || needed->v[i][n] == '.'))
            return answer(r, ANSWER_YES, "needs %s", needed->v[i]);
    char *all = strv_join(needed, " ");
    int rc = answer(r, ANSWER_NO, "needs only: %s", *all ? all : "nothing");
    free(all);
    return rc;
}

static int rule_segments(const struct check_subject *s, const char *value, struct promise_result *r)
{
    uint64_t want;
    if (parse_u64(value, &want))
        return -1;
    char *layout = elf_layout_text(s->elf);
    int rc =
        answer(r, yes_if(s->elf->nloads == want), "%zu load segments (%s)", s->elf->nloads, layout);
    free(layout);
    return rc;
}

static int rule_mode(const struct check_subject *s, const char *value, struct promise_result *r)
{
    struct prediction p;
    if (!strcmp(value, "pagecache"))
        predict_pagecache(s->elf, &p);
    else if (!strcmp(value, "hugetlbfs:R") || !strcmp(value, "hugetlbfs:RW"))
        predict_hugetlbfs(s->elf, value + strlen("hugetlbfs:"), s->segment_limit, &p);
    else
        return -1;
    return answer(r, p.answer, "%s", p.reason);
}

static const struct {
    const char *key;
    rule *fn;
    const char *seps;   // characters between several values, each judged alone; NULL: one value
    const char *values; // for the message about a wrong one
    const char *advice;
} rules[] = {
    {"compiler", rule_compiler, NULL, "gcc or clang",
     "build with the profile's toolchain file, and keep .comment or debug information"},
    {"linker", rule_linker, NULL, "bfd, gold, lld or mold",
     "give -fuse-ld=LINKER last on the link line; cmake options of the server may set another"},
    {"optimisation", rule_optimisation, NULL, "-O0, -O1, -O2, -O3, -Ofast, -Os, -Oz or -Og",
     "the last -O on the line wins: set CMAKE_CXX_FLAGS_RELWITHDEBINFO; clang records flags only "
     "with -grecord-command-line"},
    {"text-alignment", rule_alignment, NULL, "a size such as 2M",
     "link with -Wl,-z,max-page-size=2097152 (lld and mold also -Wl,-z,separate-code), and do not "
     "rewrite the file with patchelf"},
    {"pie", rule_pie, NULL, "yes or no",
     "the last of -pie and -no-pie on the link line wins; MariaDB's SECURITY_HARDENED adds -pie"},
    {"needed", rule_needed, " +,", "names of libraries",
     "--as-needed drops a library that nothing refers to: -Wl,--no-as-needed before it"},
    {"load-segments", rule_segments, NULL, "a number",
     "-Wl,-z,noseparate-code makes two, -Wl,-z,separate-code four"},
    {"modes", rule_mode, "+ ", "hugetlbfs:R, hugetlbfs:RW and pagecache, joined by '+'",
     "see the reason; 'kiln check FILE' shows the segments"},
};
enum { NRULES = sizeof rules / sizeof *rules };

static int apply(size_t i, const struct check_subject *s, const struct profile_key *k,
                 const char *value, struct check_result *out, struct err *e)
{
    struct promise_result r = {.advice = ""};
    if (rules[i].fn(s, value, &r))
        return err_set(e, EXIT_CANNOT_ASK, "%s: %s = %s: must be %s", k->origin, k->key, value,
                       rules[i].values);
    if (r.answer != ANSWER_YES)
        r.advice = rules[i].advice;
    r.key = xstrdup(k->key);
    r.value = xstrdup(value);
    r.origin = xstrdup(k->origin);
    out->v = xrealloc(out->v, (out->n + 1) * sizeof *out->v);
    out->v[out->n++] = r;
    return 0;
}

static int apply_all_values(size_t i, const struct check_subject *s, const struct profile_key *k,
                            struct check_result *out, struct err *e)
{
    if (!rules[i].seps || !*k->value)
        return apply(i, s, k, k->value, out, e);
    struct strv values = {0};
    strv_split(&values, k->value, rules[i].seps);
    int rc = 0;
    for (size_t j = 0; j < values.n && rc == 0; j++)
        rc = apply(i, s, k, values.v[j], out, e);
    strv_free(&values);
    return rc;
}

int check_promises(const struct check_subject *s, const struct profile *p, struct check_result *r,
                   struct err *e)
{
    *r = (struct check_result){0};
    int rc = 0;
    for (size_t i = 0; i < NRULES && rc == 0; i++) {
        const struct profile_key *k = profile_find(p, "promises", rules[i].key);
        if (k)
            rc = apply_all_values(i, s, k, r, e);
    }
    if (rc)
        check_result_free(r);
    return rc;
}

enum answer check_verdict(const struct check_result *r)
{
    enum answer verdict = r->n ? ANSWER_YES : ANSWER_CANNOT_KNOW;
    for (size_t i = 0; i < r->n; i++) {
        if (r->v[i].answer == ANSWER_NO)
            return ANSWER_NO;
        if (r->v[i].answer == ANSWER_CANNOT_KNOW)
            verdict = ANSWER_CANNOT_KNOW;
    }
    return verdict;
}

const char *answer_word(enum answer a)
{
    return a == ANSWER_YES ? "yes" : a == ANSWER_NO ? "no" : "cannot-know";
}

const char *verdict_word(enum answer a)
{
    return a == ANSWER_YES ? "pass" : a == ANSWER_NO ? "fail" : "cannot-know";
}

json_t *check_result_json(const struct check_result *r, const struct profile *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n; i++) {
        const struct promise_result *v = &r->v[i];
        json_array_append_new(list,
                              json_pack("{ss ss ss ss ss ss}", "promise", v->key, "value", v->value,
                                        "verdict", verdict_word(v->answer), "evidence", v->evidence,
                                        "advice", v->advice, "origin", v->origin));
    }
    return json_pack("{ss ss so}", "profile", p->name, "verdict", verdict_word(check_verdict(r)),
                     "promises", list);
}

void check_result_free(struct check_result *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->v[i].key);
        free(r->v[i].value);
        free(r->v[i].origin);
        free(r->v[i].evidence);
    }
    free(r->v);
    *r = (struct check_result){0};
}
