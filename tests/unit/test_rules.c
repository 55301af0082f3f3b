#include "common/fs.h"
#include "common/proc.h"
#include "elfcheck/rules.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_rules.XXXXXX";

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

static void check_compiled(const char *flags, struct check *c)
{
    struct strv argv = {0};
    struct str out = {0};
    struct err e = {0};
    struct check_wish w = {0};
    strv_split(&argv, "gcc -fuse-ld=bfd", " ");
    strv_split(&argv, flags, " ");
    strv_split(&argv, "p.c -o p", " ");
    char *gcc = fs_find_program("gcc");
    if (!gcc)
        skip();
    free(gcc);
    if (proc_capture((const char *const *)argv.v, &out, &e) || check_gather("p", &w, c, &e))
        fail_msg("%s: %s%s", flags, str_text(&out), e.msg);
    strv_free(&argv);
    str_free(&out);
}

#define PROMISE(k, v)                                                                              \
    {                                                                                              \
        (char *)"promises", (char *)(k), (char *)(v), (char *)"t.ini:1"                            \
    }

static struct rule_results judge(const struct check *c, struct profile_key *keys, size_t n)
{
    struct err e = {0};
    struct rule_results r = {0};
    struct profile p = {.name = (char *)"t", .keys = keys, .n = n};
    if (rules_profile(c, &p, &r, &e))
        fail_msg("%s", e.msg);
    return r;
}

static void promises_pass_and_fail(void **state)
{
    (void)state;
    struct check c;
    check_compiled("-g -O2 -fPIE -pie -Wl,-z,max-page-size=2097152", &c);
    struct profile_key kept[] = {PROMISE("compiler", "gcc"),    PROMISE("linker", "bfd"),
                                 PROMISE("optimisation", "O2"), PROMISE("text-alignment", "2M"),
                                 PROMISE("pie", "yes"),         PROMISE("needed", "libc.so"),
                                 PROMISE("load-segments", "4"), PROMISE("modes", "hugetlbfs:R")};
    struct rule_results r = judge(&c, kept, 8);
    assert_int_equal(r.n, 8);
    for (size_t i = 0; i < r.n; i++)
        if (r.v[i].answer != ANSWER_YES || *r.v[i].advice)
            fail_msg("%s: %s", r.v[i].rule, r.v[i].evidence);
    assert_int_equal(rules_verdict(&r), ANSWER_YES);
    rules_free(&r);
    struct profile_key broken[] = {
        PROMISE("compiler", "clang"),   PROMISE("linker", "gold"),
        PROMISE("optimisation", "-O3"), PROMISE("text-alignment", "4M"),
        PROMISE("pie", "no"),           PROMISE("needed", "libhugetlbfs.so"),
        PROMISE("load-segments", "2"),  PROMISE("modes", "pagecache+hugetlbfs:RW")};
    r = judge(&c, broken, 8);
    assert_int_equal(r.n, 9);
    for (size_t i = 0; i < r.n; i++)
        if (r.v[i].answer != ANSWER_NO || !*r.v[i].advice)
            fail_msg("%s: %s", r.v[i].rule, r.v[i].evidence);
    assert_int_equal(rules_verdict(&r), ANSWER_NO);
    rules_free(&r);
    check_free(&c);
}

static struct rule_results require(const struct check *c, const char *list)
{
    struct rule_results r = {0};
    struct err e = {0};
    if (rules_require(c, list, &r, &e))
        fail_msg("%s: %s", list, e.msg);
    return r;
}

static void expect(const struct check *c, const char *list, enum answer a)
{
    struct rule_results r = require(c, list);
    if (rules_verdict(&r) != a)
        fail_msg("%s: %s: %s", list, rule_word(rules_verdict(&r)), r.v[0].evidence);
    rules_free(&r);
}

static void facts_are_required_by_name(void **state)
{
    (void)state;
    struct check c;
    check_compiled("-g -O2 -fPIE -pie -Wl,-z,relro -Wl,-z,now", &c);
    expect(&c, "relro=full,pie=yes,exec-stack=no", ANSWER_YES);
    expect(&c, "relro=partial|full", ANSWER_YES);
    expect(&c, "relro=none", ANSWER_NO);
    expect(&c, "exec-stack", ANSWER_YES); // the advised value
    expect(&c, "text-relocations,writable-text,relro-in-load", ANSWER_YES);
    expect(&c, "text-alignment", ANSWER_NO);
    expect(&c, "text-coverage=0", ANSWER_YES);
    expect(&c, "text-coverage=pagecache:1", ANSWER_NO);
    expect(&c, "padded=no", ANSWER_YES);
    expect(&c, "isa-level=x86-64-v2,lto=no,debug-info=inside", ANSWER_YES);
    expect(&c, "host", ANSWER_YES);
    expect(&c, "march=x86-64,frame-pointers=yes|no,lto", ANSWER_NO);
    expect(&c, "march=x86-64", ANSWER_YES);
    expect(&c, "march=x86-6", ANSWER_NO);
    check_free(&c);
}

static void facts_are_compared_as_they_are_meant(void **state)
{
    (void)state;
    struct fact list[] = {
        {"server-version", (char *)"10.11.18-MariaDB", (char *)"seen"},
        {"march", (char *)"x86-64-v3 in 9 of 10 units; x86-64 in 1", (char *)"seen"},
        {"optimisation", (char *)"-O2 in 2 of 3 units; not recorded in 1", (char *)"seen"},
        {"pgo", (char *)"yes", (char *)"seen"},
        {"sanitizers", (char *)"address", (char *)"seen"},
        {"relro", NULL, (char *)"would tell"},
    };
    struct check c = {.facts = {list, sizeof list / sizeof *list},
                      .elf = {.build_id = (char *)"439da8d94412"}};
    expect(&c, "server-version=10.11", ANSWER_YES);
    expect(&c, "server-version=10.11.18", ANSWER_YES);
    expect(&c, "server-version=10.1", ANSWER_NO);
    expect(&c, "march=x86-64-v3", ANSWER_YES);
    expect(&c, "march=x86-64", ANSWER_NO);
    expect(&c, "optimisation=-O2", ANSWER_CANNOT_KNOW);
    expect(&c, "pgo", ANSWER_YES);
    expect(&c, "pgo=no|instrumented", ANSWER_NO);
    expect(&c, "sanitizers=address", ANSWER_YES);
    expect(&c, "build-id=439DA8", ANSWER_YES);
    expect(&c, "build-id=39da8", ANSWER_NO);
    expect(&c, "relro=full", ANSWER_CANNOT_KNOW);
    expect(&c, "host", ANSWER_CANNOT_KNOW); // nothing was looked at
}

// A way that may work is no proof that it does not.
static void coverage_that_depends_cannot_be_known(void **state)
{
    (void)state;
    struct check c = {
        .nmodes = 2,
        .modes = {{.mode = "pagecache",
                   .now = {.answer = ANSWER_CANNOT_KNOW, .text_bytes = 100, .text_huge_bytes = 90}},
                  {.mode = "remap", .now = {.text_bytes = 100, .text_huge_bytes = 60}}}};
    expect(&c, "text-coverage=60", ANSWER_YES);
    expect(&c, "text-coverage=90", ANSWER_CANNOT_KNOW);
    expect(&c, "text-coverage=91", ANSWER_NO);
    expect(&c, "text-coverage=remap:61", ANSWER_NO);
}

static void one_no_outweighs_what_is_unknown(void **state)
{
    (void)state;
    struct check c;
    check_compiled("-O2 -no-pie", &c);
    expect(&c, "optimisation=-O2", ANSWER_CANNOT_KNOW);
    expect(&c, "pie=no,optimisation=-O2", ANSWER_CANNOT_KNOW);
    expect(&c, "optimisation=-O2,pie=yes", ANSWER_NO);
    check_free(&c);
}

// clang without -grecord-command-line: units, but no flags.
static void unrecorded_levels_cannot_be_known(void **state)
{
    (void)state;
    struct check c = {
        .elf = {.type = ET_DYN},
        .dwarf = {.units = 100, .by_level = {[OPT_O2] = 80}, .level_unknown = 20, .gcc = 100}};
    expect(&c, "optimisation=-O2", ANSWER_CANNOT_KNOW);
    c.dwarf.by_level[OPT_O2] = 91;
    c.dwarf.by_level[OPT_O3] = 9;
    c.dwarf.level_unknown = 0;
    expect(&c, "optimisation=-O2", ANSWER_YES);
}

static void absence_of_evidence_is_no_pass(void **state)
{
    (void)state;
    struct check bare = {.elf = {.type = ET_DYN, .machine = EM_X86_64}};
    expect(&bare, "compiler=gcc", ANSWER_CANNOT_KNOW);
    expect(&bare, "linker=bfd", ANSWER_CANNOT_KNOW);
    expect(&bare, "text-alignment", ANSWER_CANNOT_KNOW);
    expect(&bare, "relro=full", ANSWER_CANNOT_KNOW);
    struct rule_results none = {0};
    assert_int_equal(rules_verdict(&none), ANSWER_CANNOT_KNOW);
}

static void warnings_decide_nothing(void **state)
{
    (void)state;
    struct check c;
    struct rule_results r = {0};
    struct err e = {0};
    check_compiled("-no-pie", &c);
    assert_int_equal(
        fs_write_atomic("own.ini", "[require]\npie = no\n[advise]\nrelro = full\n", &e), 0);
    if (rules_file(&c, "own.ini", &r, &e))
        fail_msg("%s", e.msg);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.v[1].severity, SEVERITY_WARNING);
    assert_int_equal(r.v[1].answer, ANSWER_NO);
    assert_int_equal(rules_verdict(&r), ANSWER_YES);
    rules_free(&r);
    check_free(&c);
}

static void senseless_values_are_errors(void **state)
{
    (void)state;
    struct check c = {.elf = {.type = ET_DYN}};
    struct profile_key bad[] = {PROMISE("compiler", "icc"),      PROMISE("linker", "ld"),
                                PROMISE("optimisation", "-O22"), PROMISE("text-alignment", "big"),
                                PROMISE("pie", "maybe"),         PROMISE("load-segments", "many"),
                                PROMISE("modes", "hugetlbfs:X"), PROMISE("needed", ""),
                                PROMISE("padded", "so"),         PROMISE("text-coverage", "101"),
                                PROMISE("isa-level", "v9"),      PROMISE("relro", ""),
                                PROMISE("relro", "ful"),         PROMISE("build-id", "xyz")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = {0};
        struct rule_results r = {0};
        struct profile p = {.name = (char *)"t", .keys = &bad[i], .n = 1};
        assert_int_equal(rules_profile(&c, &p, &r, &e), -1);
        assert_true(starts_with(e.msg, "t.ini:1: "));
        rules_free(&r);
    }
    struct rule_results r = {0};
    struct err e = {0};
    assert_int_equal(rules_require(&c, "speed=9", &r, &e), -1);
    assert_non_null(strstr(e.msg, "--require: no rule 'speed'; there are: "));
    assert_int_equal(rules_require(&c, "", &r, &e), -1);
    assert_int_equal(rules_require(&c, "relro", &r, &e), -1);
    assert_string_equal(e.msg, "--require: relro: must be full, partial or none");
    assert_int_equal(fs_write_atomic("bad.ini", "[require]\n\nspeed = 9\n", &e), 0);
    assert_int_equal(rules_file(&c, "bad.ini", &r, &e), -1);
    assert_true(starts_with(e.msg, "bad.ini:3: no rule 'speed'"));
    assert_int_equal(fs_write_atomic("bad.ini", "[rules]\npie = no\n", &e), 0);
    assert_int_equal(rules_file(&c, "bad.ini", &r, &e), -1);
    assert_true(starts_with(e.msg, "bad.ini:2: unknown section [rules]"));
    assert_int_equal(fs_write_atomic("bad.ini", "[advise]\npie = no\n", &e), 0);
    assert_int_equal(rules_file(&c, "bad.ini", &r, &e), -1);
    rules_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promises_pass_and_fail),
        cmocka_unit_test(facts_are_required_by_name),
        cmocka_unit_test(facts_are_compared_as_they_are_meant),
        cmocka_unit_test(coverage_that_depends_cannot_be_known),
        cmocka_unit_test(one_no_outweighs_what_is_unknown),
        cmocka_unit_test(unrecorded_levels_cannot_be_known),
        cmocka_unit_test(absence_of_evidence_is_no_pass),
        cmocka_unit_test(warnings_decide_nothing),
        cmocka_unit_test(senseless_values_are_errors),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
