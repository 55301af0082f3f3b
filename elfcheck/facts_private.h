// What the files that gather facts share: everything is looked up once, in one pass each.
#ifndef KILN_FACTS_PRIVATE_H
#define KILN_FACTS_PRIVATE_H

#include "elfcheck/facts.h"

// --- symbols ---

enum { SEEN_IMPORTED = 1, SEEN_DEFINED = 2 }; // undefined here; defined here

enum { NAME_SLOTS = 1024, MAX_PREFIXES = 16 };

// Names of interest, and which of them the symbol tables hold.
struct names {
    struct {
        const char *name;
        unsigned seen;
        uint64_t value;  // of the definition
    } slots[NAME_SLOTS]; // a hash table, under a third full
    struct {
        const char *prefix;
        char *first; // the first symbol that starts so, NULL when none does
    } prefixes[MAX_PREFIXES];
    size_t nprefixes;
    size_t symtab, dynsym; // symbols in each
    bool complete;         // all were looked at
    char *lto_symbol;      // one that only link-time optimisation writes
};

void names_want(struct names *n, const char *name);
void names_want_prefix(struct names *n, const char *prefix);
void names_read(struct names *n, const struct elf_file *file);
unsigned names_seen(const struct names *n, const char *name); // 0: not there
const char *names_prefix(const struct names *n, const char *prefix);
void names_free(struct names *n);

// --- read-only data ---

// Calls fn for each place in the read-only data where a text stands; at is inside data. Texts have
// at least 7 bytes; one pass for all of them.
typedef void text_fn(void *context, size_t text, struct bytes data, size_t at);
void texts_find(const struct elf_file *file, const char *const *texts, size_t n, text_fn *fn,
                void *context);
// The nth piece of read-only data: .rodata, or without section headers the segments that are not
// executable. None when there is no more.
struct bytes read_only_data(const struct elf_file *file, size_t nth);

// --- one reading ---

enum text_id {
    TEXT_MARIADB, // "-MariaDB"
    TEXT_GROUP,   // "mysqld-": a group of my.cnf
    TEXT_PERCONA,
    TEXT_POSTGRES,
    TEXT_PFS_VARIABLE,
    TEXT_JEMALLOC,
    TEXT_TCMALLOC,
    TEXT_MIMALLOC,
    TEXT_LIBNUMA,
    TEXT_LIBGCOV,
    TEXTS
};

struct reading {
    const struct elf_file *file;
    const struct elf_facts *elf;
    struct facts *out;
    struct dwarf_facts units; // condensed: no producer is NULL; or what .GCC.command.line holds
    const char *units_from;   // "DW_AT_producer", ".GCC.command.line"
    const char *units_word;   // "units", "command lines"
    struct names names;
    size_t texts[TEXTS];                        // how often each was found
    char *mariadb, *group, *percona, *postgres; // what stands around them
    bool rodata;                                // there was some to look at
};

void server_names(struct names *n);
void server_facts(struct reading *r);
void build_names(struct names *n);
void build_facts(struct reading *r);
void debug_facts(struct reading *r);
void hardening_names(struct names *n);
void hardening_facts(struct reading *r);
void property_facts(struct reading *r);

// A shared object or program that the dynamic linker works on: its imports are all to be seen.
bool is_dynamic(const struct reading *r);
bool is_loadable(const struct reading *r); // a program or a shared library, no object file
// The first needed library whose name starts so, or NULL.
const char *needed_library(const struct reading *r, const char *start);

// --- flags of the units ---

// The kinds of units by the flags that are asked for: clang's record is another one for each file.
void units_condense(const struct dwarf_facts *from, struct dwarf_facts *to);

// How many units answer yes and no; unknown: their flags are not recorded.
struct share {
    size_t yes, no, unknown;
    uint64_t text_yes, text;
    struct strv no_folders; // as unit_kind.folders
};
typedef int unit_fn(const struct reading *r, const char *producer); // 1 yes, 0 no, -1 not known
struct share units_share(const struct reading *r, unit_fn *fn);
// "yes", "no" or "partial; in 12 of 14 units (...); not in 2: zlib", by the flag that is named;
// with nothing said by the units it cannot be known.
void units_fact(struct reading *r, const char *name, unit_fn *fn, const char *flag);
// What would tell, when units do not.
void flags_unknown(struct reading *r, const char *name);

// Units by what they are called: for "-O3 in 1812 of 1932 units (97.1 % of the text); -O2 in ...".
struct tally {
    struct {
        char *label;
        size_t units;
        uint64_t text;
        struct strv folders;
    } * v;
    size_t n, units;
    uint64_t text;
};
void tally_add(struct tally *t, const char *label, const struct unit_kind *k);
char *tally_text(struct tally *t, const char *word); // malloc'ed; sorts it
void tally_free(struct tally *t);
// The folders of several kinds, added up: "zlib (13), libmariadb (9)" of at most 5; malloc'ed.
char *folders_text(const struct strv *folders);

#endif
