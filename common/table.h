// Tables for people, through libsmartcols: full width on a terminal, untruncated when piped.
#ifndef KILN_TABLE_H
#define KILN_TABLE_H

#include <stdio.h>

struct table;
// Columns end with NULL; a name that starts with '>' is right-aligned.
struct table *table_new(const char *const *columns);
// One cell for each column, in order; NULL is an empty cell.
void table_row(struct table *t, const char *const *cells);
void table_print(struct table *t, FILE *to); // and frees it

#endif
