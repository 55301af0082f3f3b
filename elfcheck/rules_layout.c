// Rules about the layout: segments, pages, and whether the host can run it.
#include "elfcheck/rules_private.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

int rule_alignment(const struct check *c, const char *value, struct rule_result *r)
{
    uint64_t want;
    unsigned texts = 0;
    if (parse_size(value, &want) || !want)
        return -1;
    for (size_t i = 0; i < c->elf.nloads; i++) {
        const struct segment *l = &c->elf.loads[i];
        if (!segment_is_text(l))
            continue;
        texts++;
        if (l->align < want || l->align % want || !segment_congruent(l, want))
            return rule_answer(r, ANSWER_NO,
                               "text segment %zu: p_align 0x%llx, address 0x%llx, offset "
                               "0x%llx",
                               i, (unsigned long long)l->align, (unsigned long long)l->vaddr,
                               (unsigned long long)l->offset);
    }
    if (!texts)
        return rule_answer(r, ANSWER_CANNOT_KNOW, "no text segment");
    return rule_answer(r, ANSWER_YES,
                       "%u text segment%s with p_align of %s, address and offset agree", texts,
                       texts > 1 ? "s" : "", value);
}

int rule_pie(const struct check *c, const char *value, struct rule_result *r)
{
    bool want = !strcmp(value, "yes");
    if (!want && strcmp(value, "no"))
        return -1;
    if (c->elf.type != ET_EXEC && !c->elf.pie)
        return rule_answer(r, ANSWER_CANNOT_KNOW, "%s: no program", elf_type_name(&c->elf));
    return rule_answer(r, yes_if(c->elf.pie == want), "%s", elf_type_name(&c->elf));
}

// "libfoo.so" also names libfoo.so.1.
int rule_needed(const struct check *c, const char *value, struct rule_result *r)
{
    const struct strv *needed = &c->elf.needed;
    size_t n = strlen(value);
    if (!n)
        return -1;
    for (size_t i = 0; i < needed->n; i++)
        if (starts_with(needed->v[i], value) && (!needed->v[i][n] || needed->v[i][n] == '.'))
            return rule_answer(r, ANSWER_YES, "needs %s", needed->v[i]);
    char *all = strv_join(needed, " ");
    int rc = rule_answer(r, ANSWER_NO, "needs only: %s", *all ? all : "nothing");
    free(all);
    return rc;
}

int rule_segments(const struct check *c, const char *value, struct rule_result *r)
{
    uint64_t want;
    if (parse_u64(value, &want))
        return -1;
    char *layout = elf_layout_text(&c->elf);
    int rc = rule_answer(r, yes_if(c->elf.nloads == want), "%zu load segments (%s)", c->elf.nloads,
                         layout);
    free(layout);
    return rc;
}

int rule_mode(const struct check *c, const char *value, struct rule_result *r)
{
    const struct mode_answer *m = check_mode(c, value);
    if (!m)
        return -1;
    return rule_answer(r, m->now.answer, "%s", m->now.reason);
}

// "90": by the best mode that works at all; "pagecache:90": by this one.
int rule_coverage(const struct check *c, const char *value, struct rule_result *r)
{
    const char *colon = strrchr(value, ':');
    char *mode = colon ? xstrndup(value, (size_t)(colon - value)) : NULL;
    double want, best = 0, possible = 0;
    const char *by = "no mode";
    bool known = !mode;
    if (parse_double(colon ? colon + 1 : value, &want) || want < 0 || want > 100) {
        free(mode);
        return -1;
    }
    for (size_t i = 0; i < c->nmodes; i++) {
        const struct prediction *p = &c->modes[i].now;
        if (mode && strcmp(mode, c->modes[i].mode))
            continue;
        known = true;
        double percent =
            p->text_bytes ? 100.0 * (double)p->text_huge_bytes / (double)p->text_bytes : 0;
        if (p->answer != ANSWER_NO && percent > possible)
            possible = percent;
        if (p->answer == ANSWER_YES && percent > best) {
            best = percent;
            by = c->modes[i].mode;
        }
    }
    free(mode);
    if (!known)
        return -1;
    if (best < want && possible >= want)
        return rule_answer(r, ANSWER_CANNOT_KNOW,
                           "%.1f %% of the text on huge pages at most, %.1f %% for sure", possible,
                           best);
    return rule_answer(r, yes_if(best >= want), "%.1f %% of the text on huge pages (%s)", best, by);
}

int rule_padded(const struct check *c, const char *value, struct rule_result *r)
{
    int want = yes_or_no(value);
    const struct pad_plan *p = &c->padding;
    if (want < 0)
        return -1;
    if (!c->pages_known || p->state == PAD_CANNOT_TELL)
        return rule_answer(r, ANSWER_CANNOT_KNOW, "%s",
                           *p->reason ? p->reason : "the machine's pages are not known");
    bool full = p->state == PAD_DONE || p->state == PAD_NEEDLESS;
    const char *why = *p->reason ? p->reason : pad_state_text(p->state);
    return rule_answer(r, yes_if((want && full) || (!want && p->state != PAD_DONE)), "%s", why);
}

int rule_host(const struct check *c, const char *value, struct rule_result *r)
{
    if (yes_or_no(value) != 1)
        return -1;
    const struct host_condition *worst = NULL;
    for (size_t i = 0; i < c->host.n; i++) {
        const struct host_condition *h = &c->host.v[i];
        if (h->answer == ANSWER_NO || (h->answer == ANSWER_CANNOT_KNOW && !worst))
            worst = !worst || worst->answer != ANSWER_NO ? h : worst;
    }
    if (worst)
        return rule_answer(r, worst->answer, "%s: %s", worst->name, worst->evidence);
    return rule_answer(r, host_fit_verdict(&c->host),
                       c->host.n ? "machine, instruction set, interpreter and libraries"
                                 : "only programs and shared libraries are loaded");
}
