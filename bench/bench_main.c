// kiln-bench: one subject, some workloads, one result.
#include "bench/client.h"
#include "bench/run.h"
#include "common/json.h"
#include "common/proc.h"
#include "common/progress.h"
#include "common/table.h"
#include "common/version.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct bench_options options = BENCH_DEFAULTS;
static const char *socket_path;
static bool as_json, list;

static const struct opt opts[] = {
    BENCH_OPTS(options),
    {"socket", 0, OPT_STR, &socket_path, "PATH", "measure a server that runs already"},
    {"list-workloads", 0, OPT_FLAG, &list, NULL, "show the workloads and end"},
    {"json", 0, OPT_FLAG, &as_json, NULL, "print the result as JSON"},
    {.name = NULL},
};

static const struct command command = {
    .name = "kiln bench",
    .synopsis = "[OPTIONS] SUBJECT | --socket=PATH | --list-workloads",
    .about =
        "Starts the subject on a copy of a data set, runs each workload for a warm-up and a fixed\n"
        "window, and prints what was measured. The client is a closed loop: a thread sends its\n"
        "next query when it has the answer to the last. CPU is in microseconds per query.\n"
        "With --socket the server is used as it is; tables that are absent are loaded into its\n"
        "database sbtest and stay there.",
    .opts = opts,
    .max_args = 1,
    .examples = "  kiln bench gcc-o2\n"
                "  kiln bench --workloads=point-query,read-only --threads=4 gcc-o2@text=none\n",
};

static int list_workloads(void)
{
    static const char *const columns[] = {"workload", "group", "protocol", "what", NULL};
    struct table *t = table_new(columns);
    for (const struct workload *w = workloads; w->name; w++)
        table_row(t, (const char *const[]){w->name, group_word(w->group),
                                           w->text ? "text" : "prepared", w->what});
    table_print(t, stdout);
    return EXIT_YES;
}

static void show_progress(void *arg, double done, const char *what)
{
    (void)arg;
    progress_update(done, what);
}

static void begin(const struct plan *p)
{
    double seconds = bench_seconds(&options, p);
    progress_begin("bench, seconds", seconds, seconds);
}

static void cell(char out[32], const json_t *obj, const char *key, const char *fmt)
{
    double v = json_num(obj, key, NAN);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (isfinite(v))
        snprintf(out, 32, fmt, v);
    else
        snprintf(out, 32, "not measured");
#pragma GCC diagnostic pop
}

static void workload_row(struct table *t, const json_t *w)
{
    static const char *const points[] = {"p50", "p95", "p99", "max"};
    const json_t *ms = json_object_get(w, "latency_ms");
    char qps[32], lat[4][32], client[32], server[32], steal[32];
    cell(qps, w, "qps", "%.0f");
    for (int i = 0; i < 4; i++)
        cell(lat[i], ms, points[i], "%.3f");
    cell(client, w, "client_cpu_us", "%.1f");
    cell(server, w, "server_cpu_us", "%.1f");
    cell(steal, w, "steal_percent", "%.1f");
    table_row(t, (const char *const[]){json_text(w, "workload"), qps, lat[0], lat[1], lat[2],
                                       lat[3], server, client, steal});
}

static void print_result(const json_t *root)
{
    static const char *const columns[] = {"workload", ">QPS",    ">p50 ms",    ">p95 ms",
                                          ">p99 ms",  ">max ms", ">server us", ">client us",
                                          ">steal %", NULL};
    struct table *t = table_new(columns);
    const json_t *launch = json_object_get(root, "launch"), *w;
    size_t i;
    json_array_foreach (json_object_get(root, "workloads"), i, w)
        workload_row(t, w);
    table_print(t, stdout);
    double huge = json_num(launch, "text_huge_percent", NAN);
    if (isfinite(huge))
        printf("text on 2 MiB pages: %.0f %%\n", huge);
    printf("closed loop, %lu threads, warm-up %g s, window %g s, %lu x %lu rows, seed %lu, "
           "Unix socket; latency is per event\n",
           options.threads, options.warmup, options.seconds, options.tables, options.rows,
           options.seed);
}

// What the tables of a running server are: "loaded now", "as loaded", "changed since the load".
static int prepare_server(MYSQL *c, const char **state, struct err *e)
{
    struct dataset d = bench_dataset(&options);
    struct err why;
    uint64_t present;
    *state = "loaded now";
    if (dataset_present(c, &d, &present, e))
        return -1;
    if (present == 0)
        return dataset_load(c, &d, e);
    if (present < d.tables)
        return err_set(e, EXIT_CANNOT_ASK,
                       "%s: database " DATASET_DATABASE " has %lu of the %lu tables asked for",
                       socket_path, present, d.tables);
    *state = "as loaded";
    if (dataset_verify(c, &d, &why) == 0)
        return 0;
    if (why.code != EXIT_NO)
        return err_set(e, why.code, "%s", why.msg);
    *state = "changed since the load";
    warning("%s: %s; it is measured as it is", socket_path, why.msg);
    return 0;
}

static int bench_socket(const struct plan *p, json_t **result, struct err *e)
{
    const char *state;
    MYSQL *c = client_open(socket_path, NULL, e);
    if (!c)
        return -1;
    int rc = prepare_server(c, &state, e);
    mysql_close(c);
    if (rc)
        return rc;
    json_t *list_of = json_array();
    begin(p);
    *result = json_pack("{ss sn ss so}", "socket", socket_path, "launch", "data_set_state", state,
                        "workloads", list_of);
    return bench_server(socket_path, client_server_pid(socket_path), &options, p, list_of, e);
}

static int bench_build(const char *text, const struct plan *p, json_t **result, struct err *e)
{
    struct subject s = {0};
    struct dataset d = bench_dataset(&options);
    char *golden = NULL;
    int rc = subject_parse(text, &s, e);
    if (rc == 0)
        rc = dataset_golden(s.build, &d, &golden, e); // with a progress of its own
    if (rc == 0) {
        begin(p);
        rc = bench_subject(&s, &options, p, NULL, result, e);
    }
    free(golden);
    subject_free(&s);
    return rc;
}

static int finish(json_t *result, const struct plan *p)
{
    json_t *root = json_new("kiln.bench/1");
    json_object_set_new(root, "kiln", json_string(KILN_VERSION));
    json_object_set_new(root, "options", bench_options_json(&options, p));
    json_object_update(root, result);
    if (socket_path) // its settings are its own
        json_object_set_new(json_object_get(root, "options"), "cnf", json_null());
    if (as_json)
        json_print(root);
    else
        print_result(root);
    json_decref(root);
    return EXIT_YES;
}

static int cmd_bench(int argc, char **argv)
{
    struct strv args = {0};
    struct err e = {0};
    struct plan p;
    json_t *result = NULL;
    opt_parse(&command, argc, argv, &args, NULL);
    if (list)
        return list_workloads();
    if ((args.n == 1) == (socket_path != NULL))
        die(EXIT_CANNOT_ASK, "give a SUBJECT or --socket=PATH; see 'kiln bench --help'");
    if (bench_plan(&options, &p, &e))
        return err_report(&e);
    intr_install();
    options.tick = show_progress;
    int rc = socket_path ? bench_socket(&p, &result, &e) : bench_build(args.v[0], &p, &result, &e);
    progress_end();
    int code = rc ? err_report(&e) : finish(result, &p);
    json_decref(result);
    strv_free(&args);
    return code;
}

int main(int argc, char **argv)
{
    static const struct verb verbs[] = {
        {"bench", cmd_bench, "measure one subject with some workloads"}, {.name = NULL}};
    return verb_main("kiln-bench", "Measures one server with some workloads.", verbs, argc, argv);
}
