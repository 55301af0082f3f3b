// One subject measured once: start, workloads, stop. Also the options that bench and compare share.
#ifndef KILN_RUN_H
#define KILN_RUN_H

#include "bench/dataset.h"
#include "bench/workloads.h"
#include "common/err.h"
#include "common/opt.h"
#include "common/subject.h"

#include <jansson.h>

struct bench_options {
    const char *workloads; // names separated by commas; NULL: all
    uint64_t threads, tables, rows, seed;
    double warmup, seconds; // of each workload
    const char *cnf;        // NULL: the launcher's default
    // Called several times a second with the seconds of work done, out of bench_seconds().
    void (*tick)(void *arg, double done, const char *what);
    void *tick_arg;
};

#define BENCH_DEFAULTS                                                                             \
    {                                                                                              \
        .threads = 2, .tables = 1, .rows = 100000, .seed = 1, .warmup = 5, .seconds = 15           \
    }

// Rows for a command's option table.
#define BENCH_OPTS(o)                                                                              \
    {"workloads", 'w', OPT_STR, &(o).workloads, "a,b,c", "which workloads (default: all)"},        \
        {"threads", 't', OPT_UINT, &(o).threads, "N", "client threads (default 2)"},               \
        {"warmup", 0, OPT_DOUBLE, &(o).warmup, "S", "seconds before each window (default 5)"},     \
        {"seconds", 's', OPT_DOUBLE, &(o).seconds, "S", "seconds of each window (default 15)"},    \
        {"tables", 0, OPT_UINT, &(o).tables, "N", "tables of the data set (default 1)"},           \
        {"rows", 0, OPT_UINT, &(o).rows, "N", "rows of each table (default 100000)"},              \
        {"seed", 0, OPT_UINT, &(o).seed, "N", "seed of rows and keys (default 1)"},                \
    {                                                                                              \
        "cnf", 0, OPT_STR, &(o).cnf, "FILE",                                                       \
            "server settings (default: profiles/server/small.cnf)"                                 \
    }

// A list of workloads in the order in which they run: reads first, as writes change the data.
struct plan {
    const struct workload *v[32];
    size_t n;
};

// Checks every option and makes the plan: unknown names and values out of range are errors.
int bench_plan(const struct bench_options *o, struct plan *p, struct err *e);
double bench_seconds(const struct bench_options *o, const struct plan *p); // warm-ups and windows
struct dataset bench_dataset(const struct bench_options *o);
// All options in force, for the result.
json_t *bench_options_json(const struct bench_options *o, const struct plan *p);

// Measures a started server; pid 0: its CPU is not measured. Appends to the array out.
int bench_server(const char *socket, pid_t pid, const struct bench_options *o, const struct plan *p,
                 json_t *out, struct err *e);
// Golden data set -> launch -> workloads -> verify -> stop. *result: {"subject", "launch",
// "workloads", "error"}. When it fails after the start, *result holds what there is and -1 is
// returned; when it fails before, *result is NULL.
int bench_subject(const struct subject *s, const struct bench_options *o, const struct plan *p,
                  const char *run_dir, json_t **result, struct err *e);

#endif
