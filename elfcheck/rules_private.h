// What the files of rules share.
#ifndef KILN_RULES_PRIVATE_H
#define KILN_RULES_PRIVATE_H

#include "elfcheck/rules.h"

// Fills answer and evidence; -1 when the value makes no sense.
typedef int rule_fn(const struct check *c, const char *value, struct rule_result *r);
// Always 0, for: return rule_answer(...).
int rule_answer(struct rule_result *r, enum answer a, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
enum answer yes_if(bool yes);
// 1 "yes", 0 "no", -1 another word.
int yes_or_no(const char *value);

rule_fn rule_compiler, rule_linker, rule_optimisation, rule_isa, rule_march;
rule_fn rule_version, rule_build_id;                                     // rules_build.c
rule_fn rule_alignment, rule_pie, rule_needed, rule_segments, rule_mode; // rules_layout.c
rule_fn rule_padded, rule_coverage, rule_host;

#endif
