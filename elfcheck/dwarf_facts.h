// What the compiler wrote about itself into each compilation unit. Read with libdw, in a child
// process under limits of time and memory, since the file may come from anywhere.
#ifndef KILN_DWARF_FACTS_H
#define KILN_DWARF_FACTS_H

#include "common/err.h"
#include "elfcheck/elf_file.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum opt_level { OPT_O0, OPT_O1, OPT_O2, OPT_O3, OPT_OFAST, OPT_OS, OPT_OZ, OPT_OG, OPT_LEVELS };
extern const char *const opt_level_names[OPT_LEVELS]; // "O0", ...

struct folder_count {
    char *name;
    size_t units;
};

// One kind of unit: all with the same producer line (compiler, version and flags).
struct unit_kind {
    char *producer; // "GNU C++17 12.2.0 -mtune=generic -march=x86-64 -g -O2", "" when there is none
    size_t units;
    uint64_t text_bytes;            // machine code of these units, bytes
    struct folder_count *by_folder; // where they come from, the most frequent first
    size_t nfolders;
    char *folders; // the same for people: "extra/zlib (13), libmariadb (9)"
};

// Assembler units are left out: nothing optimises them.
//   units = sum of by_level + level_unknown = gcc + clang + other_compiler = sum of kinds[].units
struct dwarf_facts {
    size_t units;
    uint64_t text_bytes; // machine code of all units
    size_t by_level[OPT_LEVELS];
    uint64_t text_by_level[OPT_LEVELS];
    size_t level_unknown; // the producer does not record its flags (clang by default)
    size_t gcc, clang, other_compiler;
    struct unit_kind *kinds; // by number of units, the most first
    size_t nkinds;
    char *problem; // why there are none though the file has debug information; else NULL
};

// A child process at its reading. The two halves of dwarf_facts_read: what is done between them is
// done meanwhile.
struct dwarf_reading {
    pid_t pid; // 0: there is none
    int fd;
    int64_t end_ms; // when patience ends, CLOCK_MONOTONIC
    char *problem;
};
void dwarf_facts_start(const struct elf_file *file, struct dwarf_reading *r);
void dwarf_facts_end(struct dwarf_reading *r, struct dwarf_facts *d);

// Never fails: what could not be read leaves units at 0 and says why in problem.
void dwarf_facts_read(const struct elf_file *file, struct dwarf_facts *d);
void dwarf_facts_free(struct dwarf_facts *d);

// Adds n units by their producer string (NULL: none) with their bytes of machine code.
void dwarf_facts_add(struct dwarf_facts *d, const char *producer, const char *folder, size_t n,
                     uint64_t text_bytes);
// Sorts what was added and writes the folders out.
void dwarf_facts_finish(struct dwarf_facts *d);
// What the child process says: lines "P PRODUCER" (numbered from 0) and "U PRODUCER-NUMBER
// TEXT-BYTES PATH". Wrong lines are passed over.
void dwarf_facts_parse(struct dwarf_facts *d, char *lines);
// The level that a producer's flags name: the last -O wins, -O0 when it records flags and has no
// -O; -1 when it records no flags.
int producer_level(const char *producer);
// The last flag of the producer that starts so ("-march="), without the start: malloc'ed, or NULL.
char *producer_flag(const char *producer, const char *start);
// Whether the last of -fNAME and -fno-NAME is -fNAME: 1 yes, 0 no, -1 neither stands there.
int producer_switch(const char *producer, const char *name);

#endif
