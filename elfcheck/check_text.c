#include "elfcheck/check_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *mark(const struct check_output *o, enum answer a)
{
    static const char *const colours[] = {
        [ANSWER_YES] = "\033[32m", [ANSWER_NO] = "\033[31m", [ANSWER_CANNOT_KNOW] = "\033[33m"};
    return o->colour ? colours[a] : "";
}

static const char *unmark(const struct check_output *o)
{
    return o->colour ? "\033[0m" : "";
}

static void print_segments(const struct check *c)
{
    char size[16] = "2 MiB";
    struct page_sizes pages = {4096, HUGE_2M, true};
    if (c->pages_known)
        pages = c->pages;
    page_size_text(pages.huge, size);
    printf("%4s %10s %12s %10s %10s %9s %-5s %-10s %7s %9s %9s\n", "LOAD", "OFFSET", "ADDRESS",
           "FILESZ", "MEMSZ", "ALIGN", "FLAGS", "CONGRUENT", "SLOTS", "HEAD", "TAIL");
    for (size_t i = 0; i < c->elf.nloads; i++) {
        const struct segment *s = &c->elf.loads[i];
        struct slot_fit fit = segment_fit(s, &pages);
        char flags[8];
        segment_flags(s, flags);
        printf("%4zu %#10llx %#12llx %#10llx %#10llx %#9llx %-5s %-10s %7llu %9llu %9llu\n", i,
               (unsigned long long)s->offset, (unsigned long long)s->vaddr,
               (unsigned long long)s->filesz, (unsigned long long)s->memsz,
               (unsigned long long)s->align, flags, segment_congruent(s, pages.huge) ? "yes" : "no",
               (unsigned long long)segment_slots(s, &pages), (unsigned long long)fit.head,
               (unsigned long long)fit.tail);
    }
    printf("slots are of %s; head and tail are bytes outside whole slots\n", size);
}

static void print_padding(const struct check *c)
{
    uint64_t growth = check_file_growth(c);
    printf("alignment     costs %llu bytes of the file (%.1f %%)\n", (unsigned long long)growth,
           percent_of(growth, c->file.image.n));
    if (!c->pages_known)
        return;
    const struct pad_plan *p = &c->padding;
    printf("padding       %s%s%s", pad_state_text(p->state), *p->reason ? ": " : "", p->reason);
    if (p->state == PAD_POSSIBLE)
        printf("; 'kiln check --pad FILE' makes %llu whole slots of %llu",
               (unsigned long long)p->padded_slots, (unsigned long long)p->linked_slots);
    printf("\n");
}

// "; libhugetlbfs 2.24: yes" where another version answers otherwise.
static void print_versions(const struct mode_answer *m)
{
    bool linked = m->old_preload.answer == ANSWER_NO && m->old_linked.answer != ANSWER_NO;
    enum answer old_one = linked ? m->old_linked.answer : m->old_preload.answer;
    enum answer new_one = linked ? m->new_linked.answer : m->new_preload.answer;
    if (old_one != new_one)
        printf(" (libhugetlbfs up to 2.23: %s, from 2.24: %s)", answer_word(old_one),
               answer_word(new_one));
}

static void print_mode(const struct check_output *o, const struct mode_answer *m)
{
    const struct prediction *p = &m->now;
    printf("%-16s %s%s%s: ", m->mode, mark(o, p->answer), answer_word(p->answer), unmark(o));
    if (!o->c->pages_known) {
        printf("%s\n", p->reason);
        return;
    }
    if (p->answer != ANSWER_NO && !p->text_huge_bytes)
        printf("%s%llu bytes of data on huge pages%s",
               p->answer == ANSWER_CANNOT_KNOW ? "at most " : "",
               (unsigned long long)p->data_huge_bytes, p->pages ? ", " : "; ");
    else if (p->answer != ANSWER_NO)
        printf("%s%llu of %llu text bytes (%.1f %%) on huge pages%s",
               p->answer == ANSWER_CANNOT_KNOW ? "at most " : "",
               (unsigned long long)p->text_huge_bytes, (unsigned long long)p->text_bytes,
               percent_of(p->text_huge_bytes, p->text_bytes), p->pages ? ", " : "; ");
    if (p->answer != ANSWER_NO && p->pages)
        printf("%u huge pages; ", p->pages);
    printf("%s", p->reason);
    if (m->by_version)
        print_versions(m);
    printf("\n");
}

static void print_modes(const struct check_output *o)
{
    const struct check *c = o->c;
    if (c->segment_limit)
        printf("libhugetlbfs     %s, takes %u load segments\n", libhugetlbfs_path(),
               c->segment_limit);
    else
        printf("libhugetlbfs     %s\n", c->no_limit.msg);
    for (size_t i = 0; i < c->nmodes; i++)
        if (c->elf.bolt || strcmp(c->modes[i].mode, "bolt-hugify"))
            print_mode(o, &c->modes[i]);
}

static void print_facts(const struct check_output *o)
{
    const struct facts *l = &o->c->facts;
    for (size_t i = 0; i < l->n; i++) {
        const struct fact *f = &l->v[i];
        if (f->value)
            printf("%-19s %s%s%s%s\n", f->name, f->value, *f->evidence ? " [" : "", f->evidence,
                   *f->evidence ? "]" : "");
        else
            printf("%-19s %scannot know%s: %s\n", f->name, mark(o, ANSWER_CANNOT_KNOW), unmark(o),
                   f->evidence);
    }
}

static void print_host(const struct check_output *o)
{
    const struct host_fit *h = &o->c->host;
    for (size_t i = 0; i < h->n; i++)
        printf("%-19s %s%s%s: %s\n", h->v[i].name, mark(o, h->v[i].answer),
               answer_word(h->v[i].answer), unmark(o), h->v[i].evidence);
}

static void print_head(const struct check *c)
{
    const struct elf_facts *f = &c->elf;
    char *needed = strv_join(&f->needed, " ");
    printf("file          %s\n", f->path);
    printf("type          %s, %s, %s-bit%s\n", elf_type_name(f), f->machine_name,
           f->is_64 ? "64" : "32", f->stripped ? ", stripped" : "");
    printf("interpreter   %s\n", f->interp ? f->interp : "none");
    printf("libraries     %s\n", *needed ? needed : "none");
    printf("text          %llu bytes\n", (unsigned long long)elf_text_bytes(f));
    free(needed);
}

static void print_rule(const struct check_output *o, const struct rule_result *r)
{
    printf("  %s%-11s%s %s=%s: %s\n", mark(o, r->answer), rule_word(r->answer), unmark(o), r->rule,
           r->value, r->evidence);
    if (*r->advice)
        printf("  %-11s %s\n", "", r->advice);
}

static void print_rules(const struct check_output *o)
{
    printf("\n%s%s: %s\n", o->profile ? "promises of " : "rules", o->profile ? o->profile : "",
           o->rules->n ? rule_word(rules_verdict(o->rules)) : "there are none");
    for (size_t i = 0; i < o->rules->n; i++)
        print_rule(o, &o->rules->v[i]);
}

// Only what does not pass; what cannot be known is above, among the facts.
static void print_advice(const struct check_output *o)
{
    const char *title = "\nadvice for a database server\n";
    for (size_t i = 0; i < o->advice->n; i++) {
        const struct rule_result *r = &o->advice->v[i];
        if (r->answer != ANSWER_NO)
            continue;
        printf("%s", title);
        title = "";
        printf("  %-8s %s: %s; %s\n", severity_word(r->severity), r->rule, r->evidence, r->advice);
    }
}

void check_print_text(const struct check_output *o)
{
    print_head(o->c);
    printf("\n");
    print_segments(o->c);
    print_padding(o->c);
    printf("\n");
    print_modes(o);
    if (o->live) {
        printf("\n");
        live_print(o->live, stdout);
    }
    if (o->c->whole) {
        printf("\n");
        print_facts(o);
        printf("\nthis host\n");
        print_host(o);
    }
    if (o->rules)
        print_rules(o);
    else if (o->advice)
        print_advice(o);
}
