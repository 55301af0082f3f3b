// Subjects measured side by side: rounds of server starts, everything kept in one JSON file.
#ifndef KILN_COMPARE_H
#define KILN_COMPARE_H

#include "bench/run.h"
#include "common/err.h"
#include "common/str.h"

#include <jansson.h>
#include <stddef.h>

struct compare_options {
    struct bench_options bench;
    uint64_t pairs;
    double band_percent;
    const char *out; // directory for the results; NULL: a new one under the store's runs/
};

// The order of a round (from 0): for two subjects A B, B A, A B ...; for more the order is rotated
// by one every second round, and every odd round is the one before it reversed, so that a drift
// that is linear in time cancels within two rounds and every subject gets every place.
void compare_order(size_t subjects, size_t round, size_t *order);

// Runs all rounds; base is the first subject. *root (schema kiln.compare/1) is set whenever
// anything was measured, also when -1 is returned, and *path is the file it is kept in (malloc'ed).
int compare_run(const struct strv *subjects, const struct compare_options *o, json_t **root,
                char **path, struct err *e);

// Kernel, CPU model, CPUs, memory, THP state of this host.
json_t *compare_host(void);

#endif
