// The workloads: one row each of a const table. Adding a workload is adding a row.
#ifndef KILN_WORKLOADS_H
#define KILN_WORKLOADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum group { GROUP_POINT, GROUP_RANGE, GROUP_WRITE };
enum kind { KIND_READ, KIND_WRITE };

// What is bound to each '?' of a statement. A key is drawn uniformly from [1, rows].
enum param {
    PARAM_NONE,
    PARAM_KEY,
    PARAM_LAST,   // the key before it + range - 1: range rows
    PARAM_BEYOND, // the key before it + range: range + 1 rows
    PARAM_C,      // 119 characters as in column c
    PARAM_PAD,    // 59 characters as in column pad
};

enum { STATEMENTS_MAX = 6, PARAMS_MAX = 4 };

struct statement {
    const char *sql; // "%u" stands for the table's number
    enum kind kind;
    unsigned repeat; // executions in one event, all on one table
    enum param params[PARAMS_MAX];
};

struct workload {
    const char *name;
    enum group group;
    const char *what; // one line for people
    unsigned range;   // 0: none
    bool transaction; // BEGIN and COMMIT around it, always as text; else autocommit
    bool text;        // text protocol; else prepared on the server
    struct statement statements[STATEMENTS_MAX]; // ends with a NULL sql
};

// What was executed. Each statement is counted in exactly one of the four, so that
//   workload_queries() = reads + writes + noop_writes + control
// which is also what sysbench calls "queries" (its "write" is our writes, its "other" our
// noop_writes + control).
struct counts {
    uint64_t reads;
    uint64_t writes;      // affected rows > 0
    uint64_t noop_writes; // affected rows = 0
    uint64_t control;     // BEGIN, COMMIT
    uint64_t rows;        // rows that reads returned
};

uint64_t counts_queries(const struct counts *c);
void counts_add(struct counts *into, const struct counts *from);

extern const struct workload workloads[]; // ends with a NULL name
const struct workload *workload_find(const char *name);
// Statements of one event by kind, every write taken as effective; rows stays 0.
struct counts workload_event(const struct workload *w);
size_t workload_params(const struct statement *s);
const char *group_word(enum group g);

#endif
