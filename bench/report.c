#include "bench/report.h"
#include "common/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char label(size_t subject)
{
    return (char)('A' + subject);
}

static const json_t *find_workload(const json_t *result, const char *name)
{
    const json_t *w;
    size_t i;
    json_array_foreach (json_object_get(result, "workloads"), i, w)
        if (!strcmp(json_text(w, "workload"), name))
            return w;
    return NULL;
}

static double measured(const json_t *round, size_t subject, const char *workload, const char *key)
{
    const json_t *result = json_array_get(json_object_get(round, "results"), subject);
    return json_num(find_workload(result, workload), key, NAN);
}

static bool rejected(const json_t *round)
{
    return json_is_string(json_object_get(round, "rejected"));
}

// Log ratios of all pairs that have both figures, and the geometric mean of each side.
static struct estimate pairs(const struct report *r, const struct report_row *row, const char *key,
                             double *base, double *subj)
{
    const json_t *rounds = json_object_get(r->root, "rounds"), *round;
    double *d = xcalloc(json_array_size(rounds) + 1, sizeof *d), sum[2] = {0};
    size_t i, n = 0;
    json_array_foreach (rounds, i, round) {
        double a = measured(round, 0, row->workload, key);
        double b = measured(round, row->subject, row->workload, key);
        if (rejected(round) || !(a > 0) || !(b > 0))
            continue;
        sum[0] += log(a);
        sum[1] += log(b);
        d[n++] = log(b / a);
    }
    *base = n ? exp(sum[0] / (double)n) : NAN;
    *subj = n ? exp(sum[1] / (double)n) : NAN;
    struct estimate s = stats_estimate(d, n, r->band);
    free(d);
    return s;
}

static void add_row(struct report *r, const char *workload, size_t subject)
{
    struct report_row row = {.workload = workload, .subject = subject};
    row.qps = pairs(r, &row, "qps", &row.qps_base, &row.qps_subj);
    row.cpu = pairs(r, &row, "server_cpu_us", &row.cpu_base, &row.cpu_subj);
    r->rows = xrealloc(r->rows, (r->n + 1) * sizeof row);
    r->rows[r->n++] = row;
}

// The least and the most that the starts of a subject got, as "0 %" or "92 % to 100 %".
static void coverage(const json_t *rounds, size_t subject, struct str *out)
{
    double low = INFINITY, high = -INFINITY, bytes = 0;
    const json_t *round;
    size_t i;
    json_array_foreach (rounds, i, round) {
        const json_t *result = json_array_get(json_object_get(round, "results"), subject);
        const json_t *facts = json_object_get(result, "launch");
        double all = json_num(facts, "text_bytes", 0),
               huge = json_num(facts, "text_huge_bytes", NAN);
        if (!(all > 0) || !isfinite(huge))
            continue;
        low = fmin(low, 100 * huge / all);
        high = fmax(high, 100 * huge / all);
        bytes = all;
    }
    if (low > high)
        str_add(out, "text on 2 MiB pages not known");
    else if (low == high)
        str_addf(out, "%.0f %% of %.0f kB text on 2 MiB pages", low, bytes / 1024);
    else
        str_addf(out, "%.0f %% to %.0f %% of %.0f kB text on 2 MiB pages", low, high, bytes / 1024);
}

// A preferred condition that was not had in some round, once for each knob.
static void add_not_had(const json_t *rounds, size_t subject, struct str *out)
{
    struct strv told = {0};
    const json_t *round, *c;
    size_t i, k;
    json_array_foreach (rounds, i, round) {
        const json_t *result = json_array_get(json_object_get(round, "results"), subject);
        const json_t *facts = json_object_get(result, "launch");
        json_array_foreach (json_object_get(facts, "conditions"), k, c) {
            if (strcmp(json_text(c, "status"), "not had") || strv_has(&told, json_text(c, "knob")))
                continue;
            strv_add(&told, json_text(c, "knob"));
            str_addf(out, "; %s=%s was preferred and not had: %s", json_text(c, "knob"),
                     json_text(c, "value"), json_text(c, "why"));
        }
    }
    strv_free(&told);
}

static void add_legend(struct report *r, size_t i, const json_t *subject)
{
    struct str line = {0};
    const char *features = json_text(json_object_get(subject, "manifest"), "feature_set");
    str_addf(&line, "%c = %s: ", label(i), json_text(subject, "subject"));
    coverage(json_object_get(r->root, "rounds"), i, &line);
    str_addf(&line, ", feature set %s", *features ? features : "not known");
    if (json_is_true(json_object_get(subject, "text_none_added")))
        str_add(&line, "; no text= was given, so text=none was made sure of");
    add_not_had(json_object_get(r->root, "rounds"), i, &line);
    strv_add(&r->legend, str_text(&line));
    str_free(&line);
}

static void add_footer_rounds(struct report *r)
{
    const json_t *options = json_object_get(r->root, "options"), *round;
    size_t i, wanted = (size_t)json_num(options, "pairs", 0);
    strv_addf(
        &r->footer, "%zu pair%s of server starts in alternating order, %zu asked for, %zu rejected",
        r->rounds - r->rejected, r->rounds - r->rejected == 1 ? "" : "s", wanted, r->rejected);
    json_array_foreach (json_object_get(r->root, "rounds"), i, round)
        if (rejected(round))
            strv_addf(&r->footer, "rejected: round %zu: %s", i + 1, json_text(round, "rejected"));
    if (*json_text(r->root, "stopped"))
        strv_addf(&r->footer, "stopped early: %s", json_text(r->root, "stopped"));
}

static void add_footer_options(struct report *r)
{
    const json_t *o = json_object_get(r->root, "options");
    strv_addf(&r->footer,
              "%.0f thread%s, closed loop over a %s, warm-up %g s, window %g s for each workload",
              json_num(o, "threads", 0), json_num(o, "threads", 0) == 1 ? "" : "s",
              json_text(o, "transport"), json_num(o, "warmup_seconds", 0),
              json_num(o, "window_seconds", 0));
    strv_addf(&r->footer, "data set: %.0f x %.0f rows, seed %.0f, server settings %s",
              json_num(o, "tables", 0), json_num(o, "rows", 0), json_num(o, "seed", 0),
              json_text(o, "cnf"));
    strv_add(
        &r->footer,
        "QPS and us/query (CPU of the server) are geometric means over starts; in brackets 95 % "
        "t intervals over pairs of starts, each for its workload alone");
}

static void flag_steal(struct report *r, size_t round, const json_t *result, size_t subject)
{
    const json_t *w;
    size_t i;
    json_array_foreach (json_object_get(result, "workloads"), i, w) {
        double steal = json_num(w, "steal_percent", NAN);
        if (steal > REPORT_STEAL_PERCENT)
            strv_addf(&r->footer,
                      "flagged, not dropped: round %zu, %c, %s: %.1f %% of the CPU time was stolen",
                      round + 1, label(subject), json_text(w, "workload"), steal);
    }
}

static void add_footer_steal(struct report *r)
{
    const json_t *round, *result;
    size_t i, k;
    json_array_foreach (json_object_get(r->root, "rounds"), i, round)
        json_array_foreach (json_object_get(round, "results"), k, result)
            flag_steal(r, i, result, k);
}

static void add_footer_unclear(struct report *r)
{
    struct strv names = {0};
    for (size_t i = 0; i < r->n; i++)
        if (r->rows[i].qps.verdict == VERDICT_UNCLEAR)
            strv_addf(&names, "%s (%c)", r->rows[i].workload, label(r->rows[i].subject));
    if (names.n) {
        char *all = strv_join(&names, ", ");
        strv_addf(&r->footer, "not resolved by this run: %s", all);
        strv_addf(&r->footer,
                  "more pairs: until an effect of the band, %g %%, is seen with a chance of 80 %%",
                  100 * r->band);
        free(all);
    }
    strv_free(&names);
}

static int check_shape(const json_t *root, const json_t *names, size_t subjects, struct err *e)
{
    const json_t *name;
    size_t i;
    if (subjects < 2 || subjects > REPORT_SUBJECTS_MAX)
        return err_set(e, EXIT_CANNOT_ASK, "not a comparison: it has %zu subjects", subjects);
    if (!json_is_array(json_object_get(root, "rounds")) || json_array_size(names) == 0)
        return err_set(e, EXIT_CANNOT_ASK, "not a comparison: no rounds or no workloads in it");
    json_array_foreach (names, i, name)
        if (!json_is_string(name))
            return err_set(e, EXIT_CANNOT_ASK, "not a comparison: workload %zu has no name", i + 1);
    return 0;
}

int report_model(const json_t *root, struct report *r, struct err *e)
{
    const json_t *options = json_object_get(root, "options");
    const json_t *names = json_object_get(options, "workloads"), *item;
    const json_t *subjects = json_object_get(root, "subjects");
    const json_t *rounds = json_object_get(root, "rounds");
    size_t i;
    *r = (struct report){
        .root = root, .subjects = json_array_size(subjects), .rounds = json_array_size(rounds)};
    if (check_shape(root, names, r->subjects, e))
        return -1;
    r->band = json_num(options, "band_percent", 1) / 100;
    json_array_foreach (rounds, i, item)
        r->rejected += rejected(item);
    for (size_t s = 1; s < r->subjects; s++)
        json_array_foreach (names, i, item)
            add_row(r, json_string_value(item), s);
    json_array_foreach (subjects, i, item)
        add_legend(r, i, item);
    add_footer_rounds(r);
    add_footer_options(r);
    add_footer_steal(r);
    add_footer_unclear(r);
    return 0;
}

void report_free(struct report *r)
{
    free(r->rows);
    strv_free(&r->legend);
    strv_free(&r->footer);
    *r = (struct report){0};
}
