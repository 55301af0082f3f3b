// This process as the kernel sees it.
#include "remap/remap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uintptr_t later(uintptr_t a, uintptr_t b)
{
    return a > b ? a : b;
}

static uintptr_t sooner(uintptr_t a, uintptr_t b)
{
    return a < b ? a : b;
}

static void read_count(const char *line, struct mapping *m)
{
    size_t kb;
    if (sscanf(line, "KernelPageSize: %zu", &kb) == 1)
        m->page = kb << 10;
    else if (sscanf(line, "Anonymous: %zu", &kb) == 1)
        m->anonymous = kb << 10;
    else if (sscanf(line, "AnonHugePages: %zu", &kb) == 1)
        m->anon_huge = kb << 10;
}

// Mappings come in the order of their addresses. A line longer than the buffer (a path) goes on as
// one that is no header and no count.
static int scan(FILE *f, uintptr_t from, uintptr_t to, struct mapping *m, size_t max)
{
    char line[256];
    size_t n = 0;
    bool within = false;
    while (fgets(line, sizeof line, f)) {
        struct mapping h = {0};
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &h.from, &h.to, h.perms) != 3) {
            if (within)
                read_count(line, &m[n - 1]);
            continue;
        }
        if (h.from >= to)
            break;
        within = h.to > from;
        if (within && n == max)
            return -E2BIG;
        if (within) {
            h.from = later(h.from, from);
            h.to = sooner(h.to, to);
            m[n++] = h;
        }
    }
    return ferror(f) ? -EIO : (int)n;
}

int mappings_read(uintptr_t from, uintptr_t to, struct mapping *m, size_t max)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    if (!f)
        return -errno;
    int n = scan(f, from, to, m, max);
    fclose(f);
    return n;
}

size_t mappings_huge(uintptr_t from, uintptr_t to)
{
    struct mapping m[MAX_RANGES];
    int n = mappings_read(from, to, m, MAX_RANGES);
    size_t sum = 0;
    for (int i = 0; i < n; i++)
        sum +=
            m[i].page >= SLOT ? m[i].to - m[i].from : sooner(m[i].anon_huge, m[i].to - m[i].from);
    return sum;
}

int threads_count(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    int n = -ENODATA;
    if (!f)
        return -errno;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %d", &n) == 1)
            break;
    fclose(f);
    return n;
}
