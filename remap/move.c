// One range of text: copied to 2 MiB pages, which then change places with it.
#include "remap/remap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // Linux 5.14
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 // Linux 6.1
#endif
#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif

static char *map(size_t n, int prot, int flags)
{
    return mmap(NULL, n, prot, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

// --- transparent huge pages ---

static char *map_aligned(size_t n)
{
    char *p = map(n + SLOT, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    if (p == MAP_FAILED)
        return p;
    size_t head = -(uintptr_t)p & (SLOT - 1);
    if (head)
        munmap(p, head);
    munmap(p + head + n, SLOT - head);
    return p + head;
}

// MADV_COLLAPSE works whatever /sys/kernel/mm/transparent_hugepage/enabled says, and does nothing
// to a slot that has its huge page. Kernels before 6.1 do not know it: the page faults have done
// what can be done. Either way smaps decides.
static size_t collapse(char *p, size_t n)
{
    size_t done = 0;
    while (done < n && madvise(p + done, SLOT, MADV_COLLAPSE) == 0)
        done += SLOT;
    size_t seen = mappings_huge((uintptr_t)p, (uintptr_t)p + n);
    return seen >= n ? n : seen >= done ? done : 0;
}

static char *thp_copy(const char *text, size_t *n, struct reason *r)
{
    char *p = map_aligned(*n);
    if (p == MAP_FAILED) {
        reason_set(r, "no address space for the copy (RLIMIT_AS, RLIMIT_DATA, overcommit): %s",
                   strerror(errno));
        return NULL;
    }
    madvise(p, *n, MADV_HUGEPAGE);
    if (madvise(p, *n, MADV_POPULATE_WRITE) && errno != EINVAL) {
        reason_set(r, "no memory for the copy: %s", strerror(errno));
        munmap(p, *n);
        return NULL;
    }
    memcpy(p, text, *n);
    size_t huge = collapse(p, *n);
    if (huge < *n) {
        reason_set(r, "the kernel gave too few transparent huge pages (they are off for this "
                      "process, or memory is short or fragmented)");
        munmap(p + huge, *n - huge);
    }
    *n = huge;
    return huge ? p : NULL;
}

// --- the pool ---

static void say_no_pool(struct reason *r)
{
    if (errno == ENOMEM)
        reason_set(r, "too few free 2 MiB pages in the pool, or no address space: %s",
                   strerror(errno));
    else
        reason_set(r, "no pool of 2 MiB pages that this process may use: %s", strerror(errno));
}

// The mapping reserves its pages. Faults come by MADV_POPULATE_WRITE, which returns where a touch
// would be a SIGBUS (a cgroup's limit, a NUMA policy).
static char *pool_copy(const char *text, size_t *n, struct reason *r)
{
    char *p;
    do {
        p = map(*n, PROT_READ | PROT_WRITE, MAP_HUGETLB | MAP_HUGE_2MB);
        if (p != MAP_FAILED)
            break;
        say_no_pool(r);
        *n -= SLOT;
    } while (*n);
    if (p == MAP_FAILED)
        return NULL;
    if (madvise(p, *n, MADV_POPULATE_WRITE)) {
        reason_set(r,
                   "the pool's pages cannot be had (hugetlb cgroup, NUMA policy, a kernel "
                   "before 5.14): %s",
                   strerror(errno));
        munmap(p, *n);
        return NULL;
    }
    memcpy(p, text, *n);
    return p;
}

static const struct way ways[] = {
    {.name = "thp", .copy = thp_copy},
    {.name = "pool", .copy = pool_copy},
};

const struct way *way_find(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(ways[i].name, name))
            return &ways[i];
    return NULL;
}

// --- changing places ---

static bool move_to(char *from, size_t n, char *to)
{
    return syscall(SYS_mremap, from, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, to) == (long)to;
}

static _Noreturn void text_is_lost(void)
{
    static const char line[] = "kiln-remap: the kernel refuses to put text back; giving up\n";
    if (write(STDERR_FILENO, line, sizeof line - 1))
        abort();
    abort();
}

// mremap with MREMAP_FIXED unmaps what is at its target before it can fail (mm/mremap.c: mremap_to
// unmaps, then move_vma charges overcommit and allocates page tables). So the text is moved aside
// first, not written over, and can come back as the mapping it was. No code of the text runs
// between the two: there is one thread, signals are blocked, and the call is a bare system call.
static bool change_places(char *text, char *copy, size_t n, struct reason *r)
{
    char *aside = map(n, PROT_NONE, MAP_NORESERVE);
    if (aside == MAP_FAILED || !move_to(text, n, aside)) {
        reason_set(r, "text cannot be moved aside: %s", strerror(errno));
        if (aside != MAP_FAILED)
            munmap(aside, n);
        return false;
    }
    if (move_to(copy, n, text)) {
        munmap(aside, n);
        return true;
    }
    int error = errno;
    if (!move_to(aside, n, text))
        text_is_lost();
    reason_set(r, "the pages cannot be moved (of a pool: from Linux 5.16 on): %s", strerror(error));
    return false;
}

size_t move_text(const struct way *way, char *text, size_t n, struct reason *r)
{
    char *copy = way->copy(text, &n, r);
    if (!copy)
        return 0;
    bool ok = mprotect(copy, n, PROT_READ | PROT_EXEC) == 0;
    if (!ok)
        reason_set(r, "anonymous memory may not become executable%s: %s",
                   errno == EACCES || errno == EPERM ? " (SELinux execmem, MemoryDenyWriteExecute=)"
                                                     : "",
                   strerror(errno));
    __builtin___clear_cache(copy, copy + n);
    if (ok && change_places(text, copy, n, r))
        return n;
    munmap(copy, n);
    return 0;
}
