// Rules of libhugetlbfs: elflink.c of versions 2.23 and 2.24 (parse_elf_normal,
// verify_segment_layout, check_env). It looks at run-time addresses, never at p_align or p_offset.
#include "elfcheck/predict_private.h"

#include <elf.h>
#include <string.h>

enum {
    MAX_PHDR = 10, // elflink.c stops reading at a PT_LOAD of this program header index
    LIMIT_OLD = 3, // selected segments, up to 2.23
    LIMIT_NEW = 4, // from 2.24
};

// One question: which segments move, to which pages, by which library.
struct question {
    const struct elf_facts *f;
    const struct page_sizes *pages;
    const struct hugetlbfs_use *use;
};

static bool letter(const struct question *q, const char *either_case)
{
    return q->use->letters && strpbrk(q->use->letters, either_case);
}

static bool is_late(const struct segment *s)
{
    return s->index >= MAX_PHDR;
}

static bool is_asked_for(const struct question *q, const struct segment *s)
{
    if (!q->use->letters)
        return s->flags & PF_LINUX_HUGETLB;
    return letter(q, s->flags & PF_W ? "wW" : "rR");
}

static bool is_selected(const struct question *q, const struct segment *s)
{
    return is_asked_for(q, s) && !is_late(s);
}

static unsigned count_selected(const struct question *q)
{
    unsigned n = 0;
    for (size_t i = 0; i < q->f->nloads; i++)
        n += is_selected(q, &q->f->loads[i]);
    return n;
}

static bool selects_writable(const struct question *q)
{
    for (size_t i = 0; i < q->f->nloads; i++)
        if ((q->f->loads[i].flags & PF_W) && is_selected(q, &q->f->loads[i]))
            return true;
    return false;
}

static uint64_t page_of(const struct question *q, const struct segment *s)
{
    return is_selected(q, s) ? q->pages->huge : q->pages->small;
}

// --- layout ---

enum layout { LAYOUT_FINE, LAYOUT_OVERLAP, LAYOUT_SLICE };

// Two neighbours at run-time addresses. A slice is one huge page of the machine's usual size.
static enum layout pair_layout(const struct question *q, const struct segment *a,
                               const struct segment *b, uint64_t bias)
{
    struct page_sizes usual = *q->pages;
    page_sizes_of(q->f->machine, 0, &usual);
    uint64_t page_a = page_of(q, a), page_b = page_of(q, b);
    if (page_a == q->pages->small && page_b == q->pages->small)
        return LAYOUT_FINE;
    uint64_t end = round_up(bias + a->vaddr + a->memsz, page_a);
    uint64_t start = round_down(bias + b->vaddr, page_b);
    if (end > start)
        return LAYOUT_OVERLAP;
    if (page_a != page_b && round_up(end, usual.huge) > round_down(start, usual.huge) + 1)
        return LAYOUT_SLICE;
    return LAYOUT_FINE;
}

// The first bad pair's problem at this bias; *index is the segment before it.
static enum layout layout_at(const struct question *q, uint64_t bias, size_t *index)
{
    for (size_t i = 0; i + 1 < q->f->nloads; i++) {
        enum layout l = pair_layout(q, &q->f->loads[i], &q->f->loads[i + 1], bias);
        if (l != LAYOUT_FINE) {
            *index = i;
            return l;
        }
    }
    return LAYOUT_FINE;
}

static const char *const layout_words[] = {[LAYOUT_OVERLAP] = "overlap when rounded to",
                                           [LAYOUT_SLICE] = "need two page sizes in one slice of"};

// Tries every base that the kernel may choose, modulo the huge page.
static bool bad_layout(const struct question *q, struct prediction *p)
{
    struct bases b = base_choices(q->f, q->pages);
    uint64_t good = 0;
    size_t index = 0, bad_index = 0;
    enum layout bad = LAYOUT_FINE;
    char size[16];
    const char *flags = alignment_flags(q->f->linker, q->pages->huge);
    for (uint64_t i = 0; i < b.count; i++) {
        enum layout l = layout_at(q, b.first + i * b.step, &index);
        good += l == LAYOUT_FINE;
        if (l != LAYOUT_FINE && bad == LAYOUT_FINE) {
            bad = l;
            bad_index = index;
        }
    }
    page_size_text(q->pages->huge, size);
    if (good == b.count)
        return false;
    if (good == 0)
        predict_say(p, ANSWER_NO, "load segments %zu and %zu %s %s; link with %s", bad_index,
                    bad_index + 1, layout_words[bad], size, flags);
    else
        predict_say(
            p, ANSWER_CANNOT_KNOW,
            "not reliable: a PIE with p_align under %s gets a random base, and %llu of %llu "
            "would do; link with %s",
            size, (unsigned long long)good, (unsigned long long)b.count, flags);
    return true;
}

// --- segments ---

static const char *fewer_segments(const struct question *q)
{
    if (!q->use->letters)
        return "mark fewer: hugeedit --disable, then hugeedit --text";
    if (letter(q, "wW") && q->f->linker && !strcmp(q->f->linker, "bfd"))
        return "use R, or link with -Wl,-z,noseparate-code (two segments)";
    if (letter(q, "wW"))
        return "use R";
    return "mark the text alone with hugeedit --text and leave HUGETLB_ELFMAP unset";
}

static bool too_many(const struct question *q, struct prediction *p)
{
    unsigned n = count_selected(q), limit = q->use->segment_limit;
    if (limit && n > limit)
        predict_say(p, ANSWER_NO,
                    "it selects %u load segments, this libhugetlbfs takes %u at most; %s", n, limit,
                    fewer_segments(q));
    else if (!limit && n > LIMIT_NEW)
        predict_say(p, ANSWER_NO, "it selects %u load segments, libhugetlbfs takes %d at most; %s",
                    n, LIMIT_NEW, fewer_segments(q));
    else if (!limit && n > LIMIT_OLD)
        predict_say(p, ANSWER_CANNOT_KNOW,
                    "it selects %u load segments; libhugetlbfs takes %d up to version 2.23 and %d "
                    "from 2.24, and which one is used is not known; %s",
                    n, LIMIT_OLD, LIMIT_NEW, fewer_segments(q));
    else
        return false;
    return true;
}

// Moving a segment wipes out what else lies in its huge pages.
static bool wipes_at(const struct question *q, const struct segment *moved, uint64_t bias)
{
    uint64_t from = round_down(bias + moved->vaddr, q->pages->huge);
    uint64_t to = round_up(bias + moved->vaddr + moved->memsz, q->pages->huge);
    for (size_t i = 0; i < q->f->nloads; i++) {
        const struct segment *s = &q->f->loads[i];
        if (s != moved && bias + s->vaddr < to && bias + s->vaddr + s->memsz > from)
            return true;
    }
    return false;
}

static uint64_t bases_that_wipe(const struct question *q, const struct bases *b)
{
    uint64_t bad = 0;
    for (uint64_t i = 0; i < b->count; i++) {
        bool wipes = false;
        for (size_t j = 0; j < q->f->nloads && !wipes; j++)
            wipes = is_selected(q, &q->f->loads[j]) &&
                    wipes_at(q, &q->f->loads[j], b->first + i * b->step);
        bad += wipes;
    }
    return bad;
}

// At a PT_LOAD of index 10 or more the library stops reading, keeps what it has, and does not look
// at the layout. True when p has its answer.
static bool late_header(const struct question *q, struct prediction *p)
{
    static const char relink[] = "relink instead of rewriting the file (patchelf does this)";
    unsigned index = 0;
    bool text_late = false;
    for (size_t i = 0; i < q->f->nloads; i++) {
        const struct segment *s = &q->f->loads[i];
        index = is_late(s) && !index ? s->index : index;
        text_late |= is_late(s) && segment_is_text(s) && is_asked_for(q, s);
    }
    if (!index)
        return false;
    struct bases b = base_choices(q->f, q->pages);
    uint64_t bad = bases_that_wipe(q, &b);
    enum answer a = bad == b.count || text_late ? ANSWER_NO : bad ? ANSWER_CANNOT_KNOW : ANSWER_YES;
    predict_say(
        p, a,
        "libhugetlbfs reads the first %d program headers, and a load segment has index %u%s; "
        "%s",
        MAX_PHDR, index,
        bad         ? "; what it moves lies in one huge page with other segments, which "
                      "crashes"
        : text_late ? ""
                    : "; the text comes before it",
        relink);
    return true;
}

// The library copies of .bss only what the dynamic symbols name, and compares their link-time
// addresses with run-time ones (get_extracopy, keep_symbol): in a PIE the copied variables, stdout
// for one, are lost, and the program crashes. Where the string table does not lie behind the symbol
// table it cannot count these, and copies all of .bss.
static bool loses_variables(const struct question *q, struct prediction *p)
{
    if (!selects_writable(q) || !loads_anywhere(q->f) || !q->f->copy_relocs || !q->f->strings_last)
        return false;
    predict_say(p, ANSWER_NO,
                "libhugetlbfs loses a PIE's copies of library variables (stdout, ...), and it "
                "crashes; use R, set HUGETLB_MINIMAL_COPY=no, or link with -no-pie");
    return true;
}

// --- how the library comes in ---

static bool not_loaded(const struct question *q, struct prediction *p)
{
    bool linked = elf_links_libhugetlbfs(q->f);
    if (q->f->is_static)
        predict_say(p, ANSWER_NO, "a static program loads no libhugetlbfs; link it dynamically");
    else if (q->use->preload && linked && q->f->executable_start)
        predict_say(p, ANSWER_NO,
                    "it is linked with libhugetlbfs, which does nothing when it is preloaded too; "
                    "start it without LD_PRELOAD");
    else if (!q->use->preload && !linked)
        predict_say(p, ANSWER_NO, "it is not linked with libhugetlbfs; preload it");
    else
        return false;
    return true;
}

// What 'hugeedit --text' would select: R E alone, without .bss.
static bool would_mark_text(const struct segment *s)
{
    return (s->flags & (PF_R | PF_W | PF_X)) == (PF_R | PF_X) && s->memsz == s->filesz;
}

static void say_nothing_selected(const struct question *q, struct prediction *p)
{
    unsigned n = 0;
    for (size_t i = 0; i < q->f->nloads; i++)
        n += would_mark_text(&q->f->loads[i]);
    if (q->use->letters)
        predict_say(p, ANSWER_NO, "HUGETLB_ELFMAP=%s selects no segment", q->use->letters);
    else if (n)
        predict_say(p, ANSWER_NO, "no segment is marked; 'hugeedit --text FILE' marks %u", n);
    else
        predict_say(p, ANSWER_NO, "no segment is marked, and hugeedit would find no text to mark");
}

// --- counts ---

// Huge pages that a segment's mapping takes, at the worst base.
static uint64_t mapped_pages(const struct question *q, const struct segment *s)
{
    struct bases b = base_choices(q->f, q->pages);
    uint64_t most = 0, huge = q->pages->huge;
    for (uint64_t i = 0; i < b.count; i++) {
        uint64_t bias = b.first + i * b.step;
        uint64_t n =
            (round_up(bias + s->vaddr + s->memsz, huge) - round_down(bias + s->vaddr, huge)) / huge;
        most = n > most ? n : most;
    }
    return most;
}

// The segment is copied into a file of huge pages, which is then mapped private: what can be
// written takes as many pages again, while the file still stands. Pages of the file that hold .bss
// alone may not be needed; they are counted.
static uint64_t pool_pages(const struct segment *s, uint64_t mapped)
{
    return (s->flags & PF_W) || s->memsz > s->filesz ? 2 * mapped : mapped;
}

static void count_pages(const struct question *q, struct prediction *p)
{
    uint64_t pages = 0;
    for (size_t i = 0; i < q->f->nloads; i++) {
        const struct segment *s = &q->f->loads[i];
        if (!is_selected(q, s))
            continue;
        uint64_t n = mapped_pages(q, s);
        pages += pool_pages(s, n);
        if (s->flags & PF_X)
            p->smaps_huge_bytes += n * q->pages->huge;
        if (s->flags & PF_W)
            p->data_huge_bytes += s->memsz;
        if (segment_is_text(s))
            p->text_huge_bytes += segment_section_bytes(s);
    }
    p->pages = (unsigned)(pages < UINT32_MAX ? pages : UINT32_MAX);
}

static void say_fine(const struct question *q, struct prediction *p)
{
    char size[16];
    predict_say(p, ANSWER_YES, "%u load segment%s, none overlap when rounded to %s%s%s",
                count_selected(q), count_selected(q) == 1 ? "" : "s",
                page_size_text(q->pages->huge, size),
                loads_anywhere(q->f) ? "; a PIE needs kernel 5.10 or newer" : "",
                q->use->preload ? "" : "; linked with libhugetlbfs: do not preload it as well");
}

void predict_hugetlbfs(const struct elf_facts *f, const struct page_sizes *pages,
                       const struct hugetlbfs_use *use, struct prediction *p)
{
    struct question q = {f, pages, use};
    if (predict_is_hopeless(f, pages, p))
        return;
    count_pages(&q, p);
    if (!count_selected(&q))
        say_nothing_selected(&q, p);
    else if (!not_loaded(&q, p) && !too_many(&q, p) && !late_header(&q, p)) {
        bool bad = bad_layout(&q, p);
        // At the bases that would do it crashes.
        bool lost = (!bad || p->answer == ANSWER_CANNOT_KNOW) && loses_variables(&q, p);
        if (!bad && !lost)
            say_fine(&q, p);
    }
    if (p->answer == ANSWER_NO)
        p->text_huge_bytes = p->data_huge_bytes = p->smaps_huge_bytes = p->pages = 0;
}
