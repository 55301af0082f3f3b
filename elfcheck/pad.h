// Padding after the text: takes what the linker left empty behind it, up to the end of its 2 MiB
// slot, into the text segment. Page cache and tmpfs hold a file's text on 2 MiB pages only in
// slots that p_filesz covers whole, so that the tail of the text becomes huge as well.
//
// Padding is what no section and no segment covers, neither in the file nor in the address space;
// its bytes say nothing (bfd leaves zeros there, lld writes traps). One segment is padded: the one
// that holds .text, or the only executable one with sections when nothing is called .text.
#ifndef KILN_PAD_H
#define KILN_PAD_H

#include "common/err.h"

#include <elf.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// All headers of a 64-bit ELF file, in this machine's byte order.
struct pad_headers {
    Elf64_Ehdr ehdr;
    Elf64_Phdr *phdrs;
    size_t nphdrs;
    Elf64_Shdr *shdrs; // [0] is the null section
    size_t nshdrs;
    char *names; // the section names' string table, NUL-terminated, or NULL
    size_t names_size;
    uint64_t file_size;
};

enum pad_state {
    PAD_POSSIBLE,
    PAD_DONE,       // it is padded
    PAD_NEEDLESS,   // the text reaches the end of its slot without padding
    PAD_IMPOSSIBLE, // and it is not padded
    PAD_CANNOT_TELL // it may be padded or not
};

// Sizes in bytes; those of the text segment are 0 when it was not found.
struct pad_plan {
    enum pad_state state;
    int code;         // exit code of a refusal: EXIT_NO, or EXIT_CANNOT_ASK for a damaged file
    char reason[500]; // of PAD_IMPOSSIBLE and PAD_CANNOT_TELL, with what to change
    unsigned program_header; // of the text segment
    uint64_t filesz;         // its p_filesz as it stands
    uint64_t linked_filesz;  // as bfd, gold, lld and mold write it: the end of its last section
    uint64_t padded_filesz;  // to the end of the 2 MiB slot in which that section ends
    uint64_t linked_slots, padded_slots; // whole slots that the mapping covers with each
};

// What was asked and what came of it. Sizes in bytes.
struct pad_result {
    bool undo;            // unpad_file
    bool changed;         // the file was replaced
    enum pad_state state; // of the file as it is now
    unsigned program_header;
    uint64_t old_filesz, new_filesz;
    uint64_t padding; // in the file as it is now
    uint64_t slots;   // whole slots of huge bytes that the text covers now
    uint64_t huge;
};

// The pure core: is it padded, could it be, and if not, why. huge is a power of two.
void pad_examine(const struct pad_headers *h, uint64_t huge, struct pad_plan *p);
// The same for a file. 0, or -1 with *e filled when it is no ELF file or cannot be read.
int pad_plan_file(const char *path, uint64_t huge, struct pad_plan *p, struct err *e);

// Raises p_filesz and p_memsz of the text segment to the end of its slot. A file that is padded
// already, or whose text ends with its slot, is left alone: 0 with changed false. -1 with *e:
// EXIT_NO when this layout cannot be padded, EXIT_CANNOT_ASK when it is no ELF file, is missing,
// or cannot be replaced, EXIT_INTERRUPTED.
//
// The file is replaced by a changed copy: whole or not at all, and while it runs. A symbolic link
// is followed. Owner, mode, capabilities and other extended attributes are kept, the
// modification time is now; security.ima and security.evm are not kept, they sign what is no more.
int pad_file(const char *path, uint64_t huge, struct pad_result *r, struct err *e);
// Back to the end of the last section, byte for byte what the linker wrote. A file that is not
// padded is left alone: 0 with changed false.
int unpad_file(const char *path, uint64_t huge, struct pad_result *r, struct err *e);

// One line.
void pad_print(const char *path, const struct pad_result *r, FILE *out);
json_t *pad_json(const char *path, const struct pad_result *r);
// "padded", "its text ends with its slot", ... : the state in a few words.
const char *pad_state_text(enum pad_state s);

#endif
