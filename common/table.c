#include "common/table.h"
#include "common/str.h"

#include <libsmartcols.h>
#include <stdlib.h>

struct table {
    struct libscols_table *t;
    size_t n;
};

struct table *table_new(const char *const *columns)
{
    struct table *t = xcalloc(1, sizeof *t);
    scols_init_debug(0);
    t->t = scols_new_table();
    for (; columns[t->n]; t->n++) {
        const char *name = columns[t->n];
        int right = *name == '>';
        scols_table_new_column(t->t, name + right, 0,
                               (right ? SCOLS_FL_RIGHT : 0) | SCOLS_FL_NOEXTREMES);
    }
    return t;
}

void table_row(struct table *t, const char *const *cells)
{
    struct libscols_line *line = scols_table_new_line(t->t, NULL);
    for (size_t i = 0; i < t->n; i++)
        if (cells[i])
            scols_line_set_data(line, i, cells[i]);
}

void table_print(struct table *t, FILE *to)
{
    scols_table_set_stream(t->t, to);
    scols_print_table(t->t);
    scols_unref_table(t->t);
    free(t);
}
