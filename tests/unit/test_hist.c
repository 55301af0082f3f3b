#include "bench/hist.h"
#include "bench/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void empty_is_zero(void **state)
{
    static struct hist h;
    (void)state;
    assert_int_equal(hist_percentile(&h, 50), 0);
    assert_true(hist_mean(&h) == 0);
}

static void small_values_are_exact(void **state)
{
    static struct hist h;
    (void)state;
    for (uint64_t v = 1; v <= 100; v++)
        hist_record(&h, v);
    assert_int_equal(hist_percentile(&h, 0), 1);
    assert_int_equal(hist_percentile(&h, 50), 50);
    assert_int_equal(hist_percentile(&h, 99), 99);
    assert_int_equal(hist_percentile(&h, 100), 100);
    assert_true(fabs(hist_mean(&h) - 50.5) < 1e-9);
}

// The bound of hist.h, on both sides of every power of two and on random values.
static void assert_bound(uint64_t v)
{
    struct hist *h = calloc(1, sizeof *h);
    hist_record(h, 0); // so that the clamp to [min, max] cannot help
    hist_record(h, v);
    hist_record(h, (uint64_t)1 << (HIST_BITS - 1));
    double got = (double)hist_percentile(h, 50);
    assert_true(fabs(got - (double)v) <= (double)v / (2 * HIST_SUB));
    free(h);
}

static void error_is_bounded(void **state)
{
    struct rng r;
    (void)state;
    rng_seed(&r, 3, 0);
    for (int bit = 1; bit < HIST_BITS - 1; bit++)
        for (int d = -1; d <= 1; d++)
            assert_bound(((uint64_t)1 << bit) + (uint64_t)d);
    for (int i = 0; i < 2000; i++)
        assert_bound(rng_next(&r) >> (64 - HIST_BITS + 1 + rng_below(&r, 30)));
}

static void percentiles_stay_inside(void **state)
{
    static struct hist h;
    (void)state;
    for (int i = 0; i < 10; i++)
        hist_record(&h, 1000001);
    assert_int_equal(hist_percentile(&h, 1), 1000001);
    assert_int_equal(hist_percentile(&h, 99.9), 1000001);
}

static void huge_values_share_the_last_bucket(void **state)
{
    static struct hist h;
    (void)state;
    hist_record(&h, UINT64_MAX);
    hist_record(&h, (uint64_t)1 << HIST_BITS);
    assert_int_equal(h.bucket[HIST_BUCKETS - 1], 2);
    assert_true(hist_percentile(&h, 100) == UINT64_MAX);
}

static void merge_is_recording_both(void **state)
{
    static struct hist a, b, both;
    struct rng r;
    (void)state;
    rng_seed(&r, 4, 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t v = rng_below(&r, 100000000);
        hist_record(i % 3 ? &a : &b, v);
        hist_record(&both, v);
    }
    hist_merge(&a, &b);
    assert_int_equal(a.n, both.n);
    assert_int_equal(a.min, both.min);
    assert_int_equal(a.max, both.max);
    assert_memory_equal(a.bucket, both.bucket, sizeof a.bucket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_is_zero),
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(error_is_bounded),
        cmocka_unit_test(percentiles_stay_inside),
        cmocka_unit_test(huge_values_share_the_last_bucket),
        cmocka_unit_test(merge_is_recording_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
