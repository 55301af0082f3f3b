#include "bench/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// QPS and server CPU of point-query for A and B, round by round; the last pair is in a rejected
// round. Ratios of the four that count: 1.02, 1.03, 1.01, 1.02.
static const struct {
    double qps[2], cpu[2], steal;
    const char *rejected;
} rounds[] = {
    {{1000, 1020}, {50, 49}, 0, NULL},
    {{1000, 1030}, {50, 48.5}, 0, NULL},
    {{1000, 1010}, {50, 49.5}, 3.5, NULL},
    {{1000, 1020}, {50, 49}, 0, NULL},
    {{1000, 500}, {50, 90}, 0, "the server is gone"},
};

static json_t *result(size_t round, size_t subject, bool cpu)
{
    json_t *w =
        json_pack("{ss sf sf}", "workload", "point-query", "qps", rounds[round].qps[subject],
                  "steal_percent", subject ? rounds[round].steal : 0.0);
    json_object_set_new(w, "server_cpu_us",
                        cpu ? json_real(rounds[round].cpu[subject]) : json_null());
    return json_pack("{s{sI sI} s[o]}", "launch", "text_bytes", (json_int_t)10485760,
                     "text_huge_bytes", (json_int_t)(subject ? 10485760 : 0), "workloads", w);
}

static json_t *comparison(size_t n, bool cpu)
{
    json_t *root = json_pack(
        "{ss s{s[s] si si sf sf si si si ss ss sf} s[{ss sb s{ss}} {ss sb sn}] s[] sn}", "schema",
        "kiln.compare/1", "options", "workloads", "point-query", "pairs", (int)n, "threads", 2,
        "warmup_seconds", 5.0, "window_seconds", 15.0, "tables", 1, "rows", 1000, "seed", 1,
        "transport", "unix socket", "cnf", "small.cnf", "band_percent", 1.0, "subjects", "subject",
        "gcc-o2@text=none", "text_none_added", 1, "manifest", "feature_set", "minimal", "subject",
        "gcc-o2-hugetext@text=hugetlbfs:R", "text_none_added", 0, "manifest", "rounds", "stopped");
    for (size_t i = 0; i < n; i++)
        json_array_append_new(json_object_get(root, "rounds"),
                              json_pack("{s[oo] ss?}", "results", result(i, 0, cpu),
                                        result(i, 1, cpu), "rejected", rounds[i].rejected));
    return root;
}

static char *print(json_t *root, const char *format)
{
    struct report r;
    struct err e = {0};
    char *out = NULL;
    size_t size;
    assert_int_equal(report_model(root, &r, &e), 0);
    FILE *f = open_memstream(&out, &size);
    report_print(&r, format, f);
    fclose(f);
    report_free(&r);
    json_decref(root);
    return out;
}

static void assert_prints(json_t *root, const char *format, const char *want)
{
    char *got = print(root, format);
    assert_string_equal(got, want);
    free(got);
}

static void model(void **state)
{
    json_t *root = comparison(5, true);
    struct report r;
    struct err e = {0};
    (void)state;
    assert_int_equal(report_model(root, &r, &e), 0);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.rejected, 1);
    assert_int_equal(r.rows[0].qps.n, 4);
    assert_true(fabs(exp(r.rows[0].qps.mean) - pow(1.02 * 1.03 * 1.01 * 1.02, 0.25)) < 1e-12);
    assert_true(fabs(r.rows[0].qps_base - 1000) < 1e-9);
    assert_int_equal(r.rows[0].qps.verdict, VERDICT_FASTER);
    report_free(&r);
    json_decref(root);
}

static void text(void **state)
{
    (void)state;
    assert_prints(
        comparison(5, true), "text",
        "relative QPS         workload    subject verdict QPS base  QPS us/query base us/query "
        "us/query change\n"
        "1.020 [1.007, 1.033] point-query B / A   faster      1000 1020          50.0     49.0 "
        "-2.0 % [-3.3, -0.7]\n"
        "\n"
        "A = gcc-o2@text=none: 0 % of 10240 kB text on 2 MiB pages, feature set minimal; no text= "
        "was given, so text=none was made sure of\n"
        "B = gcc-o2-hugetext@text=hugetlbfs:R: 100 % of 10240 kB text on 2 MiB pages, feature set "
        "not known\n"
        "4 pairs of server starts in alternating order, 5 asked for, 1 rejected\n"
        "rejected: round 5: the server is gone\n"
        "2 threads, closed loop over a unix socket, warm-up 5 s, window 15 s for each workload\n"
        "data set: 1 x 1000 rows, seed 1, server settings small.cnf\n"
        "QPS and us/query (CPU of the server) are geometric means over starts; in brackets 95 % t "
        "intervals over pairs of starts, each for its workload alone\n"
        "flagged, not dropped: round 3, B, point-query: 3.5 % of the CPU time was stolen\n");
}

static void markdown(void **state)
{
    (void)state;
    assert_prints(
        comparison(2, true), "markdown",
        "| relative QPS | workload | subject | verdict | QPS base | QPS | us/query base | us/query "
        "| us/query change |\n"
        "|---|---|---|---|---:|---:|---:|---:|---|\n"
        "| 1.025 \\[0.963, 1.091\\] | point-query | B / A | unclear (smallest detectable 7.1 %, 4 "
        "more pairs) | 1000 | 1025 | 50.0 | 48.7 | -2.5 % \\[-8.7, +4.1\\] |\n"
        "\n"
        "- A = gcc-o2@text=none: 0 % of 10240 kB text on 2 MiB pages, feature set minimal; no "
        "text= was given, so text=none was made sure of\n"
        "- B = gcc-o2-hugetext@text=hugetlbfs:R: 100 % of 10240 kB text on 2 MiB pages, feature "
        "set not known\n"
        "- 2 pairs of server starts in alternating order, 2 asked for, 0 rejected\n"
        "- 2 threads, closed loop over a unix socket, warm-up 5 s, window 15 s for each workload\n"
        "- data set: 1 x 1000 rows, seed 1, server settings small.cnf\n"
        "- QPS and us/query (CPU of the server) are geometric means over starts; in brackets 95 % "
        "t intervals over pairs of starts, each for its workload alone\n"
        "- not resolved by this run: point-query (B)\n"
        "- more pairs: until an effect of the band, 1 %, is seen with a chance of 80 %\n");
}

static void csv(void **state)
{
    (void)state;
    assert_prints(
        comparison(4, false), "csv",
        "workload,subject,base,pairs,relative_qps,relative_qps_low,relative_qps_high,verdict,"
        "fragile,detectable_percent,more_pairs,log_sd,wilcoxon_p,qps_base,qps,server_cpu_us_base,"
        "server_cpu_us,relative_cpu,relative_cpu_low,relative_cpu_high\n"
        "point-query,gcc-o2-hugetext@text=hugetlbfs:R,gcc-o2@text=none,4,1.01997549,1.00706542,1."
        "03305106,faster,false,1.6793895,4,0.00800517301,0.125,1000,1019.97549,,,,,\n");
}

static void one_pair_has_no_interval(void **state)
{
    (void)state;
    char *got = print(comparison(1, true), "text");
    assert_non_null(strstr(got, "1.020 [no interval]"));
    assert_non_null(strstr(got, "unclear (an interval needs 2 pairs)"));
    assert_non_null(strstr(got, "not resolved by this run: point-query (B)"));
    free(got);
}

static void json_has_null_for_what_was_not_measured(void **state)
{
    (void)state;
    char *got = print(comparison(3, false), "json");
    json_t *root = json_loads(got, 0, NULL);
    const json_t *row = json_array_get(json_object_get(root, "rows"), 0);
    assert_true(json_is_null(json_object_get(row, "server_cpu_us")));
    assert_true(json_is_null(json_object_get(row, "relative_cpu")));
    assert_int_equal(json_integer_value(json_object_get(row, "pairs")), 3);
    json_decref(root);
    free(got);
}

static void markup_of_names_is_escaped(void **state)
{
    (void)state;
    json_t *root = comparison(2, true);
    json_array_set_new(json_object_get(json_object_get(root, "options"), "workloads"), 0,
                       json_string("a|b<script>"));
    char *got = print(root, "markdown");
    assert_non_null(strstr(got, "a\\|b\\<script\\>"));
    free(got);
}

static void other_files_are_refused(void **state)
{
    static const char *const bad[] = {
        "{}", "{\"subjects\": 3}", "{\"subjects\": [{}, {}], \"rounds\": 1}",
        "{\"subjects\": [{}, {}], \"rounds\": [], \"options\": {\"workloads\": [1]}}"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *root = json_loads(bad[i], 0, NULL);
        struct report r;
        struct err e = {0};
        assert_int_equal(report_model(root, &r, &e), -1);
        assert_int_equal(e.code, EXIT_CANNOT_ASK);
        report_free(&r);
        json_decref(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model),
        cmocka_unit_test(text),
        cmocka_unit_test(markdown),
        cmocka_unit_test(csv),
        cmocka_unit_test(one_pair_has_no_interval),
        cmocka_unit_test(json_has_null_for_what_was_not_measured),
        cmocka_unit_test(markup_of_names_is_escaped),
        cmocka_unit_test(other_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
