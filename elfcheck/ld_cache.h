// The dynamic loader's cache, /etc/ld.so.cache: which file it takes for a library's name.
#ifndef KILN_LD_CACHE_H
#define KILN_LD_CACHE_H

#include "elfcheck/elf_file.h"

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
// The path of the first entry for this name; malloc'ed, or NULL.
char *ld_cache_path(const char *soname);

#endif
