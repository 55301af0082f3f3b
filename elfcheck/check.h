// All that kiln check knows of one file, gathered before the first line is printed.
#ifndef KILN_CHECK_H
#define KILN_CHECK_H

#include "elfcheck/dwarf_facts.h"
#include "elfcheck/elf_facts.h"
#include "elfcheck/elf_file.h"
#include "elfcheck/facts.h"
#include "elfcheck/host_fit.h"
#include "elfcheck/pad.h"
#include "elfcheck/predict.h"

enum { MAX_MODES = 8 };

// The answers for one way to huge pages. Those of other versions are for modes of libhugetlbfs.
struct mode_answer {
    const char *mode;      // of predict_modes
    struct prediction now; // with the libhugetlbfs that is installed
    bool by_version;       // it is a mode of libhugetlbfs, and these are answered
    struct prediction old_preload, old_linked; // up to 2.23
    struct prediction new_preload, new_linked; // from 2.24
};

struct check {
    struct elf_file file;
    struct elf_facts elf;
    struct page_sizes pages;
    bool pages_known;       // false: nothing is known of this machine's pages, modes are unanswered
    unsigned segment_limit; // of the installed libhugetlbfs, 0: not known
    struct err no_limit;    // why it is not known
    struct mode_answer modes[MAX_MODES];
    size_t nmodes;
    struct pad_plan padding;
    bool whole; // what follows was gathered too
    struct dwarf_facts dwarf;
    struct facts facts;
    struct host_fit host;
};

// What to gather.
struct check_wish {
    uint64_t huge;    // page size in bytes, 0: the machine's usual one
    bool layout_only; // segments and modes, no more
};

// 0, or -1 with *e filled and nothing to free.
int check_gather(const char *path, const struct check_wish *w, struct check *c, struct err *e);
// The same of an image in memory: no host is asked, no child started.
int check_gather_image(const char *name, const void *image, size_t size, struct check *c,
                       struct err *e);
void check_free(struct check *c);

// A mode's answer by its name, NULL when there is none.
const struct mode_answer *check_mode(const struct check *c, const char *mode);

// Bytes of the file between its load segments: what their alignment cost.
uint64_t check_file_growth(const struct check *c);

#endif
