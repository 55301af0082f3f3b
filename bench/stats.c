#include "bench/stats.h"
#include "common/str.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { PAIRS_MAX = 10000 };

const char *verdict_word(enum verdict v)
{
    static const char *const words[] = {[VERDICT_FASTER] = "faster",
                                        [VERDICT_SLOWER] = "slower",
                                        [VERDICT_SAME] = "same within the band",
                                        [VERDICT_UNCLEAR] = "unclear"};
    return words[v];
}

static double mean_of(const double *d, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += d[i];
    return n ? sum / (double)n : NAN;
}

static double sd_of(const double *d, size_t n, double mean)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (d[i] - mean) * (d[i] - mean);
    return n < 2 ? NAN : sqrt(sum / (double)(n - 1));
}

double stats_mde(double sd, size_t n)
{
    if (n < 2)
        return NAN;
    double df = (double)(n - 1);
    return (gsl_cdf_tdist_Pinv(0.975, df) + gsl_cdf_tdist_Pinv(0.80, df)) * sd / sqrt((double)n);
}

static size_t pairs_needed(double sd, double effect)
{
    size_t n = 2;
    while (n < PAIRS_MAX && stats_mde(sd, n) > effect)
        n++;
    return n;
}

static int by_size(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return (x > y) - (x < y);
}

// Twice the mid-rank of each value of sorted v, so that ranks of ties stay whole numbers.
static void double_ranks(const double *v, size_t n, size_t *rank)
{
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && fabs(v[j]) == fabs(v[i]); j++)
            ;
        for (size_t k = i; k < j; k++)
            rank[k] = i + 1 + j;
    }
}

// P(sum of the ranks with a positive sign <= w) when every sign is a fair coin.
static double rank_sum_cdf(const size_t *rank, size_t n, size_t w)
{
    size_t total = n * (n + 1);
    double *p = xcalloc(total + 1, sizeof *p), sum = 0;
    p[0] = 1;
    for (size_t i = 0; i < n; i++)
        for (size_t s = total + 1; s-- > 0;)
            p[s] = (p[s] + (s >= rank[i] ? p[s - rank[i]] : 0)) / 2;
    for (size_t s = 0; s <= w && s <= total; s++)
        sum += p[s];
    free(p);
    return sum;
}

double stats_wilcoxon(const double *d, size_t n)
{
    double *v = xcalloc(n + 1, sizeof *v);
    size_t *rank = xcalloc(n + 1, sizeof *rank), m = 0, up = 0, down = 0;
    for (size_t i = 0; i < n; i++)
        if (d[i] != 0)
            v[m++] = d[i];
    qsort(v, m, sizeof *v, by_size);
    double_ranks(v, m, rank);
    for (size_t i = 0; i < m; i++)
        *(v[i] > 0 ? &up : &down) += rank[i];
    double p = m ? 2 * rank_sum_cdf(rank, m, up < down ? up : down) : 1;
    free(v);
    free(rank);
    return p > 1 ? 1 : p;
}

static enum verdict verdict_of(double low, double high, double band)
{
    double edge = log1p(band);
    if (low > 0)
        return VERDICT_FASTER;
    if (high < 0)
        return VERDICT_SLOWER;
    return low > -edge && high < edge ? VERDICT_SAME : VERDICT_UNCLEAR;
}

static struct estimate plain_estimate(const double *d, size_t n, double band)
{
    struct estimate s = {.n = n, .low = NAN, .high = NAN, .verdict = VERDICT_UNCLEAR};
    s.mean = mean_of(d, n);
    s.sd = sd_of(d, n, s.mean);
    s.wilcoxon = n ? stats_wilcoxon(d, n) : NAN;
    s.mde = stats_mde(s.sd, n);
    if (n < 2)
        return s;
    double half = gsl_cdf_tdist_Pinv(0.975, (double)(n - 1)) * s.sd / sqrt((double)n);
    s.low = s.mean - half;
    s.high = s.mean + half;
    s.verdict = verdict_of(s.low, s.high, band);
    size_t need = pairs_needed(s.sd, log1p(band));
    s.more_pairs = need > n ? need - n : 0;
    return s;
}

static enum verdict without_extreme(const double *d, size_t n, double mean, double band)
{
    double *rest = xcalloc(n, sizeof *rest);
    size_t worst = 0, m = 0;
    for (size_t i = 1; i < n; i++)
        if (fabs(d[i] - mean) > fabs(d[worst] - mean))
            worst = i;
    for (size_t i = 0; i < n; i++)
        if (i != worst)
            rest[m++] = d[i];
    enum verdict v = plain_estimate(rest, m, band).verdict;
    free(rest);
    return v;
}

struct estimate stats_estimate(const double *d, size_t n, double band)
{
    struct estimate s = plain_estimate(d, n, band);
    bool shown = s.verdict == VERDICT_FASTER || s.verdict == VERDICT_SLOWER;
    // Below six pairs the signed-rank test cannot reach 0.05, and says nothing either way.
    if (shown)
        s.fragile =
            without_extreme(d, n, s.mean, band) != s.verdict || (n >= 6 && s.wilcoxon >= 0.05);
    return s;
}
