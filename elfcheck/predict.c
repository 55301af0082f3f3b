// Rules of libhugetlbfs: elflink.c of versions 2.23 and 2.24 (parse_elf_normal,
// verify_segment_layout, check_env). It looks at run-time addresses, never at p_align or p_offset.
#include "elfcheck/predict.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    SMALL_PAGE = 4096,
    MAX_PHDR = 10, // elflink.c stops at a PT_LOAD of this program header index
    LIMIT_OLD = 3, // selected segments, up to 2.23
    LIMIT_NEW = 4, // from 2.24
};

static uint64_t down(uint64_t x, uint64_t page)
{
    return x / page * page;
}

static uint64_t up(uint64_t x, uint64_t page)
{
    return down(x + page - 1, page);
}

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool segment_congruent(const struct segment *s, uint64_t page)
{
    return (s->vaddr - s->offset) % page == 0;
}

// The kernel maps whole small pages, so the mapping begins and ends on them.
static void slots(const struct segment *s, uint64_t page, uint64_t *from, uint64_t *to)
{
    *from = up(down(s->vaddr, SMALL_PAGE), page);
    *to = down(up(s->vaddr + s->filesz, SMALL_PAGE), page);
}

uint64_t segment_slots(const struct segment *s, uint64_t page)
{
    uint64_t from, to;
    slots(s, page, &from, &to);
    return segment_congruent(s, page) && to > from ? (to - from) / page : 0;
}

// Bytes of the segment that lie in its whole slots: the end of the last one may be padding.
static uint64_t slot_bytes(const struct segment *s, uint64_t page)
{
    uint64_t from, to;
    if (!segment_slots(s, page))
        return 0;
    slots(s, page, &from, &to);
    uint64_t begin = from > s->vaddr ? from : s->vaddr;
    return min64(to, s->vaddr + s->filesz) - begin;
}

// The base of a PIE is a multiple of the largest p_align (kernel 5.10 and later) and of 4 KiB.
static uint64_t base_grain(const struct elf_facts *f)
{
    uint64_t grain = SMALL_PAGE;
    for (size_t i = 0; i < f->nloads; i++)
        if (f->loads[i].align > grain && !(f->loads[i].align & (f->loads[i].align - 1)))
            grain = f->loads[i].align;
    return grain;
}

static bool moves(const struct elf_facts *f)
{
    return f->type == ET_DYN;
}

static bool linked_by(const struct elf_facts *f, const char *name)
{
    return f->linker && !strncmp(f->linker, name, strlen(name));
}

// The flags that align the segments, for the linker that made the file.
static const char *alignment_flags(const struct elf_facts *f)
{
    if (linked_by(f, "LLD") || linked_by(f, "mold"))
        return "-Wl,-z,max-page-size=2097152 -Wl,-z,separate-code";
    if (linked_by(f, "bfd") || linked_by(f, "gold"))
        return "-Wl,-z,max-page-size=2097152";
    return "-Wl,-z,max-page-size=2097152 (lld and mold also: -Wl,-z,separate-code)";
}

__attribute__((format(printf, 3, 4))) static void say(struct prediction *p, enum answer a,
                                                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    p->answer = a;
    vsnprintf(p->reason, sizeof p->reason, fmt, ap);
    va_end(ap);
}

// What no way to huge pages can do without. True when p has its answer.
static bool not_a_subject(const struct elf_facts *f, struct prediction *p)
{
    p->text_bytes = elf_text_bytes(f);
    if (f->type != ET_EXEC && f->type != ET_DYN)
        say(p, ANSWER_NO, "%s: it is not loaded by segments", elf_type_name(f));
    else if (!p->text_bytes)
        say(p, ANSWER_NO, "it has no executable segment that holds sections");
    else if (f->machine != EM_X86_64)
        say(p, ANSWER_CANNOT_KNOW, "the rules are known for x86-64; this is %s", f->machine_name);
    else
        return false;
    return true;
}

struct selection {
    bool read_only, writable;
};

static struct selection select_letters(const char *letters)
{
    return (struct selection){strpbrk(letters, "rR") != NULL, strpbrk(letters, "wW") != NULL};
}

static bool is_selected(const struct segment *s, struct selection sel)
{
    return s->flags & PF_W ? sel.writable : sel.read_only;
}

static unsigned count_selected(const struct elf_facts *f, struct selection sel)
{
    unsigned n = 0;
    for (size_t i = 0; i < f->nloads; i++)
        n += is_selected(&f->loads[i], sel);
    return n;
}

enum layout { LAYOUT_FINE, LAYOUT_OVERLAP, LAYOUT_SLICE };

// Two neighbours at run-time addresses. On x86 a slice is one huge page.
static enum layout pair_layout(const struct segment *a, const struct segment *b, uint64_t bias,
                               struct selection sel)
{
    uint64_t page_a = is_selected(a, sel) ? HUGE_2M : SMALL_PAGE;
    uint64_t page_b = is_selected(b, sel) ? HUGE_2M : SMALL_PAGE;
    if (page_a == SMALL_PAGE && page_b == SMALL_PAGE)
        return LAYOUT_FINE;
    uint64_t end = up(bias + a->vaddr + a->memsz, page_a), start = down(bias + b->vaddr, page_b);
    if (end > start)
        return LAYOUT_OVERLAP;
    if (page_a != page_b && up(end, HUGE_2M) > down(start, HUGE_2M) + 1)
        return LAYOUT_SLICE;
    return LAYOUT_FINE;
}

// The first bad pair's problem at this bias; *index is the segment before it.
static enum layout layout_at(const struct elf_facts *f, uint64_t bias, struct selection sel,
                             size_t *index)
{
    for (size_t i = 0; i + 1 < f->nloads; i++) {
        enum layout l = pair_layout(&f->loads[i], &f->loads[i + 1], bias, sel);
        if (l != LAYOUT_FINE) {
            *index = i;
            return l;
        }
    }
    return LAYOUT_FINE;
}

static const char *const layout_words[] = {[LAYOUT_OVERLAP] = "overlap when rounded to 2 MiB",
                                           [LAYOUT_SLICE] =
                                               "would need two page sizes in one 2 MiB slice"};

// Tries every base that the kernel may choose, modulo 2 MiB.
static bool bad_layout(const struct elf_facts *f, struct selection sel, struct prediction *p)
{
    uint64_t grain = moves(f) ? base_grain(f) : HUGE_2M;
    unsigned tried = 0, good = 0;
    size_t index = 0, bad_index = 0;
    enum layout bad = LAYOUT_FINE;
    for (uint64_t bias = 0; bias < HUGE_2M; bias += grain, tried++) {
        enum layout l = layout_at(f, bias, sel, &index);
        good += l == LAYOUT_FINE;
        if (l != LAYOUT_FINE && bad == LAYOUT_FINE) {
            bad = l;
            bad_index = index;
        }
    }
    if (good == tried)
        return false;
    if (good == 0)
        say(p, ANSWER_NO, "load segments %zu and %zu %s; link with %s", bad_index, bad_index + 1,
            layout_words[bad], alignment_flags(f));
    else
        say(p, ANSWER_CANNOT_KNOW,
            "not reliable: a PIE with p_align under 2 MiB gets a random base, and %u of %u would "
            "do; link with %s",
            good, tried, alignment_flags(f));
    return true;
}

static const char *fewer_segments(const struct elf_facts *f, struct selection sel)
{
    if (sel.writable && linked_by(f, "bfd"))
        return "use R, or link with -Wl,-z,noseparate-code (two segments)";
    if (sel.writable)
        return "use R";
    return "mark the text alone with hugeedit --text and leave HUGETLB_ELFMAP unset";
}

static bool too_many(const struct elf_facts *f, struct selection sel, unsigned limit,
                     struct prediction *p)
{
    unsigned n = count_selected(f, sel);
    if (limit && n > limit)
        say(p, ANSWER_NO, "it selects %u load segments, this libhugetlbfs takes %u at most; %s", n,
            limit, fewer_segments(f, sel));
    else if (!limit && n > LIMIT_NEW)
        say(p, ANSWER_NO, "it selects %u load segments, libhugetlbfs takes %d at most; %s", n,
            LIMIT_NEW, fewer_segments(f, sel));
    else if (!limit && n > LIMIT_OLD)
        say(p, ANSWER_CANNOT_KNOW,
            "it selects %u load segments; libhugetlbfs takes %d up to version 2.23 and %d from "
            "2.24, and which one is used is not known; %s",
            n, LIMIT_OLD, LIMIT_NEW, fewer_segments(f, sel));
    else
        return false;
    return true;
}

// At a PT_LOAD of index 10 or more the library stops and keeps what it had, unchecked.
static bool late_header(const struct elf_facts *f, struct prediction *p)
{
    bool late = false, text_late = false;
    unsigned index = 0;
    for (size_t i = 0; i < f->nloads; i++) {
        const struct segment *s = &f->loads[i];
        if (s->index < MAX_PHDR)
            continue;
        index = late ? index : s->index;
        late = true;
        text_late |= segment_is_text(s);
    }
    if (late)
        say(p, text_late ? ANSWER_NO : ANSWER_CANNOT_KNOW,
            "libhugetlbfs reads the first %d program headers, and a load segment has index %u; "
            "relink instead of rewriting the file (patchelf does this)",
            MAX_PHDR, index);
    return late;
}

// Sum of ceil((vaddr mod 2 MiB + memsz) / 2 MiB) over the selected segments, at the worst base.
static unsigned pages_needed(const struct elf_facts *f, struct selection sel)
{
    uint64_t grain = moves(f) ? base_grain(f) : HUGE_2M;
    uint64_t worst = grain < HUGE_2M ? HUGE_2M - grain : 0, pages = 0;
    for (size_t i = 0; i < f->nloads; i++) {
        const struct segment *s = &f->loads[i];
        if (!is_selected(s, sel))
            continue;
        uint64_t lead = (s->vaddr % HUGE_2M) % grain + worst;
        pages += up((worst ? lead : s->vaddr % HUGE_2M) + s->memsz, HUGE_2M) / HUGE_2M;
    }
    return (unsigned)min64(pages, UINT32_MAX);
}

// The library copies of .bss only what the dynamic symbols name, and compares their link-time
// addresses with run-time ones (get_extracopy, keep_symbol): in a PIE the copied variables, stdout
// for one, are lost, and the program crashes.
static bool loses_variables(const struct elf_facts *f, struct selection sel, struct prediction *p)
{
    if (!sel.writable || !moves(f) || !f->copy_relocs)
        return false;
    say(p, ANSWER_NO,
        "libhugetlbfs loses a PIE's copies of library variables (stdout, ...), and it crashes; "
        "use R, set HUGETLB_MINIMAL_COPY=no, or link with -no-pie");
    return true;
}

static uint64_t selected_text(const struct elf_facts *f, struct selection sel)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < f->nloads; i++)
        if (segment_is_text(&f->loads[i]) && is_selected(&f->loads[i], sel))
            bytes += f->loads[i].filesz;
    return bytes;
}

static void say_fine(const struct elf_facts *f, struct selection sel, struct prediction *p)
{
    bool linked = elf_links_libhugetlbfs(f);
    say(p, ANSWER_YES, "%u load segments, none overlap when rounded to 2 MiB%s%s",
        count_selected(f, sel), moves(f) ? "; a PIE needs kernel 5.10 or newer" : "",
        linked && f->executable_start
            ? "; linked with libhugetlbfs: preload it as well and it does nothing"
            : "");
}

void predict_hugetlbfs(const struct elf_facts *f, const char *letters, unsigned segment_limit,
                       struct prediction *p)
{
    struct selection sel = select_letters(letters);
    *p = (struct prediction){0};
    if (not_a_subject(f, p))
        return;
    p->pages = pages_needed(f, sel);
    if (!selected_text(f, sel))
        say(p, ANSWER_NO, "HUGETLB_ELFMAP=%s selects no text", letters);
    else if (f->is_static)
        say(p, ANSWER_NO, "a static program loads no libhugetlbfs; link it dynamically");
    else if (!late_header(f, p) && !too_many(f, sel, segment_limit, p) &&
             !loses_variables(f, sel, p) && !bad_layout(f, sel, p))
        say_fine(f, sel, p);
    if (p->answer != ANSWER_NO)
        p->text_huge_bytes = selected_text(f, sel);
}

static void say_no_slot(const struct elf_facts *f, bool congruent, struct prediction *p)
{
    if (!congruent)
        say(p, ANSWER_NO,
            "text address and file offset differ modulo 2 MiB: no page of the cache fits; link "
            "with %s",
            alignment_flags(f));
    else
        say(p, ANSWER_NO,
            "the text covers no whole 2 MiB slot; link with %s, or the text is too "
            "small",
            alignment_flags(f));
}

// A 2 MiB folio can be mapped as one page when address and file offset agree modulo 2 MiB and the
// mapping covers it whole (mm/filemap.c, do_set_pmd).
void predict_pagecache(const struct elf_facts *f, struct prediction *p)
{
    *p = (struct prediction){0};
    if (not_a_subject(f, p))
        return;
    if (moves(f) && base_grain(f) < HUGE_2M) {
        say(p, ANSWER_NO,
            "a PIE with p_align under 2 MiB gets a base that is no multiple of 2 MiB; link with %s",
            alignment_flags(f));
        return;
    }
    bool congruent = false;
    uint64_t whole = 0;
    for (size_t i = 0; i < f->nloads; i++) {
        const struct segment *s = &f->loads[i];
        if (!segment_is_text(s))
            continue;
        congruent |= segment_congruent(s, HUGE_2M);
        whole += segment_slots(s, HUGE_2M);
        p->text_huge_bytes += slot_bytes(s, HUGE_2M);
    }
    if (!whole)
        say_no_slot(f, congruent, p);
    else
        say(p, ANSWER_YES, "%llu whole 2 MiB slots%s", (unsigned long long)whole,
            moves(f) ? "; a PIE needs kernel 5.10 or newer" : "");
}
