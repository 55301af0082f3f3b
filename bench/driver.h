// The closed-loop client: N threads with a connection each run one workload.
#ifndef KILN_DRIVER_H
#define KILN_DRIVER_H

#include "bench/hist.h"
#include "bench/workloads.h"
#include "common/err.h"

#include <jansson.h>
#include <sys/types.h>

// Phases are functions of time, not of shared state: WARM before the window, MEASURE inside it,
// COOL from its end until every clock was read. An event counts when it starts and ends inside the
// window; the rates are over the whole window.
struct driver_options {
    const char *socket;
    unsigned threads;
    double warmup, seconds;
    uint64_t tables, rows, seed;
    pid_t server; // for its CPU time; 0: not measured
    // Called several times a second with the seconds done, warm-up included; may be NULL.
    void (*tick)(void *arg, double done, const char *workload);
    void *tick_arg;
};

// events + the events that overlapped an edge of the window = all that ended without an error, and
//   counts_queries(&window) = events * counts_queries(workload_event())
// holds because a retried event is neither an event nor in the window's counts.
struct driver_result {
    double seconds; // the window
    uint64_t events;
    struct counts window;                // statements of the events
    struct counts outside;               // all others: warm-up, edges, cooling, failed attempts
    uint64_t deadlocks, lock_timeouts;   // errors 1213 and 1205 in the window; each was rolled back
    struct hist latency;                 // of the events, ns
    double client_cpu_us, server_cpu_us; // per query in the window; NAN: not measured
    double steal_percent;                // of the host's CPU time in the window; NAN: not measured
};

// 0, or -1 with *e filled: cannot connect, any other error of a statement, server gone (all
// EXIT_CANNOT_ASK), interrupted. It cannot hang: reads time out.
int driver_run(const struct workload *w, const struct driver_options *o, struct driver_result *r,
               struct err *e);
// The result as JSON; what was not measured is null.
json_t *driver_json(const struct workload *w, const struct driver_result *r);

#endif
