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
// What coverage_read reads: the text of smaps, and where the program was loaded.
int coverage_smaps(pid_t pid, const struct elf_facts *f, struct str *smaps, uint64_t *bias,
                   struct err *e);
double percent_of(uint64_t part, uint64_t whole); // 0 of nothing
double coverage_percent(const struct coverage *c);
// {"text_bytes":..., "text_huge_bytes":..., "text_huge_percent":..., "by": {...}}
json_t *coverage_json(const struct coverage *c);

// One mapping of smaps; sizes in bytes.
struct vma {
    uint64_t from, to, offset, inode;
    uint64_t page, file_pmd, shmem_pmd, anon_huge;
    unsigned major, minor; // of the device
    char perms[5];         // "r-xp"
    const char *path;      // inside the text, path_len bytes; 0 when it is anonymous
    size_t path_len;
};
// The next mapping of an smaps text, from *at on, which is moved behind it; false at the end.
bool smaps_next(const char **at, struct vma *v);
// The bytes of whole 2 MiB slots of addresses in a mapping: only these can be huge pages, unless it
// is one of hugetlbfs.
uint64_t vma_slots(const struct vma *v);

#endif
