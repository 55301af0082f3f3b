#include "elfcheck/ld_cache.h"
#include "common/str.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLD_MAGIC "ld.so-1.7.0"
#define NEW_MAGIC "glibc-ld.so.cache1.1"

// glibc, sysdeps/generic/dl-cache.h. Numbers are in the host's byte order; offsets of strings count
// from the newer header.
struct old_header {
    char magic[sizeof OLD_MAGIC]; // its last byte is padding
    uint32_t n;
};
enum { OLD_ENTRY = 12 };

struct new_header {
    char magic[sizeof NEW_MAGIC - 1];
    uint32_t n, strings_bytes;
    uint8_t flags, padding[3]; // flags: 2 little endian, 3 big endian, 0 not said
    uint32_t extension, unused[3];
};
_Static_assert(sizeof(struct new_header) == 48, "the header of ld.so.cache");

struct new_entry {
    int32_t flags;
    uint32_t key, value; // offsets of the name and the path
    uint32_t os_version;
    uint64_t hwcap;
};
_Static_assert(sizeof(struct new_entry) == 24, "an entry of ld.so.cache");

enum { ENDIAN_MASK = 3, HOST_ENDIAN = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 2 : 3 };

static struct bytes behind_old(struct bytes b)
{
    struct old_header h;
    if (b.n < sizeof h || memcmp(b.p, OLD_MAGIC, sizeof OLD_MAGIC - 1))
        return b;
    memcpy(&h, b.p, sizeof h);
    uint64_t skip = (sizeof h + (uint64_t)h.n * OLD_ENTRY + 7) / 8 * 8;
    return skip < b.n ? (struct bytes){b.p + skip, b.n - skip} : (struct bytes){0};
}

enum { MAX_CACHE = 64 << 20 }; // bytes; a desktop's has some 200 kB

void ld_cache_open(struct ld_cache *c)
{
    struct stat st;
    struct bytes file = {0};
    int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
        st.st_size <= MAX_CACHE) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED)
            file = (struct bytes){p, (size_t)st.st_size};
    }
    if (fd >= 0)
        close(fd);
    ld_cache_parse(file, c);
    c->file = file;
}

void ld_cache_close(struct ld_cache *c)
{
    if (c->file.p)
        munmap((void *)c->file.p, c->file.n);
    *c = (struct ld_cache){0};
}

bool ld_cache_parse(struct bytes file, struct ld_cache *c)
{
    struct bytes b = behind_old(file);
    struct new_header h;
    *c = (struct ld_cache){0};
    if (b.n < sizeof h || memcmp(b.p, NEW_MAGIC, sizeof h.magic))
        return false;
    memcpy(&h, b.p, sizeof h);
    bool host = !(h.flags & ENDIAN_MASK) || (h.flags & ENDIAN_MASK) == HOST_ENDIAN;
    if (!host || h.n > (b.n - sizeof h) / sizeof(struct new_entry))
        return false;
    *c = (struct ld_cache){.image = b, .n = h.n};
    return true;
}

static const char *string_at(const struct ld_cache *c, uint32_t offset)
{
    if (offset >= c->image.n)
        return NULL;
    size_t room = c->image.n - offset;
    const char *s = (const char *)c->image.p + offset;
    return memchr(s, 0, room < PATH_MAX ? room : PATH_MAX) ? s : NULL;
}

const char *ld_cache_find(const struct ld_cache *c, const char *name, uint32_t *at)
{
    while (*at < c->n) {
        struct new_entry entry;
        memcpy(&entry, c->image.p + sizeof(struct new_header) + *at * sizeof entry, sizeof entry);
        ++*at;
        const char *key = string_at(c, entry.key);
        const char *path = key && !strcmp(key, name) ? string_at(c, entry.value) : NULL;
        if (path && *path == '/')
            return path;
    }
    return NULL;
}

char *ld_cache_path(const char *soname)
{
    struct ld_cache c;
    uint32_t at = 0;
    ld_cache_open(&c);
    const char *found = ld_cache_find(&c, soname, &at);
    char *path = found ? xstrdup(found) : NULL;
    ld_cache_close(&c);
    return path;
}
