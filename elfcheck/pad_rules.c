// Whether a text segment is padded, could be, and if not, why: from the headers alone.
#include "elfcheck/pad.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { SMALL_PAGE = 4096 };

static uint64_t down(uint64_t x, uint64_t page)
{
    return x & ~(page - 1);
}

static uint64_t up(uint64_t x, uint64_t page)
{
    return down(x + page - 1, page);
}

__attribute__((format(printf, 4, 5))) static bool refuse(struct pad_plan *p, enum pad_state state,
                                                         int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    p->state = state;
    p->code = code;
    vsnprintf(p->reason, sizeof p->reason, fmt, ap);
    va_end(ap);
    return false;
}

static bool inside(const struct pad_headers *h, uint64_t offset, uint64_t size)
{
    return offset <= h->file_size && size <= h->file_size - offset;
}

// The name as the file has it, "" when it lies outside the table.
static const char *name_of(const struct pad_headers *h, size_t section)
{
    uint32_t at = h->shdrs[section].sh_name;
    return h->names && at < h->names_size ? h->names + at : "";
}

// For people: a hostile name must not reach the terminal.
static void describe_section(const struct pad_headers *h, size_t section, char *out, size_t size)
{
    const char *name = name_of(h, section);
    bool fine = *name && strlen(name) < 60;
    for (const char *c = name; fine && *c; c++)
        fine = isgraph((unsigned char)*c);
    if (fine)
        snprintf(out, size, "section %s", name);
    else
        snprintf(out, size, "section %zu", section);
}

static bool has_bytes(const Elf64_Shdr *s)
{
    return s->sh_type != SHT_NULL && s->sh_type != SHT_NOBITS && s->sh_size;
}

// After this no sum of an offset and a size, or of an address and a size, wraps: also not when it
// is rounded up to 1 GiB.
static bool sane(const struct pad_headers *h, struct pad_plan *p)
{
    const uint64_t top = UINT64_MAX - (1ULL << 30);
    for (size_t i = 0; i < h->nphdrs; i++) {
        const Elf64_Phdr *s = &h->phdrs[i];
        if (s->p_type != PT_LOAD)
            continue;
        if (!inside(h, s->p_offset, s->p_filesz) || s->p_filesz > s->p_memsz || s->p_vaddr >= top ||
            s->p_memsz >= top - s->p_vaddr)
            return refuse(p, PAD_IMPOSSIBLE, EXIT_CANNOT_ASK,
                          "damaged or cut short: the segment of program header %zu lies outside "
                          "the file",
                          i);
    }
    for (size_t i = 1; i < h->nshdrs; i++)
        if (has_bytes(&h->shdrs[i]) && !inside(h, h->shdrs[i].sh_offset, h->shdrs[i].sh_size))
            return refuse(p, PAD_IMPOSSIBLE, EXIT_CANNOT_ASK,
                          "damaged or cut short: section %zu lies outside the file", i);
    return true;
}

// What objcopy --only-keep-debug and eu-strip -f write: segments that point to nowhere.
static bool is_debug_file(const struct pad_headers *h)
{
    for (size_t i = 1; i < h->nshdrs; i++)
        if (h->shdrs[i].sh_type == SHT_NOBITS && !strcmp(name_of(h, i), ".text"))
            return true;
    return false;
}

static bool is_subject(const struct pad_headers *h, struct pad_plan *p)
{
    if (h->ehdr.e_type != ET_EXEC && h->ehdr.e_type != ET_DYN)
        return refuse(p, PAD_IMPOSSIBLE, EXIT_NO,
                      "neither a program nor a shared library, it is not loaded by segments; give "
                      "the linked file");
    if (h->nshdrs < 2)
        return refuse(p, PAD_CANNOT_TELL, EXIT_NO,
                      "it has no section headers, so padding cannot be told from content; take "
                      "the file before sstrip or llvm-strip --strip-sections");
    if (is_debug_file(h))
        return refuse(p, PAD_IMPOSSIBLE, EXIT_NO,
                      "a file of debug information, its .text has no bytes; give the program that "
                      "it belongs to");
    return sane(h, p);
}

// An allocated section with bytes in this segment, at the place that its address asks for.
static bool holds(const Elf64_Phdr *t, const Elf64_Shdr *s)
{
    return t->p_type == PT_LOAD && (s->sh_flags & SHF_ALLOC) && has_bytes(s) &&
           s->sh_offset >= t->p_offset && s->sh_offset - t->p_offset < t->p_filesz &&
           s->sh_addr - t->p_vaddr == s->sh_offset - t->p_offset;
}

static bool holds_any(const struct pad_headers *h, const Elf64_Phdr *t)
{
    for (size_t i = 1; i < h->nshdrs; i++)
        if (holds(t, &h->shdrs[i]))
            return true;
    return false;
}

static bool holds_text(const struct pad_headers *h, const Elf64_Phdr *t)
{
    for (size_t i = 1; i < h->nshdrs; i++)
        if (holds(t, &h->shdrs[i]) && !strcmp(name_of(h, i), ".text"))
            return true;
    return false;
}

static const Elf64_Phdr *text_segment(const struct pad_headers *h, struct pad_plan *p)
{
    const Elf64_Phdr *only = NULL;
    unsigned n = 0;
    for (size_t i = 0; i < h->nphdrs; i++) {
        const Elf64_Phdr *t = &h->phdrs[i];
        if (t->p_type != PT_LOAD || !(t->p_flags & PF_X) || !holds_any(h, t))
            continue;
        if (holds_text(h, t))
            return t;
        only = t;
        n++;
    }
    if (n == 1)
        return only;
    if (n)
        refuse(p, PAD_IMPOSSIBLE, EXIT_NO,
               "%u executable segments hold sections and none of them a section .text, so it is "
               "not clear which to pad; give the text's output section that name",
               n);
    else
        refuse(p, PAD_IMPOSSIBLE, EXIT_NO,
               "it has no executable segment that holds sections; give a program with text");
    return NULL;
}

static bool right_kind(const Elf64_Phdr *t, uint64_t huge, struct pad_plan *p)
{
    static const char flags[] =
        "link with -Wl,-z,max-page-size=2097152 (lld and mold: also -Wl,-z,separate-code)";
    unsigned i = p->program_header;
    if (t->p_flags & PF_W)
        return refuse(p, PAD_IMPOSSIBLE, EXIT_NO,
                      "its text segment (program header %u) is writable; link without -N", i);
    if (t->p_memsz != t->p_filesz)
        return refuse(p, PAD_IMPOSSIBLE, EXIT_NO,
                      "its text segment (program header %u) has p_memsz 0x%" PRIx64
                      ", not p_filesz 0x%" PRIx64
                      ": memory without bytes in the file ends it; link .bss elsewhere",
                      i, t->p_memsz, t->p_filesz);
    if (t->p_align < huge || (t->p_align & (t->p_align - 1)))
        return refuse(p, PAD_IMPOSSIBLE, EXIT_NO,
                      "its text segment (program header %u) has p_align 0x%" PRIx64
                      ", not 2 MiB or more; %s",
                      i, t->p_align, flags);
    if ((t->p_vaddr - t->p_offset) % huge)
        return refuse(p, PAD_IMPOSSIBLE, EXIT_NO,
                      "its text segment (program header %u) has an address 0x%" PRIx64
                      " and an offset 0x%" PRIx64 " that differ modulo 2 MiB; %s",
                      i, t->p_vaddr, t->p_offset, flags);
    return true;
}

static uint64_t linked_size(const struct pad_headers *h, const Elf64_Phdr *t)
{
    uint64_t size = 0;
    for (size_t i = 1; i < h->nshdrs; i++) {
        const Elf64_Shdr *s = &h->shdrs[i];
        if (holds(t, s) && s->sh_offset + s->sh_size - t->p_offset > size)
            size = s->sh_offset + s->sh_size - t->p_offset;
    }
    return size;
}

// The kernel maps whole small pages: a slot is covered when they fill it.
static uint64_t whole_slots(const Elf64_Phdr *t, uint64_t filesz, uint64_t huge)
{
    uint64_t from = up(down(t->p_vaddr, SMALL_PAGE), huge);
    uint64_t to = down(up(t->p_vaddr + filesz, SMALL_PAGE), huge);
    return to > from ? (to - from) / huge : 0;
}

// What lies behind the text, in the file and in the address space.
struct gap {
    uint64_t offset, vaddr, size;
};

static bool meets(uint64_t from, uint64_t size, uint64_t start, uint64_t n)
{
    uint64_t last = size && size - 1 > UINT64_MAX - from ? UINT64_MAX : from + size - 1;
    return size && n && from < start + n && last >= start;
}

// Thread-local .tbss has addresses that belong to others.
static bool section_meets(const Elf64_Shdr *s, const struct gap *g)
{
    bool addressed =
        (s->sh_flags & SHF_ALLOC) && !((s->sh_flags & SHF_TLS) && s->sh_type == SHT_NOBITS);
    return (has_bytes(s) && meets(s->sh_offset, s->sh_size, g->offset, g->size)) ||
           (addressed && meets(s->sh_addr, s->sh_size, g->vaddr, g->size));
}

// Exact ranges do: the gap ends on a page, and the page it begins in is the text's already.
static bool segment_meets(const Elf64_Phdr *s, const struct gap *g)
{
    if (s->p_type == PT_NULL)
        return false;
    if (meets(s->p_offset, s->p_filesz, g->offset, g->size))
        return true;
    return s->p_type != PT_TLS && meets(s->p_vaddr, s->p_memsz, g->vaddr, g->size);
}

// Puts what lies in the gap into words; false when it is padding alone.
static bool find_obstacle(const struct pad_headers *h, const Elf64_Phdr *t, const struct gap *g,
                          char *what, size_t size)
{
    const Elf64_Ehdr *e = &h->ehdr;
    for (size_t i = 1; i < h->nshdrs; i++)
        if (section_meets(&h->shdrs[i], g)) {
            describe_section(h, i, what, size);
            return true;
        }
    for (size_t i = 0; i < h->nphdrs; i++)
        if (&h->phdrs[i] != t && segment_meets(&h->phdrs[i], g)) {
            snprintf(what, size, "the segment of program header %zu", i);
            return true;
        }
    snprintf(what, size, "the table of section headers");
    if (meets(e->e_shoff, h->nshdrs * sizeof *h->shdrs, g->offset, g->size))
        return true;
    snprintf(what, size, "the table of program headers");
    return meets(e->e_phoff, h->nphdrs * sizeof *h->phdrs, g->offset, g->size) ||
           meets(0, sizeof *e, g->offset, g->size);
}

static bool is_last_load(const struct pad_headers *h, const Elf64_Phdr *t)
{
    for (const Elf64_Phdr *s = t + 1; s < h->phdrs + h->nphdrs; s++)
        if (s->p_type == PT_LOAD)
            return false;
    return true;
}

// lld rounds the text up to max-page-size itself when it is the last segment and has pages of its
// own (its test ELF/fill-trap.s expects it): then that is what the linker wrote.
static bool rounded_by_lld(const struct pad_headers *h, const Elf64_Phdr *t, uint64_t huge)
{
    return is_last_load(h, t) && (t->p_vaddr + t->p_filesz) % huge == 0;
}

static bool is_free(const struct pad_headers *h, const Elf64_Phdr *t, struct pad_plan *p)
{
    char what[100];
    struct gap g = {t->p_offset + p->linked_filesz, t->p_vaddr + p->linked_filesz,
                    p->padded_filesz - p->linked_filesz};
    if (find_obstacle(h, t, &g, what, sizeof what))
        return refuse(
            p, p->filesz == p->padded_filesz ? PAD_CANNOT_TELL : PAD_IMPOSSIBLE, EXIT_NO,
            "%s lies between the end of the text (offset 0x%" PRIx64
            ") and the end of its 2 MiB slot (0x%" PRIx64
            "); link with bfd, lld or mold (gold cannot) and -Wl,-z,max-page-size=2097152 "
            "-Wl,-z,separate-code",
            what, g.offset, g.offset + g.size);
    if (!inside(h, g.offset, g.size))
        return refuse(p, PAD_IMPOSSIBLE, EXIT_NO,
                      "the end of the text's 2 MiB slot (offset 0x%" PRIx64
                      ") lies beyond the end of the file (0x%" PRIx64
                      "), and it is not made longer; link so that another segment follows the text",
                      g.offset + g.size, h->file_size);
    if (is_last_load(h, t))
        return refuse(p, PAD_IMPOSSIBLE, EXIT_NO,
                      "its text is the last load segment, which lld pads itself, so --unpad could "
                      "not tell who did; link so that another segment follows the text");
    return true;
}

// True when only padding separates the text from the end of its slot, and unpad could restore
// p_filesz.
static bool decide(const struct pad_headers *h, const Elf64_Phdr *t, uint64_t huge,
                   struct pad_plan *p)
{
    if (p->filesz > p->linked_filesz && rounded_by_lld(h, t, huge)) {
        p->linked_filesz = p->padded_filesz = p->filesz;
        p->linked_slots = p->padded_slots = whole_slots(t, p->filesz, huge);
    }
    bool padded = p->filesz == p->padded_filesz && p->filesz > p->linked_filesz;
    if (!padded && p->filesz != p->linked_filesz)
        return refuse(p, PAD_IMPOSSIBLE, EXIT_NO,
                      "its text segment (program header %u) has p_filesz 0x%" PRIx64
                      ", and its last section ends at 0x%" PRIx64
                      ": --unpad could not restore it; link it anew with bfd, lld or mold",
                      p->program_header, p->filesz, p->linked_filesz);
    if (!padded && p->linked_slots == p->padded_slots &&
        up(t->p_vaddr + p->filesz, SMALL_PAGE) == t->p_vaddr + p->padded_filesz) {
        p->state = PAD_NEEDLESS;
        return true;
    }
    if (!padded && p->linked_slots == p->padded_slots)
        return refuse(p, PAD_IMPOSSIBLE, EXIT_NO,
                      "its text begins at 0x%" PRIx64 ", within its only 2 MiB slot, and would "
                      "not fill it; there is nothing to gain, or the text must begin on 2 MiB "
                      "(lld and mold: -Wl,-z,separate-code)",
                      t->p_vaddr);
    if (!is_free(h, t, p))
        return false;
    p->state = padded ? PAD_DONE : PAD_POSSIBLE;
    return true;
}

void pad_examine(const struct pad_headers *h, uint64_t huge, struct pad_plan *p)
{
    *p = (struct pad_plan){.state = PAD_IMPOSSIBLE, .code = EXIT_NO};
    const Elf64_Phdr *t = is_subject(h, p) ? text_segment(h, p) : NULL;
    if (!t)
        return;
    p->program_header = (unsigned)(t - h->phdrs);
    p->filesz = t->p_filesz;
    p->linked_filesz = linked_size(h, t);
    p->padded_filesz = up(t->p_vaddr + p->linked_filesz, huge) - t->p_vaddr;
    p->linked_slots = whole_slots(t, p->linked_filesz, huge);
    p->padded_slots = whole_slots(t, p->padded_filesz, huge);
    if (right_kind(t, huge, p) && decide(h, t, huge, p))
        p->code = EXIT_YES;
}
