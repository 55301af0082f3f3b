// text=auto: the way with the most text on huge pages, among those that this host can do now.
#include "launcher/text_modes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MODES = 16 };

// A way, and how it stands: possible, or why not.
struct candidate {
    struct text_plan plan;
    bool possible, predicted; // predicted: the file would do, whatever the host says
    struct err why;
};

static void look(const struct launch *l, const struct text_mode *m, struct candidate *c)
{
    *c = (struct candidate){.plan = {.mode = m}};
    c->predicted = text_predict(l, &c->plan, &c->why) == 0;
    c->possible = c->predicted && m->able(l, &c->plan, &c->why) == 0;
}

static size_t look_at_all(const struct launch *l, struct candidate *c)
{
    size_t n = 0;
    for (const struct text_mode *m = text_modes; m->about.name; m++)
        if (m->by_auto && n < MOST_MODES)
            look(l, m, &c[n++]);
    return n;
}

static uint64_t covers(const struct candidate *c)
{
    return c->plan.prediction.text_huge_bytes;
}

// The table has the cheapest first: of equals the first.
static struct candidate *best_of(struct candidate *c, size_t n)
{
    struct candidate *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (c[i].possible && (!best || covers(&c[i]) > covers(best)))
            best = &c[i];
    return best;
}

// What comes nearest: a file that would do on another host, with the most text; then one of which
// nothing is known; then the cheapest.
static const struct candidate *nearest_miss(const struct candidate *c, size_t n)
{
    const struct candidate *best = &c[0];
    for (size_t i = 1; i < n; i++) {
        bool unknown = c[i].why.code == EXIT_CANNOT_KNOW && best->why.code == EXIT_NO;
        if (c[i].predicted ? !best->predicted || covers(&c[i]) > covers(best)
                           : unknown && !best->predicted)
            best = &c[i];
    }
    return best;
}

static void compare_with(struct candidate *c, const struct candidate *taken)
{
    unsigned long long kb = (unsigned long long)covers(c) >> 10;
    unsigned long long of = (unsigned long long)c->plan.prediction.text_bytes >> 10;
    if (covers(c) < covers(taken))
        err_set(&c->why, EXIT_NO, "it would put %llu of %llu kB on huge pages, %s %llu kB", kb, of,
                taken->plan.mode->about.name, (unsigned long long)covers(taken) >> 10);
    else
        err_set(&c->why, EXIT_NO, "it would put %llu of %llu kB on huge pages, too, and costs more",
                kb, of);
}

// taken may be NULL.
static void say_why_not(struct knob_state *s, struct candidate *c, size_t n,
                        const struct candidate *taken)
{
    json_t *others = json_object();
    for (size_t i = 0; i < n; i++) {
        if (&c[i] == taken)
            continue;
        if (c[i].possible)
            compare_with(&c[i], taken);
        json_object_set_new(others, c[i].plan.mode->about.name, json_string(c[i].why.msg));
    }
    text_seen(s, json_pack("{so}", "passed_over", others));
}

static int give_up(struct launch *l, struct knob_state *s, struct candidate *c, size_t n,
                   struct err *e)
{
    struct err why = {0};
    const struct candidate *miss = nearest_miss(c, n);
    json_object_clear(s->seen);
    text_seen(s, json_pack("{ss}", "took", "nothing"));
    say_why_not(s, c, n, NULL);
    // Without huge pages, it is to be known without which.
    if (s->prefer && text_none(l, s, &why)) {
        *e = why;
        return -1;
    }
    // text=auto itself makes sense, whatever went wrong on the way: text=auto? goes on.
    int code = miss->why.code == EXIT_CANNOT_ASK ? EXIT_NOT_HERE : miss->why.code;
    return err_set(e, code, "%s: text=auto: no way to huge pages works; %s: %s", l->build.server,
                   miss->plan.mode->about.name, miss->why.msg);
}

int text_auto(struct launch *l, struct knob_state *s, struct err *e)
{
    struct text_plan *plan = s->plan;
    struct candidate *c = xcalloc(MOST_MODES, sizeof *c), *taken;
    size_t n = look_at_all(l, c);
    int rc = -1;
    while (rc && (taken = best_of(c, n))) {
        *plan = taken->plan;
        json_object_clear(s->seen);
        text_seen(s, json_pack("{ss}", "took", plan->mode->about.name));
        rc = plan->mode->prepare(l, s, &taken->why);
        if (rc && taken->why.code == EXIT_INTERRUPTED)
            break;
        taken->possible = rc == 0;
    }
    if (rc == 0)
        say_why_not(s, c, n, taken);
    else if (taken)
        *e = taken->why;
    else
        rc = give_up(l, s, c, n, e);
    free(c);
    return rc;
}
