// Random streams: a stream is a pure function of (seed, stream number), so that threads neither
// share a generator nor depend on the order in which they start.
#ifndef KILN_RNG_H
#define KILN_RNG_H

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

// splitmix64 (Steele, Lea, Flood 2014; constants of Vigna's splitmix64.c).
static inline uint64_t rng_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline void rng_seed(struct rng *r, uint64_t seed, uint64_t stream)
{
    uint64_t x = rng_mix(seed ^ rng_mix(stream));
    for (int i = 0; i < 4; i++)
        r->s[i] = rng_mix(x += 0x9e3779b97f4a7c15u);
}

static inline uint64_t rng_rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

// xoshiro256** 1.0 (Blackman, Vigna 2018).
static inline uint64_t rng_next(struct rng *r)
{
    uint64_t *s = r->s, result = rng_rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rng_rotl(s[3], 45);
    return result;
}

// Uniform in [0, n) by multiply and shift: the bias is below n / 2^64.
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)rng_next(r) * n) >> 64);
}

#endif
