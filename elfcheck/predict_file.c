// Predictions for text that stays in its file (page cache, tmpfs) or is moved inside the process.
#include "elfcheck/predict_private.h"

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// The whole huge pages in a segment's mapping at this base: the kernel maps whole small pages.
static void slots(const struct segment *s, const struct page_sizes *pages, uint64_t bias,
                  uint64_t *from, uint64_t *to)
{
    *from = round_up(round_down(bias + s->vaddr, pages->small), pages->huge);
    *to = round_down(round_up(bias + s->vaddr + s->filesz, pages->small), pages->huge);
    *to = max64(*from, *to);
}

uint64_t segment_slots(const struct segment *s, const struct page_sizes *pages)
{
    uint64_t from, to;
    if (!segment_congruent(s, pages->huge))
        return 0;
    slots(s, pages, 0, &from, &to);
    return (to - from) / pages->huge;
}

struct slot_fit segment_fit(const struct segment *s, const struct page_sizes *pages)
{
    uint64_t from, to, end = s->vaddr + s->filesz;
    slots(s, pages, 0, &from, &to);
    if (to == from || !segment_congruent(s, pages->huge))
        return (struct slot_fit){.head = s->filesz};
    from = max64(from, s->vaddr);
    to = min64(to, end);
    return (struct slot_fit){.head = from - s->vaddr, .whole = to - from, .tail = end - to};
}

// Bytes of the segment's sections that lie in its whole slots: the rest of these is padding.
static uint64_t slot_bytes(const struct segment *s, const struct page_sizes *pages, uint64_t bias)
{
    uint64_t from, to;
    slots(s, pages, bias, &from, &to);
    from = max64(from, bias + s->sections_from);
    to = min64(to, bias + s->sections_to);
    return to > from ? to - from : 0;
}

static void say_no_slot(const struct elf_facts *f, const struct page_sizes *pages, bool congruent,
                        struct prediction *p)
{
    char size[16];
    page_size_text(pages->huge, size);
    if (!congruent)
        predict_say(p, ANSWER_NO,
                    "text address and file offset differ modulo %s: no page of the cache fits; "
                    "link with %s",
                    size, alignment_flags(f->linker, pages->huge));
    else
        predict_say(p, ANSWER_NO,
                    "the text covers no whole %s slot; link with %s, or the text is too small",
                    size, alignment_flags(f->linker, pages->huge));
}

struct count {
    uint64_t slots, bytes; // whole slots, and the bytes of sections in them
    bool congruent;
};

static struct count file_count_at(const struct elf_facts *f, const struct page_sizes *pages,
                                  uint64_t bias)
{
    struct count c = {0};
    for (size_t i = 0; i < f->nloads; i++) {
        const struct segment *s = &f->loads[i];
        uint64_t from, to;
        if (!segment_is_text(s) || (bias + s->vaddr - s->offset) % pages->huge)
            continue;
        c.congruent = true;
        slots(s, pages, bias, &from, &to);
        c.slots += (to - from) / pages->huge;
        c.bytes += slot_bytes(s, pages, bias);
    }
    return c;
}

static const char *kernel_needed(const struct elf_facts *f)
{
    return !loads_anywhere(f) ? ""
           : f->interp        ? "; a PIE needs kernel 5.10 or newer"
                              : "; a static PIE needs kernel 6.10 or newer";
}

enum { HOPELESS = 512 }; // one base in so many is no, though it can happen

// A folio is mapped as one huge page when address and file offset agree modulo its size and the
// mapping covers it whole (mm/filemap.c, do_set_pmd).
static void predict_slots(const struct elf_facts *f, const struct page_sizes *pages,
                          struct prediction *p)
{
    struct bases b = base_choices(f, pages);
    struct count best = {0};
    uint64_t good = 0;
    char size[16];
    for (uint64_t i = 0; i < b.count; i++) {
        struct count c = file_count_at(f, pages, b.first + i * b.step);
        good += c.slots > 0;
        best.congruent |= c.congruent;
        if (c.slots > best.slots)
            best = c;
    }
    page_size_text(pages->huge, size);
    p->text_huge_bytes = best.bytes;
    p->smaps_huge_bytes = best.slots * pages->huge;
    if (!good)
        say_no_slot(f, pages, best.congruent, p);
    else if (good == b.count)
        predict_say(p, ANSWER_YES, "%llu whole %s slots%s", (unsigned long long)best.slots, size,
                    kernel_needed(f));
    else
        predict_say(p, good * HOPELESS <= b.count ? ANSWER_NO : ANSWER_CANNOT_KNOW,
                    "a PIE with p_align under %s gets a random base, and %llu of %llu would do; "
                    "link with %s",
                    size, (unsigned long long)good, (unsigned long long)b.count,
                    alignment_flags(f->linker, pages->huge));
    if (p->answer == ANSWER_NO)
        p->text_huge_bytes = p->smaps_huge_bytes = 0;
}

static void predict_file_backed(const struct elf_facts *f, const struct page_sizes *pages,
                                bool tmpfs, struct prediction *p)
{
    char size[16];
    if (predict_is_hopeless(f, pages, p))
        return;
    if (pages->file_backed)
        predict_slots(f, pages, p);
    else
        predict_say(p, ANSWER_NO, "kernels of %s do not map %s by %s pages", f->machine_name,
                    tmpfs ? "tmpfs" : "the page cache", page_size_text(pages->huge, size));
}

void predict_pagecache(const struct elf_facts *f, const struct page_sizes *pages,
                       struct prediction *p)
{
    predict_file_backed(f, pages, false, p);
}

void predict_tmpfs(const struct elf_facts *f, const struct page_sizes *pages, struct prediction *p)
{
    predict_file_backed(f, pages, true, p);
}

static struct count remap_at(const struct elf_facts *f, const struct page_sizes *pages,
                             uint64_t bias)
{
    struct count c = {0};
    for (size_t i = 0; i < f->nloads; i++) {
        const struct segment *s = &f->loads[i];
        uint64_t from, to;
        if (!segment_is_text(s))
            continue;
        slots(s, pages, bias, &from, &to);
        c.slots += (to - from) / pages->huge;
        c.bytes += slot_bytes(s, pages, bias);
    }
    return c;
}

// What is moved into anonymous memory needs no agreement with the file: every whole slot at the
// address that the program got. A PIE without alignment gets any, so the worst of all counts.
void predict_remap(const struct elf_facts *f, const struct page_sizes *pages, struct prediction *p)
{
    char size[16];
    if (predict_is_hopeless(f, pages, p))
        return;
    struct bases b = base_choices(f, pages);
    struct count worst = remap_at(f, pages, b.first), best = worst;
    for (uint64_t i = 1; i < b.count; i++) {
        struct count c = remap_at(f, pages, b.first + i * b.step);
        worst =
            c.slots < worst.slots || (c.slots == worst.slots && c.bytes < worst.bytes) ? c : worst;
        best = c.slots > best.slots ? c : best;
    }
    page_size_text(pages->huge, size);
    p->pages = (unsigned)min64(best.slots, UINT32_MAX);
    p->text_huge_bytes = worst.slots ? worst.bytes : best.bytes;
    p->smaps_huge_bytes = worst.slots * pages->huge;
    if (f->is_static)
        predict_say(p, ANSWER_NO, "a static program loads no library that could move its text");
    else if (worst.slots)
        predict_say(p, ANSWER_YES, "%s%llu whole %s slots%s",
                    worst.slots < best.slots ? "at least " : "", (unsigned long long)worst.slots,
                    size, worst.bytes < p->text_bytes ? "; head and tail stay on small pages" : "");
    else if (best.slots)
        predict_say(p, ANSWER_CANNOT_KNOW,
                    "a PIE gets a random base: %llu whole %s slots at best, none at worst; link "
                    "with %s",
                    (unsigned long long)best.slots, size, alignment_flags(f->linker, pages->huge));
    else
        say_no_slot(f, pages, true, p);
    if (p->answer == ANSWER_NO)
        p->text_huge_bytes = p->pages = 0;
}

// bolt/runtime/hugify.cpp: from kernel 5.10 on it advises the kernel and does not look again.
void predict_bolt_hugify(const struct elf_facts *f, const struct page_sizes *pages,
                         struct prediction *p)
{
    if (predict_is_hopeless(f, pages, p))
        return;
    if (!f->bolt)
        predict_say(p, ANSWER_NO, "BOLT did not rewrite this file");
    else if (!f->bolt_hugify && !f->stripped)
        predict_say(p, ANSWER_NO, "BOLT rewrote it without -hugify");
    else
        predict_say(p, ANSWER_CANNOT_KNOW,
                    "%s; from kernel 5.10 on -hugify only advises the kernel, which helps with "
                    "READ_ONLY_THP_FOR_FS alone: see 'kiln check --pid' on the live process",
                    f->bolt_hugify ? "-hugify was given"
                                   : "without a symbol table -hugify cannot be seen");
}
