// The subject grammar, the same everywhere:
//   SUBJECT   = BUILD [ "@" CONDITION { "," CONDITION } ]
//   CONDITION = KNOB "=" VALUE [ "!" | "?" ]
// A BUILD that is a path may hold '@' before its last '/'.
#ifndef KILN_SUBJECT_H
#define KILN_SUBJECT_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>

struct condition {
    char *knob, *value; // value without the mark
    bool prefer;        // "?": say so when it cannot be had, and go on
};

struct subject {
    char *text; // as written
    char *build;
    struct condition *conditions;
    size_t n;
};

int subject_parse(const char *text, struct subject *s, struct err *e);
// Reads more conditions, separated by commas, into s; a knob given again replaces the first.
int subject_add(struct subject *s, const char *conditions, struct err *e);
// The condition of this knob, or NULL.
const struct condition *subject_get(const struct subject *s, const char *knob);
void subject_free(struct subject *s);

#endif
