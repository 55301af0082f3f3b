// Latency histogram in nanoseconds with log-linear buckets.
#ifndef KILN_HIST_H
#define KILN_HIST_H

#include <stdint.h>

// Values below 2 * HIST_SUB have a bucket each. Above, every power of two [2^m, 2^(m+1)) is cut
// into HIST_SUB buckets of width w = 2^m / HIST_SUB. A bucket is reported by its midpoint, which is
// off by at most w/2 from a value of at least HIST_SUB * w: the relative error is at most
// 1 / (2 * HIST_SUB) = 0.78 %. Values of 2^HIST_BITS ns (18 minutes) and more share the last
// bucket. Buckets: HIST_SUB * (HIST_BITS - log2(HIST_SUB) + 1).
enum { HIST_SUB_BITS = 6, HIST_SUB = 1 << HIST_SUB_BITS, HIST_BITS = 40 };
enum { HIST_BUCKETS = HIST_SUB * (HIST_BITS - HIST_SUB_BITS + 1) };

struct hist {
    uint64_t n, min, max; // min and max are exact; undefined while n is 0
    double sum;
    uint64_t bucket[HIST_BUCKETS];
};

void hist_record(struct hist *h, uint64_t ns);
void hist_merge(struct hist *into, const struct hist *from);
// The value that at least percent % of the values do not exceed (nearest rank), to within the error
// above and never outside [min, max]. 0 when the histogram is empty.
uint64_t hist_percentile(const struct hist *h, double percent);
double hist_mean(const struct hist *h); // exact, 0 when empty

#endif
