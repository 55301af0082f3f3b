// libkiln-remap.so, preloaded: moves the whole 2 MiB slots of a program's text to anonymous 2 MiB
// pages before main. It needs libc and nothing else; the file of the program needs no preparation.
#ifndef KILN_REMAP_H
#define KILN_REMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLOT = 2 << 20, SMALL_PAGE = 4096, MAX_PARTS = 32, MAX_RANGES = 64 };

// Why something was not moved. The first reason is kept: what follows is its consequence.
struct reason {
    char text[240];
};
void reason_set(struct reason *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// --- environment.c ---

// What the variables ask for; strings live in the environment block.
struct settings {
    const char *way;       // KILN_REMAP: "thp" (default) or "pool"
    const char *libraries; // KILN_REMAP_LIBS: name:name, beginnings of file names; or NULL
    const char *status;    // KILN_REMAP_STATUS: a descriptor's number or a path; or NULL
    bool perf_map;         // KILN_REMAP_PERF_MAP=1
    bool verbose;          // KILN_REMAP_VERBOSE=1
};
// Reads them, and takes them and this library's entry of LD_PRELOAD out of environ, so that
// children of the program do without.
void environment_take(struct settings *s);

// --- objects.c ---

// An executable segment (PT_LOAD with PF_X) of a loaded object, by run-time addresses.
struct part {
    char name[64];        // the file's name, for messages
    char path[512];       // the file, for its symbols
    uintptr_t bias;       // run-time address minus p_vaddr
    uintptr_t from, to;   // rounded outwards to 4 KiB pages, as it is mapped
    size_t bytes;         // p_memsz
    bool has_relocations; // DT_TEXTREL: the loader wrote into it
};
// The parts of the main program and of the libraries (see settings) that may be moved; says in *r
// which library is not loaded or cannot be moved.
size_t objects_find(const char *libraries, struct part parts[MAX_PARTS], struct reason *r);
// The path of this library as the loader knows it, in a buffer of n bytes; empty when unknown.
void objects_self(char *path, size_t n);

// --- mappings.c ---

// A mapping of this process, from /proc/self/smaps, cut to the addresses asked for; counts in
// bytes.
struct mapping {
    uintptr_t from, to;
    char perms[5];
    size_t page;      // KernelPageSize
    size_t anonymous; // 4 KiB pages that are no longer the file's
    size_t anon_huge; // AnonHugePages
};
// Those that overlap [from, to): their number, at most max, or -errno.
int mappings_read(uintptr_t from, uintptr_t to, struct mapping *m, size_t max);
// Bytes of [from, to) on 2 MiB pages.
size_t mappings_huge(uintptr_t from, uintptr_t to);
// Threads of this process, or -errno.
int threads_count(void);

// --- move.c ---

// Where 2 MiB pages come from.
struct way {
    const char *name;
    // Maps 2 MiB pages, writable, and copies text into them: *n bytes, or fewer when there are too
    // few pages (then *n is less, and *r says why). NULL: none.
    char *(*copy)(const char *text, size_t *n, struct reason *r);
};
const struct way *way_find(const char *name); // or NULL
// Moves up to n bytes of text (both multiples of SLOT, within one mapping) to 2 MiB pages. Returns
// how many; the rest, and all of it when that is 0, is mapped as before.
size_t move_text(const struct way *way, char *text, size_t n, struct reason *r);

// --- perf_map.c ---

struct range {
    const struct part *part;
    uintptr_t from, to; // whole slots of one mapping
    size_t huge;        // bytes from the start that were seen on 2 MiB pages
};
// Writes /tmp/perf-PID.map, mode 0600, with the functions of what was moved: perf reads it for
// addresses in anonymous memory (tools/perf/Documentation/jit-interface.txt). 0 or -errno.
int perf_map_write(const struct range *ranges, size_t n);

#endif
