#include "common/fs.h"
#include "common/proc.h"
#include "elfcheck/dwarf_facts.h"
#include "elfcheck/elf_facts.h"
#include "elfcheck/rules.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_elf_facts.XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir) || chdir(dir))
        return -1;
    return fs_write_atomic(
        "p.c", "#include <stdio.h>\nint main(void) { return puts(\"x\") == 0; }\n", NULL);
}

static int remove_dir(void **state)
{
    (void)state;
    return chdir("/") || fs_remove_tree(dir, NULL);
}

// Compiles p.c with these words; the test is skipped when a tool is missing.
static const char *compile(const char *compiler, const char *tool, const char *flags)
{
    char *found = fs_find_program(compiler), *linker = fs_find_program(tool);
    bool there = found && linker;
    free(found);
    free(linker);
    if (!there)
        skip();
    struct strv argv = {0};
    struct str out = {0};
    struct err e = {0};
    strv_add(&argv, compiler);
    strv_split(&argv, flags, " ");
    strv_split(&argv, "p.c -o p", " ");
    if (proc_capture((const char *const *)argv.v, &out, &e))
        fail_msg("%s %s: %s%s", compiler, flags, str_text(&out), e.msg);
    strv_free(&argv);
    str_free(&out);
    return "p";
}

static struct elf_facts facts_of(const char *path)
{
    struct err e = {0};
    struct elf_facts f;
    if (elf_facts_read(path, &f, &e))
        fail_msg("%s", e.msg);
    return f;
}

static void expect_linker(const char *compiler, const char *tool, const char *flags,
                          const char *linker)
{
    struct elf_facts f = facts_of(compile(compiler, tool, flags));
    if (!f.linker || !starts_with(f.linker, linker))
        fail_msg("linker '%s', wanted '%s'", f.linker ? f.linker : "NULL", linker);
    assert_non_null(f.linker_evidence);
    elf_facts_free(&f);
}

static void bfd_is_deduced(void **state)
{
    (void)state;
    expect_linker("gcc", "ld.bfd", "-fuse-ld=bfd", "bfd");
    expect_linker("gcc", "ld.bfd", "-fuse-ld=bfd -Wl,-z,noseparate-code", "bfd");
}

static void gold_has_a_note(void **state)
{
    (void)state;
    expect_linker("gcc", "ld.gold", "-fuse-ld=gold", "gold 1.");
}

static void lld_signs_the_comment(void **state)
{
    (void)state;
    expect_linker("gcc", "ld.lld", "-fuse-ld=lld", "LLD ");
}

static void mold_signs_the_comment(void **state)
{
    (void)state;
    expect_linker("gcc", "mold", "-fuse-ld=mold", "mold ");
}

static void pie_and_not(void **state)
{
    (void)state;
    struct elf_facts f = facts_of(compile("gcc", "ld.bfd", "-fPIE -pie -g -Wl,--build-id"));
    assert_true(f.pie && !f.is_static && !f.stripped && f.has_debug_info && f.is_64);
    assert_string_equal(elf_type_name(&f), "PIE");
    assert_true(starts_with(f.compiler, "GCC "));
    assert_int_equal(strlen(f.build_id), 40);
    assert_non_null(strstr(f.interp, "ld-linux"));
    assert_true(strv_has(&f.needed, "libc.so.6"));
    assert_true(elf_text_bytes(&f) > 0);
    elf_facts_free(&f);
    f = facts_of(compile("gcc", "ld.bfd", "-fno-pie -no-pie -s"));
    assert_true(!f.pie && f.stripped && !f.has_debug_info && f.type == ET_EXEC);
    elf_facts_free(&f);
}

static void without_comment_gold_like_layouts_are_unknown(void **state)
{
    (void)state;
    compile("gcc", "objcopy", "-fuse-ld=bfd -Wl,-z,noseparate-code");
    struct err e;
    struct str out = {0};
    const char *const argv[] = {"objcopy", "-R", ".comment", "p", "q", NULL};
    assert_int_equal(proc_capture(argv, &out, &e), 0);
    str_free(&out);
    struct elf_facts f = facts_of("q");
    assert_null(f.linker);
    assert_null(f.compiler);
    elf_facts_free(&f);
}

static void clang_outweighs_the_start_files(void **state)
{
    (void)state;
    struct elf_facts f = facts_of(compile("clang", "ld.bfd", "-O2"));
    assert_true(starts_with(f.compiler, "clang "));
    elf_facts_free(&f);
}

static void units_tell_the_level(void **state)
{
    (void)state;
    struct dwarf_facts d;
    struct err e;
    // The last -O wins.
    compile("gcc", "ld.bfd", "-g -O3 -O2");
    assert_int_equal(dwarf_facts_read("p", &d, &e), 0);
    assert_int_equal(d.units, 1);
    assert_int_equal(d.by_level[OPT_O2], 1);
    assert_int_equal(d.gcc, 1);
    compile("gcc", "ld.bfd", "-O3");
    assert_int_equal(dwarf_facts_read("p", &d, &e), 0);
    assert_int_equal(d.units, 0);
}

static void producers_are_understood(void **state)
{
    (void)state;
    struct dwarf_facts d = {0};
    dwarf_facts_add(&d, "GNU C++17 12.2.0 -mtune=generic -march=x86-64 -g -O2 -O3 -fPIE");
    dwarf_facts_add(&d, "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g");
    dwarf_facts_add(&d, "GNU C17 12.2.0");
    dwarf_facts_add(&d, "Debian clang version 14.0.6");
    dwarf_facts_add(&d, "Debian clang version 14.0.6 /usr/lib/llvm-14/bin/clang -Ofast -c x.c");
    dwarf_facts_add(&d, "GNU AS 2.40");
    dwarf_facts_add(&d, NULL);
    assert_int_equal(d.units, 6);
    assert_int_equal(d.by_level[OPT_O3], 1);
    assert_int_equal(d.by_level[OPT_O0], 1);
    assert_int_equal(d.by_level[OPT_OFAST], 1);
    assert_int_equal(d.level_unknown, 3);
    assert_int_equal(d.gcc, 3);
    assert_int_equal(d.clang, 2);
    assert_int_equal(d.other_compiler, 1);
}

static void expect_refused(const char *path, const char *words)
{
    struct err e = {0};
    struct elf_facts f;
    assert_int_equal(elf_facts_read(path, &f, &e), -1);
    assert_int_equal(e.code, EXIT_CANNOT_ASK);
    if (!strstr(e.msg, words))
        fail_msg("'%s' lacks '%s'", e.msg, words);
}

static void what_is_no_elf_file_is_refused(void **state)
{
    (void)state;
    assert_int_equal(fs_write_atomic("empty", "", NULL), 0);
    assert_int_equal(fs_write_atomic("magic", "\177ELF", NULL), 0);
    expect_refused("p.c", "p.c: not an ELF file");
    expect_refused("empty", "empty: not an ELF file");
    expect_refused("magic", "magic: ");
    expect_refused("/", "not an ELF file: a directory");
    expect_refused("/dev/null", "not a regular file");
    expect_refused("nobody", "No such file");
}

static void write_bytes(const char *path, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
}

static void read_damaged(const char *path)
{
    struct elf_facts f;
    struct dwarf_facts d;
    struct err e;
    if (elf_facts_read(path, &f, &e) == 0)
        elf_facts_free(&f);
    dwarf_facts_read(path, &d, &e);
}

// Nothing but an error or an answer may come of it; the sanitizers watch.
static void cut_and_damaged_files_do_no_harm(void **state)
{
    (void)state;
    struct str whole = {0};
    struct err e;
    compile("gcc", "ld.bfd", "-g");
    assert_int_equal(fs_read("p", &whole, &e), 0);
    for (size_t n = 0; n < whole.len; n += n < 1200 ? 7 : 331) {
        write_bytes("cut", whole.s, n);
        read_damaged("cut");
    }
    uint64_t seed = 1;
    for (int i = 0; i < 2000; i++) {
        char was[8];
        size_t at[8];
        for (int j = 0; j < 8; j++) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            // Half of the hits go to the headers, where they hurt most.
            at[j] = (seed >> 33) % (j % 2 ? whole.len : 1000);
            was[j] = whole.s[at[j]];
            whole.s[at[j]] = (char)(seed >> 25);
        }
        write_bytes("bad", whole.s, whole.len);
        read_damaged("bad");
        for (int j = 7; j >= 0; j--)
            whole.s[at[j]] = was[j];
    }
    str_free(&whole);
}

// 32-bit big-endian, no sections: a header and one segment.
static void other_machines_are_read(void **state)
{
    (void)state;
    static const unsigned char image[84] = {0x7f,          'E',
                                            'L',           'F',
                                            ELFCLASS32,    ELFDATA2MSB,
                                            EV_CURRENT,    [17] = ET_EXEC,
                                            [19] = EM_PPC, [23] = EV_CURRENT,
                                            [24] = 0x10,   [31] = 52,
                                            [41] = 52,     [43] = 32,
                                            [45] = 1,      [55] = PT_LOAD,
                                            [60] = 0x10,   [71] = 84,
                                            [75] = 84,     [79] = PF_R | PF_X,
                                            [82] = 1};
    write_bytes("ppc", (const char *)image, sizeof image);
    struct elf_facts f = facts_of("ppc");
    assert_string_equal(f.machine_name, "PPC");
    assert_false(f.is_64);
    assert_int_equal(f.nloads, 1);
    assert_int_equal(f.loads[0].vaddr, 0x10000000);
    assert_true(segment_is_text(&f.loads[0]));
    assert_null(f.linker);
    struct prediction p;
    predict_pagecache(&f, &p);
    assert_int_equal(p.answer, ANSWER_CANNOT_KNOW);
    elf_facts_free(&f);
}

static struct check_result check(struct profile_key *keys, size_t n, const struct elf_facts *f,
                                 const struct dwarf_facts *d)
{
    struct err e = {0};
    struct check_result r;
    struct profile p = {.name = (char *)"t", .keys = keys, .n = n};
    struct check_subject s = {.elf = f, .dwarf = d, .segment_limit = 3};
    if (check_promises(&s, &p, &r, &e))
        fail_msg("%s", e.msg);
    return r;
}

#define PROMISE(k, v)                                                                              \
    {                                                                                              \
        (char *)"promises", (char *)(k), (char *)(v), (char *)"t.ini:1"                            \
    }

static void promises_pass_and_fail(void **state)
{
    (void)state;
    struct err e;
    struct dwarf_facts d;
    struct elf_facts f = facts_of(
        compile("gcc", "ld.bfd", "-g -O2 -fuse-ld=bfd -fPIE -pie -Wl,-z,max-page-size=2097152"));
    assert_int_equal(dwarf_facts_read("p", &d, &e), 0);
    struct profile_key kept[] = {PROMISE("compiler", "gcc"),    PROMISE("linker", "bfd"),
                                 PROMISE("optimisation", "O2"), PROMISE("text-alignment", "2M"),
                                 PROMISE("pie", "yes"),         PROMISE("needed", "libc.so"),
                                 PROMISE("load-segments", "4"), PROMISE("modes", "hugetlbfs:R")};
    struct check_result r = check(kept, 8, &f, &d);
    assert_int_equal(r.n, 8);
    for (size_t i = 0; i < r.n; i++)
        if (r.v[i].answer != ANSWER_YES)
            fail_msg("%s: %s", r.v[i].key, r.v[i].evidence);
    assert_int_equal(check_verdict(&r), ANSWER_YES);
    check_result_free(&r);
    struct profile_key broken[] = {
        PROMISE("compiler", "clang"),   PROMISE("linker", "gold"),
        PROMISE("optimisation", "-O3"), PROMISE("text-alignment", "4M"),
        PROMISE("pie", "no"),           PROMISE("needed", "libhugetlbfs.so"),
        PROMISE("load-segments", "2"),  PROMISE("modes", "pagecache+hugetlbfs:RW")};
    r = check(broken, 8, &f, &d);
    assert_int_equal(r.n, 9);
    for (size_t i = 0; i < r.n; i++)
        if (r.v[i].answer != ANSWER_NO || !*r.v[i].advice)
            fail_msg("%s: %s", r.v[i].key, r.v[i].evidence);
    assert_int_equal(check_verdict(&r), ANSWER_NO);
    check_result_free(&r);
    elf_facts_free(&f);
}

static void absence_of_evidence_is_no_pass(void **state)
{
    (void)state;
    struct dwarf_facts none = {0};
    struct elf_facts bare = {.type = ET_DYN, .machine = EM_X86_64};
    struct profile_key keys[] = {PROMISE("compiler", "gcc"), PROMISE("linker", "bfd"),
                                 PROMISE("optimisation", "O2"), PROMISE("text-alignment", "2M")};
    struct check_result r = check(keys, 4, &bare, &none);
    for (size_t i = 0; i < r.n; i++)
        assert_int_equal(r.v[i].answer, ANSWER_CANNOT_KNOW);
    assert_int_equal(check_verdict(&r), ANSWER_CANNOT_KNOW);
    check_result_free(&r);
    r = check(NULL, 0, &bare, &none);
    assert_int_equal(check_verdict(&r), ANSWER_CANNOT_KNOW);
    check_result_free(&r);
}

// clang without -grecord-command-line: units, but no flags.
static void unrecorded_levels_cannot_be_known(void **state)
{
    (void)state;
    struct dwarf_facts d = {
        .units = 100, .by_level = {[OPT_O2] = 80}, .level_unknown = 20, .gcc = 100};
    struct elf_facts f = {.type = ET_DYN};
    struct profile_key keys[] = {PROMISE("optimisation", "O2")};
    struct check_result r = check(keys, 1, &f, &d);
    assert_int_equal(r.v[0].answer, ANSWER_CANNOT_KNOW);
    check_result_free(&r);
    d.by_level[OPT_O2] = 91;
    d.by_level[OPT_O3] = 9;
    d.level_unknown = 0;
    r = check(keys, 1, &f, &d);
    assert_int_equal(r.v[0].answer, ANSWER_YES);
    check_result_free(&r);
}

static void senseless_promises_are_errors(void **state)
{
    (void)state;
    struct dwarf_facts d = {0};
    struct elf_facts f = {.type = ET_DYN};
    struct profile_key bad[] = {PROMISE("compiler", "icc"),      PROMISE("linker", "ld"),
                                PROMISE("optimisation", "-O22"), PROMISE("text-alignment", "big"),
                                PROMISE("pie", "maybe"),         PROMISE("load-segments", "many"),
                                PROMISE("modes", "hugetlbfs:X"), PROMISE("needed", "")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = {0};
        struct check_result r;
        struct profile p = {.name = (char *)"t", .keys = &bad[i], .n = 1};
        struct check_subject s = {.elf = &f, .dwarf = &d};
        assert_int_equal(check_promises(&s, &p, &r, &e), -1);
        assert_true(starts_with(e.msg, "t.ini:1: "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bfd_is_deduced),
        cmocka_unit_test(gold_has_a_note),
        cmocka_unit_test(lld_signs_the_comment),
        cmocka_unit_test(mold_signs_the_comment),
        cmocka_unit_test(pie_and_not),
        cmocka_unit_test(without_comment_gold_like_layouts_are_unknown),
        cmocka_unit_test(clang_outweighs_the_start_files),
        cmocka_unit_test(units_tell_the_level),
        cmocka_unit_test(producers_are_understood),
        cmocka_unit_test(what_is_no_elf_file_is_refused),
        cmocka_unit_test(cut_and_damaged_files_do_no_harm),
        cmocka_unit_test(other_machines_are_read),
        cmocka_unit_test(promises_pass_and_fail),
        cmocka_unit_test(absence_of_evidence_is_no_pass),
        cmocka_unit_test(unrecorded_levels_cannot_be_known),
        cmocka_unit_test(senseless_promises_are_errors),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
