#include "bench/driver.h"
#include "bench/client.h"
#include "bench/dataset.h"
#include "bench/session.h"
#include "common/proc.h"
#include "common/str.h"
#include "common/sys.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEADLOCK = 1213, LOCK_TIMEOUT = 1205 };
enum { APART = 128 }; // two cache lines: the prefetcher pairs them

struct run {
    const struct workload *w;
    uint64_t start, end;      // the window, CLOCK_MONOTONIC ns
    atomic_bool stop, failed; // read by all, written once
};

struct worker {
    struct run *run;
    struct session *session;
    pthread_t thread;
    bool started;
    uint64_t events, deadlocks, lock_timeouts;
    struct counts window, outside;
    struct hist latency;
    struct err err; // code 0: none
};

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    return clock_gettime(id, &t) ? 0 : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int worker_failed(struct worker *w, unsigned code, bool inside)
{
    uint64_t *count = code == DEADLOCK ? &w->deadlocks : &w->lock_timeouts;
    if (code != DEADLOCK && code != LOCK_TIMEOUT)
        return session_error(w->session, &w->err);
    *count += inside;
    return session_rollback(w->session, &w->err);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    const struct run *run = w->run;
    mysql_thread_init();
    uint64_t from = clock_ns(CLOCK_MONOTONIC);
    while (!atomic_load_explicit(&run->stop, memory_order_relaxed)) {
        struct counts c = {0};
        unsigned code = session_event(w->session, &c);
        uint64_t to = clock_ns(CLOCK_MONOTONIC);
        bool inside = from >= run->start && to <= run->end;
        if (code && worker_failed(w, code, inside))
            break;
        counts_add(inside && !code ? &w->window : &w->outside, &c);
        if (inside && !code) {
            w->events++;
            hist_record(&w->latency, to - from);
        }
        from = to;
    }
    if (w->err.code)
        atomic_store(&w->run->failed, true);
    mysql_thread_end();
    return NULL;
}

// Clocks at one edge of the window.
struct edge {
    uint64_t wall, client, server; // ns
    uint64_t steal, cpu;           // ticks of all CPUs
    bool has_server, has_steal;
};

// First line of /proc/stat: user nice system idle iowait irq softirq steal (proc(5)); the guest
// fields after them are part of user and nice.
static bool read_steal(struct edge *g)
{
    struct str text = {0};
    unsigned long long v[8] = {0};
    int n = 0;
    if (sys_read("/proc/stat", &text) == 0)
        n = sscanf(str_text(&text), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1],
                   &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);
    str_free(&text);
    for (int i = 0; i < 8; i++)
        g->cpu += v[i];
    g->steal = v[7];
    return n == 8;
}

static struct edge edge_read(const struct worker *workers, unsigned n, pid_t server)
{
    struct edge g = {.wall = clock_ns(CLOCK_MONOTONIC)};
    clockid_t id;
    for (unsigned i = 0; i < n; i++)
        if (pthread_getcpuclockid(workers[i].thread, &id) == 0)
            g.client += clock_ns(id);
    if (server > 0 && clock_getcpuclockid(server, &id) == 0) {
        g.server = clock_ns(id);
        g.has_server = g.server > 0;
    }
    g.has_steal = read_steal(&g);
    return g;
}

// Sleeps until the monotonic time, waking for ticks; -1 when a worker failed or on Ctrl-C.
static int wait_until(struct run *run, uint64_t when, uint64_t origin,
                      const struct driver_options *o)
{
    for (;;) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (atomic_load(&run->failed) || intr_pending())
            return -1;
        if (o->tick)
            o->tick(o->tick_arg, (double)(now - origin) * 1e-9, run->w->name);
        if (now >= when)
            return 0;
        double left = (double)(when - now) * 1e-9;
        sleep_seconds(left < 0.1 ? left : 0.1);
    }
}

static int measure(struct run *run, struct worker *workers, const struct driver_options *o,
                   struct edge edges[2])
{
    uint64_t origin = run->start - (uint64_t)(o->warmup * 1e9);
    if (wait_until(run, run->start, origin, o))
        return -1;
    edges[0] = edge_read(workers, o->threads, o->server);
    if (wait_until(run, run->end, origin, o))
        return -1;
    edges[1] = edge_read(workers, o->threads, o->server);
    return 0;
}

static int start_threads(struct run *run, struct worker *workers, unsigned n, struct err *e)
{
    for (unsigned i = 0; i < n; i++) {
        int rc = pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
        if (rc) {
            errno = rc;
            atomic_store(&run->stop, true);
            return err_sys(e, EXIT_NO, "client: cannot start thread %u", i);
        }
        workers[i].started = true;
    }
    return 0;
}

static int join(struct worker *workers, unsigned n, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; i < n; i++) {
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
        if (workers[i].err.code && rc == 0) {
            rc = -1;
            *e = workers[i].err;
        }
    }
    return rc;
}

// The edges are read a little after the window's, so the clocks' rate is what is used.
static void cpu_per_query(const struct edge g[2], struct driver_result *r)
{
    double wall = (double)(g[1].wall - g[0].wall), queries = (double)counts_queries(&r->window);
    double scale = queries > 0 && wall > 0 ? r->seconds * 1e9 / wall / queries / 1000 : NAN;
    r->client_cpu_us = (double)(g[1].client - g[0].client) * scale;
    r->server_cpu_us = NAN;
    if (g[0].has_server && g[1].has_server)
        r->server_cpu_us = (double)(g[1].server - g[0].server) * scale;
    r->steal_percent = NAN;
    if (g[0].has_steal && g[1].has_steal && g[1].cpu > g[0].cpu)
        r->steal_percent = 100 * (double)(g[1].steal - g[0].steal) / (double)(g[1].cpu - g[0].cpu);
}

static void sum_up(const struct worker *workers, unsigned n, struct driver_result *r)
{
    for (unsigned i = 0; i < n; i++) {
        r->events += workers[i].events;
        r->deadlocks += workers[i].deadlocks;
        r->lock_timeouts += workers[i].lock_timeouts;
        counts_add(&r->window, &workers[i].window);
        counts_add(&r->outside, &workers[i].outside);
        hist_merge(&r->latency, &workers[i].latency);
    }
}

static int run_workers(const struct workload *w, const struct driver_options *o,
                       struct worker *workers, struct driver_result *r, struct err *e)
{
    struct run run = {.w = w};
    struct edge edges[2];
    run.start = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(o->warmup * 1e9);
    run.end = run.start + (uint64_t)(o->seconds * 1e9);
    for (unsigned i = 0; i < o->threads; i++)
        workers[i].run = &run;
    int rc = start_threads(&run, workers, o->threads, e);
    int cut = rc == 0 ? measure(&run, workers, o, edges) : 0;
    atomic_store(&run.stop, true);
    if (join(workers, o->threads, e))
        return -1;
    if (rc || cut)
        return rc ? rc : intr_error(e);
    r->seconds = o->seconds;
    sum_up(workers, o->threads, r);
    cpu_per_query(edges, r);
    return r->events ? 0
                     : err_set(e, EXIT_CANNOT_KNOW,
                               "%s: no event started and ended inside a window of %g s", w->name,
                               o->seconds);
}

static int open_sessions(const struct workload *w, const struct driver_options *o,
                         struct worker *workers, struct err *e)
{
    for (unsigned i = 0; i < o->threads; i++) {
        workers[i].session = session_open(w, o, i, e);
        if (!workers[i].session)
            return -1;
    }
    return 0;
}

int driver_run(const struct workload *w, const struct driver_options *o, struct driver_result *r,
               struct err *e)
{
    size_t size = (o->threads * sizeof(struct worker) + APART - 1) / APART * APART;
    *r = (struct driver_result){0};
    struct worker *workers = aligned_alloc(APART, size);
    if (!workers)
        return err_set(e, EXIT_NO, "client: out of memory for %u threads", o->threads);
    memset(workers, 0, size);
    int rc = open_sessions(w, o, workers, e);
    if (rc == 0)
        rc = run_workers(w, o, workers, r, e);
    for (unsigned i = 0; i < o->threads; i++)
        session_close(workers[i].session);
    free(workers);
    return rc;
}

static void set_number(json_t *o, const char *key, double v)
{
    json_object_set_new(o, key, isfinite(v) ? json_real(v) : json_null());
}

static json_t *counts_json(const struct counts *c)
{
    return json_pack("{sI sI sI sI sI sI}", "queries", (json_int_t)counts_queries(c), "reads",
                     (json_int_t)c->reads, "writes", (json_int_t)c->writes, "noop_writes",
                     (json_int_t)c->noop_writes, "control", (json_int_t)c->control, "rows_returned",
                     (json_int_t)c->rows);
}

static json_t *latency_json(const struct hist *h)
{
    static const struct {
        const char *key;
        double percent;
    } points[] = {{"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99_9", 99.9}};
    json_t *o = json_object();
    json_object_set_new(o, "min", json_real((double)h->min / 1e6));
    json_object_set_new(o, "mean", json_real(hist_mean(h) / 1e6));
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        json_object_set_new(o, points[i].key,
                            json_real((double)hist_percentile(h, points[i].percent) / 1e6));
    json_object_set_new(o, "max", json_real((double)h->max / 1e6));
    return o;
}

json_t *driver_json(const struct workload *w, const struct driver_result *r)
{
    json_t *o = json_object();
    json_object_set_new(o, "workload", json_string(w->name));
    json_object_set_new(o, "group", json_string(group_word(w->group)));
    json_object_set_new(o, "range", w->range ? json_integer(w->range) : json_null());
    json_object_set_new(o, "transaction", json_boolean(w->transaction));
    json_object_set_new(o, "protocol", json_string(w->text ? "text" : "prepared"));
    json_object_set_new(o, "loop", json_string("closed"));
    json_object_set_new(o, "window_seconds", json_real(r->seconds));
    json_object_set_new(o, "events", json_integer((json_int_t)r->events));
    set_number(o, "events_per_second", (double)r->events / r->seconds);
    set_number(o, "qps", (double)counts_queries(&r->window) / r->seconds);
    json_object_set_new(o, "counts", counts_json(&r->window));
    json_object_set_new(o, "counts_outside", counts_json(&r->outside));
    json_object_set_new(o, "deadlocks", json_integer((json_int_t)r->deadlocks));
    json_object_set_new(o, "lock_timeouts", json_integer((json_int_t)r->lock_timeouts));
    json_object_set_new(o, "latency_ms", latency_json(&r->latency));
    set_number(o, "client_cpu_us", r->client_cpu_us);
    set_number(o, "server_cpu_us", r->server_cpu_us);
    set_number(o, "steal_percent", r->steal_percent);
    return o;
}
