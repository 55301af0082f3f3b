#include "bench/compare.h"
#include "bench/report.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/proc.h"
#include "common/progress.h"
#include "common/version.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

// What a start and a stop take beside the workloads; only for the estimate of the time left.
#define START_SECONDS 6.0

enum { REJECTED_MAX = 3 }; // rounds, before the comparison is given up

struct comparison {
    const struct compare_options *o;
    struct plan plan;
    struct subject *subjects;
    size_t n;
    json_t *root, *rounds;
    char *dir, *path;
    double done; // seconds of work
};

void compare_order(size_t subjects, size_t round, size_t *order)
{
    size_t turn = subjects > 2 ? round / 2 : 0;
    for (size_t i = 0; i < subjects; i++) {
        size_t place = round % 2 ? subjects - 1 - i : i;
        order[place] = (i + turn) % subjects;
    }
}

// A subject without a text= condition would be measured on whatever the page cache holds, which
// right after a link is not what it is after a reboot.
static int read_subject(const char *text, struct subject *s, bool *added, struct err *e)
{
    int rc = subject_parse(text, s, e);
    *added = rc == 0 && !subject_get(s, "text");
    if (!*added)
        return rc;
    char *full = xasprintf("%s%stext=none", text, s->n ? "," : "@");
    subject_free(s);
    rc = subject_parse(full, s, e);
    free(full);
    return rc;
}

static int subject_json(size_t i, const struct subject *s, const char *asked, bool added,
                        json_t *list, struct err *e)
{
    struct build b = {0};
    char name[2] = {(char)('A' + i), 0};
    int rc = build_find(s->build, &b, e);
    if (rc == 0)
        json_array_append_new(list,
                              json_pack("{ss ss ss sb ss ss sO?}", "label", name, "subject",
                                        s->text, "asked", asked, "text_none_added", added, "build",
                                        s->build, "server", b.server, "manifest", b.manifest));
    build_free(&b);
    return rc;
}

static int read_subjects(struct comparison *c, const struct strv *texts, json_t *list,
                         struct err *e)
{
    int rc = 0;
    if (texts->n < 2 || texts->n > REPORT_SUBJECTS_MAX)
        return err_set(e, EXIT_CANNOT_ASK, "compare takes 2 to %d subjects, not %zu",
                       REPORT_SUBJECTS_MAX, texts->n);
    c->subjects = xcalloc(texts->n, sizeof *c->subjects);
    for (size_t i = 0; i < texts->n && rc == 0; i++) {
        bool added = false;
        c->n = i + 1;
        rc = read_subject(texts->v[i], &c->subjects[i], &added, e);
        if (rc == 0)
            rc = subject_json(i, &c->subjects[i], texts->v[i], added, list, e);
    }
    return rc;
}

static void time_text(const char *fmt, char out[40])
{
    time_t t = (time_t)wall_seconds();
    struct tm tm;
    gmtime_r(&t, &tm);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    strftime(out, 40, fmt, &tm);
#pragma GCC diagnostic pop
}

static json_t *options_json(const struct comparison *c)
{
    json_t *o = bench_options_json(&c->o->bench, &c->plan);
    json_object_set_new(o, "pairs", json_integer((json_int_t)c->o->pairs));
    json_object_set_new(o, "band_percent", json_real(c->o->band_percent));
    json_object_set_new(o, "steal_flag_percent", json_real(REPORT_STEAL_PERCENT));
    return o;
}

static void begin_root(struct comparison *c, json_t *subjects)
{
    char when[40];
    time_text("%Y-%m-%dT%H:%M:%SZ", when);
    c->root = json_new("kiln.compare/1");
    c->rounds = json_array();
    json_object_set_new(c->root, "kiln", json_string(KILN_VERSION));
    json_object_set_new(c->root, "started", json_string(when));
    json_object_set_new(c->root, "complete", json_false());
    json_object_set_new(c->root, "stopped", json_null());
    json_object_set_new(c->root, "options", options_json(c));
    json_object_set_new(c->root, "host", compare_host());
    json_object_set(c->root, "subjects", subjects);
    json_object_set_new(c->root, "rounds", c->rounds);
}

static int make_dir(struct comparison *c, struct err *e)
{
    char when[40];
    time_text("compare-%Y%m%d-%H%M%S", when);
    c->dir = c->o->out ? xstrdup(c->o->out) : store_path("runs/%s", when);
    c->path = xasprintf("%s/compare.json", c->dir);
    if (fs_exists(c->path))
        return err_set(e, EXIT_CANNOT_ASK, "%s: there already; give another --out", c->path);
    return fs_mkdirs(c->dir, 0755, e);
}

static void tick(void *arg, double done, const char *what)
{
    struct comparison *c = arg;
    progress_update(c->done + done, what);
}

// One start of one subject. *rejected is set when it had started and its measurement failed.
static int run_start(struct comparison *c, size_t round, size_t subject, json_t *results,
                     bool *rejected, struct err *e)
{
    struct bench_options o = c->o->bench;
    char *dir = xasprintf("%s/round-%02zu-%c", c->dir, round + 1, (char)('A' + subject));
    json_t *result = NULL;
    o.tick = tick;
    o.tick_arg = c;
    int rc = fs_mkdirs(dir, 0755, e);
    if (rc == 0)
        rc = bench_subject(&c->subjects[subject], &o, &c->plan, dir, &result, e);
    *rejected = rc && result && !intr_pending();
    if (result)
        json_array_set_new(results, subject, result);
    c->done += bench_seconds(&o, &c->plan) + START_SECONDS;
    free(dir);
    return rc;
}

static json_t *new_round(struct comparison *c, size_t round, const size_t *order)
{
    json_t *r = json_pack("{sI s[] s[] sn}", "round", (json_int_t)(round + 1), "order", "results",
                          "rejected");
    for (size_t i = 0; i < c->n; i++) {
        char name[2] = {(char)('A' + order[i]), 0};
        json_array_append_new(json_object_get(r, "order"), json_string(name));
        json_array_append_new(json_object_get(r, "results"), json_null());
    }
    json_array_append_new(c->rounds, r);
    return r;
}

// 0 also for a round that was rejected; *rejects counts those.
static int run_round(struct comparison *c, size_t round, unsigned *rejects, struct err *e)
{
    size_t order[REPORT_SUBJECTS_MAX];
    compare_order(c->n, round, order);
    json_t *r = new_round(c, round, order);
    int rc = 0;
    for (size_t i = 0; i < c->n && rc == 0; i++) {
        bool rejected = false;
        rc = run_start(c, round, order[i], json_object_get(r, "results"), &rejected, e);
        if (rc)
            json_object_set_new(r, "rejected", json_string(e ? e->msg : "failed"));
        if (rejected) {
            (*rejects)++;
            warning("round %zu is rejected: %s: %s", round + 1, c->subjects[order[i]].text, e->msg);
            break;
        }
        if (json_save(c->root, c->path, rc ? NULL : e))
            return -1;
        if (rc)
            return rc;
    }
    return *rejects < REJECTED_MAX ? 0 : -1;
}

static int prepare_data(struct comparison *c, struct err *e)
{
    struct dataset d = bench_dataset(&c->o->bench);
    int rc = 0;
    for (size_t i = 0; i < c->n && rc == 0; i++) {
        char *dir = NULL;
        rc = dataset_golden(c->subjects[i].build, &d, &dir, e);
        free(dir);
    }
    return rc;
}

static int run_rounds(struct comparison *c, struct err *e)
{
    double each = bench_seconds(&c->o->bench, &c->plan) + START_SECONDS;
    double total = each * (double)c->n * (double)c->o->pairs;
    unsigned rejects = 0;
    int rc = 0;
    progress_begin("compare, seconds", total, total);
    for (size_t round = 0; round < c->o->pairs && rc == 0; round++)
        rc = run_round(c, round, &rejects, e);
    progress_end();
    json_object_set_new(c->root, "complete", json_boolean(rc == 0));
    if (rc)
        json_object_set_new(c->root, "stopped", json_string(e->msg));
    int saved = json_save(c->root, c->path, rc ? NULL : e);
    return rc ? rc : saved;
}

static void end(struct comparison *c)
{
    for (size_t i = 0; i < c->n; i++)
        subject_free(&c->subjects[i]);
    free(c->subjects);
    free(c->dir);
}

int compare_run(const struct strv *subjects, const struct compare_options *o, json_t **root,
                char **path, struct err *e)
{
    struct comparison c = {.o = o};
    json_t *list = json_array();
    *root = NULL;
    *path = NULL;
    int rc = bench_plan(&o->bench, &c.plan, e);
    if (rc == 0 && (o->pairs < 1 || o->pairs > 1000))
        rc = err_set(e, EXIT_CANNOT_ASK, "--pairs=%lu: not between 1 and 1000", o->pairs);
    if (rc == 0 && !(o->band_percent > 0 && o->band_percent < 100))
        rc = err_set(e, EXIT_CANNOT_ASK, "--band=%g: not between 0 and 100", o->band_percent);
    if (rc == 0)
        rc = store_init(e) || read_subjects(&c, subjects, list, e) || prepare_data(&c, e) ||
                     make_dir(&c, e)
                 ? -1
                 : 0;
    if (rc == 0) {
        begin_root(&c, list);
        rc = run_rounds(&c, e);
        *root = c.root;
        *path = c.path;
    } else {
        free(c.path);
    }
    json_decref(list);
    end(&c);
    return rc;
}
