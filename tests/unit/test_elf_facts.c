#include "common/fs.h"
#include "common/proc.h"
#include "elfcheck/check_print.h"

#include <dirent.h>
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

static char *corpus; // of the fuzzer; tests run from the root of the source

static int make_dir(void **state)
{
    (void)state;
    corpus = realpath("tests/fuzz/corpus", NULL);
    if (!mkdtemp(dir) || chdir(dir))
        return -1;
    return fs_write_atomic(
        "p.c", "#include <stdio.h>\nint main(void) { return puts(\"x\") == 0; }\n", NULL);
}

static int remove_dir(void **state)
{
    (void)state;
    free(corpus);
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

static struct dwarf_facts units_of(const char *path)
{
    struct elf_file file;
    struct dwarf_facts d;
    assert_int_equal(elf_file_open(path, &file, NULL), 0);
    dwarf_facts_read(&file, &d);
    elf_file_close(&file);
    return d;
}

static void units_tell_the_level(void **state)
{
    (void)state;
    // The last -O wins.
    compile("gcc", "ld.bfd", "-g -O3 -O2");
    struct dwarf_facts d = units_of("p");
    if (d.problem)
        fail_msg("%s", d.problem);
    assert_int_equal(d.units, 1);
    assert_int_equal(d.by_level[OPT_O2], 1);
    assert_int_equal(d.gcc, 1);
    assert_true(d.text_bytes > 0 && d.text_by_level[OPT_O2] == d.text_bytes);
    assert_int_equal(d.nkinds, 1);
    assert_non_null(strstr(d.kinds[0].producer, "-O3 -O2"));
    dwarf_facts_free(&d);
    compile("gcc", "ld.bfd", "-O3");
    d = units_of("p");
    assert_int_equal(d.units, 0);
    assert_null(d.problem);
    dwarf_facts_free(&d);
}

static void compressed_units_are_read(void **state)
{
    (void)state;
    compile("gcc", "ld.bfd", "-g -O2 -gz");
    struct dwarf_facts d = units_of("p");
    assert_int_equal(d.by_level[OPT_O2], 1);
    dwarf_facts_free(&d);
}

static void write_bytes(const char *path, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
}

// A section that says it expands to a terabyte is not believed, and one that lies is no harm.
static void compressed_sections_that_lie_are_told(void **state)
{
    (void)state;
    static const uint64_t claims[] = {1ULL << 40, UINT64_MAX, 100 << 20, 1};
    struct str image = {0};
    struct err e;
    compile("gcc", "ld.bfd", "-g -O2 -gz");
    assert_int_equal(fs_read("p", &image, &e), 0);
    struct elf_file file;
    assert_int_equal(elf_file_open("p", &file, &e), 0);
    uint64_t at = file.shdrs[elf_section(&file, ".debug_info")].sh_offset;
    assert_true(file.shdrs[elf_section(&file, ".debug_info")].sh_flags & SHF_COMPRESSED);
    elf_file_close(&file);
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        memcpy(image.s + at + offsetof(Elf64_Chdr, ch_size), &claims[i], sizeof claims[i]);
        write_bytes("lie", image.s, image.len);
        struct dwarf_facts d = units_of("lie");
        assert_int_equal(d.units, 0);
        assert_non_null(d.problem);
        if (i < 2)
            assert_non_null(strstr(d.problem, "expand to"));
        dwarf_facts_free(&d);
    }
    str_free(&image);
}

static void producers_are_understood(void **state)
{
    (void)state;
    struct dwarf_facts d = {0};
    dwarf_facts_add(&d, "GNU C++17 12.2.0 -mtune=generic -march=x86-64 -g -O2 -O3 -fPIE", "sql", 1,
                    100);
    dwarf_facts_add(&d, "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g", "zlib", 1, 10);
    dwarf_facts_add(&d, "GNU C17 12.2.0", NULL, 1, 0);
    dwarf_facts_add(&d, "Debian clang version 14.0.6", NULL, 1, 0);
    dwarf_facts_add(&d, "Debian clang version 14.0.6 /usr/lib/llvm-14/bin/clang -Ofast -c x.c",
                    NULL, 1, 0);
    dwarf_facts_add(&d, "GNU AS 2.40", NULL, 1, 0);
    dwarf_facts_add(&d, NULL, NULL, 1, 0);
    assert_int_equal(d.units, 6);
    assert_int_equal(d.by_level[OPT_O3], 1);
    assert_int_equal(d.text_by_level[OPT_O3], 100);
    assert_int_equal(d.by_level[OPT_O0], 1);
    assert_int_equal(d.by_level[OPT_OFAST], 1);
    assert_int_equal(d.level_unknown, 3);
    assert_int_equal(d.gcc, 3);
    assert_int_equal(d.clang, 2);
    assert_int_equal(d.other_compiler, 1);
    dwarf_facts_free(&d);
    char *march = producer_flag("GNU C -march=x86-64 -O2 -march=native", "-march=");
    assert_string_equal(march, "native");
    free(march);
    assert_null(producer_flag("GNU C -O2", "-march="));
    assert_int_equal(producer_switch("GNU C -flto -fno-lto", "lto"), 0);
    assert_int_equal(producer_switch("GNU C -fno-lto -flto", "lto"), 1);
    assert_int_equal(producer_switch("GNU C -flto=8 -fltox", "lto"), -1);
}

// What the child says, also when it was made to say nonsense.
static void folders_are_named_below_the_common_one(void **state)
{
    (void)state;
    struct dwarf_facts d = {0};
    struct str lines = {0};
    str_add(&lines, "P GNU C 12 -O2\nP GNU C 12 -O3\n");
    for (int i = 0; i < 20; i++)
        str_addf(&lines, "U 0 10 /b/src/sql/%s/item%d.cc\n", i % 2 ? "." : "sys", i);
    str_add(&lines, "U 1 5 /b/src/extra/zlib/adler32.c\nU 1 5 /b/src/storage/innobase/buf/b.cc\n"
                    "U 1 5 /b/src/main.cc\nU 7 5 /x\nU x\nU 0\nnonsense\nU 1 9");
    dwarf_facts_parse(&d, lines.s);
    str_free(&lines);
    assert_int_equal(d.units, 24);
    assert_int_equal(d.nkinds, 2);
    assert_string_equal(d.kinds[0].folders, "sql (20)");
    assert_string_equal(d.kinds[1].folders, ". (2), extra/zlib (1), storage/innobase (1)");
    assert_int_equal(d.text_bytes, 200 + 15 + 9);
    dwarf_facts_free(&d);
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

static void read_damaged(const char *path)
{
    struct check c;
    struct str image = {0};
    struct err e;
    assert_int_equal(fs_read(path, &image, &e), 0);
    if (check_gather_image(path, str_text(&image), image.len, &c, &e) == 0)
        check_free(&c);
    str_free(&image);
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

// What the fuzzer found worth keeping, through the whole check and its output.
static void the_corpus_does_no_harm(void **state)
{
    (void)state;
    DIR *d = corpus ? opendir(corpus) : NULL;
    size_t n = 0;
    if (!d)
        skip();
    for (struct dirent *e; (e = readdir(d));) {
        char *path = xasprintf("%s/%s", corpus, e->d_name);
        struct check c;
        struct str image = {0};
        if (e->d_name[0] != '.' && fs_read(path, &image, NULL) == 0) {
            n++;
            if (check_gather_image(path, str_text(&image), image.len, &c, NULL) == 0) {
                struct check_output o = {.c = &c};
                json_t *j = check_json(&o);
                assert_non_null(j);
                json_decref(j);
                check_free(&c);
            }
        }
        str_free(&image);
        free(path);
    }
    closedir(d);
    assert_true(n > 100);
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
    struct page_sizes pages;
    assert_false(page_sizes_of(f.machine, 0, &pages));
    elf_facts_free(&f);
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
        cmocka_unit_test(compressed_units_are_read),
        cmocka_unit_test(compressed_sections_that_lie_are_told),
        cmocka_unit_test(producers_are_understood),
        cmocka_unit_test(folders_are_named_below_the_common_one),
        cmocka_unit_test(what_is_no_elf_file_is_refused),
        cmocka_unit_test(cut_and_damaged_files_do_no_harm),
        cmocka_unit_test(the_corpus_does_no_harm),
        cmocka_unit_test(other_machines_are_read),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
