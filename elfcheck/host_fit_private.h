// The parts of host fit.
#ifndef KILN_HOST_FIT_PRIVATE_H
#define KILN_HOST_FIT_PRIVATE_H

#include "elfcheck/host_fit.h"
#include "elfcheck/ld_cache.h"

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

#endif
