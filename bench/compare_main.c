// kiln-compare: subjects side by side.
#include "bench/compare.h"
#include "bench/report.h"
#include "common/json.h"
#include "common/proc.h"

#include <limits.h>
#include <stdlib.h>

static struct compare_options options = {.bench = BENCH_DEFAULTS, .pairs = 12, .band_percent = 1};
static bool as_json;

static const struct opt opts[] = {
    {"pairs", 'n', OPT_UINT, &options.pairs, "N", "server starts of each subject (default 12)"},
    {"band", 0, OPT_DOUBLE, &options.band_percent, "PERCENT",
     "differences within it count as none (default 1)"},
    BENCH_OPTS(options.bench),
    {"out", 'o', OPT_STR, &options.out, "DIR",
     "where the results go (default: a new one in the store)"},
    {"json", 0, OPT_FLAG, &as_json, NULL, "print the whole result as JSON"},
    {.name = NULL},
};

static const struct command command = {
    .name = "kiln compare",
    .synopsis = "[OPTIONS] BASE SUBJECT...",
    .about =
        "Measures subjects side by side. A round is one start of each, on equal copies of one\n"
        "data set; the order alternates. The first subject is the base; the table shows the\n"
        "others' QPS relative to it with a 95 % interval over pairs of starts. A subject\n"
        "without a text= condition is started with text=none. Exit code 3: every verdict is "
        "unclear.",
    .opts = opts,
    .min_args = 2,
    .max_args = UINT_MAX,
    .examples = "  kiln compare gcc-o2 gcc-o2-hugetext@text=hugetlbfs:R\n"
                "  kiln compare --pairs=20 --workloads=read-only gcc-o2 clang-o2\n",
};

// Prints the result; *decided is set when at least one workload has a verdict.
static int show(const json_t *root, bool *decided, struct err *e)
{
    struct report r = {0};
    int rc = report_model(root, &r, e);
    if (rc == 0 && !as_json)
        report_print(&r, "text", stdout);
    for (size_t i = 0; rc == 0 && i < r.n; i++)
        *decided = *decided || r.rows[i].qps.verdict != VERDICT_UNCLEAR;
    report_free(&r);
    if (as_json)
        json_print(root);
    return rc;
}

static int cmd_compare(int argc, char **argv)
{
    struct strv args = {0};
    struct err e = {0}, shown = {0};
    json_t *root = NULL;
    char *path = NULL;
    opt_parse(&command, argc, argv, &args, NULL);
    intr_install();
    int rc = compare_run(&args, &options, &root, &path, &e);
    bool decided = false;
    if (root && show(root, &decided, &shown))
        err_report(&shown);
    if (path)
        note("results%s: %s", rc ? " so far" : "", path);
    json_decref(root);
    free(path);
    strv_free(&args);
    return rc ? err_report(&e) : decided ? EXIT_YES : EXIT_CANNOT_KNOW;
}

int main(int argc, char **argv)
{
    static const struct verb verbs[] = {{"compare", cmd_compare, "measure subjects side by side"},
                                        {.name = NULL}};
    return verb_main("kiln-compare", "Measures builds side by side.", verbs, argc, argv);
}
