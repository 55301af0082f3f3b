#include "elfcheck/elf_facts.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_STRING = 4096 };

static const struct {
    uint16_t machine;
    const char *name;
} machines[] = {
    {EM_X86_64, "x86-64"}, {EM_386, "i386"},      {EM_AARCH64, "AArch64"}, {EM_ARM, "ARM"},
    {EM_PPC64, "PPC64"},   {EM_S390, "S/390"},    {EM_RISCV, "RISC-V"},    {EM_MIPS, "MIPS"},
    {EM_PPC, "PPC"},       {EM_SPARCV9, "SPARC"}, {EM_IA_64, "IA-64"},     {258, "LoongArch"},
};

// The file while it is read.
struct source {
    Elf *elf;
    uint64_t size;
    struct elf_facts *f;
    struct err *e;
    uint16_t type;
    bool df_1_pie, has_comment;
    char *gold; // text of gold's note
};

static int corrupt(const struct source *s, const char *what, uint64_t index)
{
    return err_set(s->e, EXIT_CANNOT_ASK, "%s: damaged or cut short: %s %llu lies outside the file",
                   s->f->path, what, (unsigned long long)index);
}

static bool inside(const struct source *s, uint64_t offset, uint64_t size)
{
    return offset <= s->size && size <= s->size - offset;
}

static const char *machine_name(uint16_t machine)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].machine == machine)
            return machines[i].name;
    return "another machine";
}

static int read_header(struct source *s)
{
    GElf_Ehdr h;
    if (elf_kind(s->elf) != ELF_K_ELF || !gelf_getehdr(s->elf, &h))
        return err_set(s->e, EXIT_CANNOT_ASK, "%s: not an ELF file", s->f->path);
    s->type = s->f->type = h.e_type;
    s->f->machine = h.e_machine;
    s->f->machine_name = machine_name(h.e_machine);
    s->f->is_64 = gelf_getclass(s->elf) == ELFCLASS64;
    s->f->entry = h.e_entry;
    size_t n = 0;
    if (elf_getphdrnum(s->elf, &n) || !inside(s, h.e_phoff, (uint64_t)n * h.e_phentsize))
        return corrupt(s, "the table of program headers at byte", h.e_phoff);
    if (!inside(s, h.e_shoff, (uint64_t)h.e_shnum * h.e_shentsize))
        return corrupt(s, "the table of section headers at byte", h.e_shoff);
    return 0;
}

// Whole strings of the file only: NULL when no NUL comes within the file.
static char *string_at(const struct source *s, uint64_t offset)
{
    if (offset >= s->size)
        return NULL;
    uint64_t room = s->size - offset;
    Elf_Data *d = elf_getdata_rawchunk(s->elf, (int64_t)offset,
                                       room < MAX_STRING ? room : MAX_STRING, ELF_T_BYTE);
    return d && memchr(d->d_buf, 0, d->d_size) ? xstrdup(d->d_buf) : NULL;
}

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

// Everything later counts on it: vaddr + memsz does not wrap, also after rounding up to 1 GiB.
static bool sane_load(const struct source *s, const GElf_Phdr *p)
{
    uint64_t top = UINT64_MAX - (1ULL << 30);
    return inside(s, p->p_offset, p->p_filesz) && p->p_filesz <= p->p_memsz && p->p_vaddr < top &&
           p->p_memsz < top - p->p_vaddr;
}

static void read_notes(struct source *s, Elf_Data *d)
{
    GElf_Nhdr n;
    size_t name, desc, at = 0, next;
    while (d && (next = gelf_getnote(d, at, &n, &name, &desc)) > 0) {
        const char *buf = d->d_buf;
        bool gnu = n.n_namesz == 4 && !memcmp(buf + name, "GNU", 4);
        if (gnu && n.n_type == NT_GNU_BUILD_ID && !s->f->build_id && n.n_descsz <= 64) {
            struct str hex = {0};
            for (size_t i = 0; i < n.n_descsz; i++)
                str_addf(&hex, "%02x", (unsigned char)buf[desc + i]);
            s->f->build_id = hex.s;
        }
        if (gnu && n.n_type == NT_GNU_GOLD_VERSION && !s->gold)
            s->gold = xstrndup(buf + desc, n.n_descsz);
        at = next;
    }
}

static int read_segments(struct source *s)
{
    size_t n = 0;
    elf_getphdrnum(s->elf, &n);
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr p;
        if (!gelf_getphdr(s->elf, (int)i, &p))
            return corrupt(s, "program header", i);
        if (p.p_type == PT_LOAD) {
            if (!sane_load(s, &p))
                return corrupt(s, "the segment of program header", i);
            add_load(s->f, (unsigned)i, &p);
        } else if (p.p_type == PT_GNU_RELRO) {
            s->f->relro_vaddr = p.p_vaddr;
            s->f->relro_memsz = p.p_memsz;
        } else if (p.p_type == PT_INTERP && !s->f->interp) {
            s->f->interp = string_at(s, p.p_offset);
        } else if (p.p_type == PT_NOTE && inside(s, p.p_offset, p.p_filesz) && p.p_filesz) {
            read_notes(s, elf_getdata_rawchunk(s->elf, (int64_t)p.p_offset, p.p_filesz,
                                               p.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR));
        }
    }
    return 0;
}

// The file offset of an address, or UINT64_MAX.
static uint64_t offset_of(const struct elf_facts *f, uint64_t vaddr)
{
    for (size_t i = 0; i < f->nloads; i++) {
        const struct segment *l = &f->loads[i];
        if (vaddr >= l->vaddr && vaddr - l->vaddr < l->filesz)
            return l->offset + (vaddr - l->vaddr);
    }
    return UINT64_MAX;
}

static Elf_Data *dynamic_data(const struct source *s)
{
    size_t n = 0;
    elf_getphdrnum(s->elf, &n);
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr p;
        if (gelf_getphdr(s->elf, (int)i, &p) && p.p_type == PT_DYNAMIC)
            return inside(s, p.p_offset, p.p_filesz)
                       ? elf_getdata_rawchunk(s->elf, (int64_t)p.p_offset, p.p_filesz, ELF_T_DYN)
                       : NULL;
    }
    return NULL;
}

static void add_needed(struct source *s, uint64_t strtab, uint64_t index)
{
    char *name = strtab < s->size && index < s->size ? string_at(s, strtab + index) : NULL;
    if (name && *name)
        strv_add(&s->f->needed, name);
    free(name);
}

static void read_relocations(struct source *s, uint64_t offset, uint64_t size)
{
    if (s->f->machine != EM_X86_64 || !size || !inside(s, offset, size))
        return;
    Elf_Data *d = elf_getdata_rawchunk(s->elf, (int64_t)offset, size, ELF_T_RELA);
    GElf_Rela r;
    for (int i = 0; d && gelf_getrela(d, i, &r) && !s->f->copy_relocs; i++)
        s->f->copy_relocs = GELF_R_TYPE(r.r_info) == R_X86_64_COPY;
}

static void read_dynamic(struct source *s)
{
    Elf_Data *d = dynamic_data(s);
    GElf_Dyn dyn;
    uint64_t strtab = UINT64_MAX, rela = UINT64_MAX, relasz = 0;
    for (int i = 0; d && gelf_getdyn(d, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
        if (dyn.d_tag == DT_STRTAB)
            strtab = offset_of(s->f, dyn.d_un.d_ptr);
        if (dyn.d_tag == DT_RELA)
            rela = offset_of(s->f, dyn.d_un.d_ptr);
        if (dyn.d_tag == DT_RELASZ)
            relasz = dyn.d_un.d_val;
    }
    read_relocations(s, rela, relasz);
    for (int i = 0; d && gelf_getdyn(d, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
        if (dyn.d_tag == DT_NEEDED)
            add_needed(s, strtab, dyn.d_un.d_val);
        s->f->textrel |= dyn.d_tag == DT_TEXTREL;
        s->f->textrel |= dyn.d_tag == DT_FLAGS && (dyn.d_un.d_val & DF_TEXTREL);
        s->df_1_pie |= dyn.d_tag == DT_FLAGS_1 && (dyn.d_un.d_val & DF_1_PIE);
    }
}

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

static void read_comment(struct source *s, Elf_Data *d)
{
    const char *p = d->d_buf, *end = p ? p + d->d_size : p;
    for (; p && p < end; p += strnlen(p, (size_t)(end - p)) + 1) {
        char *line = xstrndup(p, (size_t)(end - p));
        s->has_comment |= *line != 0;
        take_compiler(s->f, compiler_of(line));
        char *linker = s->f->linker ? NULL : linker_of(line);
        if (linker) {
            s->f->linker = linker;
            s->f->linker_evidence = xasprintf(".comment says \"%s\"", line);
        }
        free(line);
    }
}

static void read_dynsym(struct source *s, const GElf_Shdr *h, Elf_Data *d)
{
    GElf_Sym sym;
    for (int i = 0; gelf_getsym(d, i, &sym); i++) {
        const char *name = elf_strptr(s->elf, h->sh_link, sym.st_name);
        if (name && !strcmp(name, "__executable_start")) {
            s->f->executable_start = true;
            return;
        }
    }
}

static void mark_segment(struct elf_facts *f, const GElf_Shdr *h)
{
    if (!(h->sh_flags & SHF_ALLOC) || h->sh_type == SHT_NOBITS || !h->sh_size)
        return;
    for (size_t i = 0; i < f->nloads; i++) {
        struct segment *l = &f->loads[i];
        if (h->sh_addr >= l->vaddr && h->sh_addr - l->vaddr < l->filesz)
            l->has_sections = true;
    }
}

static void read_section(struct source *s, Elf_Scn *scn, const GElf_Shdr *h, const char *name)
{
    mark_segment(s->f, h);
    if (h->sh_type == SHT_SYMTAB)
        s->f->stripped = false;
    if (h->sh_type == SHT_NOBITS || !inside(s, h->sh_offset, h->sh_size))
        return;
    if (starts_with(name, ".debug_info") || starts_with(name, ".zdebug_info"))
        s->f->has_debug_info = true;
    if (!strcmp(name, ".comment")) {
        Elf_Data *d = elf_rawdata(scn, NULL);
        if (d)
            read_comment(s, d);
    } else if (h->sh_type == SHT_NOTE) {
        read_notes(s, elf_getdata(scn, NULL));
    } else if (h->sh_type == SHT_DYNSYM) {
        Elf_Data *d = elf_getdata(scn, NULL);
        if (d)
            read_dynsym(s, h, d);
    }
}

static void read_sections(struct source *s)
{
    size_t names = 0, count = 0;
    bool named = elf_getshdrstrndx(s->elf, &names) == 0;
    Elf_Scn *scn = NULL;
    while ((scn = elf_nextscn(s->elf, scn))) {
        GElf_Shdr h;
        if (!gelf_getshdr(scn, &h))
            continue;
        const char *name = named ? elf_strptr(s->elf, names, h.sh_name) : NULL;
        read_section(s, scn, &h, name ? name : "");
        count++;
    }
    // Without section headers the segments themselves are all there is to see.
    for (size_t i = 0; count == 0 && i < s->f->nloads; i++)
        s->f->loads[i].has_sections = s->f->loads[i].filesz > 0;
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
static void deduce_linker(struct source *s)
{
    struct elf_facts *f = s->f;
    if (!f->linker && s->gold) {
        f->linker = xstrdup(s->gold);
        f->linker_evidence = xstrdup("its note .note.gnu.gold-version");
    }
    if (f->linker || s->type == ET_REL)
        return;
    char *layout = elf_layout_text(f);
    bool four = !strcmp(layout, "R RE R RW"), two = !strcmp(layout, "RE RW");
    if (s->has_comment && (four || two)) {
        f->linker = xstrdup("bfd");
        f->linker_evidence = xasprintf("no other linker's mark; GNU layout (%s)", layout);
    } else if (four) {
        f->linker = xstrdup("bfd");
        f->linker_evidence = xasprintf("layout alone (%s); there is no .comment", layout);
    }
    free(layout);
}

static void deduce_type(struct source *s)
{
    struct elf_facts *f = s->f;
    f->pie = s->type == ET_DYN && (f->interp || s->df_1_pie);
    f->is_static = !f->interp && (s->type == ET_EXEC || f->pie);
    if (f->compiler)
        f->compiler_evidence =
            xstrdup(f->comment_gcc && f->comment_clang
                        ? ".comment names clang, and GCC as for libc's start files"
                        : ".comment");
}

static int read_all(struct source *s)
{
    if (read_header(s) || read_segments(s))
        return -1;
    read_dynamic(s);
    read_sections(s);
    deduce_linker(s);
    deduce_type(s);
    return 0;
}

// A pipe or a device must not be waited for.
static int open_regular(const char *path, uint64_t *size, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) {
        err_sys(e, EXIT_CANNOT_ASK, "%s", path);
    } else if (S_ISREG(st.st_mode)) {
        *size = (uint64_t)st.st_size;
        return fd;
    } else {
        err_set(e, EXIT_CANNOT_ASK, "%s: not an ELF file: %s", path,
                S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

int elf_facts_read(const char *path, struct elf_facts *f, struct err *e)
{
    *f = (struct elf_facts){.path = xstrdup(path), .stripped = true};
    struct source s = {.f = f, .e = e};
    elf_version(EV_CURRENT);
    int fd = open_regular(path, &s.size, e), rc = -1;
    if (fd >= 0) {
        s.elf = elf_begin(fd, ELF_C_READ, NULL);
        rc = s.elf ? read_all(&s) : err_set(e, EXIT_CANNOT_ASK, "%s: not an ELF file", path);
        elf_end(s.elf);
        close(fd);
    }
    free(s.gold);
    if (rc)
        elf_facts_free(f);
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

bool segment_is_text(const struct segment *s)
{
    return (s->flags & PF_X) && s->has_sections;
}

uint64_t elf_text_bytes(const struct elf_facts *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->nloads; i++)
        if (segment_is_text(&f->loads[i]))
            sum += f->loads[i].filesz;
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
