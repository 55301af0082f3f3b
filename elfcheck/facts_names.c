// One pass over the symbol tables, and one over the read-only data.
#include "elfcheck/facts_private.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SYMBOLS = 1 << 20, // of one table; a MySQL server has some 150 000
    MAX_RODATA = 64 << 20, // bytes of one piece; a MySQL server has some 20 MB
    MAX_PIECES = 4,        // segments that are looked through
    MAX_HITS = 1 << 16,    // of all texts
    STEP = 4,              // bytes between two looks at the data
    KEY = 4,               // bytes looked at
    KEY_SLOTS = 1024,      // for 4 keys of each text
    MIN_TEXT = STEP + KEY - 1,
};

// --- symbols ---

// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/
static unsigned name_hash(const char *s)
{
    uint32_t h = 2166136261U;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619U;
    return h % NAME_SLOTS;
}

// The slot of the name, or the free one where it belongs.
static unsigned name_slot(const struct names *n, const char *name)
{
    unsigned i = name_hash(name);
    while (n->slots[i].name && strcmp(n->slots[i].name, name))
        i = (i + 1) % NAME_SLOTS;
    return i;
}

void names_want(struct names *n, const char *name)
{
    n->slots[name_slot(n, name)].name = name;
}

void names_want_prefix(struct names *n, const char *prefix)
{
    if (n->nprefixes < MAX_PREFIXES)
        n->prefixes[n->nprefixes++].prefix = prefix;
}

unsigned names_seen(const struct names *n, const char *name)
{
    return n->slots[name_slot(n, name)].seen;
}

const char *names_prefix(const struct names *n, const char *prefix)
{
    for (size_t i = 0; i < n->nprefixes; i++)
        if (!strcmp(n->prefixes[i].prefix, prefix))
            return n->prefixes[i].first;
    return NULL;
}

static void see_prefix(struct names *n, const char *name)
{
    for (size_t i = 0; i < n->nprefixes; i++)
        if (!n->prefixes[i].first && starts_with(name, n->prefixes[i].prefix))
            n->prefixes[i].first = xstrdup(name);
}

static void see_name(struct names *n, const char *name, const GElf_Sym *sym)
{
    unsigned i = name_slot(n, name);
    if (!n->slots[i].name)
        return;
    if (sym->st_shndx == SHN_UNDEF) {
        n->slots[i].seen |= SEEN_IMPORTED;
    } else {
        n->slots[i].seen |= SEEN_DEFINED;
        n->slots[i].value = sym->st_value;
    }
}

// gcc renames statics that link-time optimisation shares ("x.lto_priv.0") and calls its units
// <artificial>; clang's full LTO calls its unit ld-temp.o, its ThinLTO adds ".llvm." and a hash.
static bool is_lto_symbol(const char *name, const GElf_Sym *sym)
{
    if (GELF_ST_TYPE(sym->st_info) == STT_FILE)
        return !strcmp(name, "<artificial>") || !strcmp(name, "ld-temp.o");
    const char *dot = strchr(name, '.');
    if (!dot)
        return false;
    const char *llvm = strstr(dot, ".llvm.");
    return strstr(dot, ".lto_priv.") || (llvm && strspn(llvm + 6, "0123456789") >= 10);
}

static size_t read_table(struct names *n, const struct elf_file *file, size_t section)
{
    size_t count = elf_symbols(file, section);
    for (size_t i = 1; i < count && i <= MAX_SYMBOLS; i++) {
        GElf_Sym sym;
        const char *name = elf_symbol(file, section, i, &sym);
        if (!n->lto_symbol && is_lto_symbol(name, &sym))
            n->lto_symbol = xstrdup(name);
        if (name[0] == '_' && name[1] == 'Z') // mangled C++: none is wanted
            continue;
        if (name[0] == '_' && name[1] == '_')
            see_prefix(n, name);
        see_name(n, name, &sym);
    }
    n->complete &= count <= MAX_SYMBOLS;
    return count > 1 ? count - 1 : 0;
}

void names_read(struct names *n, const struct elf_file *file)
{
    n->complete = true;
    for (size_t i = 1; i < file->nshdrs; i++) {
        if (file->shdrs[i].sh_type == SHT_SYMTAB && !n->symtab)
            n->symtab = read_table(n, file, i);
        else if (file->shdrs[i].sh_type == SHT_DYNSYM && !n->dynsym)
            n->dynsym = read_table(n, file, i);
    }
}

void names_free(struct names *n)
{
    for (size_t i = 0; i < n->nprefixes; i++)
        free(n->prefixes[i].first);
    free(n->lto_symbol);
}

// --- read-only data ---

struct bytes read_only_data(const struct elf_file *file, size_t nth)
{
    struct bytes b = {0};
    if (file->nshdrs > 1 && nth == 0)
        b = elf_section_bytes(file, elf_section(file, ".rodata"));
    for (size_t i = 0; file->nshdrs <= 1 && nth < MAX_PIECES && i < file->nphdrs; i++) {
        const GElf_Phdr *p = &file->phdrs[i];
        if (p->p_type == PT_LOAD && !(p->p_flags & PF_X) && nth-- == 0) {
            b = elf_bytes(file, p->p_offset, p->p_filesz);
            break;
        }
    }
    b.n = b.n < MAX_RODATA ? b.n : MAX_RODATA;
    return b;
}

// A text is found by its first STEP keys: looking at every STEPth byte, one of them is met.
struct keys {
    struct {
        uint32_t key;
        uint16_t text, at; // of the key in the text; text counts from 1, 0: a free slot
    } slots[KEY_SLOTS];
};

static unsigned key_slot(uint32_t key)
{
    return (key * 2654435761U) >> 22;
}

static uint32_t key_at(const void *p)
{
    uint32_t key;
    memcpy(&key, p, sizeof key);
    return key;
}

static void add_key(struct keys *k, const char *text, size_t number, size_t at)
{
    uint32_t key = key_at(text + at);
    unsigned i = key_slot(key);
    while (k->slots[i].text)
        i = (i + 1) % KEY_SLOTS;
    k->slots[i].key = key;
    k->slots[i].text = (uint16_t)(number + 1);
    k->slots[i].at = (uint16_t)at;
}

static void look(const struct keys *k, const char *const *texts, struct bytes b, size_t at,
                 size_t *hits, text_fn *fn, void *context)
{
    uint32_t key = key_at(b.p + at);
    for (unsigned i = key_slot(key); k->slots[i].text; i = (i + 1) % KEY_SLOTS) {
        if (k->slots[i].key != key || k->slots[i].at > at)
            continue;
        const char *text = texts[k->slots[i].text - 1];
        size_t start = at - k->slots[i].at, n = strlen(text);
        if (n <= b.n - start && !memcmp(b.p + start, text, n) && (*hits)++ < MAX_HITS)
            fn(context, (size_t)k->slots[i].text - 1, b, start);
    }
}

void texts_find(const struct elf_file *file, const char *const *texts, size_t n, text_fn *fn,
                void *context)
{
    struct keys k = {0};
    for (size_t i = 0; i < n; i++)
        for (size_t at = 0; at < STEP && strlen(texts[i]) >= MIN_TEXT; at++)
            add_key(&k, texts[i], i, at);
    size_t hits = 0;
    struct bytes b;
    for (size_t nth = 0; (b = read_only_data(file, nth)).p; nth++) {
        for (size_t at = 0; at + KEY <= b.n; at += STEP)
            look(&k, texts, b, at, &hits, fn, context);
    }
}
