#include "elfcheck/predict.h"
#include "elfcheck/predict_private.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    uint16_t machine;
    struct page_sizes sizes;
} known_pages[] = {
    // A machine's first row is its usual page. Kernel: arch/*/include/asm/page*.h, hugetlbpage.c.
    {EM_X86_64, {4 << 10, 2 << 20, true}},    {EM_X86_64, {4 << 10, 1 << 30, false}},
    {EM_AARCH64, {4 << 10, 2 << 20, true}},   {EM_AARCH64, {4 << 10, 1 << 30, false}},
    {EM_AARCH64, {16 << 10, 32 << 20, true}}, {EM_AARCH64, {64 << 10, 512 << 20, true}},
    {EM_PPC64, {64 << 10, 2 << 20, true}},    {EM_PPC64, {64 << 10, 16 << 20, false}},
    {EM_PPC64, {64 << 10, 1 << 30, false}},   {EM_RISCV, {4 << 10, 2 << 20, true}},
    {EM_RISCV, {4 << 10, 1 << 30, false}},
};

bool page_sizes_of(uint16_t machine, uint64_t huge, struct page_sizes *out)
{
    for (size_t i = 0; i < sizeof known_pages / sizeof *known_pages; i++) {
        const struct page_sizes *s = &known_pages[i].sizes;
        if (known_pages[i].machine == machine && (!huge || s->huge == huge)) {
            *out = *s;
            return true;
        }
    }
    return false;
}

const char *page_size_text(uint64_t bytes, char out[16])
{
    bool giga = bytes >= 1 << 30;
    snprintf(out, 16, "%u %s", (unsigned)(bytes >> (giga ? 30 : 20)), giga ? "GiB" : "MiB");
    return out;
}

const char *answer_word(enum answer a)
{
    return a == ANSWER_YES ? "yes" : a == ANSWER_NO ? "no" : "cannot-know";
}

uint64_t round_down(uint64_t x, uint64_t page)
{
    return x / page * page;
}

uint64_t round_up(uint64_t x, uint64_t page)
{
    return round_down(x + page - 1, page);
}

bool loads_anywhere(const struct elf_facts *f)
{
    return f->type == ET_DYN;
}

static uint64_t base_grain(const struct elf_facts *f, uint64_t small)
{
    uint64_t grain = small;
    for (size_t i = 0; i < f->nloads; i++)
        if (f->loads[i].align > grain && !(f->loads[i].align & (f->loads[i].align - 1)))
            grain = f->loads[i].align;
    return grain;
}

struct bases base_choices(const struct elf_facts *f, const struct page_sizes *pages)
{
    struct bases b = {.step = pages->huge, .count = 1};
    if (!loads_anywhere(f) || !f->nloads)
        return b;
    uint64_t grain = base_grain(f, pages->small);
    if (grain < b.step)
        b.step = grain;
    b.count = pages->huge / b.step;
    b.first = (pages->huge - round_down(f->loads[0].vaddr, pages->small) % pages->huge) % b.step;
    return b;
}

bool segment_congruent(const struct segment *s, uint64_t page)
{
    return (s->vaddr - s->offset) % page == 0;
}

static bool is_linker(const char *linker, const char *name)
{
    return linker && !strncmp(linker, name, strlen(name));
}

// Two sizes are written out, since that is what people copy; static storage.
const char *alignment_flags(const char *linker, uint64_t huge)
{
    static char text[160];
    bool pads = is_linker(linker, "LLD") || is_linker(linker, "mold");
    bool plain = is_linker(linker, "bfd") || is_linker(linker, "gold");
    snprintf(text, sizeof text, "-Wl,-z,max-page-size=%llu%s", (unsigned long long)huge,
             pads    ? " -Wl,-z,separate-code"
             : plain ? ""
                     : " (lld and mold also: -Wl,-z,separate-code)");
    return text;
}

bool elf_relro_outside(const struct elf_facts *f, uint64_t small)
{
    uint64_t from = f->relro_vaddr, to = from + f->relro_memsz;
    if (!f->relro_memsz || to < from || to > UINT64_MAX - small)
        return false;
    for (size_t i = 0; i < f->nloads; i++) {
        const struct segment *s = &f->loads[i];
        uint64_t end = round_up(s->vaddr + s->memsz, small);
        if (from >= round_down(s->vaddr, small) && from < end)
            return round_down(to, small) > end;
    }
    return true;
}

void predict_say(struct prediction *p, enum answer a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    p->answer = a;
    vsnprintf(p->reason, sizeof p->reason, fmt, ap);
    va_end(ap);
}

bool predict_is_hopeless(const struct elf_facts *f, const struct page_sizes *pages,
                         struct prediction *p)
{
    *p = (struct prediction){.text_bytes = elf_text_bytes(f)};
    if (f->type != ET_EXEC && f->type != ET_DYN)
        predict_say(p, ANSWER_NO, "%s: it is not loaded by segments", elf_type_name(f));
    else if (!p->text_bytes)
        predict_say(p, ANSWER_NO, "it has no executable segment that holds sections");
    else if (elf_relro_outside(f, pages->small))
        predict_say(p, ANSWER_NO,
                    "it does not start: GNU_RELRO ends outside every load segment; link without "
                    "-z common-page-size, or with lld 18 or newer");
    else
        return false;
    return true;
}

const char *const predict_modes[] = {
    "hugetlbfs:R", "hugetlbfs:W", "hugetlbfs:RW", "hugetlbfs:marked", "pagecache", "tmpfs", "remap",
    "bolt-hugify", NULL};

static const struct {
    const char *mode;
    void (*predict)(const struct elf_facts *, const struct page_sizes *, struct prediction *);
} file_modes[] = {{"pagecache", predict_pagecache},
                  {"tmpfs", predict_tmpfs},
                  {"remap", predict_remap},
                  {"bolt-hugify", predict_bolt_hugify}};

static bool predict_library_mode(const char *letters, const struct elf_facts *f,
                                 const struct page_sizes *pages, unsigned limit,
                                 struct prediction *p)
{
    static const char *const words[] = {"R", "W", "RW"};
    struct hugetlbfs_use use = {.segment_limit = limit, .preload = !elf_links_libhugetlbfs(f)};
    bool known = !strcmp(letters, "marked");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!strcmp(letters, words[i])) {
            use.letters = words[i];
            known = true;
        }
    }
    if (known)
        predict_hugetlbfs(f, pages, &use, p);
    return known;
}

bool predict_mode(const char *mode, const struct elf_facts *f, const struct page_sizes *pages,
                  unsigned segment_limit, struct prediction *p)
{
    static const char library[] = "hugetlbfs:";
    if (!strncmp(mode, library, strlen(library)))
        return predict_library_mode(mode + strlen(library), f, pages, segment_limit, p);
    for (size_t i = 0; i < sizeof file_modes / sizeof *file_modes; i++) {
        if (!strcmp(mode, file_modes[i].mode)) {
            file_modes[i].predict(f, pages, p);
            return true;
        }
    }
    return false;
}
