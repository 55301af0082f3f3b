// Whether a binary's text can sit on huge pages, by each way, from the ELF file alone.
#ifndef KILN_PREDICT_H
#define KILN_PREDICT_H

#include "elfcheck/elf_facts.h"

enum answer { ANSWER_YES, ANSWER_NO, ANSWER_CANNOT_KNOW };
const char *answer_word(enum answer a); // "yes", "no", "cannot-know"

enum { HUGE_2M = 2 << 20 };

// The pages of a machine that a prediction is about, in bytes.
struct page_sizes {
    uint64_t small; // the kernel's page: what mappings begin and end on
    uint64_t huge;
    bool file_backed; // the kernel maps page cache folios of this size as one page (PMD)
};
// Kernels of x86-64 have 2 MiB and 1 GiB; of AArch64 2 MiB and 1 GiB (4 KiB pages), 32 MiB
// (16 KiB pages), 512 MiB (64 KiB pages); of PPC64 16 MiB. huge 0: the machine's usual one. False
// when the machine has no such page, or when nothing is known of the machine.
bool page_sizes_of(uint16_t machine, uint64_t huge, struct page_sizes *out);
// "2 MiB", "1 GiB": into out[16], which is returned.
const char *page_size_text(uint64_t bytes, char out[16]);

struct prediction {
    enum answer answer;
    char reason[480];          // why, why not, or why not known; with the flag to change
    uint64_t text_bytes;       // of sections in text segments
    uint64_t text_huge_bytes;  // of these, on huge pages if the mode works; for cannot-know at most
    uint64_t smaps_huge_bytes; // of executable mappings, as smaps will show them: whole huge pages
    uint64_t data_huge_bytes;  // of writable segments
    unsigned pages;            // huge pages needed from the pool, 0 when the mode takes none
};

// How libhugetlbfs is used.
struct hugetlbfs_use {
    const char *letters;    // HUGETLB_ELFMAP: "R", "W", "RW"; NULL: unset, what hugeedit marked
    unsigned segment_limit; // 3 up to version 2.23, 4 from 2.24; 0: not known
    bool preload;           // by LD_PRELOAD; else the program is linked with it
};
// Rules: elflink.c of libhugetlbfs 2.23 and 2.24. For W the answer says whether the data moves.
void predict_hugetlbfs(const struct elf_facts *f, const struct page_sizes *pages,
                       const struct hugetlbfs_use *use, struct prediction *p);

// All ways: "hugetlbfs:R", ":W", ":RW", ":marked", "pagecache", "tmpfs", "remap" (text moved to
// anonymous huge pages), "bolt-hugify". The array ends with NULL.
extern const char *const predict_modes[];
// False: no such mode. libhugetlbfs is preloaded, unless the program is linked with it.
bool predict_mode(const char *mode, const struct elf_facts *f, const struct page_sizes *pages,
                  unsigned segment_limit, struct prediction *p);

// Whole huge pages of a segment that a file mapping can cover: 0 unless congruent.
uint64_t segment_slots(const struct segment *s, const struct page_sizes *pages);
// How a segment lies in its slots, in bytes: before the first whole one, in whole ones, after them.
// Without a whole slot all of it is head.
struct slot_fit {
    uint64_t head, whole, tail;
};
struct slot_fit segment_fit(const struct segment *s, const struct page_sizes *pages);
// Address and file offset agree modulo this size, so that a page of the cache fits.
bool segment_congruent(const struct segment *s, uint64_t page);
// The flags that align the segments, for the linker that made the file (of any: NULL).
const char *alignment_flags(const char *linker, uint64_t huge);
// The dynamic loader cannot protect PT_GNU_RELRO because it ends outside every load segment: the
// program does not start (lld before 18 with two page-size flags).
bool elf_relro_outside(const struct elf_facts *f, uint64_t small);

// Starts to find out what the installed libhugetlbfs is like; the two below wait for the answer.
void libhugetlbfs_probe_start(void);
// The segment limit of the libhugetlbfs that is installed, found by running a small four-segment
// program under it (its SONAME hides the version); 0 when it is not installed or cannot be told.
unsigned libhugetlbfs_segment_limit(struct err *e);
// The same by the version that the library's file states, at once; 0 when it states none.
unsigned libhugetlbfs_stated_limit(void);
// Path of libhugetlbfs.so.0 as the loader finds it, or NULL. Static.
const char *libhugetlbfs_path(void);

#endif
