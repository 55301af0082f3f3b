#include "bench/run.h"
#include "bench/driver.h"
#include "common/json.h"
#include "common/proc.h"
#include "common/str.h"
#include "launcher/launch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 1024, TABLES_MAX = 1000, INT_KEYS_MAX = 2000000000 };

static int check_ranges(const struct bench_options *o, struct err *e)
{
    const struct {
        const char *name;
        double value, low, high;
    } rules[] = {
        {"threads", (double)o->threads, 1, THREADS_MAX},
        {"tables", (double)o->tables, 1, TABLES_MAX},
        {"rows", (double)o->rows, 1, INT_KEYS_MAX},
        {"warmup", o->warmup, 0, 86400},
        {"seconds", o->seconds, 0.1, 86400},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!(rules[i].value >= rules[i].low && rules[i].value <= rules[i].high))
            return err_set(e, EXIT_CANNOT_ASK, "--%s=%.10g: not between %.10g and %.10g",
                           rules[i].name, rules[i].value, rules[i].low, rules[i].high);
    return 0;
}

static int check_names(const struct strv *names, struct err *e)
{
    for (size_t i = 0; i < names->n; i++)
        if (!workload_find(names->v[i]))
            return err_set(e, EXIT_CANNOT_ASK,
                           "%s: no such workload; 'kiln bench --list-workloads' shows them",
                           names->v[i]);
    return 0;
}

int bench_plan(const struct bench_options *o, struct plan *p, struct err *e)
{
    struct strv names = {0};
    *p = (struct plan){0};
    if (o->workloads)
        strv_split(&names, o->workloads, ",");
    int rc = check_names(&names, e) || check_ranges(o, e) ? -1 : 0;
    // The table's order is the order of running.
    for (const struct workload *w = workloads; w->name; w++)
        if (!o->workloads || strv_has(&names, w->name))
            p->v[p->n++] = w;
    strv_free(&names);
    if (rc == 0 && p->n == 0)
        rc = err_set(e, EXIT_CANNOT_ASK, "--workloads: none given");
    return rc;
}

double bench_seconds(const struct bench_options *o, const struct plan *p)
{
    return (double)p->n * (o->warmup + o->seconds);
}

struct dataset bench_dataset(const struct bench_options *o)
{
    return (struct dataset){.tables = o->tables, .rows = o->rows, .seed = o->seed, .cnf = o->cnf};
}

json_t *bench_options_json(const struct bench_options *o, const struct plan *p)
{
    json_t *names = json_array();
    for (size_t i = 0; i < p->n; i++)
        json_array_append_new(names, json_string(p->v[i]->name));
    return json_pack("{so sI sf sf sI sI sI ss ss ss}", "workloads", names, "threads",
                     (json_int_t)o->threads, "warmup_seconds", o->warmup, "window_seconds",
                     o->seconds, "tables", (json_int_t)o->tables, "rows", (json_int_t)o->rows,
                     "seed", (json_int_t)o->seed, "cnf", o->cnf ? o->cnf : "small.cnf (default)",
                     "transport", "unix socket", "keys", "uniform");
}

// Adds the work of the workloads before to what the driver reports.
struct offset_tick {
    const struct bench_options *o;
    double before;
};

static void tick(void *arg, double done, const char *what)
{
    struct offset_tick *t = arg;
    if (t->o->tick)
        t->o->tick(t->o->tick_arg, t->before + done, what);
}

int bench_server(const char *socket, pid_t pid, const struct bench_options *o, const struct plan *p,
                 json_t *out, struct err *e)
{
    struct offset_tick t = {.o = o};
    struct driver_options d = {.socket = socket,
                               .threads = (unsigned)o->threads,
                               .warmup = o->warmup,
                               .seconds = o->seconds,
                               .tables = o->tables,
                               .rows = o->rows,
                               .seed = o->seed,
                               .server = pid,
                               .tick = tick,
                               .tick_arg = &t};
    struct driver_result *r = xcalloc(1, sizeof *r);
    int rc = 0;
    for (size_t i = 0; i < p->n && rc == 0; i++) {
        rc = driver_run(p->v[i], &d, r, e);
        if (rc == 0)
            json_array_append_new(out, driver_json(p->v[i], r));
        t.before += o->warmup + o->seconds;
    }
    free(r);
    return rc;
}

static int measure(struct launch *l, const struct bench_options *o, const struct plan *p,
                   json_t *out, struct err *e)
{
    if (bench_server(launch_socket(l), launch_pid(l), o, p, out, e))
        return -1;
    return launch_verify(l, e);
}

static int start(const struct subject *s, const struct bench_options *o, const char *run_dir,
                 struct launch **l, struct err *e)
{
    struct dataset d = bench_dataset(o);
    struct launch_options lo = {.cnf = o->cnf, .run_dir = run_dir};
    char *golden = NULL;
    int rc = dataset_golden(s->build, &d, &golden, e);
    lo.data_from = golden;
    if (rc == 0)
        rc = launch_start(s, &lo, l, e);
    free(golden);
    return rc;
}

int bench_subject(const struct subject *s, const struct bench_options *o, const struct plan *p,
                  const char *run_dir, json_t **result, struct err *e)
{
    struct launch *l = NULL;
    struct err why = {0}, stop = {0};
    *result = NULL;
    if (start(s, o, run_dir, &l, e))
        return -1;
    json_t *list = json_array();
    *result =
        json_pack("{ss sO so}", "subject", s->text, "launch", launch_facts(l), "workloads", list);
    int rc = measure(l, o, p, list, &why);
    int stopped = launch_stop(l, &stop);
    if (rc == 0 && stopped) {
        rc = stopped;
        why = stop;
    }
    json_object_set_new(*result, "error", rc ? json_string(why.msg) : json_null());
    if (rc && e)
        *e = why;
    return rc;
}
