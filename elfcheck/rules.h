// Rules: what a binary must be, each answered with pass, fail or cannot know, and the evidence.
// Absence of evidence is never a pass. They come from a profile's [promises], from --require and
// from a rules file, all with the same names and values.
#ifndef KILN_RULES_H
#define KILN_RULES_H

#include "common/profile.h"
#include "elfcheck/check.h"

#include <jansson.h>

enum severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE };

struct rule_result {
    char *rule, *value; // as asked; one result for each mode and each needed library
    char *origin;       // "gcc-o2.ini:12", "--require"; "kiln" for built-in advice
    enum severity severity;
    enum answer answer;
    char *evidence;
    char *advice; // which flag to change, for the linker found; "" when it passed
};

struct rule_results {
    struct rule_result *v;
    size_t n;
};

// All add to *r, and return 0, or -1 with *e filled: an unknown rule, or a value that makes no
// sense ("gcc-o2.ini:12: pie = maybe: must be yes or no").
int rules_profile(const struct check *c, const struct profile *p, struct rule_results *r,
                  struct err *e);
// "relro=full,lto=no,pie": without a value, the one that kiln advises.
int rules_require(const struct check *c, const char *list, struct rule_results *r, struct err *e);
// An INI file: [require] RULE = VALUE, and [advise] for rules that do not decide the verdict.
int rules_file(const struct check *c, const char *path, struct rule_results *r, struct err *e);
// What kiln advises for a database server: only what does not pass.
void rules_advice(const struct check *c, struct rule_results *r);

// NO when an error fails, else CANNOT_KNOW when one cannot be known, or when nothing was asked.
// Warnings and notes decide nothing.
enum answer rules_verdict(const struct rule_results *r);
json_t *rules_json(const struct rule_results *r);
void rules_free(struct rule_results *r);
// Names, values and meanings of all rules, for --list-rules.
void rules_list(void);

const char *rule_word(enum answer a);       // "pass", "fail", "cannot-know"
const char *severity_word(enum severity s); // "error", "warning", "note"

#endif
