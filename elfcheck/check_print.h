// What kiln check says: text for people, JSON and JUnit for programs.
#ifndef KILN_CHECK_PRINT_H
#define KILN_CHECK_PRINT_H

#include "elfcheck/check.h"
#include "elfcheck/live.h"
#include "elfcheck/rules.h"

// Everything about one run. Rules that decide stand in rules, kiln's own in advice.
struct check_output {
    const struct check *c;
    const struct live *live;           // NULL without --pid
    const struct rule_results *rules;  // NULL when nothing was asked
    const struct rule_results *advice; // NULL with --layout
    const char *profile;               // name, or NULL
    bool colour;
};

void check_print_text(const struct check_output *o);
json_t *check_json(const struct check_output *o); // schema kiln.check/1
void check_print_junit(const struct check_output *o);

#endif
