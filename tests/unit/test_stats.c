#include "bench/compare.h"
#include "bench/stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>

#define NEAR(a, b, eps) assert_true(fabs((a) - (b)) <= (eps))

// Student 1908, ten patients: R prints 1.58 and [0.7001142, 2.4598858] for t.test(paired=TRUE).
static const double sleep_gain[] = {1.2, 2.4, 1.3, 1.3, 0, 1.0, 1.8, 0.8, 4.6, 1.4};

static void t_interval(void **state)
{
    (void)state;
    struct estimate s = stats_estimate(sleep_gain, 10, 0.01);
    NEAR(s.mean, 1.58, 1e-12);
    NEAR(s.sd, 1.229995, 1e-6);
    NEAR(s.low, 0.7001142, 1e-7);
    NEAR(s.high, 2.4598858, 1e-7);
    assert_int_equal(s.verdict, VERDICT_FASTER);
}

// t tables: t.975 with 1 degree of freedom is 12.7062, with 11 it is 2.2010.
static void t_quantiles(void **state)
{
    double two[] = {0, 2}, twelve[12] = {0};
    (void)state;
    struct estimate s = stats_estimate(two, 2, 0.01);
    NEAR((s.high - s.mean) / (s.sd / sqrt(2)), 12.7062, 1e-4);
    for (int i = 0; i < 12; i++)
        twelve[i] = i;
    s = stats_estimate(twelve, 12, 0.01);
    NEAR((s.high - s.mean) / (s.sd / sqrt(12)), 2.2010, 1e-4);
    // t.80 with 11 degrees of freedom is 0.8755.
    NEAR(s.mde / (s.sd / sqrt(12)), 2.2010 + 0.8755, 2e-4);
}

// Hollander and Wolfe 1973, depression scores: V = 40, p = 0.01953 one-sided.
static void wilcoxon_published(void **state)
{
    static const double x[] = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
    static const double y[] = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
    double d[9];
    (void)state;
    for (int i = 0; i < 9; i++)
        d[i] = x[i] - y[i];
    NEAR(stats_wilcoxon(d, 9), 2 * 0.01953125, 1e-12);
}

// Tables of the signed-rank statistic: n = 10, W <= 8 has a two-sided p of 0.0488.
static void wilcoxon_table(void **state)
{
    static const double ten[] = {-1, 2, 3, 4, 5, 6, -7, 8, 9, 10};
    static const double up[] = {1, 2, 3, 4, 5, 6};
    (void)state;
    NEAR(stats_wilcoxon(ten, 10), 0.048828125, 1e-12);
    NEAR(stats_wilcoxon(up, 6), 2.0 / 64, 1e-12);
    NEAR(stats_wilcoxon(up, 5), 2.0 / 32, 1e-12);
}

// Four ties have rank 2.5 each; W = 0 with all signs equal: 2 / 16. Zeros do not count.
static void wilcoxon_ties_and_zeros(void **state)
{
    static const double ties[] = {3, 3, 3, 3}, zeros[] = {0, 0, 3, 3, 3, 3};
    (void)state;
    NEAR(stats_wilcoxon(ties, 4), 0.125, 1e-12);
    NEAR(stats_wilcoxon(zeros, 6), 0.125, 1e-12);
    NEAR(stats_wilcoxon(zeros, 2), 1, 0);
}

static void too_few_pairs_claim_nothing(void **state)
{
    double one[] = {0.5};
    (void)state;
    struct estimate s = stats_estimate(one, 1, 0.01);
    NEAR(s.mean, 0.5, 0);
    assert_true(isnan(s.low) && isnan(s.high) && isnan(s.mde));
    assert_int_equal(s.verdict, VERDICT_UNCLEAR);
    s = stats_estimate(one, 0, 0.01);
    assert_true(isnan(s.mean));
    assert_int_equal(s.verdict, VERDICT_UNCLEAR);
}

static void verdicts(void **state)
{
    static const double slow[] = {-0.05, -0.051, -0.049, -0.05, -0.0505, -0.0495};
    static const double same[] = {0.001, -0.001, 0.0012, -0.0012, 0.0008, -0.0008};
    static const double noisy[] = {0.05, -0.04, 0.03, -0.02, 0.06, -0.05};
    (void)state;
    assert_int_equal(stats_estimate(slow, 6, 0.01).verdict, VERDICT_SLOWER);
    assert_int_equal(stats_estimate(same, 6, 0.01).verdict, VERDICT_SAME);
    struct estimate s = stats_estimate(noisy, 6, 0.01);
    assert_int_equal(s.verdict, VERDICT_UNCLEAR);
    assert_true(s.more_pairs > 0);
    // That many more pairs with this spread reach the band, one fewer does not.
    assert_true(stats_mde(s.sd, 6 + s.more_pairs) <= log1p(0.01));
    assert_true(stats_mde(s.sd, 6 + s.more_pairs - 1) > log1p(0.01));
}

static void one_pair_that_decides_is_fragile(void **state)
{
    static const double steady[] = {0.02, 0.021, 0.019, 0.02, 0.0205, 0.0195};
    static const double thin[] = {0.010, 0.011, 0.009, 0.012, -0.0045, 0.0095};
    (void)state;
    assert_false(stats_estimate(steady, 6, 0.01).fragile);
    struct estimate s = stats_estimate(thin, 6, 0.01);
    assert_int_equal(s.verdict, VERDICT_FASTER);
    assert_true(s.wilcoxon >= 0.05);
    assert_true(s.fragile);
}

static void orders_alternate(void **state)
{
    static const size_t want[4][2] = {{0, 1}, {1, 0}, {0, 1}, {1, 0}};
    size_t got[2];
    (void)state;
    for (size_t round = 0; round < 4; round++) {
        compare_order(2, round, got);
        assert_memory_equal(got, want[round], sizeof got);
    }
}

// With k subjects, 2k rounds put each of them at every place twice.
static void orders_are_balanced(void **state)
{
    (void)state;
    for (size_t k = 3; k <= 5; k++) {
        unsigned seen[5][5] = {{0}};
        size_t order[5];
        for (size_t round = 0; round < 2 * k; round++) {
            compare_order(k, round, order);
            for (size_t i = 0; i < k; i++)
                seen[order[i]][i]++;
        }
        for (size_t s = 0; s < k; s++)
            for (size_t i = 0; i < k; i++)
                assert_int_equal(seen[s][i], 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_interval),
        cmocka_unit_test(t_quantiles),
        cmocka_unit_test(wilcoxon_published),
        cmocka_unit_test(wilcoxon_table),
        cmocka_unit_test(wilcoxon_ties_and_zeros),
        cmocka_unit_test(too_few_pairs_claim_nothing),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(one_pair_that_decides_is_fragile),
        cmocka_unit_test(orders_alternate),
        cmocka_unit_test(orders_are_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
