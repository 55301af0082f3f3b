#include "launcher/pagecache.h"

#include "common/fs.h"
#include "common/str.h"
#include "elfcheck/predict.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SMALL = 4096 };

static uint64_t down(uint64_t x)
{
    return x / HUGE_2M * HUGE_2M;
}

// The window of the file, in whole slots, that holds a segment; its end may lie past the file's.
static uint64_t window_end(const struct segment *s)
{
    return down(s->offset + s->filesz + HUGE_2M - 1);
}

static int open_file(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, EXIT_CANNOT_ASK, "%s", path) : fd;
}

int pagecache_drop(const char *path, struct err *e)
{
    int fd = open_file(path, e);
    if (fd < 0)
        return -1;
    // Dirty pages cannot be dropped.
    int rc = fsync(fd) ? -1 : posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return rc ? err_sys(e, EXIT_NO, "%s: cannot drop it from the page cache", path) : 0;
}

// FilePmdMapped of the mapping at address, in bytes.
static uint64_t pmd_mapped(const void *address)
{
    struct str smaps = {0};
    uint64_t kb = 0;
    if (fs_read("/proc/self/smaps", &smaps, NULL) == 0) {
        char start[40];
        snprintf(start, sizeof start, "%lx-", (unsigned long)address);
        char *vma = strstr(str_text(&smaps), start);
        char *field = vma ? strstr(vma, "FilePmdMapped:") : NULL;
        if (field)
            kb = strtoull(field + strlen("FilePmdMapped:"), NULL, 10);
    }
    str_free(&smaps);
    return kb * 1024;
}

// The kernel reads in a whole 2 MiB folio on a fault in a mapping that is congruent, covers the
// slot and is advised huge; touching every page also maps it.
static int fill_window(int fd, const char *path, uint64_t from, uint64_t to, uint64_t file_size,
                       uint64_t *huge, struct err *e)
{
    size_t size = (size_t)(to - from);
    char *reserve = mmap(NULL, size + HUGE_2M, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserve == MAP_FAILED)
        return err_sys(e, EXIT_NO, "%s: no address space", path);
    char *at = (char *)down((uint64_t)reserve + HUGE_2M - 1);
    int rc = 0;
    if (mmap(at, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, (off_t)from) == MAP_FAILED ||
        madvise(at, size, MADV_HUGEPAGE))
        rc = err_sys(e, EXIT_NOT_HERE,
                     "%s: cannot ask for 2 MiB folios (is transparent_hugepage "
                     "built into this kernel?)",
                     path);
    volatile char touched;
    for (uint64_t off = from; rc == 0 && off < to && off < file_size; off += SMALL)
        touched = at[off - from];
    (void)touched;
    if (rc == 0)
        *huge += pmd_mapped(at);
    munmap(reserve, size + HUGE_2M);
    return rc;
}

int pagecache_fill_huge(const char *path, const struct elf_facts *f, uint64_t *huge, struct err *e)
{
    *huge = 0;
    if (pagecache_drop(path, e))
        return -1;
    int fd = open_file(path, e), rc = fd < 0 ? -1 : 0;
    struct stat st = {0};
    if (rc == 0)
        fstat(fd, &st);
    uint64_t done = 0;
    for (size_t i = 0; i < f->nloads && rc == 0; i++) {
        const struct segment *s = &f->loads[i];
        uint64_t from = down(s->offset), to = window_end(s);
        if (!segment_is_text(s))
            continue;
        if (from < done)
            from = done;
        if (to > from)
            rc = fill_window(fd, path, from, to, (uint64_t)st.st_size, huge, e);
        done = to;
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

// A file of one slot, with its cache dropped.
static int make_trial(const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    char *slot = xcalloc(1, HUGE_2M);
    int rc = fd < 0 || write(fd, slot, HUGE_2M) != HUGE_2M
                 ? err_sys(e, EXIT_NOT_HERE, "%s: cannot write it", path)
                 : 0;
    free(slot);
    if (fd >= 0)
        close(fd);
    return rc ? rc : pagecache_drop(path, e);
}

int pagecache_try_huge(const char *dir, struct err *e)
{
    char *path = xasprintf("%s/folio-trial", dir);
    uint64_t huge = 0;
    int rc = make_trial(path, e);
    int fd = rc ? -1 : open_file(path, e);
    if (rc == 0)
        rc = fd < 0 ? -1 : fill_window(fd, path, 0, HUGE_2M, HUGE_2M, &huge, e);
    if (fd >= 0)
        close(fd);
    unlink(path);
    free(path);
    if (rc == 0 && !huge)
        rc = err_set(e, EXIT_NOT_HERE,
                     "the page cache of %s takes no 2 MiB folio: this file system has no large "
                     "folios (ext4 from Linux 6.16 and xfs have), or memory is in pieces",
                     dir);
    return rc;
}

int pagecache_fill_small(const char *path, const struct elf_facts *f, struct err *e)
{
    if (pagecache_drop(path, e))
        return -1;
    int fd = open_file(path, e), rc = fd < 0 ? -1 : 0;
    // Without read-ahead, a read of one page brings in a folio of one page.
    if (rc == 0)
        rc = posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    char page[SMALL];
    for (size_t i = 0; i < f->nloads && rc == 0; i++) {
        const struct segment *s = &f->loads[i];
        if (!segment_is_text(s))
            continue;
        for (uint64_t off = s->offset / SMALL * SMALL; rc == 0 && off < window_end(s); off += SMALL)
            if (pread(fd, page, sizeof page, (off_t)off) < 0)
                rc = err_sys(e, EXIT_NO, "%s: cannot read", path);
    }
    if (fd >= 0)
        close(fd);
    return rc;
}
