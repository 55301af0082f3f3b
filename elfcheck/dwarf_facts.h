// What the compiler wrote about itself into each compilation unit. Read with libdw.
#ifndef KILN_DWARF_FACTS_H
#define KILN_DWARF_FACTS_H

#include "common/err.h"

#include <stddef.h>

enum opt_level { OPT_O0, OPT_O1, OPT_O2, OPT_O3, OPT_OFAST, OPT_OS, OPT_OZ, OPT_OG, OPT_LEVELS };

// Numbers of compilation units; assembler units are left out: nothing optimises them.
//   units = sum of by_level + level_unknown = gcc + clang + other_compiler
struct dwarf_facts {
    size_t units;
    size_t by_level[OPT_LEVELS];
    size_t level_unknown; // the producer does not record its flags (clang by default)
    size_t gcc, clang, other_compiler;
};

extern const char *const opt_level_names[OPT_LEVELS]; // "O0", ...

// 0 (also for a file without debug information: units is 0), or -1 with *e filled.
int dwarf_facts_read(const char *path, struct dwarf_facts *d, struct err *e);
// Adds a unit by its producer string (NULL: none), for instance "GNU C++17 12.2.0 -g -O2".
void dwarf_facts_add(struct dwarf_facts *d, const char *producer);

#endif
