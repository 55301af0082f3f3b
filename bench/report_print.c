#include "bench/report.h"
#include "common/json.h"
#include "common/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 9 };

char *report_ratio(const struct estimate *s)
{
    if (s->n == 0)
        return xstrdup("not measured");
    if (s->n < 2)
        return xasprintf("%.3f [no interval]", exp(s->mean));
    return xasprintf("%.3f [%.3f, %.3f]", exp(s->mean), exp(s->low), exp(s->high));
}

char *report_change(const struct estimate *s)
{
    if (s->n == 0)
        return xstrdup("not measured");
    if (s->n < 2)
        return xasprintf("%+.1f %% [no interval]", 100 * expm1(s->mean));
    return xasprintf("%+.1f %% [%+.1f, %+.1f]", 100 * expm1(s->mean), 100 * expm1(s->low),
                     100 * expm1(s->high));
}

// A figure with a ceiling: three digits from two noisy pairs would be noise themselves.
static char *at_most(double v, double ceiling, int decimals, const char *unit)
{
    return v > ceiling ? xasprintf("over %.0f%s", ceiling, unit)
                       : xasprintf("%.*f%s", decimals, v, unit);
}

char *report_verdict(const struct estimate *s)
{
    const char *word = verdict_word(s->verdict);
    if (s->verdict != VERDICT_UNCLEAR)
        return xasprintf("%s%s", word, s->fragile ? ", fragile" : "");
    if (s->n < 2)
        return xasprintf("%s (an interval needs 2 pairs)", word);
    char *mde = at_most(100 * expm1(s->mde), 100, 1, " %");
    char *more = at_most((double)s->more_pairs, 1000, 0, " more pairs");
    char *text = xasprintf("%s (smallest detectable %s%s%s)", word, mde, s->more_pairs ? ", " : "",
                           s->more_pairs ? more : "");
    free(mde);
    free(more);
    return text;
}

static char *figure(double v, const char *none, int decimals)
{
    return isfinite(v) ? xasprintf("%.*f", decimals, v) : xstrdup(none);
}

static const char *const headings[CELLS + 1] = {
    "relative QPS", "workload",       "subject",   "verdict",         ">QPS base",
    ">QPS",         ">us/query base", ">us/query", "us/query change", NULL};

static void cells_for_people(const struct report_row *row, char *out[CELLS])
{
    out[0] = report_ratio(&row->qps);
    out[1] = xstrdup(row->workload);
    out[2] = xasprintf("%c / A", (char)('A' + row->subject));
    out[3] = report_verdict(&row->qps);
    out[4] = figure(row->qps_base, "-", 0);
    out[5] = figure(row->qps_subj, "-", 0);
    out[6] = figure(row->cpu_base, "-", 1);
    out[7] = figure(row->cpu_subj, "-", 1);
    out[8] = report_change(&row->cpu);
}

static void free_cells(char *cells[CELLS])
{
    for (size_t i = 0; i < CELLS; i++)
        free(cells[i]);
}

static void print_text(const struct report *r, FILE *to)
{
    struct table *t = table_new(headings);
    for (size_t i = 0; i < r->n; i++) {
        char *cells[CELLS];
        cells_for_people(&r->rows[i], cells);
        table_row(t, (const char *const *)cells);
        free_cells(cells);
    }
    table_print(t, to);
    fputc('\n', to);
    for (size_t i = 0; i < r->legend.n; i++)
        fprintf(to, "%s\n", r->legend.v[i]);
    for (size_t i = 0; i < r->footer.n; i++)
        fprintf(to, "%s\n", r->footer.v[i]);
}

// Names come from files of other people: a cell must not end its cell or start markup.
static void markdown_text(const char *s, FILE *to)
{
    for (; *s; s++) {
        if (strchr("|\\`*_<>[]", *s))
            fputc('\\', to);
        fputc(*s == '\n' || *s == '\r' ? ' ' : *s, to);
    }
}

static void markdown_line(const char *const *cells, size_t skip, FILE *to)
{
    fputc('|', to);
    for (size_t i = 0; i < CELLS; i++) {
        fputc(' ', to);
        markdown_text(cells[i] + (skip && *cells[i] == '>'), to);
        fputs(" |", to);
    }
    fputc('\n', to);
}

static void markdown_list(const struct strv *lines, FILE *to)
{
    for (size_t i = 0; i < lines->n; i++) {
        fputs("- ", to);
        markdown_text(lines->v[i], to);
        fputc('\n', to);
    }
}

static void print_markdown(const struct report *r, FILE *to)
{
    markdown_line(headings, 1, to);
    for (size_t i = 0; i < CELLS; i++)
        fputs(*headings[i] == '>' ? "|---:" : "|---", to);
    fputs("|\n", to);
    for (size_t i = 0; i < r->n; i++) {
        char *cells[CELLS];
        cells_for_people(&r->rows[i], cells);
        markdown_line((const char *const *)cells, 0, to);
        free_cells(cells);
    }
    fputc('\n', to);
    markdown_list(&r->legend, to);
    markdown_list(&r->footer, to);
}

static void set_number(json_t *o, const char *key, double v)
{
    json_object_set_new(o, key, isfinite(v) ? json_real(v) : json_null());
}

// The one description of a row for programs: the CSV's columns are these keys in this order.
static json_t *row_json(const struct report *r, const struct report_row *row)
{
    const json_t *subjects = json_object_get(r->root, "subjects");
    const struct estimate *q = &row->qps, *c = &row->cpu;
    json_t *o = json_object();
    json_object_set_new(o, "workload", json_string(row->workload));
    json_object_set_new(o, "subject",
                        json_string(json_text(json_array_get(subjects, row->subject), "subject")));
    json_object_set_new(o, "base", json_string(json_text(json_array_get(subjects, 0), "subject")));
    json_object_set_new(o, "pairs", json_integer((json_int_t)q->n));
    set_number(o, "relative_qps", exp(q->mean));
    set_number(o, "relative_qps_low", exp(q->low));
    set_number(o, "relative_qps_high", exp(q->high));
    json_object_set_new(o, "verdict", json_string(verdict_word(q->verdict)));
    json_object_set_new(o, "fragile", json_boolean(q->fragile));
    set_number(o, "detectable_percent", 100 * expm1(q->mde));
    json_object_set_new(o, "more_pairs",
                        q->n < 2 ? json_null() : json_integer((json_int_t)q->more_pairs));
    set_number(o, "log_sd", q->sd);
    set_number(o, "wilcoxon_p", q->wilcoxon);
    set_number(o, "qps_base", row->qps_base);
    set_number(o, "qps", row->qps_subj);
    set_number(o, "server_cpu_us_base", row->cpu_base);
    set_number(o, "server_cpu_us", row->cpu_subj);
    set_number(o, "relative_cpu", exp(c->mean));
    set_number(o, "relative_cpu_low", exp(c->low));
    set_number(o, "relative_cpu_high", exp(c->high));
    return o;
}

static void field(const char *s, char sep, FILE *to)
{
    if (sep == ',' && strpbrk(s, ",\"\r\n")) {
        fputc('"', to);
        for (; *s; s++) {
            if (*s == '"')
                fputc('"', to);
            fputc(*s, to);
        }
        fputc('"', to);
        return;
    }
    for (; *s; s++) // TSV has no quoting
        fputc(sep == '\t' && strchr("\t\r\n", *s) ? ' ' : *s, to);
}

static void value(const json_t *v, char sep, FILE *to)
{
    if (json_is_string(v))
        field(json_string_value(v), sep, to);
    else if (json_is_integer(v))
        fprintf(to, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        fprintf(to, "%.9g", json_real_value(v));
    else if (json_is_boolean(v))
        fputs(json_is_true(v) ? "true" : "false", to);
}

static void print_separated(const struct report *r, char sep, FILE *to)
{
    for (size_t i = 0; i < r->n; i++) {
        json_t *row = row_json(r, &r->rows[i]), *v;
        const char *key;
        const char *between = "";
        char sep_text[2] = {sep, 0};
        json_object_foreach (row, key, v) {
            if (i == 0)
                fprintf(to, "%s%s", between, key);
            between = sep_text;
        }
        if (i == 0)
            fputc('\n', to);
        between = "";
        json_object_foreach (row, key, v) {
            fputs(between, to);
            value(v, sep, to);
            between = sep_text;
        }
        fputc('\n', to);
        json_decref(row);
    }
}

static void print_csv(const struct report *r, FILE *to)
{
    print_separated(r, ',', to);
}

static void print_tsv(const struct report *r, FILE *to)
{
    print_separated(r, '\t', to);
}

static json_t *lines_json(const struct strv *l)
{
    json_t *a = json_array();
    for (size_t i = 0; i < l->n; i++)
        json_array_append_new(a, json_string(l->v[i]));
    return a;
}

static void print_json(const struct report *r, FILE *to)
{
    json_t *root = json_new("kiln.report/1"), *rows = json_array();
    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(rows, row_json(r, &r->rows[i]));
    set_number(root, "band_percent", 100 * r->band);
    json_object_set_new(root, "rows", rows);
    json_object_set_new(root, "legend", lines_json(&r->legend));
    json_object_set_new(root, "notes", lines_json(&r->footer));
    json_dumpf(root, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    fputc('\n', to);
    json_decref(root);
}

static const struct {
    const char *name;
    void (*print)(const struct report *r, FILE *to);
} formats[] = {{"text", print_text},
               {"markdown", print_markdown},
               {"csv", print_csv},
               {"tsv", print_tsv},
               {"json", print_json}};

int report_format_check(const char *format, struct err *e)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].name, format))
            return 0;
    return err_set(e, EXIT_CANNOT_ASK,
                   "--format=%s: no such format; there are text, markdown, csv, tsv, json", format);
}

void report_print(const struct report *r, const char *format, FILE *to)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].name, format))
            formats[i].print(r, to);
}
