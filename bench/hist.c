#include "bench/hist.h"

#include <math.h>

static unsigned bucket_of(uint64_t v)
{
    if (v >> HIST_BITS)
        return HIST_BUCKETS - 1;
    if (v < HIST_SUB)
        return (unsigned)v;
    unsigned shift = 63 - (unsigned)__builtin_clzll(v) - HIST_SUB_BITS;
    return (shift << HIST_SUB_BITS) + (unsigned)(v >> shift);
}

static uint64_t bucket_middle(unsigned i)
{
    if (i < 2 * HIST_SUB)
        return i;
    unsigned shift = (i >> HIST_SUB_BITS) - 1;
    uint64_t low = (uint64_t)(HIST_SUB + i % HIST_SUB) << shift;
    return low + (((uint64_t)1 << shift) - 1) / 2;
}

void hist_record(struct hist *h, uint64_t ns)
{
    if (h->n == 0 || ns < h->min)
        h->min = ns;
    if (h->n == 0 || ns > h->max)
        h->max = ns;
    h->n++;
    h->sum += (double)ns;
    h->bucket[bucket_of(ns)]++;
}

void hist_merge(struct hist *into, const struct hist *from)
{
    if (from->n == 0)
        return;
    if (into->n == 0 || from->min < into->min)
        into->min = from->min;
    if (into->n == 0 || from->max > into->max)
        into->max = from->max;
    into->n += from->n;
    into->sum += from->sum;
    for (unsigned i = 0; i < HIST_BUCKETS; i++)
        into->bucket[i] += from->bucket[i];
}

uint64_t hist_percentile(const struct hist *h, double percent)
{
    if (h->n == 0)
        return 0;
    double rank = ceil(percent / 100 * (double)h->n);
    uint64_t seen = 0, want = rank < 1 ? 1 : (uint64_t)rank, v = h->max;
    if (want >= h->n)
        return h->max;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        seen += h->bucket[i];
        if (seen >= want) {
            v = bucket_middle(i);
            break;
        }
    }
    return v < h->min ? h->min : v > h->max ? h->max : v;
}

double hist_mean(const struct hist *h)
{
    return h->n ? h->sum / (double)h->n : 0;
}
