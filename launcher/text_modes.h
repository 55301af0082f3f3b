// The ways to stated pages under a server's code: one table, one row each. A row says what its way
// is, whether this host can go it now, and goes it.
#ifndef KILN_TEXT_MODES_H
#define KILN_TEXT_MODES_H

#include "elfcheck/predict.h"
#include "launcher/knob.h"

// What one start is to get.
struct text_plan {
    const struct text_mode *mode; // of text=auto: the one that was taken, once it was
    uint64_t page;                // asked-for size of a pool's pages, in bytes; 0: the usual one
    struct page_sizes pages;      // small and huge, of the program's machine
    struct prediction prediction; // of mode
};

struct text_mode {
    struct explanation about; // its name is the word in text=WORD
    const char *predicted_as; // predict_mode's word for it; NULL: no huge pages are expected
    bool pool;                // takes pages of the pool, of a size that may be stated
    bool by_auto;             // text=auto may take it
    size_t counter;           // the field of struct coverage that counts its bytes
    // Whether this host can do what was predicted; changes nothing. -1 with the reason alone in *e.
    int (*able)(const struct launch *l, const struct text_plan *p, struct err *e);
    int (*prepare)(struct launch *l, struct knob_state *s, struct err *e);
};
// The cheapest first; the last row's name is NULL.
extern const struct text_mode text_modes[];

const struct text_mode *text_mode_find(const char *name); // or NULL

// Fills the plan's prediction: 0, or -1 with the file's reason alone in *e (EXIT_NO,
// EXIT_CANNOT_KNOW) or why the host has no such pages (EXIT_NOT_HERE).
int text_predict(const struct launch *l, struct text_plan *p, struct err *e);

// --- what the ways share ---

// From here on the server is run from a copy of its own in the instance: nobody else has its page
// cache. Done once.
int text_own_copy(struct launch *l, struct err *e);
// A program that is linked with libhugetlbfs and marked by hugeedit would take pages of the pool
// whatever was asked for.
void text_keep_library_out(struct launch *l);
// Whether this process may mount: root may, unless a container took the right from it.
bool text_may_mount(void);
// A file system of the instance, journalled, mounted with uid, gid and mode 0700 of the server's
// user and these options more: its directory, malloc'ed, or NULL with *e filled.
char *text_mount(struct launch *l, const char *type, const char *options, struct err *e);
// Adds to what the condition shows; takes more.
void text_seen(struct knob_state *s, json_t *more);
// Whether the kernel has a pool of pages of this size; -1 with the reason alone in *e.
int text_pool_exists(uint64_t page, struct err *e);
// Whether so many bytes can be had without swapping; -1 with the reason alone in *e.
int text_memory(uint64_t bytes, const char *what, struct err *e);

// --- the ways ---

int text_none(struct launch *l, struct knob_state *s, struct err *e);
int text_pagecache_able(const struct launch *l, const struct text_plan *p, struct err *e);
int text_pagecache(struct launch *l, struct knob_state *s, struct err *e);
int text_tmpfs_able(const struct launch *l, const struct text_plan *p, struct err *e);
int text_tmpfs(struct launch *l, struct knob_state *s, struct err *e);
int text_hugetlbfs_able(const struct launch *l, const struct text_plan *p, struct err *e);
int text_hugetlbfs(struct launch *l, struct knob_state *s, struct err *e);
int text_remap_able(const struct launch *l, const struct text_plan *p, struct err *e);
int text_remap(struct launch *l, struct knob_state *s, struct err *e);
int text_auto(struct launch *l, struct knob_state *s, struct err *e);

#endif
