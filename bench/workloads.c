#include "bench/workloads.h"

#include <string.h>

const struct workload workloads[] = {
    {.name = "point-query",
     .group = GROUP_POINT,
     .what = "one row by primary key",
     .statements = {{"SELECT c FROM sbtest%u WHERE id=?", KIND_READ, 1, {PARAM_KEY}}}},
    {.name = "range-covered-si",
     .group = GROUP_RANGE,
     .what = "about 101 keys of the secondary index, which covers the query",
     .range = 100,
     .statements = {{"SELECT k FROM sbtest%u WHERE k BETWEEN ? AND ?",
                     KIND_READ,
                     1,
                     {PARAM_KEY, PARAM_BEYOND}}}},
    {.name = "read-only",
     .group = GROUP_RANGE,
     .what = "10 point selects and 4 ranges of 100 rows in a transaction",
     .range = 100,
     .transaction = true,
     .statements = {{"SELECT c FROM sbtest%u WHERE id=?", KIND_READ, 10, {PARAM_KEY}},
                    {"SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ?",
                     KIND_READ,
                     1,
                     {PARAM_KEY, PARAM_LAST}},
                    {"SELECT SUM(k) FROM sbtest%u WHERE id BETWEEN ? AND ?",
                     KIND_READ,
                     1,
                     {PARAM_KEY, PARAM_LAST}},
                    {"SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c",
                     KIND_READ,
                     1,
                     {PARAM_KEY, PARAM_LAST}},
                    {"SELECT DISTINCT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c",
                     KIND_READ,
                     1,
                     {PARAM_KEY, PARAM_LAST}}}},
    {.name = "update-index",
     .group = GROUP_WRITE,
     .what = "one row by primary key, with its secondary index entry",
     .statements = {{"UPDATE sbtest%u SET k=k+1 WHERE id=?", KIND_WRITE, 1, {PARAM_KEY}}}},
    {.name = "insert",
     .group = GROUP_WRITE,
     .what = "one row at the end, text protocol",
     .text = true,
     .statements = {{"INSERT INTO sbtest%u (id, k, c, pad) VALUES (0, ?, ?, ?)",
                     KIND_WRITE,
                     1,
                     {PARAM_KEY, PARAM_C, PARAM_PAD}}}},
    {.name = NULL},
};

const struct workload *workload_find(const char *name)
{
    for (const struct workload *w = workloads; w->name; w++)
        if (!strcmp(w->name, name))
            return w;
    return NULL;
}

uint64_t counts_queries(const struct counts *c)
{
    return c->reads + c->writes + c->noop_writes + c->control;
}

void counts_add(struct counts *into, const struct counts *from)
{
    into->reads += from->reads;
    into->writes += from->writes;
    into->noop_writes += from->noop_writes;
    into->control += from->control;
    into->rows += from->rows;
}

struct counts workload_event(const struct workload *w)
{
    struct counts c = {.control = w->transaction ? 2 : 0};
    for (size_t i = 0; i < STATEMENTS_MAX && w->statements[i].sql; i++)
        *(w->statements[i].kind == KIND_READ ? &c.reads : &c.writes) += w->statements[i].repeat;
    return c;
}

size_t workload_params(const struct statement *s)
{
    size_t n = 0;
    while (n < PARAMS_MAX && s->params[n] != PARAM_NONE)
        n++;
    return n;
}

const char *group_word(enum group g)
{
    static const char *const words[] = {
        [GROUP_POINT] = "point", [GROUP_RANGE] = "range", [GROUP_WRITE] = "write"};
    return words[g];
}
