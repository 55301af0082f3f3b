#include "elfcheck/coverage.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MB = 1 << 20 };

// 5 MiB and 100 bytes of text at 0x600000, data after it.
static struct segment loads[] = {
    {.index = 2,
     .flags = PF_R | PF_X,
     .vaddr = 0x600000,
     .filesz = 5 * MB + 100,
     .memsz = 5 * MB + 100,
     .sections_from = 0x600000,
     .sections_to = 0x600000 + 5 * MB + 100},
    {.index = 3,
     .flags = PF_R | PF_W,
     .vaddr = 0xc00000,
     .filesz = 2 * MB,
     .memsz = 2 * MB,
     .sections_from = 0xc00000,
     .sections_to = 0xe00000},
};
static const struct elf_facts facts = {.is_64 = true, .loads = loads, .nloads = 2};

static void small_pages_count_nothing(void **state)
{
    (void)state;
    struct coverage c;
    coverage_from_smaps("00600000-00b01000 r-xp 00200000 08:01 77 /x/server\n"
                        "Size:               5124 kB\nKernelPageSize:        4 kB\n"
                        "Rss:                5124 kB\nAnonHugePages:         0 kB\n"
                        "ShmemPmdMapped:        0 kB\nFilePmdMapped:         0 kB\n",
                        &facts, 0, &c);
    assert_int_equal(c.text, 5 * MB + 100);
    assert_int_equal(c.huge, 0);
}

// The mapping is rounded up to 6 MiB; the rest of the last page is padding.
static void hugetlbfs_covers_the_text_and_no_padding(void **state)
{
    (void)state;
    struct coverage c;
    coverage_from_smaps("00600000-00c00000 r-xp 00000000 00:2f 9 /h/libhugetlbfs.tmp.a (deleted)\n"
                        "KernelPageSize:     2048 kB\nRss:                   0 kB\n"
                        "Private_Hugetlb:    6144 kB\nFilePmdMapped:         0 kB\n"
                        "00c00000-00e00000 rw-p 00600000 08:01 77 /x/server\n"
                        "KernelPageSize:        4 kB\nAnonHugePages:      2048 kB\n",
                        &facts, 0, &c);
    assert_int_equal(c.huge, 5 * MB + 100);
    assert_int_equal(c.hugetlb, 5 * MB + 100);
    assert_int_equal(c.anon_huge, 0); // the data's, not the text's
    assert_true(coverage_percent(&c) > 99.999);
}

static void page_cache_covers_whole_slots(void **state)
{
    (void)state;
    struct coverage c;
    uint64_t bias = 0x555555400000;
    coverage_from_smaps("555555a00000-555555f01000 r-xp 00200000 08:01 77 /x/ser-ver 1\n"
                        "KernelPageSize:        4 kB\nFilePmdMapped:      4096 kB\n"
                        "7ffff7c00000-7ffff7e00000 r-xp 00000000 08:01 78 /lib/libc.so.6\n"
                        "KernelPageSize:        4 kB\nFilePmdMapped:      2048 kB\n",
                        &facts, bias, &c);
    assert_int_equal(c.file_pmd, 4 * MB);
    assert_int_equal(c.huge, 4 * MB);
}

static void anonymous_and_tmpfs_are_told_apart(void **state)
{
    (void)state;
    struct coverage c;
    coverage_from_smaps("00600000-00800000 r-xp 00000000 00:00 0 \n"
                        "KernelPageSize:        4 kB\nAnonHugePages:      2048 kB\n"
                        "00800000-00b01000 r-xp 00400000 00:19 5 /dev/shm/server\n"
                        "KernelPageSize:        4 kB\nShmemPmdMapped:     2048 kB\n",
                        &facts, 0, &c);
    assert_int_equal(c.anon_huge, 2 * MB);
    assert_int_equal(c.shmem_pmd, 2 * MB);
    assert_int_equal(c.huge, c.hugetlb + c.file_pmd + c.shmem_pmd + c.anon_huge);
}

// A counter may exceed the text that lies in its mapping; the sum may not.
static void huge_is_never_above_text(void **state)
{
    (void)state;
    struct coverage c;
    coverage_from_smaps("00400000-01000000 r-xp 00000000 08:01 77 /x/server\n"
                        "KernelPageSize:        4 kB\nFilePmdMapped:     12288 kB\n"
                        "AnonHugePages:     12288 kB\n",
                        &facts, 0, &c);
    assert_int_equal(c.huge, c.text);
}

// A segment that was padded to the end of its slot: 5 MiB of text, 1 MiB of padding.
static struct segment padded_load = {.flags = PF_R | PF_X,
                                     .vaddr = 0x600000,
                                     .filesz = 6 * MB,
                                     .memsz = 6 * MB,
                                     .sections_from = 0x600000,
                                     .sections_to = 0xb00000};
static const struct elf_facts padded = {.is_64 = true, .loads = &padded_load, .nloads = 1};

static uint64_t huge_of_padded(unsigned huge_kb)
{
    char smaps[200];
    struct coverage c;
    snprintf(smaps, sizeof smaps,
             "00600000-00c00000 r-xp 00200000 08:01 77 /x/server\n"
             "KernelPageSize:        4 kB\nFilePmdMapped:      %u kB\n",
             huge_kb);
    coverage_from_smaps(smaps, &padded, 0, &c);
    assert_int_equal(c.text, 5 * MB);
    assert_int_equal(c.huge, c.file_pmd);
    return c.huge;
}

// With one slot of three small, it may be a slot full of text: at least 3 MiB are huge.
static void padding_is_no_huge_text(void **state)
{
    (void)state;
    assert_int_equal(huge_of_padded(6144), 5 * MB);
    assert_int_equal(huge_of_padded(4096), 3 * MB);
    assert_int_equal(huge_of_padded(2048), 1 * MB);
    assert_int_equal(huge_of_padded(0), 0);
}

// What BOLT leaves behind its new text, and what lies before the first section, is no text.
static void sections_begin_and_end_the_text(void **state)
{
    (void)state;
    struct segment load = padded_load;
    load.sections_from = 0x800000;
    load.sections_to = 0xa00000;
    const struct elf_facts f = {.is_64 = true, .loads = &load, .nloads = 1};
    struct coverage c;
    coverage_from_smaps("00600000-00c00000 r-xp 00000000 00:2f 9 /h/x\n"
                        "KernelPageSize:     2048 kB\n",
                        &f, 0, &c);
    assert_int_equal(c.text, 2 * MB);
    assert_int_equal(c.hugetlb, 2 * MB);
}

static void two_ways_in_one_mapping_add_up(void **state)
{
    (void)state;
    struct coverage c;
    coverage_from_smaps("00600000-00c00000 r-xp 00200000 08:01 77 /x/server\n"
                        "KernelPageSize:        4 kB\nFilePmdMapped:      4096 kB\n"
                        "AnonHugePages:      2048 kB\n",
                        &padded, 0, &c);
    assert_int_equal(c.file_pmd, 4 * MB);
    assert_int_equal(c.anon_huge, 1 * MB);
    assert_int_equal(c.huge, c.text);
}

static void headers_of_smaps(void **state)
{
    (void)state;
    const char *at = "junk\n7f00-8f00 r-xs 00012000 fe:0a 1234567 /a b (deleted)\nRss: 4 kB\n"
                     "KernelPageSize: 2048 kB\n9000-a000 ---p 00000000 00:00 0 \n";
    struct vma v;
    assert_true(smaps_next(&at, &v));
    assert_int_equal(v.from, 0x7f00);
    assert_int_equal(v.to, 0x8f00);
    assert_string_equal(v.perms, "r-xs");
    assert_int_equal(v.offset, 0x12000);
    assert_int_equal(v.major, 0xfe);
    assert_int_equal(v.minor, 10);
    assert_int_equal(v.inode, 1234567);
    assert_int_equal(v.page, 2 * MB);
    assert_int_equal(v.path_len, strlen("/a b (deleted)"));
    assert_memory_equal(v.path, "/a b (deleted)", v.path_len);
    assert_true(smaps_next(&at, &v));
    assert_int_equal(v.from, 0x9000);
    assert_int_equal(v.page, 0);
    assert_int_equal(v.path_len, 0);
    assert_false(smaps_next(&at, &v));
}

static void slots_are_whole_and_aligned(void **state)
{
    (void)state;
    assert_int_equal(vma_slots(&(struct vma){.from = 0x1ff000, .to = 0x601000}), 4 * MB);
    assert_int_equal(vma_slots(&(struct vma){.from = 0x201000, .to = 0x5ff000}), 0);
    assert_int_equal(vma_slots(&(struct vma){.from = UINT64_MAX - 4096, .to = UINT64_MAX}), 0);
}

static void odd_text_is_harmless(void **state)
{
    (void)state;
    struct coverage c;
    coverage_from_smaps("", &facts, 0, &c);
    assert_int_equal(c.huge, 0);
    coverage_from_smaps("FilePmdMapped: 2048 kB\nnonsense\n\n0-\n00600000", &facts, 0, &c);
    assert_int_equal(c.huge, 0);
}

static void json_has_the_ratio(void **state)
{
    (void)state;
    struct coverage c = {.text = 400, .huge = 100, .file_pmd = 100};
    json_t *o = coverage_json(&c);
    assert_true(json_number_value(json_object_get(o, "text_huge_percent")) == 25);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "by"), "file_pmd")),
                     100);
    json_decref(o);
}

static void own_process_can_be_read(void **state)
{
    (void)state;
    struct err e = {0};
    struct elf_facts self;
    struct coverage c;
    assert_int_equal(elf_facts_read("/proc/self/exe", &self, &e), 0);
    assert_int_equal(coverage_read(getpid(), &self, &c, &e), 0);
    assert_true(c.text > 0);
    assert_true(c.huge <= c.text);
    assert_int_equal(coverage_read(4194305, &self, &c, &e), -1);
    assert_non_null(strstr(e.msg, "no such process"));
    elf_facts_free(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_pages_count_nothing),
        cmocka_unit_test(hugetlbfs_covers_the_text_and_no_padding),
        cmocka_unit_test(page_cache_covers_whole_slots),
        cmocka_unit_test(anonymous_and_tmpfs_are_told_apart),
        cmocka_unit_test(huge_is_never_above_text),
        cmocka_unit_test(padding_is_no_huge_text),
        cmocka_unit_test(sections_begin_and_end_the_text),
        cmocka_unit_test(two_ways_in_one_mapping_add_up),
        cmocka_unit_test(headers_of_smaps),
        cmocka_unit_test(slots_are_whole_and_aligned),
        cmocka_unit_test(odd_text_is_harmless),
        cmocka_unit_test(json_has_the_ratio),
        cmocka_unit_test(own_process_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
