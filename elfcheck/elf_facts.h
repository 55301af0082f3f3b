// What an ELF file says of how it is loaded: segments, type, libraries, and who linked it.
#ifndef KILN_ELF_FACTS_H
#define KILN_ELF_FACTS_H

#include "common/err.h"
#include "common/str.h"
#include "elfcheck/elf_file.h"

#include <stdbool.h>
#include <stdint.h>

enum { PF_LINUX_HUGETLB = 0x100000 }; // hugeedit's mark, in p_flags

// One PT_LOAD. All sizes and addresses in bytes, as in the program header.
struct segment {
    unsigned index; // of the program header
    uint32_t flags; // PF_R | PF_W | PF_X | PF_LINUX_HUGETLB
    uint64_t offset, vaddr, filesz, memsz, align;
    // Where its first section begins and its last one ends in memory; equal when it holds none.
    // What BOLT moved away (.bolt.org.*) is no section here. Without section headers: the segment.
    uint64_t sections_from, sections_to;
};

struct elf_facts {
    char *path;
    uint16_t type;    // ET_EXEC, ET_DYN, ET_REL, ...
    uint16_t machine; // EM_X86_64, EM_AARCH64, ...
    const char *machine_name;
    bool is_64, pie, is_static, stripped, has_debug_info;
    uint64_t entry;
    struct segment *loads;
    size_t nloads;
    uint64_t relro_vaddr, relro_memsz; // 0, 0 when there is none
    char *interp, *build_id;           // NULL when there is none; build_id in hex
    char *compiler, *linker;           // "GCC 12.2.0", "bfd", "LLD 14.0.6"...; NULL: cannot know
    char *compiler_evidence, *linker_evidence; // where the names come from; NULL with the name
    bool comment_gcc, comment_clang;           // whose marks .comment holds
    struct strv needed;                        // DT_NEEDED
    bool executable_start;                     // __executable_start is in the dynamic symbol table
    bool textrel;
    bool copy_relocs;  // variables of shared libraries are copied into its .bss (x86-64, AArch64)
    bool strings_last; // the dynamic string table lies behind the symbol table, as linkers put it
    bool bolt;         // BOLT rewrote it
    bool bolt_hugify;  // and its start-up code asks for huge pages
};

// 0, or -1 with *e filled: "PATH: not an ELF file" and the like have EXIT_CANNOT_ASK.
int elf_facts_read(const char *path, struct elf_facts *f, struct err *e);
// The same of a file that is open.
int elf_facts_of(const struct elf_file *file, struct elf_facts *f, struct err *e);
void elf_facts_free(struct elf_facts *f);

// "RE", "RW", "RE+H" when hugeedit marked it.
void segment_flags(const struct segment *s, char out[8]);
// A segment that counts as text: executable, and holding sections.
bool segment_is_text(const struct segment *s);
// Bytes of a segment from its first section to the end of its last; padding counts in none.
uint64_t segment_section_bytes(const struct segment *s);
// The text's size: the sum of section bytes of all text segments.
uint64_t elf_text_bytes(const struct elf_facts *f);
// libhugetlbfs is among the needed libraries: it acts without a preload.
bool elf_links_libhugetlbfs(const struct elf_facts *f);
const char *elf_type_name(const struct elf_facts *f); // "PIE", "shared library", ...
// The flags of the load segments in order, as "R RE R RW"; malloc'ed.
char *elf_layout_text(const struct elf_facts *f);

#endif
