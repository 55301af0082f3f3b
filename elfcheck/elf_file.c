#include "elfcheck/elf_file.h"
#include "common/str.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_STRING = 64 << 10, // a RUNPATH can be long
    MAX_SYMBOL = 4 << 10,
    MAX_SECTIONS = 1 << 20, // a server has some 40; object files of 10^5 functions have more
    MAX_DYNAMIC = 4096,
    MAX_NOTE_OWNER = 64,
};

static bool inside(const struct elf_file *f, uint64_t offset, uint64_t n)
{
    return offset <= f->image.n && n <= f->image.n - offset;
}

static int corrupt(const struct elf_file *f, const char *what, uint64_t index, struct err *e)
{
    return err_set(e, EXIT_CANNOT_ASK, "%s: damaged or cut short: %s %llu lies outside the file",
                   f->path, what, (unsigned long long)index);
}

static int not_elf(const struct elf_file *f, struct err *e)
{
    return err_set(e, EXIT_CANNOT_ASK, "%s: not an ELF file", f->path);
}

// --- before libelf is asked: the header, read by hand ---

// A little- or big-endian number of the file; the caller knows that it lies inside.
static uint64_t number(const struct elf_file *f, uint64_t offset, unsigned width)
{
    bool little = f->image.p[EI_DATA] == ELFDATA2LSB;
    uint64_t v = 0;
    for (unsigned i = 0; i < width; i++)
        v = v << 8 | f->image.p[offset + (little ? width - 1 - i : i)];
    return v;
}

// Where the tables of program and section headers are, and their sizes, by the file's class.
struct tables {
    uint64_t phoff, shoff, phnum, shnum;
    uint64_t phentsize, shentsize;
};

static bool is_elf(const struct elf_file *f)
{
    const unsigned char *id = f->image.p;
    return f->image.n >= sizeof(Elf32_Ehdr) && !memcmp(id, ELFMAG, SELFMAG) &&
           (id[EI_CLASS] == ELFCLASS32 ||
            (id[EI_CLASS] == ELFCLASS64 && f->image.n >= sizeof(Elf64_Ehdr))) &&
           (id[EI_DATA] == ELFDATA2LSB || id[EI_DATA] == ELFDATA2MSB) &&
           id[EI_VERSION] == EV_CURRENT;
}

#define AT(type, member) offsetof(type, member), sizeof(((type *)0)->member)

static struct tables header_tables(const struct elf_file *f)
{
    bool wide = f->image.p[EI_CLASS] == ELFCLASS64;
#define HEADER(member)                                                                             \
    (wide ? number(f, AT(Elf64_Ehdr, member)) : number(f, AT(Elf32_Ehdr, member)))
    return (struct tables){.phoff = HEADER(e_phoff),
                           .shoff = HEADER(e_shoff),
                           .phnum = HEADER(e_phnum),
                           .shnum = HEADER(e_shnum),
                           .phentsize = HEADER(e_phentsize),
                           .shentsize = HEADER(e_shentsize)};
#undef HEADER
}

// Counts that do not fit the header stand in section 0: sh_size and sh_info.
static void escaped_counts(const struct elf_file *f, struct tables *t)
{
    bool wide = f->image.p[EI_CLASS] == ELFCLASS64;
    uint64_t size = wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    if (!t->shoff || !inside(f, t->shoff, size))
        return;
    if (t->shnum == 0)
        t->shnum = wide ? number(f, t->shoff + AT(Elf64_Shdr, sh_size))
                        : number(f, t->shoff + AT(Elf32_Shdr, sh_size));
    if (t->phnum == PN_XNUM)
        t->phnum = wide ? number(f, t->shoff + AT(Elf64_Shdr, sh_info))
                        : number(f, t->shoff + AT(Elf32_Shdr, sh_info));
}

static int check_tables(const struct elf_file *f, struct err *e)
{
    bool wide = f->image.p[EI_CLASS] == ELFCLASS64;
    struct tables t = header_tables(f);
    escaped_counts(f, &t);
    uint64_t phsize = wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    uint64_t shsize = wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    if (t.phnum && t.phentsize != phsize)
        return err_set(e, EXIT_CANNOT_ASK, "%s: damaged: program headers of %llu bytes, not %llu",
                       f->path, (unsigned long long)t.phentsize, (unsigned long long)phsize);
    if (t.phnum > f->image.n / phsize || !inside(f, t.phoff, t.phnum * phsize))
        return corrupt(f, "the table of program headers at byte", t.phoff, e);
    if (t.shoff && t.shnum && t.shentsize != shsize)
        return err_set(e, EXIT_CANNOT_ASK, "%s: damaged: section headers of %llu bytes, not %llu",
                       f->path, (unsigned long long)t.shentsize, (unsigned long long)shsize);
    if (t.shoff && (t.shnum > f->image.n / shsize || !inside(f, t.shoff, t.shnum * shsize)))
        return corrupt(f, "the table of section headers at byte", t.shoff, e);
    if (t.shnum > MAX_SECTIONS)
        return err_set(e, EXIT_CANNOT_ASK, "%s: %llu sections, more than %d", f->path,
                       (unsigned long long)t.shnum, MAX_SECTIONS);
    return 0;
}

// --- reading ---

static int read_headers(struct elf_file *f, struct err *e)
{
    size_t n = 0;
    if (!gelf_getehdr(f->elf, &f->header))
        return not_elf(f, e);
    if (elf_getphdrnum(f->elf, &n) == 0)
        f->phdrs = xcalloc(n + 1, sizeof *f->phdrs);
    for (size_t i = 0; i < n; i++, f->nphdrs++)
        if (!gelf_getphdr(f->elf, (int)i, &f->phdrs[i]))
            return corrupt(f, "program header", i, e);
    return 0;
}

static int read_sections(struct elf_file *f, struct err *e)
{
    size_t n = 0, strings = 0;
    if (elf_getshdrnum(f->elf, &n) || !n)
        return 0;
    bool named = elf_getshdrstrndx(f->elf, &strings) == 0;
    f->shdrs = xcalloc(n, sizeof *f->shdrs);
    f->names = xcalloc(n, sizeof *f->names);
    for (size_t i = 0; i < n; i++, f->nshdrs++) {
        Elf_Scn *scn = elf_getscn(f->elf, i);
        if (!scn || !gelf_getshdr(scn, &f->shdrs[i]))
            return corrupt(f, "section header", i, e);
        const char *name = named && i ? elf_strptr(f->elf, strings, f->shdrs[i].sh_name) : NULL;
        f->names[i] = name ? name : "";
    }
    return 0;
}

// A chunk of the file as libelf's type; NULL when it lies outside.
static Elf_Data *chunk(const struct elf_file *f, uint64_t offset, uint64_t n, Elf_Type type)
{
    return n && inside(f, offset, n) ? elf_getdata_rawchunk(f->elf, (int64_t)offset, n, type)
                                     : NULL;
}

static void read_dynamic(struct elf_file *f)
{
    Elf_Data *d = NULL;
    for (size_t i = 0; i < f->nphdrs && !d; i++)
        if (f->phdrs[i].p_type == PT_DYNAMIC)
            d = chunk(f, f->phdrs[i].p_offset, f->phdrs[i].p_filesz, ELF_T_DYN);
    size_t entry = gelf_fsize(f->elf, ELF_T_DYN, 1, EV_CURRENT), most = d ? d->d_size / entry : 0;
    if (most > MAX_DYNAMIC)
        most = MAX_DYNAMIC;
    f->dynamic = xcalloc(most + 1, sizeof *f->dynamic);
    GElf_Dyn dyn;
    while (f->ndynamic < most && gelf_getdyn(d, (int)f->ndynamic, &dyn) && dyn.d_tag != DT_NULL)
        f->dynamic[f->ndynamic++] = dyn;
}

static int read_all(struct elf_file *f, struct err *e)
{
    if (!is_elf(f))
        return not_elf(f, e);
    if (check_tables(f, e))
        return -1;
    elf_version(EV_CURRENT);
    f->elf = elf_memory((char *)f->image.p, f->image.n);
    if (!f->elf)
        return not_elf(f, e);
    if (read_headers(f, e) || read_sections(f, e))
        return -1;
    read_dynamic(f);
    return 0;
}

int elf_file_open_image(const char *path, const void *image, size_t size, struct elf_file *f,
                        struct err *e)
{
    *f = (struct elf_file){.path = xstrdup(path), .image = {image, size}, .borrowed = true};
    int rc = read_all(f, e);
    if (rc)
        elf_file_close(f);
    return rc;
}

static int map(int fd, const struct stat *st, struct elf_file *f, struct err *e)
{
    if (!S_ISREG(st->st_mode))
        return err_set(e, EXIT_CANNOT_ASK, "%s: not an ELF file: %s", f->path,
                       S_ISDIR(st->st_mode) ? "a directory" : "not a regular file");
    if (st->st_size == 0)
        return not_elf(f, e);
    // libelf writes a header where it expands a section; the copy is private.
    void *p =
        mmap(NULL, (size_t)st->st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED)
        return err_sys(e, EXIT_CANNOT_ASK, "%s: cannot be mapped", f->path);
    f->image = (struct bytes){p, (size_t)st->st_size};
    return 0;
}

int elf_file_open(const char *path, struct elf_file *f, struct err *e)
{
    *f = (struct elf_file){.path = xstrdup(path)};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    int rc =
        fd < 0 || fstat(fd, &st) ? err_sys(e, EXIT_CANNOT_ASK, "%s", path) : map(fd, &st, f, e);
    if (fd >= 0)
        close(fd);
    if (rc == 0)
        rc = read_all(f, e);
    if (rc)
        elf_file_close(f);
    return rc;
}

void elf_file_close(struct elf_file *f)
{
    elf_end(f->elf);
    if (f->image.p && !f->borrowed)
        munmap((void *)f->image.p, f->image.n);
    free(f->path);
    free(f->phdrs);
    free(f->shdrs);
    free(f->names);
    free(f->dynamic);
    *f = (struct elf_file){0};
}

struct bytes elf_bytes(const struct elf_file *f, uint64_t offset, uint64_t n)
{
    if (!n || !inside(f, offset, n))
        return (struct bytes){0};
    return (struct bytes){f->image.p + offset, n};
}

size_t elf_section(const struct elf_file *f, const char *name)
{
    for (size_t i = 1; i < f->nshdrs; i++)
        if (!strcmp(f->names[i], name))
            return i;
    return 0;
}

struct bytes elf_section_bytes(const struct elf_file *f, size_t index)
{
    if (index == 0 || index >= f->nshdrs || f->shdrs[index].sh_type == SHT_NOBITS)
        return (struct bytes){0};
    return elf_bytes(f, f->shdrs[index].sh_offset, f->shdrs[index].sh_size);
}

static const char *string_in(struct bytes b, uint64_t offset, size_t most)
{
    if (offset >= b.n)
        return NULL;
    size_t room = b.n - offset;
    return memchr(b.p + offset, 0, room < most ? room : most) ? (const char *)b.p + offset : NULL;
}

const char *elf_string(const struct elf_file *f, uint64_t offset)
{
    return string_in(f->image, offset, MAX_STRING);
}

// --- tables of fixed-size entries, through libelf ---

static Elf_Data *section_data(const struct elf_file *f, size_t index)
{
    return elf_section_bytes(f, index).n ? elf_getdata(elf_getscn(f->elf, index), NULL) : NULL;
}

size_t elf_symbols(const struct elf_file *f, size_t section)
{
    if (section == 0 || section >= f->nshdrs)
        return 0;
    const GElf_Shdr *h = &f->shdrs[section];
    size_t size = gelf_fsize(f->elf, ELF_T_SYM, 1, EV_CURRENT);
    bool table = h->sh_type == SHT_SYMTAB || h->sh_type == SHT_DYNSYM;
    return table && size && section_data(f, section) ? h->sh_size / size : 0;
}

const char *elf_symbol(const struct elf_file *f, size_t section, size_t i, GElf_Sym *sym)
{
    *sym = (GElf_Sym){0};
    Elf_Data *d = section_data(f, section);
    if (!d || i > INT32_MAX || !gelf_getsym(d, (int)i, sym))
        return "";
    struct bytes names = elf_section_bytes(f, f->shdrs[section].sh_link);
    const char *name = string_in(names, sym->st_name, MAX_SYMBOL);
    return name ? name : "";
}

uint64_t elf_offset_of(const struct elf_file *f, uint64_t vaddr)
{
    for (size_t i = 0; i < f->nphdrs; i++) {
        const GElf_Phdr *p = &f->phdrs[i];
        if (p->p_type == PT_LOAD && vaddr >= p->p_vaddr && vaddr - p->p_vaddr < p->p_filesz)
            return p->p_offset + (vaddr - p->p_vaddr);
    }
    return UINT64_MAX;
}

bool elf_dynamic_nth(const struct elf_file *f, int64_t tag, size_t n, uint64_t *value)
{
    for (size_t i = 0; i < f->ndynamic; i++) {
        if (f->dynamic[i].d_tag == tag && n-- == 0) {
            *value = f->dynamic[i].d_un.d_val;
            return true;
        }
    }
    return false;
}

bool elf_dynamic(const struct elf_file *f, int64_t tag, uint64_t *value)
{
    return elf_dynamic_nth(f, tag, 0, value);
}

static void each_note(const struct elf_file *f, uint64_t offset, uint64_t n, uint64_t align,
                      note_fn *fn, void *context)
{
    Elf_Data *d = chunk(f, offset, n, align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
    GElf_Nhdr h;
    size_t name, desc;
    for (size_t at = 0, next; d && (next = gelf_getnote(d, at, &h, &name, &desc)) > 0; at = next) {
        const unsigned char *buf = d->d_buf;
        char owner[MAX_NOTE_OWNER] = "";
        if (h.n_namesz < sizeof owner)
            memcpy(owner, buf + name, h.n_namesz);
        fn(context, owner, h.n_type, (struct bytes){buf + desc, h.n_descsz});
    }
}

void elf_notes(const struct elf_file *f, note_fn *fn, void *context)
{
    for (size_t i = 0; i < f->nphdrs; i++) {
        const GElf_Phdr *p = &f->phdrs[i];
        if (p->p_type == PT_NOTE)
            each_note(f, p->p_offset, p->p_filesz, p->p_align, fn, context);
    }
    for (size_t i = 1; i < f->nshdrs; i++) {
        const GElf_Shdr *h = &f->shdrs[i];
        if (h->sh_type == SHT_NOTE)
            each_note(f, h->sh_offset, h->sh_size, h->sh_addralign, fn, context);
    }
}
