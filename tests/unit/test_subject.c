// The subject grammar of DESIGN: BUILD[@KNOB=VALUE[!|?],...].
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/subject.h"

#include <string.h>

static void conditions_are_read(void **state)
{
    (void)state;
    struct subject s;
    struct err e = {0};
    assert_int_equal(subject_parse("gcc-o2@numa=interleave:all,cpus=2-7?,text=none!", &s, &e), 0);
    assert_string_equal(s.build, "gcc-o2");
    assert_int_equal(s.n, 3);
    assert_string_equal(subject_get(&s, "numa")->value, "interleave:all");
    assert_false(subject_get(&s, "numa")->prefer);
    assert_string_equal(subject_get(&s, "cpus")->value, "2-7");
    assert_true(subject_get(&s, "cpus")->prefer);
    assert_string_equal(subject_get(&s, "text")->value, "none");
    assert_false(subject_get(&s, "text")->prefer);
    assert_null(subject_get(&s, "idle"));
    assert_int_equal(subject_add(&s, "text=pagecache", &e), 0);
    assert_string_equal(subject_get(&s, "text")->value, "pagecache");
    assert_int_equal(s.n, 3);
    subject_free(&s);
}

static void paths_may_hold_at_signs(void **state)
{
    (void)state;
    struct subject s;
    struct err e = {0};
    assert_int_equal(subject_parse("/opt/my@5/bin/mysqld@malloc=/usr/lib/libx.so", &s, &e), 0);
    assert_string_equal(s.build, "/opt/my@5/bin/mysqld");
    assert_string_equal(subject_get(&s, "malloc")->value, "/usr/lib/libx.so");
    subject_free(&s);
    assert_int_equal(subject_parse("/opt/my@5/bin/mysqld", &s, &e), 0);
    assert_string_equal(s.build, "/opt/my@5/bin/mysqld");
    assert_int_equal(s.n, 0);
    subject_free(&s);
}

static void malformed_ones_are_errors(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "@text=none",
                                      "a@",
                                      "a@text=",
                                      "a@text=?",
                                      "a@text=none,x",
                                      "a@text=none,=x",
                                      "a@text=none,TEXT=x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct subject s;
        struct err e = {0};
        assert_int_equal(subject_parse(bad[i], &s, &e), -1);
        assert_int_equal(e.code, EXIT_CANNOT_ASK);
        assert_null(strchr(e.msg, '\n'));
        subject_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_are_read),
        cmocka_unit_test(paths_may_hold_at_signs),
        cmocka_unit_test(malformed_ones_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
