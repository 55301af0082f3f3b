// text=MODE: which pages the server's code lies on. launcher/text_modes.c has the modes.
#include "launcher/knob.h"

#include "common/proc.h"
#include "elfcheck/coverage.h"
#include "launcher/text_modes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// WORD[:WORD][:SIZE]: cuts the size off, and a lone hugetlbfs gets its letter. value is changed.
static int parse_words(char *value, struct text_plan *plan)
{
    char *last = strrchr(value, ':');
    if (last && isdigit((unsigned char)last[1])) {
        *last = 0;
        if (parse_size(last + 1, &plan->page) || plan->page < 4096 ||
            (plan->page & (plan->page - 1)))
            return -1;
    }
    plan->mode = text_mode_find(strcmp(value, "hugetlbfs") ? value : "hugetlbfs:R");
    return plan->mode && (!plan->page || plan->mode->pool) ? 0 : -1;
}

static int parse(const struct knob_state *s, struct text_plan *plan, struct err *e)
{
    char *value = xstrdup(s->value);
    int rc = parse_words(value, plan);
    free(value);
    return rc ? err_set(e, EXIT_CANNOT_ASK, "text=%s: not one of %s", s->value, knob_text.values)
              : 0;
}

static int prepare(struct launch *l, struct knob_state *s, struct err *e)
{
    struct text_plan *plan = s->plan = xcalloc(1, sizeof *plan);
    struct err why = {0};
    s->seen = json_object();
    if (parse(s, plan, e))
        return -1;
    const struct text_mode *m = plan->mode;
    if (plan->page && text_pool_exists(plan->page, &why))
        return err_set(e, why.code, "text=%s: %s", s->value, why.msg);
    if (m->predicted_as && text_predict(l, plan, &why))
        return err_set(e, why.code, "%s: text=%s cannot work: %s", l->build.server, s->value,
                       why.msg);
    if (m->able && m->able(l, plan, &why))
        return err_set(e, why.code, "text=%s: %s", s->value, why.msg);
    return m->prepare(l, s, e);
}

static uint64_t counted(const struct text_plan *plan, const struct coverage *c)
{
    return *(const uint64_t *)((const char *)c + plan->mode->counter);
}

static int judge(const struct text_plan *plan, const char *value, const struct coverage *c,
                 struct err *e)
{
    uint64_t got = counted(plan, c), want = plan->prediction.text_huge_bytes;
    if (!want)
        return got ? err_set(e, EXIT_NO, "text=%s: %llu kB of the text are on 2 MiB pages", value,
                             (unsigned long long)got >> 10)
                   : 0;
    if (got >= want)
        return 0;
    char size[16];
    return err_set(e, EXIT_NO,
                   "text=%s: the server runs with %llu of %llu kB of its text on %s pages, "
                   "expected were %llu kB",
                   value, (unsigned long long)got >> 10, (unsigned long long)c->text >> 10,
                   page_size_text(plan->pages.huge, size), (unsigned long long)want >> 10);
}

// Text is moved before main, but the first look can come before that when nothing tells that the
// program is up: a little patience costs nothing.
static int verify(const struct launch *l, struct knob_state *s, struct err *e)
{
    const struct text_plan *plan = s->plan;
    struct coverage c;
    double end = now_seconds() + 2;
    for (;;) {
        if (coverage_read(l->pid, &l->elf, &c, e))
            return -1;
        if (judge(plan, s->value, &c, e) == 0 || now_seconds() > end)
            break;
        sleep_seconds(0.05);
    }
    text_seen(s, coverage_json(&c));
    return judge(plan, s->value, &c, e);
}

static const struct explanation *explain(size_t i)
{
    return text_modes[i].about.name ? &text_modes[i].about : NULL;
}

const struct knob knob_text = {
    .name = "text",
    .values = "none, pagecache, tmpfs, hugetlbfs[:R|RW|marked][:SIZE], remap, auto",
    .about = "pages under the server's code: 4 KiB made sure of, or 2 MiB in one of several ways; "
             "--explain text has them one by one",
    .explain = explain,
    .prepare = prepare,
    .verify = verify,
};
