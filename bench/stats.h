// From the log ratios of pairs of server starts to an estimate, its interval and one verdict. Pure.
#ifndef KILN_STATS_H
#define KILN_STATS_H

#include <stdbool.h>
#include <stddef.h>

enum verdict { VERDICT_FASTER, VERDICT_SLOWER, VERDICT_SAME, VERDICT_UNCLEAR };

// All in natural logs; NAN where n does not allow the figure.
struct estimate {
    size_t n;
    double mean, sd;   // of the pairs' log ratios; sd needs n >= 2
    double low, high;  // 95 % t interval of the mean, n >= 2
    double wilcoxon;   // exact two-sided p of the signed-rank test, n >= 1
    double mde;        // smallest effect seen with power 0.8 at level 0.05, n >= 2
    size_t more_pairs; // how many more until the mde is at most the band; 0: already, or unknown
    enum verdict verdict;
    bool fragile; // another verdict without the most extreme pair, or the tests disagree
};

// d[0..n): ln(subject / base) for each pair. band: half width of "same", as a share (0.01 = 1 %).
struct estimate stats_estimate(const double *d, size_t n, double band);
// P(two-sided) of Wilcoxon's signed-rank test by enumeration of all sign patterns (Wilcoxon 1945;
// zeros are dropped, ties get mid-ranks). 1 when nothing is left.
double stats_wilcoxon(const double *d, size_t n);
// (t.975 + t.80 with n-1 degrees of freedom) * sd / sqrt(n); NAN when n < 2.
double stats_mde(double sd, size_t n);
const char *verdict_word(enum verdict v);

#endif
