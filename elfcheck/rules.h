// A profile's promises, verified on a binary: pass, fail or cannot know, each with its evidence.
// Absence of evidence is never a pass.
#ifndef KILN_RULES_H
#define KILN_RULES_H

#include "common/profile.h"
#include "elfcheck/dwarf_facts.h"
#include "elfcheck/elf_facts.h"
#include "elfcheck/predict.h"

#include <jansson.h>

struct promise_result {
    char *key, *value; // as the profile says; one result for each mode and each needed library
    char *origin;      // "gcc-o2.ini:12"
    enum answer answer;
    char *evidence;
    const char *advice; // "" when it passed
};

struct check_result {
    struct promise_result *v;
    size_t n;
};

// What the rules look at.
struct check_subject {
    const struct elf_facts *elf;
    const struct dwarf_facts *dwarf;
    unsigned segment_limit; // of the libhugetlbfs that will run it, 0: not known
};

// 0, or -1 with *e filled when a promise's value makes no sense ("FILE:LINE: ...").
int check_promises(const struct check_subject *s, const struct profile *p, struct check_result *r,
                   struct err *e);
// NO when one fails, else CANNOT_KNOW when one cannot be known, or when nothing was promised.
enum answer check_verdict(const struct check_result *r);
json_t *check_result_json(const struct check_result *r, const struct profile *p);
void check_result_free(struct check_result *r);

const char *answer_word(enum answer a);  // "yes", "no", "cannot-know"
const char *verdict_word(enum answer a); // "pass", "fail", "cannot-know"

#endif
