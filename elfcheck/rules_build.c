// Rules about who built a binary and how.
#include "elfcheck/rules_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Units that a promise about "the" compiler or level may miss: libraries that come with the source
// bring flags of their own.
enum { ALLOWED_STRAYS_PERCENT = 10 };

// Too many strays is a no whatever the rest is; a yes needs evidence from nearly all units.
static enum answer by_units(size_t as_promised, size_t strays, size_t units)
{
    if (strays * 100 > units * ALLOWED_STRAYS_PERCENT)
        return ANSWER_NO;
    return as_promised * 100 >= units * (100 - ALLOWED_STRAYS_PERCENT) ? ANSWER_YES
                                                                       : ANSWER_CANNOT_KNOW;
}

int rule_compiler(const struct check *c, const char *value, struct rule_result *r)
{
    const struct dwarf_facts *d = &c->dwarf;
    const struct elf_facts *f = &c->elf;
    bool gcc = !strcmp(value, "gcc");
    if (!gcc && strcmp(value, "clang"))
        return -1;
    if (d->units) {
        size_t right = gcc ? d->gcc : d->clang, no_name = d->other_compiler;
        return rule_answer(r, by_units(right, d->units - right - no_name, d->units),
                           "%zu of %zu compilation units by %s", right, d->units, value);
    }
    if (!f->compiler)
        return rule_answer(r, ANSWER_CANNOT_KNOW, "no debug information and no .comment");
    bool right = gcc ? f->comment_gcc && !f->comment_clang : f->comment_clang;
    return rule_answer(r, yes_if(right), "%s (%s)", f->compiler, f->compiler_evidence);
}

static const char *const linkers[] = {"bfd", "gold", "lld", "mold"};

int rule_linker(const struct check *c, const char *value, struct rule_result *r)
{
    bool known = false;
    for (size_t i = 0; i < sizeof linkers / sizeof *linkers; i++)
        known |= !strcmp(value, linkers[i]);
    if (!known)
        return -1;
    const struct elf_facts *f = &c->elf;
    if (!f->linker)
        return rule_answer(r, ANSWER_CANNOT_KNOW,
                           "no linker's mark, and the layout (which several make) "
                           "does not tell");
    return rule_answer(r, yes_if(!strncasecmp(f->linker, value, strlen(value))), "%s: %s",
                       f->linker, f->linker_evidence);
}

// A fact that says "WORD", or "WORD in A of B units; ...": nearly all units must have the word.
static int by_majority(const struct check *c, const char *name, const char *want,
                       struct rule_result *r)
{
    const struct fact *f = facts_find(&c->facts, name);
    if (!f || !f->value)
        return rule_answer(r, ANSWER_CANNOT_KNOW, "%s", f ? f->evidence : "not looked for");
    size_t n = strlen(want), right = 0, units = 0;
    bool first = !strncmp(f->value, want, n);
    if (first && !f->value[n])
        return rule_answer(r, ANSWER_YES, "%s (%s)", f->value, f->evidence);
    if (first && sscanf(f->value + n, " in %zu of %zu", &right, &units) == 2 && units &&
        right * 100 >= units * (100 - ALLOWED_STRAYS_PERCENT))
        return rule_answer(r, ANSWER_YES, "%s (%s)", f->value, f->evidence);
    bool unsure = strstr(f->value, "not recorded") != NULL;
    return rule_answer(r, unsure ? ANSWER_CANNOT_KNOW : ANSWER_NO, "%s (%s)", f->value,
                       f->evidence);
}

int rule_march(const struct check *c, const char *value, struct rule_result *r)
{
    return *value ? by_majority(c, "march", value, r) : -1;
}

// "10.11" is the start of 10.11.18-MariaDB, 10.1 is not.
int rule_version(const struct check *c, const char *value, struct rule_result *r)
{
    const struct fact *f = facts_find(&c->facts, "server-version");
    size_t n = strlen(value);
    if (!n)
        return -1;
    if (!f || !f->value)
        return rule_answer(r, ANSWER_CANNOT_KNOW, "%s", f ? f->evidence : "not looked for");
    bool fits = !strncmp(f->value, value, n) && strchr(".-", f->value[n]);
    return rule_answer(r, yes_if(fits), "%s (%s)", f->value, f->evidence);
}

int rule_build_id(const struct check *c, const char *value, struct rule_result *r)
{
    if (!*value || strspn(value, "0123456789abcdefABCDEF") != strlen(value))
        return -1;
    if (!c->elf.build_id)
        return rule_answer(r, ANSWER_NO, "it has none");
    return rule_answer(r, yes_if(!strncasecmp(c->elf.build_id, value, strlen(value))), "%s",
                       c->elf.build_id);
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

int rule_optimisation(const struct check *c, const char *value, struct rule_result *r)
{
    const struct dwarf_facts *d = &c->dwarf;
    int level = level_index(value);
    if (level < 0)
        return -1;
    if (!d->units) {
        char *want = xasprintf("-%s", opt_level_names[level]);
        int rc = by_majority(c, "optimisation", want, r);
        free(want);
        return rc;
    }
    size_t right = d->by_level[level], strays = d->units - d->level_unknown - right;
    return rule_answer(
        r, by_units(right, strays, d->units),
        "-%s in %zu of %zu compilation units, another level in %zu, not recorded in %zu",
        opt_level_names[level], right, d->units, strays, d->level_unknown);
}

// "x86-64-v3" -> 3, "x86-64" and "baseline" -> 1, else 0.
static unsigned isa_number(const char *level)
{
    if (starts_with(level, "baseline") || !strcmp(level, "x86-64"))
        return 1;
    return starts_with(level, "x86-64-v") ? (unsigned)strtoul(level + 8, NULL, 10) : 0;
}

// The most that the hosts have: what needs less passes.
int rule_isa(const struct check *c, const char *value, struct rule_result *r)
{
    const struct fact *f = facts_find(&c->facts, "isa-level");
    unsigned most = isa_number(value), need = f && f->value ? isa_number(f->value) : 0;
    if (!most || most > 4)
        return -1;
    if (!f || !f->value)
        return rule_answer(r, ANSWER_CANNOT_KNOW, "%s", f ? f->evidence : "no such fact");
    if (!need)
        return rule_answer(r, ANSWER_CANNOT_KNOW, "built for %s, which is no level", f->value);
    return rule_answer(r, yes_if(need <= most), "needs %s (%s)", f->value, f->evidence);
}
