// Strings, numbers and lists: common/str.h.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/str.h"

#include <errno.h>
#include <stdlib.h>

static void numbers_are_strict(void **state)
{
    (void)state;
    uint64_t v = 7;
    assert_int_equal(parse_u64("18446744073709551615", &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(parse_u64("18446744073709551616", &v), -ERANGE);
    static const char *const bad[] = {"", " 1", "-1", "+1", "1 ", "1x", "0x10"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(parse_u64(bad[i], &v), -EINVAL);
    assert_true(v == UINT64_MAX); // untouched by errors
    double d;
    assert_int_equal(parse_double("1.5", &d), 0);
    assert_true(d == 1.5);
    assert_int_equal(parse_double("nan", &d), -EINVAL);
    assert_int_equal(parse_double("1e999", &d), -ERANGE);
}

static void sizes_have_units(void **state)
{
    (void)state;
    uint64_t v;
    assert_int_equal(parse_size("2M", &v), 0);
    assert_int_equal(v, 2 << 20);
    assert_int_equal(parse_size("1GB", &v), 0);
    assert_int_equal(v, 1 << 30);
    assert_int_equal(parse_size("512", &v), 0);
    assert_int_equal(v, 512);
    assert_int_equal(parse_size("1X", &v), -EINVAL);
    assert_int_equal(parse_size("20000000000G", &v), -ERANGE);
}

static void lists_of_cpus(void **state)
{
    (void)state;
    bool b[8] = {false};
    assert_int_equal(parse_list("0+2-3", b, 8), 0);
    const bool want[8] = {true, false, true, true};
    assert_memory_equal(b, want, sizeof b);
    assert_int_equal(parse_list("0,7", b, 8), 0);
    assert_true(b[7]);
    assert_int_equal(parse_list("8", b, 8), -ERANGE);
    assert_int_equal(parse_list("3-1", b, 8), -EINVAL);
    assert_int_equal(parse_list("1+", b, 8), -EINVAL);
    assert_int_equal(parse_list("", b, 8), -EINVAL);
    assert_int_equal(parse_list("1 2", b, 8), -EINVAL);
}

static void strings_grow_and_split(void **state)
{
    (void)state;
    struct str s = {0};
    assert_string_equal(str_text(&s), "");
    for (int i = 0; i < 1000; i++)
        str_addf(&s, "%d,", i % 10);
    assert_int_equal(s.len, 2000);
    struct strv v = {0};
    strv_split(&v, s.s, ",");
    assert_int_equal(v.n, 1000);
    assert_string_equal(v.v[999], "9");
    assert_null(v.v[1000]);
    strv_free(&v);
    str_free(&s);
    strv_add(&v, "a");
    strv_addf(&v, "%s%d", "b", 2);
    char *joined = strv_join(&v, " ");
    assert_string_equal(joined, "a b2");
    free(joined);
    strv_free(&v);
    char text[] = "  x y\n";
    assert_string_equal(trim(text), "x y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_strict),
        cmocka_unit_test(sizes_have_units),
        cmocka_unit_test(lists_of_cpus),
        cmocka_unit_test(strings_grow_and_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
