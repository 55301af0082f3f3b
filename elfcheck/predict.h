// Whether a binary's text can sit on 2 MiB pages, by each way, from the ELF file alone.
#ifndef KILN_PREDICT_H
#define KILN_PREDICT_H

#include "elfcheck/elf_facts.h"

enum answer { ANSWER_YES, ANSWER_NO, ANSWER_CANNOT_KNOW };

struct prediction {
    enum answer answer;
    char reason[400];         // why not, or why not known; with the flag to change
    uint64_t text_bytes;      // bytes of text segments
    uint64_t text_huge_bytes; // of these, on huge pages if the mode works
    unsigned pages;           // huge pages needed from the pool, 0 when the mode takes none
};

enum { HUGE_2M = 2 << 20 };

// libhugetlbfs with HUGETLB_ELFMAP=letters ("R" or "RW"). segment_limit: 3 up to libhugetlbfs
// 2.23, 4 from 2.24. Rules: elflink.c, reference in predict.c.
void predict_hugetlbfs(const struct elf_facts *f, const char *letters, unsigned segment_limit,
                       struct prediction *p);
// The page cache filled with 2 MiB folios; the same slots are huge on tmpfs.
void predict_pagecache(const struct elf_facts *f, struct prediction *p);

// Whole 2 MiB slots of a segment that a file mapping can cover: 0 unless congruent.
uint64_t segment_slots(const struct segment *s, uint64_t page);
bool segment_congruent(const struct segment *s, uint64_t page);

// The segment limit of the libhugetlbfs that is installed, found by running a small four-segment
// program under it (its SONAME hides the version); 0 when it is not installed or cannot be told.
unsigned libhugetlbfs_segment_limit(struct err *e);
// Path of libhugetlbfs.so.0 as the loader finds it, or NULL. Static.
const char *libhugetlbfs_path(void);

#endif
