// Names for code that perf finds in anonymous memory.
#include "remap/remap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ELF_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

// A file in memory; nothing in it is trusted.
struct image {
    const char *at;
    size_t size;
};

// n bytes at `offset`, or NULL when the file does not hold them.
static const char *bytes(const struct image *file, uint64_t offset, uint64_t n)
{
    return offset <= file->size && n <= file->size - offset ? file->at + offset : NULL;
}

// As bytes, for n structures of `size` bytes.
static const void *entries(const struct image *file, uint64_t offset, uint64_t n, size_t size)
{
    bool aligned = offset % _Alignof(ElfW(Addr)) == 0;
    return aligned && n <= file->size / size ? bytes(file, offset, n * size) : NULL;
}

static const ElfW(Shdr) * sections(const struct image *file, size_t *n)
{
    const ElfW(Ehdr) *h = entries(file, 0, 1, sizeof *h);
    if (!h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELF_CLASS ||
        h->e_shentsize != sizeof(ElfW(Shdr)))
        return NULL;
    *n = h->e_shnum;
    return entries(file, h->e_shoff, *n, sizeof(ElfW(Shdr)));
}

static const ElfW(Shdr) * find(const ElfW(Shdr) * s, size_t n, unsigned type)
{
    for (size_t i = 0; i < n; i++)
        if (s[i].sh_type == type)
            return &s[i];
    return NULL;
}

// A stripped program has its dynamic symbols only.
static const ElfW(Shdr) * symbol_table(const ElfW(Shdr) * s, size_t n)
{
    const ElfW(Shdr) *full = find(s, n, SHT_SYMTAB);
    return full ? full : find(s, n, SHT_DYNSYM);
}

static bool is_function(const ElfW(Sym) * s)
{
    unsigned type = ELF64_ST_TYPE(s->st_info); // the same bits in both classes
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && s->st_shndx != SHN_UNDEF && s->st_size;
}

static const char *symbol_name(const struct image *file, const ElfW(Shdr) * strings, uint64_t at)
{
    const char *table = bytes(file, strings->sh_offset, strings->sh_size);
    if (!table || at >= strings->sh_size || !memchr(table + at, 0, strings->sh_size - at))
        return NULL;
    return table + at;
}

// Functions that begin in what was moved: "START SIZE NAME", in hexadecimal.
static void write_functions(FILE *out, const struct image *file, const struct range *r)
{
    size_t n = 0;
    const ElfW(Shdr) *s = sections(file, &n), *table = s ? symbol_table(s, n) : NULL;
    if (!table || table->sh_link >= n)
        return;
    size_t count = table->sh_size / sizeof(ElfW(Sym));
    const ElfW(Sym) *symbol = entries(file, table->sh_offset, count, sizeof *symbol);
    for (size_t i = 0; symbol && i < count; i++) {
        uintptr_t start = r->part->bias + symbol[i].st_value;
        const char *name;
        if (start < r->from || start >= r->from + r->huge || !is_function(&symbol[i]))
            continue;
        name = symbol_name(file, &s[table->sh_link], symbol[i].st_name);
        if (name && *name && !strchr(name, '\n'))
            fprintf(out, "%" PRIxPTR " %" PRIx64 " %s\n", start, (uint64_t)symbol[i].st_size, name);
    }
}

static int write_range(FILE *out, const struct range *r)
{
    struct stat st;
    int rc = 0, fd = open(r->part->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct image file = {.at = MAP_FAILED};
    if (fstat(fd, &st) == 0) {
        file.size = (size_t)st.st_size;
        file.at = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (file.at == MAP_FAILED)
        rc = -errno;
    else {
        write_functions(out, &file, r);
        munmap((void *)file.at, file.size);
    }
    close(fd);
    return rc;
}

// The directory is everybody's: never through a link, never into a file that was there. One that a
// former process of this number left goes, if the directory's sticky bit lets us.
static int create(const char *path)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, flags, 0600);
    if (fd < 0 && errno == EEXIST && unlink(path) == 0)
        fd = open(path, flags, 0600);
    return fd;
}

int perf_map_write(const struct range *ranges, size_t n)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    int rc = 0, fd = create(path);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) {
        rc = -errno;
        if (fd >= 0)
            close(fd);
        return rc;
    }
    for (size_t i = 0; i < n && rc == 0; i++)
        if (ranges[i].huge)
            rc = write_range(out, &ranges[i]);
    if (fclose(out) && rc == 0)
        rc = -errno;
    return rc;
}
