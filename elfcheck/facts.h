// What a binary says of how it was built: a list of facts, each with its value and where that was
// seen. Absence of evidence is no value: "cannot know", with what would tell.
#ifndef KILN_FACTS_H
#define KILN_FACTS_H

#include "elfcheck/dwarf_facts.h"
#include "elfcheck/elf_facts.h"
#include "elfcheck/elf_file.h"

#include <jansson.h>

struct fact {
    const char *name; // "relro": fact_rows[].name
    char *value;      // "full", "yes", "-O2 in 1812 of 1932 units; ..."; NULL: cannot know
    char *evidence;   // where it was seen; without a value: what would tell
};

struct facts {
    struct fact *v;
    size_t n;
};

// All facts of the file, in the order in which they are printed.
void facts_read(const struct elf_file *file, const struct elf_facts *elf,
                const struct dwarf_facts *dwarf, struct facts *out);
// The two halves of it: symbols and texts first, while debug information is still read.
struct reading;
struct reading *facts_start(const struct elf_file *file, const struct elf_facts *elf);
void facts_finish(struct reading *r, const struct dwarf_facts *dwarf, struct facts *out);
const struct fact *facts_find(const struct facts *l, const char *name); // NULL: no such fact
void facts_free(struct facts *l);
// {"relro": {"value": "full", "evidence": "..."}, ...}; value is null when it cannot be known.
json_t *facts_json(const struct facts *l);

// For the files that gather facts. evidence is a format.
void fact_known(struct facts *l, const char *name, const char *value, const char *evidence, ...)
    __attribute__((format(printf, 4, 5)));
void fact_unknown(struct facts *l, const char *name, const char *would_tell, ...)
    __attribute__((format(printf, 3, 4)));

#endif
