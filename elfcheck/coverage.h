// How much of a live process's text is on 2 MiB pages, read from smaps.
#ifndef KILN_COVERAGE_H
#define KILN_COVERAGE_H

#include "elfcheck/elf_facts.h"

#include <jansson.h>
#include <sys/types.h>

// Bytes. text = bytes of the main program's text segments; huge = of these, on 2 MiB or larger
// pages; padding counts in neither. The rest says by which mechanism.
struct coverage {
    uint64_t text, huge;
    uint64_t hugetlb, file_pmd, shmem_pmd, anon_huge;
};

// f must be the facts of the file that the process runs. 0, or -1 with *e filled (no such process,
// not allowed, exited).
int coverage_read(pid_t pid, const struct elf_facts *f, struct coverage *c, struct err *e);
// The same from the text of an smaps file, for a program loaded at bias (0 unless it is a PIE).
void coverage_from_smaps(const char *smaps, const struct elf_facts *f, uint64_t bias,
                         struct coverage *c);
double coverage_percent(const struct coverage *c);
// {"text_bytes":..., "text_huge_bytes":..., "text_huge_percent":..., "by": {...}}
json_t *coverage_json(const struct coverage *c);

#endif
