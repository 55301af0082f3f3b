// Which server it is, and what was built into it.
#include "elfcheck/facts_private.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_TEXT = 64 << 20,       // bytes of code that are looked through for calls
    TEXT_PER_ASSERT = 16 << 10 // bytes; without -DNDEBUG a server has an assert() in each 1-2 KiB
};

static const struct allocator {
    const char *name, *library, *symbol;
    enum text_id text;
} allocators[] = {
    {"jemalloc", "libjemalloc", "mallctl", TEXT_JEMALLOC},
    {"tcmalloc", "libtcmalloc", "tc_malloc", TEXT_TCMALLOC},
    {"mimalloc", "libmimalloc", "mi_malloc", TEXT_MIMALLOC},
};
enum { ALLOCATORS = sizeof allocators / sizeof *allocators };

void server_names(struct names *n)
{
    for (size_t i = 0; i < ALLOCATORS; i++)
        names_want(n, allocators[i].symbol);
    static const char *const more[] = {"malloc", "__assert_fail", "__assert", "numa_available"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        names_want(n, more[i]);
}

// --- flavour and version ---

// Another string that names the series is no version: the whole string is "8.0.45", or has a
// suffix as in "8.0.45-36".
static bool is_full_version(const char *s, size_t n, const char *series)
{
    size_t len = strlen(series);
    if (n <= len + 1 || n > 63 || strncmp(s, series, len) || s[len] != '.')
        return false;
    size_t patch = strspn(s + len + 1, "0123456789");
    size_t rest = strspn(s + len + 1 + patch, "0123456789abcdefghijklmnopqrstuvwxyz.+~-");
    char after = s[len + 1 + patch];
    return patch && patch <= 3 && len + 1 + patch + rest == n && (!after || after == '-');
}

static void add_version(struct strv *found, const unsigned char *p, const unsigned char *end,
                        const char *series)
{
    const char *s = (const char *)p;
    size_t room = (size_t)(end - p), n = strnlen(s, room < 64 ? room : 64);
    if (n < room && is_full_version(s, n, series) && !strv_has(found, s))
        strv_add(found, s);
}

// Whole strings that are a version of the series, each once: MySQL has no other anchor for it.
static void mysql_versions(const struct reading *r, const char *series, struct strv *found)
{
    struct bytes b;
    size_t len = strlen(series) + 1; // with the NUL before it
    char *needle = xcalloc(1, len + 1);
    memcpy(needle + 1, series, len);
    for (size_t nth = 0; (b = read_only_data(r->file, nth)).p; nth++) {
        const unsigned char *p = b.p, *end = b.p + b.n;
        add_version(found, p, end, series);
        for (; found->n < 8 && (p = memmem(p, (size_t)(end - p), needle, len)); p++)
            add_version(found, p + 1, end, series);
    }
    free(needle);
}

static void mysql_version(struct reading *r)
{
    struct strv found = {0};
    const char *series = r->group + strlen("mysqld-");
    mysql_versions(r, series, &found);
    char *all = strv_join(&found, ", ");
    if (found.n == 1)
        fact_known(r->out, "server-version", found.v[0],
                   "the only version of series %s among its strings", series);
    else if (found.n)
        fact_unknown(r->out, "server-version", "its strings hold %s; --version would tell", all);
    else
        fact_unknown(r->out, "server-version", "series %s; --version would tell", series);
    free(all);
    strv_free(&found);
}

static void mysql_family(struct reading *r)
{
    if (r->mariadb) {
        fact_known(r->out, "flavour", "MariaDB", "strings \"%s\" and \"%s\"", r->mariadb, r->group);
        fact_known(r->out, "server-version", r->mariadb, "a string in .rodata");
        return;
    }
    if (r->percona)
        fact_known(r->out, "flavour", "Percona Server", "string \"%s\"", r->percona);
    else
        fact_known(r->out, "flavour", "MySQL",
                   "string \"%s\", and none of MariaDB's or Percona Server's", r->group);
    mysql_version(r);
}

static void flavour_facts(struct reading *r)
{
    if (r->group) {
        mysql_family(r);
    } else if (r->postgres) {
        const char *version = r->postgres + strlen("postgres (PostgreSQL) ");
        char *word = xstrndup(version, strcspn(version, " \n"));
        fact_known(r->out, "flavour", "PostgreSQL", "string \"%.*s\"",
                   (int)strcspn(r->postgres, "\n"), r->postgres);
        fact_known(r->out, "server-version", word, "a string in .rodata");
        free(word);
    } else {
        static const char none[] =
            "no string of a server that kiln knows (MariaDB, MySQL, Percona Server, PostgreSQL); "
            "--version would tell";
        fact_unknown(r->out, "flavour", none);
        fact_unknown(r->out, "server-version", none);
    }
}

// A server of the MySQL family that has the engine has the engine's variables, each by its name.
static void performance_schema_fact(struct reading *r)
{
    static const char name[] = "performance-schema";
    static const char variable[] = "performance_schema_max_thread_instances";
    if (r->texts[TEXT_PFS_VARIABLE])
        fact_known(r->out, name, "yes", "variable %s", variable);
    else if (r->group)
        fact_known(r->out, name, "no", "its strings lack the variable %s", variable);
    else if (r->postgres)
        fact_known(r->out, name, "no", "PostgreSQL has none");
    else
        fact_unknown(r->out, name, "not a server that kiln knows");
}

// --- assertions ---

// The address that calls of the function go to, when its slot in the GOT is this one: the entry of
// a PLT section that jumps through it (ff 25 and a distance). 0: there is none.
static uint64_t plt_entry(const struct elf_file *f, uint64_t slot)
{
    static const char *const sections[] = {".plt.sec", ".plt", ".plt.got"};
    for (size_t i = 0; i < 3; i++) {
        size_t index = elf_section(f, sections[i]);
        struct bytes b = elf_section_bytes(f, index);
        uint64_t at = index ? f->shdrs[index].sh_addr : 0;
        for (size_t j = 0; j + 6 <= b.n && j < MAX_TEXT; j++) {
            int32_t distance;
            memcpy(&distance, b.p + j + 2, sizeof distance);
            if (b.p[j] == 0xff && b.p[j + 1] == 0x25 && at + j + 6 + (uint64_t)distance == slot)
                return at + (j & ~(i == 2 ? 7UL : 15UL));
        }
    }
    return 0;
}

// The GOT slot that is filled with this import; 0: not found. x86-64's relocations are Elf64_Rela.
static uint64_t got_slot(const struct elf_file *f, const char *import)
{
    size_t looks = 0;
    for (size_t i = 1; i < f->nshdrs; i++) {
        struct bytes b = elf_section_bytes(f, i);
        if (f->shdrs[i].sh_type != SHT_RELA || !(f->shdrs[i].sh_flags & SHF_ALLOC))
            continue;
        for (size_t at = 0; at + sizeof(Elf64_Rela) <= b.n && looks < MAX_TEXT / 64; looks++) {
            Elf64_Rela rela;
            GElf_Sym sym;
            memcpy(&rela, b.p + at, sizeof rela);
            at += sizeof rela;
            unsigned type = ELF64_R_TYPE(rela.r_info);
            if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) &&
                !strcmp(elf_symbol(f, f->shdrs[i].sh_link, ELF64_R_SYM(rela.r_info), &sym), import))
                return rela.r_offset;
        }
    }
    return 0;
}

// Calls in one segment: e8 to the PLT's entry, or ff 15 through the slot (-fno-plt).
static size_t calls_in(struct bytes b, uint64_t vaddr, uint64_t entry, uint64_t slot)
{
    size_t calls = 0;
    for (size_t i = 1; i + 5 <= b.n; i++) {
        if (b.p[i] != 0xe8 && b.p[i] != 0x15)
            continue;
        int32_t distance;
        memcpy(&distance, b.p + i + 1, sizeof distance);
        uint64_t to = vaddr + i + 5 + (uint64_t)distance;
        calls += b.p[i] == 0xe8 ? entry && to == entry : b.p[i - 1] == 0xff && to == slot;
    }
    return calls;
}

// How many places call an import; -1 when that cannot be counted.
static long calls_of(const struct reading *r, const char *import)
{
    if (r->elf->machine != EM_X86_64 || !r->elf->is_64)
        return -1;
    uint64_t slot = got_slot(r->file, import), entry = slot ? plt_entry(r->file, slot) : 0;
    size_t calls = 0, left = MAX_TEXT;
    for (size_t i = 0; slot && i < r->elf->nloads; i++) {
        const struct segment *l = &r->elf->loads[i];
        if (!(l->flags & PF_X) || l->filesz > left)
            continue;
        left -= l->filesz;
        calls += calls_in(elf_bytes(r->file, l->offset, l->filesz), l->vaddr, entry, slot);
    }
    return calls ? (long)calls : -1;
}

static void assertions_fact(struct reading *r)
{
    static const char name[] = "assertions";
    unsigned seen = names_seen(&r->names, "__assert_fail") | names_seen(&r->names, "__assert");
    if (!is_dynamic(r) || (seen & SEEN_DEFINED)) {
        fact_unknown(r->out, name,
                     "assert() is not imported from a shared library; the build's flags (NDEBUG) "
                     "would tell");
        return;
    }
    if (!seen) {
        fact_known(r->out, name, "off", "__assert_fail is not imported");
        return;
    }
    long calls = calls_of(r, "__assert_fail");
    uint64_t text = elf_text_bytes(r->elf);
    if (calls < 0) {
        fact_unknown(r->out, name,
                     "__assert_fail is imported, for which one library without -DNDEBUG is enough; "
                     "the build's flags would tell");
        return;
    }
    bool on = (uint64_t)calls >= text / TEXT_PER_ASSERT;
    fact_known(r->out, name, on ? "on" : "some", "%ld %s __assert_fail in %.1f MB of text", calls,
               calls == 1 ? "place calls" : "places call", (double)text / 1e6);
}

// --- libraries inside and outside ---

static void allocator_fact(struct reading *r)
{
    static const char name[] = "allocator";
    for (size_t i = 0; i < ALLOCATORS; i++) {
        const char *library = needed_library(r, allocators[i].library);
        if (library) {
            fact_known(r->out, name, allocators[i].name, "needs %s", library);
            return;
        }
    }
    unsigned seen = names_seen(&r->names, "malloc");
    for (size_t i = 0; i < ALLOCATORS; i++) {
        const struct allocator *a = &allocators[i];
        bool symbol = names_seen(&r->names, a->symbol) & SEEN_DEFINED;
        if (symbol || (seen & SEEN_DEFINED && r->texts[a->text])) {
            fact_known(r->out, name, a->name, "linked in: %s",
                       symbol ? a->symbol : "its strings are in .rodata");
            return;
        }
    }
    if (seen == SEEN_IMPORTED && is_dynamic(r))
        fact_known(r->out, name, "libc", "imports malloc and needs no other allocator's library");
    else if (is_dynamic(r) && !seen)
        fact_known(r->out, name, "libc", "calls no malloc of its own, and needs no allocator");
    else
        fact_unknown(r->out, name, "malloc is defined inside; a symbol table would tell whose");
}

static void libnuma_fact(struct reading *r)
{
    const char *library = needed_library(r, "libnuma.so");
    if (library)
        fact_known(r->out, "libnuma", "yes", "needs %s", library);
    else if (names_seen(&r->names, "numa_available") & SEEN_DEFINED || r->texts[TEXT_LIBNUMA])
        fact_known(r->out, "libnuma", "yes", "linked in");
    else if (is_loadable(r) && r->rodata && r->file->nshdrs > 1)
        fact_known(r->out, "libnuma", "no", "neither needed nor among its strings");
    else
        fact_unknown(r->out, "libnuma", "nothing says so; ldd on the linked program would tell");
}

static void tls_fact(struct reading *r)
{
    uint64_t flags = 0;
    bool fixed = elf_dynamic(r->file, DT_FLAGS, &flags) && (flags & DF_STATIC_TLS);
    const GElf_Phdr *tls = NULL;
    for (size_t i = 0; i < r->file->nphdrs && !tls; i++)
        tls = r->file->phdrs[i].p_type == PT_TLS ? &r->file->phdrs[i] : NULL;
    char *value =
        tls ? xasprintf("%llu bytes%s", (unsigned long long)tls->p_memsz, fixed ? "; static" : "")
            : xstrdup(fixed ? "none; static" : "none");
    if (is_loadable(r))
        fact_known(r->out, "tls", value, "%s%s", tls ? "PT_TLS" : "no PT_TLS",
                   fixed ? ", DF_STATIC_TLS" : "");
    else
        fact_unknown(r->out, "tls", "not linked yet");
    free(value);
}

void server_facts(struct reading *r)
{
    flavour_facts(r);
    performance_schema_fact(r);
    assertions_fact(r);
    allocator_fact(r);
    libnuma_fact(r);
    tls_fact(r);
}
