// The parts of host fit.
#ifndef KILN_HOST_FIT_PRIVATE_H
#define KILN_HOST_FIT_PRIVATE_H

#include "elfcheck/host_fit.h"

#include <sys/stat.h>

// One condition's answer; evidence is malloc'ed.
struct fit {
    enum answer answer;
    char *evidence;
};
struct fit fit_say(enum answer answer, const char *evidence, ...)
    __attribute__((format(printf, 2, 3)));

// --- instruction set (host_fit_isa.c) ---

struct fit fit_isa(const struct elf_file *file, const char *isa_level);

// --- libraries (host_fit_libs.c) ---

// Same machine, class and byte order: one can load the other.
bool fit_same_machine(const struct elf_file *a, const struct elf_file *b);
// Opens a regular file; nothing else is opened, since opening a device or a pipe may act. 0, or -1
// with *e filled. *st tells which file it is.
int fit_open(const char *path, struct elf_file *f, struct stat *st, struct err *e);
struct fit fit_libraries(const struct elf_file *file, const struct elf_facts *f,
                         struct fit *libhugetlbfs);

// --- /etc/ld.so.cache (host_fit_cache.c) ---

// A validated view of the cache's newer format, "glibc-ld.so.cache1.1" (glibc, dl-cache.h), also
// where it follows an older one in the same file.
struct ld_cache {
    struct bytes image; // from the newer header on
    uint32_t n;         // entries, all inside the image
    struct bytes file;  // as mapped by ld_cache_open
};
// This host's; without one there are no entries.
void ld_cache_open(struct ld_cache *c);
void ld_cache_close(struct ld_cache *c);
// False when it is none, is of the other byte order, or is cut short.
bool ld_cache_parse(struct bytes file, struct ld_cache *c);
// The path of the next entry for this name, from *at (0 at first), which is moved behind it; NULL
// when there is no more. Entries for other instruction sets and machines are among them.
const char *ld_cache_find(const struct ld_cache *c, const char *name, uint32_t *at);

#endif
