// The state of a file's page cache before a start: the cache belongs to the inode, so a server
// whose text has a stated page size runs from a copy of its own.
#ifndef KILN_PAGECACHE_H
#define KILN_PAGECACHE_H

#include "common/err.h"
#include "elfcheck/elf_facts.h"

// Drops the file's pages. Pages that somebody has mapped stay.
int pagecache_drop(const char *path, struct err *e);
// Fills the text's 2 MiB slots with 2 MiB folios: *huge = bytes that came in as such, read from the
// smaps of the mapping that filled them. Only the file's owner or root needs to call it.
int pagecache_fill_huge(const char *path, const struct elf_facts *f, uint64_t *huge, struct err *e);
// Whether the page cache of this directory's file system takes 2 MiB folios now, found by trying
// with a file that is removed again: 0, or -1 with the reason alone in *e.
int pagecache_try_huge(const char *dir, struct err *e);
// Fills the text with 4 KiB folios.
int pagecache_fill_small(const char *path, const struct elf_facts *f, struct err *e);

#endif
