// The pool of 2 MiB huge pages. What a start adds is a claim on one recorded base: when two runs
// overlap, the pool is back at the base after the last one, whichever leaves first.
#ifndef KILN_POOL_H
#define KILN_POOL_H

#include "common/err.h"
#include "launcher/journal.h"

#include <stdbool.h>
#include <stddef.h>

struct pool {
    unsigned total, free, reserved, surplus; // pages
};
int pool_read(struct pool *p, struct err *e);

// Makes sure that need pages are there beyond what others hold or have claimed, raising the pool by
// what is missing (journalled first, read back after). *raised: pages added. -1 with *e filled when
// the kernel has no such pool, when we may not, or when it gave fewer (then the pool is put back).
int pool_claim(struct journal *j, unsigned need, unsigned *raised, struct err *e);

// Takes back a claim of this many pages, which is still in its journal; the caller holds the lock.
// 0, 1 with *e filled when somebody else resized the pool meanwhile (it is left), -1 on failure.
int pool_release(unsigned pages, struct err *e);

#endif
