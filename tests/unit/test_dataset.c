#include "bench/dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static const struct dataset small = {.tables = 2, .rows = 1000, .seed = 1};

// First outputs of xoshiro256** from the state 1, 2, 3, 4, and of splitmix64 from 0, as the
// reference implementations give them.
static void generators_are_the_published_ones(void **state)
{
    struct rng r = {.s = {1, 2, 3, 4}};
    (void)state;
    assert_true(rng_next(&r) == 11520);
    assert_true(rng_next(&r) == 0);
    assert_true(rng_next(&r) == 1509978240);
    assert_true(rng_next(&r) == 1215971899390074240u);
    assert_true(rng_mix(0) == 0xe220a8397b1dcdafu);
}

static void crc32_is_sqls(void **state)
{
    (void)state;
    assert_int_equal(dataset_crc32("123456789", 9), 0xCBF43926u);
    assert_int_equal(dataset_crc32("", 0), 0);
}

// Computed with a second implementation in another language.
static void rows_have_fixed_values(void **state)
{
    struct dataset_row r;
    (void)state;
    dataset_row(&small, 1, 1, &r);
    assert_int_equal(r.id, 1);
    assert_int_equal(r.k, 827);
    assert_string_equal(r.c, "61466524133-35132370842-47082396260-28495180069-94400176440-"
                             "36584620992-22634572847-48301025071-73835006980-81199068264");
    assert_string_equal(r.pad, "26934606820-92204547169-23825598386-61463116794-61904525481");
    dataset_row(&small, 2, 7, &r);
    assert_int_equal(r.k, 416);
}

static void checksums_have_fixed_values(void **state)
{
    (void)state;
    assert_true(dataset_checksum(&small, 1) == 2154084087098u);
    assert_true(dataset_checksum(&small, 2) == 2135967389968u);
}

static void rows_depend_on_nothing_else(void **state)
{
    struct dataset_row a, b;
    struct dataset other = small;
    (void)state;
    dataset_row(&small, 1, 500, &a);
    for (uint32_t id = 1; id < 400; id++)
        dataset_row(&small, 2, id, &b);
    dataset_row(&small, 1, 500, &b);
    assert_memory_equal(&a, &b, sizeof a);
    other.seed = 2;
    dataset_row(&other, 1, 500, &b);
    assert_string_not_equal(a.c, b.c);
}

static void shape(void **state)
{
    struct dataset_row r;
    (void)state;
    for (uint32_t id = 1; id <= small.rows; id++) {
        dataset_row(&small, 1, id, &r);
        assert_true(r.k >= 1 && r.k <= small.rows);
        assert_int_equal(strlen(r.c), DATASET_C);
        assert_int_equal(strlen(r.pad), DATASET_PAD);
        for (size_t i = 0; i < DATASET_C; i++)
            assert_int_equal(r.c[i] == '-', i % 12 == 11);
        assert_int_equal(strspn(r.c, "0123456789-"), DATASET_C);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generators_are_the_published_ones),
        cmocka_unit_test(crc32_is_sqls),
        cmocka_unit_test(rows_have_fixed_values),
        cmocka_unit_test(checksums_have_fixed_values),
        cmocka_unit_test(rows_depend_on_nothing_else),
        cmocka_unit_test(shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
