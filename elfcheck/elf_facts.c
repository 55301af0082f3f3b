#include "elfcheck/elf_facts.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COMMENT = 64 << 10 }; // compilers and linkers write a few lines

// What is seen on the way to the facts.
struct reading {
    const struct elf_file *file;
    struct elf_facts *f;
    bool has_comment;
    char *gold; // text of gold's note
};

static const struct {
    uint16_t machine;
    const char *name;
} machines[] = {
    {EM_X86_64, "x86-64"}, {EM_386, "i386"},      {EM_AARCH64, "AArch64"}, {EM_ARM, "ARM"},
    {EM_PPC64, "PPC64"},   {EM_S390, "S/390"},    {EM_RISCV, "RISC-V"},    {EM_MIPS, "MIPS"},
    {EM_PPC, "PPC"},       {EM_SPARCV9, "SPARC"}, {EM_IA_64, "IA-64"},     {258, "LoongArch"},
};

static const char *machine_name(uint16_t machine)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].machine == machine)
            return machines[i].name;
    return "another machine";
}

// --- segments ---

static void add_load(struct elf_facts *f, unsigned index, const GElf_Phdr *p)
{
    f->loads = xrealloc(f->loads, (f->nloads + 1) * sizeof *f->loads);
    f->loads[f->nloads++] = (struct segment){.index = index,
                                             .flags = p->p_flags,
                                             .offset = p->p_offset,
                                             .vaddr = p->p_vaddr,
                                             .filesz = p->p_filesz,
                                             .memsz = p->p_memsz,
                                             .align = p->p_align};
}

// Everything later counts on it: vaddr + memsz does not wrap, also after rounding up to 16 GiB.
static bool sane_load(const struct elf_file *file, const GElf_Phdr *p)
{
    uint64_t top = UINT64_MAX - (1ULL << 34);
    bool inside = !p->p_filesz || elf_bytes(file, p->p_offset, p->p_filesz).n;
    return inside && p->p_filesz <= p->p_memsz && p->p_vaddr < top && p->p_memsz < top - p->p_vaddr;
}

static int read_segments(struct reading *r, struct err *e)
{
    struct elf_facts *f = r->f;
    for (size_t i = 0; i < r->file->nphdrs; i++) {
        const GElf_Phdr *p = &r->file->phdrs[i];
        if (p->p_type == PT_LOAD) {
            if (!sane_load(r->file, p))
                return err_set(e, EXIT_CANNOT_ASK,
                               "%s: damaged or cut short: the segment of program header %zu lies "
                               "outside the file",
                               f->path, i);
            add_load(f, (unsigned)i, p);
        } else if (p->p_type == PT_GNU_RELRO) {
            f->relro_vaddr = p->p_vaddr;
            f->relro_memsz = p->p_memsz;
        } else if (p->p_type == PT_INTERP && !f->interp) {
            const char *s = elf_string(r->file, p->p_offset);
            f->interp = s ? printable(s, strlen(s)) : NULL;
        }
    }
    return 0;
}

static void widen(struct segment *l, uint64_t from, uint64_t to)
{
    if (l->sections_from == l->sections_to)
        l->sections_from = from;
    l->sections_from = from < l->sections_from ? from : l->sections_from;
    l->sections_to = to > l->sections_to ? to : l->sections_to;
}

static void place_section(struct elf_facts *f, const GElf_Shdr *h)
{
    if (!(h->sh_flags & SHF_ALLOC) || h->sh_type == SHT_NOBITS || !h->sh_size)
        return;
    for (size_t i = 0; i < f->nloads; i++) {
        struct segment *l = &f->loads[i];
        uint64_t at = h->sh_addr - l->vaddr;
        if (h->sh_addr >= l->vaddr && at < l->filesz) {
            uint64_t room = l->filesz - at;
            widen(l, h->sh_addr, h->sh_addr + (h->sh_size < room ? h->sh_size : room));
        }
    }
}

static void read_sections(struct reading *r)
{
    struct elf_facts *f = r->f;
    for (size_t i = 1; i < r->file->nshdrs; i++) {
        const GElf_Shdr *h = &r->file->shdrs[i];
        const char *name = r->file->names[i];
        if (starts_with(name, ".bolt.org"))
            f->bolt = true;
        else
            place_section(f, h);
        f->stripped &= h->sh_type != SHT_SYMTAB;
        f->has_debug_info |= h->sh_type != SHT_NOBITS &&
                             (!strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info"));
        f->bolt |= !strcmp(name, ".note.bolt_info");
    }
    // Without section headers the segments themselves are all there is to see.
    for (size_t i = 0; r->file->nshdrs < 2 && i < f->nloads; i++) {
        f->loads[i].sections_from = f->loads[i].vaddr;
        f->loads[i].sections_to = f->loads[i].vaddr + f->loads[i].filesz;
    }
}

// --- what the loader does ---

static bool is_copy(uint16_t machine, uint64_t type)
{
    return (machine == EM_X86_64 && type == R_X86_64_COPY) ||
           (machine == EM_AARCH64 && type == R_AARCH64_COPY);
}

// Relative relocations come first, DT_RELACOUNT of them, and there are hundreds of thousands.
static void read_relocations(struct reading *r)
{
    uint64_t address = 0, size = 0, skip = 0;
    size_t entry = gelf_fsize(r->file->elf, ELF_T_RELA, 1, EV_CURRENT);
    if (!elf_dynamic(r->file, DT_RELA, &address) || !elf_dynamic(r->file, DT_RELASZ, &size))
        return;
    elf_dynamic(r->file, DT_RELACOUNT, &skip);
    struct bytes b = elf_bytes(r->file, elf_offset_of(r->file, address), size);
    if (!b.n || skip > b.n / entry || (b.n -= skip * entry) < entry)
        return;
    uint64_t from = elf_offset_of(r->file, address) + skip * entry;
    Elf_Data *d = elf_getdata_rawchunk(r->file->elf, (int64_t)from, b.n, ELF_T_RELA);
    GElf_Rela rela;
    for (int i = 0; d && !r->f->copy_relocs && gelf_getrela(d, i, &rela); i++)
        r->f->copy_relocs = is_copy(r->f->machine, GELF_R_TYPE(rela.r_info));
}

static void read_needed(struct reading *r)
{
    uint64_t address = 0, flags = 0, name = 0;
    struct elf_facts *f = r->f;
    uint64_t strings =
        elf_dynamic(r->file, DT_STRTAB, &address) ? elf_offset_of(r->file, address) : UINT64_MAX;
    for (size_t i = 0; elf_dynamic_nth(r->file, DT_NEEDED, i, &name); i++) {
        bool inside = strings < r->file->image.n && name < r->file->image.n;
        const char *s = inside ? elf_string(r->file, strings + name) : NULL;
        if (!s || !*s)
            continue;
        char *name_text = printable(s, strlen(s));
        strv_add(&f->needed, name_text);
        free(name_text);
    }
    uint64_t symbols = 0;
    f->strings_last = elf_dynamic(r->file, DT_SYMTAB, &symbols) && symbols < address;
    f->textrel = elf_dynamic(r->file, DT_TEXTREL, &flags);
    f->textrel |= elf_dynamic(r->file, DT_FLAGS, &flags) && (flags & DF_TEXTREL);
}

static void find_symbol(struct reading *r, size_t section)
{
    size_t n = elf_symbols(r->file, section);
    GElf_Sym sym;
    for (size_t i = 0; i < n && !r->f->executable_start; i++)
        r->f->executable_start =
            !strcmp(elf_symbol(r->file, section, i, &sym), "__executable_start");
}

// Only where it matters: the table of a server has tens of thousands of symbols.
static void read_executable_start(struct reading *r)
{
    for (size_t i = 1; elf_links_libhugetlbfs(r->f) && i < r->file->nshdrs; i++)
        if (r->file->shdrs[i].sh_type == SHT_DYNSYM)
            find_symbol(r, i);
}

// Its code is in a section of its own when BOLT's -hugify was given.
static void read_bolt(struct reading *r)
{
    size_t n, table = elf_section(r->file, ".symtab");
    GElf_Sym sym;
    if (!r->f->bolt || !(n = elf_symbols(r->file, table)))
        return;
    for (size_t i = 0; i < n && !r->f->bolt_hugify; i++)
        r->f->bolt_hugify = starts_with(elf_symbol(r->file, table, i, &sym), "__bolt_hugify");
}

// --- who made it ---

// "GCC: (Debian 12.2.0-14) 12.2.0" -> "GCC 12.2.0"; "Debian clang version 14.0.6" ->
// "clang 14.0.6".
static char *compiler_of(const char *line)
{
    const char *clang = strstr(line, "clang version ");
    if (clang)
        return xasprintf("clang %.*s", (int)strcspn(clang + 14, " -("), clang + 14);
    if (!starts_with(line, "GCC: "))
        return NULL;
    const char *close = strrchr(line, ')');
    const char *version = close ? close + 1 : line + 5;
    version += strspn(version, " ");
    return xasprintf("GCC %.*s", (int)strcspn(version, " "), version);
}

// "Linker: Debian LLD 14.0.6" -> "LLD 14.0.6"; "mold 1.10.1 (compatible with GNU ld)" ->
// "mold 1.10.1".
static char *linker_of(const char *line)
{
    const char *name = starts_with(line, "Linker: ") ? strstr(line, "LLD ") : NULL;
    if (!name && starts_with(line, "mold "))
        name = line;
    if (!name)
        return NULL;
    size_t word = strcspn(name, " ") + 1;
    return xstrndup(name, word + strcspn(name + word, " ("));
}

// The start files of libc carry GCC's mark in every program, so clang's outweighs it.
static void take_compiler(struct elf_facts *f, char *name)
{
    if (!name)
        return;
    f->comment_gcc |= starts_with(name, "GCC");
    f->comment_clang |= starts_with(name, "clang");
    if (f->compiler && starts_with(f->compiler, "clang")) {
        free(name);
        return;
    }
    free(f->compiler);
    f->compiler = name;
}

static void read_comment_line(struct reading *r, const char *line)
{
    take_compiler(r->f, compiler_of(line));
    char *linker = r->f->linker ? NULL : linker_of(line);
    if (linker) {
        r->f->linker = linker;
        r->f->linker_evidence = xasprintf(".comment says \"%s\"", line);
    }
}

static void read_comment(struct reading *r)
{
    struct bytes b = elf_section_bytes(r->file, elf_section(r->file, ".comment"));
    size_t n;
    for (size_t at = 0; at < b.n && at < MAX_COMMENT; at += n + 1) {
        n = strnlen((const char *)b.p + at, b.n - at);
        char *line = printable((const char *)b.p + at, n);
        r->has_comment |= *line != 0;
        read_comment_line(r, line);
        free(line);
    }
}

static void read_note(void *context, const char *owner, uint32_t type, struct bytes desc)
{
    struct reading *r = context;
    if (strcmp(owner, "GNU"))
        return;
    if (type == NT_GNU_BUILD_ID && !r->f->build_id && desc.n && desc.n <= 64) {
        struct str hex = {0};
        for (size_t i = 0; i < desc.n; i++)
            str_addf(&hex, "%02x", desc.p[i]);
        r->f->build_id = hex.s;
    }
    if (type == NT_GNU_GOLD_VERSION && !r->gold)
        r->gold = printable((const char *)desc.p, desc.n < MAX_COMMENT ? desc.n : MAX_COMMENT);
}

// "R RE R RW": what readelf prints in the Flg column.
char *elf_layout_text(const struct elf_facts *f)
{
    struct str b = {0};
    for (size_t i = 0; i < f->nloads; i++)
        str_addf(&b, "%s%s%s%s", i ? " " : "", f->loads[i].flags & PF_R ? "R" : "",
                 f->loads[i].flags & PF_W ? "W" : "", f->loads[i].flags & PF_X ? "E" : "");
    return b.s ? b.s : xstrdup("");
}

// bfd leaves no mark. lld and mold write into .comment, gold writes a note; so with a .comment and
// a layout that bfd makes, nobody else is left. R RE R RW is made by bfd alone.
static void deduce_linker(struct reading *r)
{
    struct elf_facts *f = r->f;
    if (!f->linker && r->gold) {
        f->linker = xstrdup(r->gold);
        f->linker_evidence = xstrdup("its note .note.gnu.gold-version");
    }
    if (f->linker || f->type == ET_REL)
        return;
    char *layout = elf_layout_text(f);
    bool four = !strcmp(layout, "R RE R RW"), two = !strcmp(layout, "RE RW");
    if (r->has_comment && (four || two)) {
        f->linker = xstrdup("bfd");
        f->linker_evidence = xasprintf("no other linker's mark; GNU layout (%s)", layout);
    } else if (four) {
        f->linker = xstrdup("bfd");
        f->linker_evidence = xasprintf("layout alone (%s); there is no .comment", layout);
    }
    free(layout);
}

static void deduce_type(struct reading *r)
{
    struct elf_facts *f = r->f;
    uint64_t flags = 0;
    bool marked = elf_dynamic(r->file, DT_FLAGS_1, &flags) && (flags & DF_1_PIE);
    f->pie = f->type == ET_DYN && (f->interp || marked);
    f->is_static = !f->interp && (f->type == ET_EXEC || f->pie);
    if (f->compiler)
        f->compiler_evidence =
            xstrdup(f->comment_gcc && f->comment_clang
                        ? ".comment names clang, and GCC as for libc's start files"
                        : ".comment");
}

int elf_facts_of(const struct elf_file *file, struct elf_facts *f, struct err *e)
{
    *f = (struct elf_facts){.path = xstrdup(file->path),
                            .stripped = true,
                            .type = file->header.e_type,
                            .machine = file->header.e_machine,
                            .machine_name = machine_name(file->header.e_machine),
                            .is_64 = file->header.e_ident[EI_CLASS] == ELFCLASS64,
                            .entry = file->header.e_entry};
    struct reading r = {.file = file, .f = f};
    if (read_segments(&r, e)) {
        elf_facts_free(f);
        return -1;
    }
    read_sections(&r);
    read_needed(&r);
    read_relocations(&r);
    read_executable_start(&r);
    read_bolt(&r);
    read_comment(&r);
    elf_notes(file, read_note, &r);
    deduce_linker(&r);
    deduce_type(&r);
    free(r.gold);
    return 0;
}

int elf_facts_read(const char *path, struct elf_facts *f, struct err *e)
{
    struct elf_file file;
    *f = (struct elf_facts){0};
    if (elf_file_open(path, &file, e))
        return -1;
    int rc = elf_facts_of(&file, f, e);
    elf_file_close(&file);
    return rc;
}

void elf_facts_free(struct elf_facts *f)
{
    free(f->path);
    free(f->loads);
    free(f->interp);
    free(f->build_id);
    free(f->compiler);
    free(f->compiler_evidence);
    free(f->linker);
    free(f->linker_evidence);
    strv_free(&f->needed);
    *f = (struct elf_facts){0};
}

void segment_flags(const struct segment *s, char out[8])
{
    snprintf(out, 8, "%s%s%s%s", s->flags & PF_R ? "R" : "", s->flags & PF_W ? "W" : "",
             s->flags & PF_X ? "E" : "", s->flags & PF_LINUX_HUGETLB ? "+H" : "");
}

bool segment_is_text(const struct segment *s)
{
    return (s->flags & PF_X) && s->sections_to > s->sections_from;
}

uint64_t segment_section_bytes(const struct segment *s)
{
    return s->sections_to - s->sections_from;
}

uint64_t elf_text_bytes(const struct elf_facts *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->nloads; i++)
        if (segment_is_text(&f->loads[i]))
            sum += segment_section_bytes(&f->loads[i]);
    return sum;
}

bool elf_links_libhugetlbfs(const struct elf_facts *f)
{
    for (size_t i = 0; i < f->needed.n; i++)
        if (starts_with(f->needed.v[i], "libhugetlbfs.so"))
            return true;
    return false;
}

static const char *const types[] = {[ET_NONE] = "no type",
                                    [ET_REL] = "object file",
                                    [ET_EXEC] = "program at a fixed address",
                                    [ET_DYN] = "shared library",
                                    [ET_CORE] = "core dump"};

const char *elf_type_name(const struct elf_facts *f)
{
    if (f->pie)
        return f->is_static ? "static PIE" : "PIE";
    if (f->type == ET_EXEC && f->is_static)
        return "static program at a fixed address";
    return f->type < sizeof types / sizeof *types ? types[f->type] : "unknown type";
}
