#include "bench/run.h"
#include "bench/workloads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

// Queries of one event as sysbench counts them, with reads, writes and control apart.
static void events_are_those_of_sysbench(void **state)
{
    static const struct {
        const char *name;
        unsigned queries, reads, writes, control;
    } want[] = {{"point-query", 1, 1, 0, 0},
                {"range-covered-si", 1, 1, 0, 0},
                {"read-only", 16, 14, 0, 2},
                {"update-index", 1, 0, 1, 0},
                {"insert", 1, 0, 1, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct workload *w = workload_find(want[i].name);
        assert_non_null(w);
        struct counts c = workload_event(w);
        assert_int_equal(counts_queries(&c), want[i].queries);
        assert_int_equal(c.reads, want[i].reads);
        assert_int_equal(c.writes, want[i].writes);
        assert_int_equal(c.control, want[i].control);
    }
}

static void queries_are_the_sum_of_the_kinds(void **state)
{
    struct counts a = {.reads = 1, .writes = 2, .noop_writes = 4, .control = 8, .rows = 1000};
    struct counts b = {.reads = 16, .writes = 32, .noop_writes = 64, .control = 128, .rows = 1};
    (void)state;
    assert_int_equal(counts_queries(&a), 15);
    uint64_t both = counts_queries(&a) + counts_queries(&b);
    counts_add(&a, &b);
    assert_int_equal(counts_queries(&a), both);
    assert_int_equal(a.rows, 1001);
}

static size_t marks(const char *sql)
{
    size_t n = 0;
    for (; *sql; sql++)
        n += *sql == '?';
    return n;
}

// What the session relies on in every row.
static void rows_are_well_formed(void **state)
{
    (void)state;
    for (const struct workload *w = workloads; w->name; w++) {
        bool writes = false;
        assert_non_null(w->what);
        assert_non_null(w->statements[0].sql);
        for (size_t i = 0; i < STATEMENTS_MAX && w->statements[i].sql; i++) {
            const struct statement *s = &w->statements[i];
            assert_int_equal(marks(s->sql), workload_params(s));
            assert_non_null(strstr(s->sql, "%u"));
            assert_true(s->repeat >= 1);
            assert_int_equal(s->kind == KIND_READ, strncmp(s->sql, "SELECT", 6) == 0);
            writes |= s->kind == KIND_WRITE;
            for (size_t p = 0; p < workload_params(s); p++)
                if (s->params[p] == PARAM_LAST || s->params[p] == PARAM_BEYOND)
                    assert_true(p > 0 && s->params[p - 1] == PARAM_KEY && w->range > 0);
        }
        assert_int_equal(writes, w->group == GROUP_WRITE);
    }
}

static void reads_run_before_writes(void **state)
{
    bool written = false;
    (void)state;
    for (const struct workload *w = workloads; w->name; w++) {
        assert_false(written && w->group != GROUP_WRITE);
        written |= w->group == GROUP_WRITE;
    }
}

static void plans(void **state)
{
    struct bench_options o = BENCH_DEFAULTS;
    struct plan p;
    struct err e = {0};
    (void)state;
    assert_int_equal(bench_plan(&o, &p, &e), 0);
    assert_int_equal(p.n, 5);
    o.workloads = "insert,point-query";
    assert_int_equal(bench_plan(&o, &p, &e), 0);
    assert_int_equal(p.n, 2);
    assert_string_equal(p.v[0]->name, "point-query");
    o.workloads = "point-query,nonsense";
    assert_int_equal(bench_plan(&o, &p, &e), -1);
    assert_int_equal(e.code, EXIT_CANNOT_ASK);
    assert_non_null(strstr(e.msg, "nonsense"));
    o.workloads = ",";
    assert_int_equal(bench_plan(&o, &p, &e), -1);
    o.workloads = NULL;
    o.threads = 0;
    assert_int_equal(bench_plan(&o, &p, &e), -1);
    assert_non_null(strstr(e.msg, "--threads"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_those_of_sysbench),
        cmocka_unit_test(queries_are_the_sum_of_the_kinds),
        cmocka_unit_test(rows_are_well_formed),
        cmocka_unit_test(reads_run_before_writes),
        cmocka_unit_test(plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
