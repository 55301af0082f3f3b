// An ELF file of any machine, mapped, with every offset in its headers proven to lie inside. What
// libelf could not bear is refused here, before it is asked.
#ifndef KILN_ELF_FILE_H
#define KILN_ELF_FILE_H

#include "common/err.h"

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A piece of the mapped file; p is NULL and n 0 when there is none. It lives as long as the file.
struct bytes {
    const unsigned char *p;
    size_t n;
};

struct elf_file {
    char *path;
    struct bytes image; // the whole file
    bool borrowed;      // the image is the caller's
    Elf *elf;           // for gelf_* calls; its headers were looked through before
    GElf_Ehdr header;
    GElf_Phdr *phdrs;
    size_t nphdrs;
    GElf_Shdr *shdrs;   // [0] is the null section
    const char **names; // of the sections, "" when there is none
    size_t nshdrs;
    GElf_Dyn *dynamic; // the entries of PT_DYNAMIC before DT_NULL
    size_t ndynamic;
};

// 0, or -1 with *e filled (EXIT_CANNOT_ASK): "PATH: not an ELF file", "PATH: damaged or cut short:
// section header 7 lies outside the file". A pipe or a device is not waited for.
int elf_file_open(const char *path, struct elf_file *f, struct err *e);
// The same for an image in memory, which must outlive *f; path is for messages.
int elf_file_open_image(const char *path, const void *image, size_t size, struct elf_file *f,
                        struct err *e);
void elf_file_close(struct elf_file *f);

// n bytes from the offset on; none when they do not all lie in the file.
struct bytes elf_bytes(const struct elf_file *f, uint64_t offset, uint64_t n);
// The index of the section with this name, 0 when there is none.
size_t elf_section(const struct elf_file *f, const char *name);
// A section's bytes as they are in the file (compressed ones too); none for SHT_NOBITS, for index 0
// and for what lies outside the file.
struct bytes elf_section_bytes(const struct elf_file *f, size_t index);
// The string at an offset of the file: NUL-terminated within it and under 64 KiB, or NULL.
const char *elf_string(const struct elf_file *f, uint64_t offset);
// The entries of a symbol table section (SHT_SYMTAB, SHT_DYNSYM), 0 for another section.
size_t elf_symbols(const struct elf_file *f, size_t section);
// One symbol and its name ("" when there is none or it lies outside).
const char *elf_symbol(const struct elf_file *f, size_t section, size_t i, GElf_Sym *sym);
// The file offset of a loaded address, or UINT64_MAX.
uint64_t elf_offset_of(const struct elf_file *f, uint64_t vaddr);
// The value of a DT_ entry (the first), false when there is none.
bool elf_dynamic(const struct elf_file *f, int64_t tag, uint64_t *value);
// The same of the n-th entry with this tag, counted from 0.
bool elf_dynamic_nth(const struct elf_file *f, int64_t tag, size_t n, uint64_t *value);
// Calls fn for every note of a PT_NOTE segment or SHT_NOTE section; a note in both is seen twice.
typedef void note_fn(void *context, const char *owner, uint32_t type, struct bytes desc);
void elf_notes(const struct elf_file *f, note_fn *fn, void *context);

#endif
