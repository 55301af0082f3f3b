#include "elfcheck/predict.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// Layouts that the linkers made of one program (5.5 MB of text), and what libhugetlbfs 2.23 and the
// page cache did with them on a live system.
#define R  PF_R
#define RE (PF_R | PF_X)
#define RW (PF_R | PF_W)
enum { K4 = 0x1000, M2 = 0x200000, LIMIT = 3 };

// The sections fill the segment.
#define SEG(i, f, off, va, fsz, msz, al)                                                           \
    {                                                                                              \
        .index = i, .flags = f, .offset = off, .vaddr = va, .filesz = fsz, .memsz = msz,           \
        .align = al, .sections_from = (va), .sections_to = (va) + (fsz)                            \
    }

static struct segment bfd_default[] = {
    SEG(2, R, 0x0, 0x400000, 0x5a0, 0x5a0, K4),
    SEG(3, RE, 0x1000, 0x401000, 0x53ee31, 0x53ee31, K4),
    SEG(4, R, 0x540000, 0x940000, 0x26268c, 0x26268c, K4),
    SEG(5, RW, 0x7a2df8, 0xba3df8, 0x2dc908, 0x5b8fe8, K4),
};
static struct segment bfd_aligned[] = {
    SEG(2, R, 0x0, 0x400000, 0x5a0, 0x5a0, M2),
    SEG(3, RE, 0x200000, 0x600000, 0x53ee31, 0x53ee31, M2),
    SEG(4, R, 0x800000, 0xc00000, 0x26268c, 0x26268c, M2),
    SEG(5, RW, 0xbffdf8, 0x11ffdf8, 0x2dc908, 0x5b8fe8, M2),
};
static struct segment two_segments[] = {
    SEG(2, RE, 0, 0x400000, 0x7a1a0c, 0x7a1a0c, M2),
    SEG(3, RW, 0x7ffdf8, 0xdffdf8, 0x2dc908, 0x5b8fe8, M2),
};
// max-page-size alone leaves lld's text in the middle of a slot.
static struct segment lld_aligned[] = {
    SEG(2, R, 0x0, 0x200000, 0x262be4, 0x262be4, M2),
    SEG(3, RE, 0x262bf0, 0x662bf0, 0x53ee30, 0x53ee30, M2),
    SEG(4, RW, 0x7a1a20, 0xda1a20, 0x1a0, 0x1a0, M2),
    SEG(5, RW, 0x7a1bc0, 0xfa1bc0, 0x2dc710, 0x5b8e08, M2),
};
static struct segment gold_default_pie[] = {
    SEG(2, RE, 0x0, 0x0, 0x7a1b10, 0x7a1b10, K4),
    SEG(3, RW, 0x7a1dc0, 0x7a2dc0, 0x2dc940, 0x5b9028, K4),
};

#define FACTS(type_, pie_, linker_, segs)                                                          \
    (struct elf_facts)                                                                             \
    {                                                                                              \
        .type = type_, .pie = pie_, .is_64 = true, .machine = EM_X86_64, .machine_name = "x86-64", \
        .linker = (char *)(linker_), .loads = segs, .nloads = sizeof segs / sizeof *segs,          \
        .interp = (char *)"ld.so", .strings_last = true                                            \
    }

static const struct page_sizes x86 = {K4, M2, true};

static void ask_library(const struct elf_facts *f, const char *letters, unsigned limit,
                        struct prediction *p)
{
    struct hugetlbfs_use use = {
        .letters = letters, .segment_limit = limit, .preload = !elf_links_libhugetlbfs(f)};
    predict_hugetlbfs(f, &x86, &use, p);
}

static void ask_pagecache(const struct elf_facts *f, struct prediction *p)
{
    assert_true(predict_mode("pagecache", f, &x86, 0, p));
}

static void assert_says(const struct prediction *p, enum answer a, const char *words)
{
    if (p->answer != a || !strstr(p->reason, words))
        fail_msg("answer %d, reason '%s'; wanted %d, '%s'", p->answer, p->reason, a, words);
}

static void default_layout_overlaps(void **state)
{
    (void)state;
    struct prediction p;
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", bfd_default);
    ask_library(&f, "R", LIMIT, &p);
    assert_says(&p, ANSWER_NO, "overlap");
    assert_says(&p, ANSWER_NO, "-Wl,-z,max-page-size=2097152");
    assert_null(strstr(p.reason, "separate-code"));
    assert_int_equal(p.text_huge_bytes, 0);
    f.linker = (char *)"mold 1.10.1";
    ask_library(&f, "R", LIMIT, &p);
    assert_says(&p, ANSWER_NO, "-Wl,-z,max-page-size=2097152 -Wl,-z,separate-code");
}

static void aligned_layout_takes_R(void **state)
{
    (void)state;
    struct prediction p;
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", bfd_aligned);
    ask_library(&f, "R", LIMIT, &p);
    assert_says(&p, ANSWER_YES, "3 load segments");
    assert_int_equal(p.text_bytes, 0x53ee31);
    assert_int_equal(p.text_huge_bytes, 0x53ee31);
    assert_int_equal(p.pages, 6); // 1 + 3 + 2
}

static void four_segments_for_RW_depend_on_the_library(void **state)
{
    (void)state;
    struct prediction p;
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", bfd_aligned);
    ask_library(&f, "RW", 3, &p);
    assert_says(&p, ANSWER_NO, "-Wl,-z,noseparate-code");
    ask_library(&f, "RW", 4, &p);
    assert_int_equal(p.answer, ANSWER_YES);
    ask_library(&f, "RW", 0, &p);
    assert_int_equal(p.answer, ANSWER_CANNOT_KNOW);
    f.linker = (char *)"LLD 14.0.6";
    ask_library(&f, "RW", 3, &p);
    assert_says(&p, ANSWER_NO, "use R");
    assert_null(strstr(p.reason, "noseparate"));
}

static void two_segments_take_RW(void **state)
{
    (void)state;
    struct prediction p;
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", two_segments);
    ask_library(&f, "rw", LIMIT, &p);
    assert_int_equal(p.answer, ANSWER_YES);
    assert_int_equal(p.pages, 4 + 2 * 4); // the data is copied
    ask_library(&f, "W", LIMIT, &p);
    assert_int_equal(p.answer, ANSWER_YES);
    assert_int_equal(p.text_huge_bytes, 0);
    assert_int_equal(p.data_huge_bytes, 0x5b8fe8);
}

// A PIE's copies of stdout and its like do not survive W.
static void pie_with_copies_crashes_under_W(void **state)
{
    (void)state;
    struct prediction p;
    struct elf_facts f = FACTS(ET_DYN, true, "bfd", two_segments);
    ask_library(&f, "RW", LIMIT, &p);
    assert_says(&p, ANSWER_YES, "kernel 5.10");
    f.copy_relocs = true;
    ask_library(&f, "RW", LIMIT, &p);
    assert_says(&p, ANSWER_NO, "-no-pie");
    ask_library(&f, "R", LIMIT, &p);
    assert_int_equal(p.answer, ANSWER_YES);
    f.strings_last = false; // as patchelf leaves it: all of .bss is copied
    ask_library(&f, "RW", LIMIT, &p);
    assert_int_equal(p.answer, ANSWER_YES);
}

// A base at 4 KiB grain: some bases would do, so neither yes nor no is true.
static void unaligned_pie_is_not_reliable(void **state)
{
    (void)state;
    struct prediction p;
    struct elf_facts f = FACTS(ET_DYN, true, "gold 1.16", gold_default_pie);
    ask_library(&f, "R", LIMIT, &p);
    assert_says(&p, ANSWER_CANNOT_KNOW, "not reliable");
    ask_pagecache(&f, &p);
    assert_says(&p, ANSWER_NO, "1 of 512 would do");
    struct elf_facts never = FACTS(ET_DYN, true, "bfd", bfd_default);
    ask_library(&never, "R", LIMIT, &p);
    assert_says(&p, ANSWER_NO, "overlap");
}

static void one_page_size_per_slice(void **state)
{
    (void)state;
    // The small RW segment begins in the 2 MiB in which the huge text ends.
    struct segment segs[] = {SEG(2, RE, 0, 0x400000, 0x200000, 0x200000, M2),
                             SEG(3, RW, 0x200000, 0x600000, 0x1000, 0x1000, M2),
                             SEG(4, R, 0x300000, 0x700000, 0x1000, 0x1000, M2)};
    struct prediction p;
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", segs);
    ask_library(&f, "R", LIMIT, &p);
    assert_int_equal(p.answer, ANSWER_NO);
    assert_non_null(strstr(p.reason, "load segments 1 and 2"));
}

static void late_program_headers_are_not_read(void **state)
{
    (void)state;
    struct segment segs[4];
    struct prediction p;
    memcpy(segs, bfd_aligned, sizeof segs);
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", segs);
    segs[3].index = 10;
    ask_library(&f, "R", LIMIT, &p);
    assert_says(&p, ANSWER_YES, "index 10");
    segs[2].vaddr = 0xb00000; // in the huge page in which the text ends
    ask_library(&f, "R", LIMIT, &p);
    assert_says(&p, ANSWER_NO, "crashes");
    segs[2].vaddr = 0xc00000;
    segs[1].index = 12;
    ask_library(&f, "R", LIMIT, &p);
    assert_says(&p, ANSWER_NO, "patchelf");
}

static void pagecache_counts_whole_slots(void **state)
{
    (void)state;
    struct prediction p;
    const struct {
        struct elf_facts f;
        enum answer answer;
        uint64_t huge;
    } seen[] = {
        {FACTS(ET_EXEC, false, "bfd", bfd_default), ANSWER_YES, 1 * M2},
        {FACTS(ET_EXEC, false, "bfd", bfd_aligned), ANSWER_YES, 2 * M2},
        {FACTS(ET_EXEC, false, "LLD 14.0.6", lld_aligned), ANSWER_YES, 1 * M2},
        {FACTS(ET_DYN, true, "bfd", two_segments), ANSWER_YES, 3 * M2},
        {FACTS(ET_DYN, true, "bfd", bfd_default), ANSWER_NO, 0},
    };
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        ask_pagecache(&seen[i].f, &p);
        assert_int_equal(p.answer, seen[i].answer);
        assert_int_equal(p.text_huge_bytes, seen[i].huge);
        assert_int_equal(p.pages, 0);
    }
}

// Offset and address that differ modulo 2 MiB: no page of the cache fits.
static void pagecache_needs_congruence(void **state)
{
    (void)state;
    struct segment segs[] = {SEG(2, RE, 0x1000, 0x400000, 0x800000, 0x800000, M2)};
    struct prediction p;
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", segs);
    ask_pagecache(&f, &p);
    assert_says(&p, ANSWER_NO, "differ modulo 2 MiB");
    segs[0].offset = 0x200000;
    ask_pagecache(&f, &p);
    assert_int_equal(p.text_huge_bytes, 4 * M2);
    segs[0].filesz = segs[0].memsz = M2 - K4;
    ask_pagecache(&f, &p);
    assert_says(&p, ANSWER_NO, "no whole 2 MiB slot");
}

// The last slot may end in padding, which does not count as text.
static void padding_is_no_text(void **state)
{
    (void)state;
    struct segment segs[] = {SEG(2, RE, 0, 0x400000, M2, M2, M2)};
    segs[0].sections_to -= 100;
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", segs);
    struct prediction p;
    assert_int_equal(segment_slots(segs, &x86), 1);
    ask_pagecache(&f, &p);
    assert_int_equal(p.text_huge_bytes, M2 - 100);
}

// MySQL on ARM: kernels with 64 KiB pages have huge pages of 512 MiB.
static void other_machines_have_their_pages(void **state)
{
    (void)state;
    struct prediction p;
    struct page_sizes pages;
    assert_true(page_sizes_of(EM_AARCH64, 0, &pages));
    assert_int_equal(pages.huge, M2);
    assert_true(page_sizes_of(EM_AARCH64, 512 << 20, &pages));
    assert_int_equal(pages.small, 64 << 10);
    assert_false(page_sizes_of(EM_X86_64, 512 << 20, &pages));
    assert_false(page_sizes_of(EM_S390, 0, &pages));
    struct segment segs[] = {SEG(2, RE, 0, 0x20000000, 600 << 20, 600 << 20, 512 << 20),
                             SEG(3, RW, 0x25800000, 0x85800000, K4, K4, 512 << 20)};
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", segs);
    f.machine = EM_AARCH64;
    assert_true(page_sizes_of(EM_AARCH64, 512 << 20, &pages));
    assert_true(predict_mode("pagecache", &f, &pages, 0, &p));
    assert_says(&p, ANSWER_YES, "1 whole 512 MiB slots");
    assert_int_equal(p.text_huge_bytes, 512 << 20);
    assert_true(predict_mode("hugetlbfs:R", &f, &pages, 3, &p));
    assert_int_equal(p.answer, ANSWER_YES);
    assert_int_equal(p.pages, 2);
    f.type = ET_REL;
    ask_pagecache(&f, &p);
    assert_says(&p, ANSWER_NO, "object file");
}

static void gigantic_pages_are_for_the_pool(void **state)
{
    (void)state;
    struct prediction p;
    struct page_sizes pages;
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", bfd_aligned);
    assert_true(page_sizes_of(EM_X86_64, 1 << 30, &pages));
    assert_true(predict_mode("pagecache", &f, &pages, 0, &p));
    assert_says(&p, ANSWER_NO, "1 GiB");
    assert_true(predict_mode("hugetlbfs:R", &f, &pages, 3, &p));
    assert_says(&p, ANSWER_NO, "max-page-size=1073741824");
}

// A base that is a multiple of 1 MiB fits every other time.
static void a_base_may_fit(void **state)
{
    (void)state;
    struct segment segs[] = {SEG(2, RE, 0, 0, 3 * M2, 3 * M2, M2 / 2),
                             SEG(3, RW, 4 * M2, 4 * M2, K4, K4, M2 / 2)};
    struct elf_facts f = FACTS(ET_DYN, true, "bfd", segs);
    struct prediction p;
    ask_pagecache(&f, &p);
    assert_says(&p, ANSWER_CANNOT_KNOW, "1 of 2 would do");
    assert_true(predict_mode("remap", &f, &x86, 0, &p));
    assert_says(&p, ANSWER_YES, "at least 2 whole 2 MiB slots");
    assert_int_equal(p.text_huge_bytes, 2 * M2);
}

// What lld before 18 makes of -z max-page-size and -z common-page-size together.
static void what_does_not_start_is_told(void **state)
{
    (void)state;
    struct elf_facts f = FACTS(ET_EXEC, false, "LLD 14.0.6", lld_aligned);
    struct prediction p;
    f.relro_vaddr = 0xda1a20;
    f.relro_memsz = 0x1a0;
    assert_false(elf_relro_outside(&f, K4));
    f.relro_memsz = 0x5e0;
    assert_false(elf_relro_outside(&f, K4));
    f.relro_memsz = M2 - 0x1a1a20 + 0x200000;
    assert_true(elf_relro_outside(&f, K4));
    for (size_t i = 0; predict_modes[i]; i++) {
        assert_true(predict_mode(predict_modes[i], &f, &x86, LIMIT, &p));
        assert_says(&p, ANSWER_NO, "does not start");
    }
}

static void marks_select(void **state)
{
    (void)state;
    struct segment segs[4];
    struct prediction p;
    memcpy(segs, bfd_aligned, sizeof segs);
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", segs);
    assert_true(predict_mode("hugetlbfs:marked", &f, &x86, LIMIT, &p));
    assert_says(&p, ANSWER_NO, "'hugeedit --text FILE' marks 1");
    segs[1].flags |= PF_LINUX_HUGETLB;
    segs[3].flags |= PF_LINUX_HUGETLB;
    assert_true(predict_mode("hugetlbfs:marked", &f, &x86, LIMIT, &p));
    assert_says(&p, ANSWER_YES, "2 load segments");
    assert_int_equal(p.text_huge_bytes, 0x53ee31);
    assert_int_equal(p.data_huge_bytes, 0x5b8fe8);
    assert_int_equal(p.smaps_huge_bytes, 3 * M2);
    assert_false(predict_mode("hugetlbfs:X", &f, &x86, LIMIT, &p));
    assert_false(predict_mode("pagecach", &f, &x86, LIMIT, &p));
}

static void static_programs_load_no_library(void **state)
{
    (void)state;
    struct prediction p;
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", bfd_aligned);
    f.is_static = true;
    ask_library(&f, "R", LIMIT, &p);
    assert_says(&p, ANSWER_NO, "static");
}

static void linked_and_preloaded_is_warned_of(void **state)
{
    (void)state;
    struct prediction p;
    struct elf_facts f = FACTS(ET_EXEC, false, "bfd", two_segments);
    strv_add(&f.needed, "libhugetlbfs.so.0");
    f.executable_start = true;
    ask_library(&f, "RW", LIMIT, &p);
    assert_says(&p, ANSWER_YES, "do not preload");
    struct hugetlbfs_use both = {.letters = "RW", .segment_limit = LIMIT, .preload = true};
    predict_hugetlbfs(&f, &x86, &both, &p);
    assert_says(&p, ANSWER_NO, "without LD_PRELOAD");
    strv_free(&f.needed);
    both.preload = false;
    predict_hugetlbfs(&f, &x86, &both, &p);
    assert_says(&p, ANSWER_NO, "not linked with libhugetlbfs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_layout_overlaps),
        cmocka_unit_test(aligned_layout_takes_R),
        cmocka_unit_test(four_segments_for_RW_depend_on_the_library),
        cmocka_unit_test(two_segments_take_RW),
        cmocka_unit_test(pie_with_copies_crashes_under_W),
        cmocka_unit_test(unaligned_pie_is_not_reliable),
        cmocka_unit_test(one_page_size_per_slice),
        cmocka_unit_test(late_program_headers_are_not_read),
        cmocka_unit_test(pagecache_counts_whole_slots),
        cmocka_unit_test(pagecache_needs_congruence),
        cmocka_unit_test(padding_is_no_text),
        cmocka_unit_test(other_machines_have_their_pages),
        cmocka_unit_test(gigantic_pages_are_for_the_pool),
        cmocka_unit_test(a_base_may_fit),
        cmocka_unit_test(what_does_not_start_is_told),
        cmocka_unit_test(marks_select),
        cmocka_unit_test(static_programs_load_no_library),
        cmocka_unit_test(linked_and_preloaded_is_warned_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
