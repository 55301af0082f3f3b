// From a kiln.compare/1 result to the table of relative QPS. Everything is computed again from the
// rounds in the file, so a file that was kept can be printed, and judged, at any time.
#ifndef KILN_REPORT_H
#define KILN_REPORT_H

#include "bench/stats.h"
#include "common/err.h"
#include "common/str.h"

#include <jansson.h>
#include <stdio.h>

enum { REPORT_SUBJECTS_MAX = 26 }; // labels A to Z
#define REPORT_STEAL_PERCENT 2.0   // a window with more is flagged

// One workload of one subject against the base (subject 0).
struct report_row {
    const char *workload; // borrowed
    size_t subject;
    struct estimate qps, cpu;  // of ln(subject / base); cpu: the server's us per query
    double qps_base, qps_subj; // geometric means over the starts that are in pairs
    double cpu_base, cpu_subj; // NAN: not measured
};

struct report {
    const json_t *root; // borrowed
    double band;        // as a share
    size_t subjects, rounds, rejected;
    struct report_row *rows;
    size_t n;
    struct strv legend; // a line for each subject
    struct strv footer;
};

// 0, or -1 with *e filled when root is not what compare writes.
int report_model(const json_t *root, struct report *r, struct err *e);
void report_free(struct report *r);

// format: "text", "markdown", "csv", "tsv" or "json".
int report_format_check(const char *format, struct err *e);
void report_print(const struct report *r, const char *format, FILE *to);

// Cells for people, malloc'ed: "1.016 [0.998, 1.035]", "-2.7 % [-4.0, -1.3]", a verdict.
char *report_ratio(const struct estimate *s);
char *report_change(const struct estimate *s);
char *report_verdict(const struct estimate *s);

#endif
