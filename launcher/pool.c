#include "launcher/pool.h"

#include "common/fs.h"
#include "common/json.h"
#include "common/proc.h"
#include "common/store.h"
#include "common/str.h"
#include "common/sys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

int pool_read(struct pool *p, struct err *e)
{
    const struct {
        const char *file;
        unsigned *to;
    } fields[] = {{POOL "nr_hugepages", &p->total},
                  {POOL "free_hugepages", &p->free},
                  {POOL "resv_hugepages", &p->reserved},
                  {POOL "surplus_hugepages", &p->surplus}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        uint64_t v;
        int rc = sys_read_u64(fields[i].file, &v);
        if (rc)
            return err_set(e, EXIT_NOT_HERE, "%s: %s: this kernel has no pool of 2 MiB pages",
                           fields[i].file, strerror(-rc));
        *fields[i].to = (unsigned)v;
    }
    return 0;
}

static char *base_file(void)
{
    return xasprintf("%s/pool-2048kB.json", store_run_dir());
}

static int base_save(unsigned base, unsigned expected, struct err *e)
{
    char *path = base_file();
    json_t *o = json_new("kiln.pool/1");
    json_object_set_new(o, "base", json_integer(base));
    json_object_set_new(o, "expected", json_integer(expected));
    int rc = json_save(o, path, e);
    json_decref(o);
    free(path);
    return rc;
}

static int base_load(unsigned *base, unsigned *expected, struct err *e)
{
    char *path = base_file();
    json_t *o = json_open(path, "kiln.pool/1", e);
    free(path);
    if (!o)
        return -1;
    *base = (unsigned)json_num(o, "base", 0);
    *expected = (unsigned)json_num(o, "expected", 0);
    json_decref(o);
    return 0;
}

static int resize(unsigned pages, struct pool *after, struct err *e)
{
    char text[32];
    snprintf(text, sizeof text, "%u", pages);
    int rc = sys_write(POOL "nr_hugepages", text);
    if (rc)
        return err_set(e, EXIT_NOT_HERE, "huge page pool: cannot set it to %u pages: %s%s", pages,
                       strerror(-rc), rc == -EACCES ? " (needs root)" : "");
    return pool_read(after, e);
}

// Memory that is free but in pieces can be put together: compact once and ask again.
static int grow(unsigned want, struct pool *after, struct err *e)
{
    if (resize(want, after, e))
        return -1;
    if (after->total >= want)
        return 0;
    sys_write("/proc/sys/vm/compact_memory", "1");
    return resize(want, after, e);
}

static int claim_locked(struct journal *j, unsigned need, unsigned *raised, struct err *e)
{
    struct pool now;
    if (pool_read(&now, e))
        return -1;
    struct pool_claims others = journal_pool_claims();
    unsigned base = now.total, expected = now.total;
    if (others.count && base_load(&base, &expected, e))
        return -1;
    unsigned held = now.reserved + others.need;
    unsigned usable = now.free > held ? now.free - held : 0;
    *raised = need > usable ? need - usable : 0;
    if (base_save(base, expected, e) || journal_pool(j, *raised, need, e))
        return -1;
    if (!*raised)
        return 0;
    struct pool after;
    unsigned want = now.total + *raised;
    if (grow(want, &after, e) || base_save(base, after.total, e))
        return -1;
    if (after.total < want)
        return err_set(e, EXIT_NOT_HERE,
                       "huge page pool: asked the kernel for %u pages of 2 MiB, it has %u (%u were "
                       "there, %u more needed); free memory, or reserve at boot with hugepages=%u",
                       want, after.total, now.total, *raised, want);
    return 0;
}

int pool_claim(struct journal *j, unsigned need, unsigned *raised, struct err *e)
{
    int lock = journal_lock(e);
    if (lock < 0)
        return -1;
    int rc = claim_locked(j, need, raised, e);
    close(lock);
    return rc;
}

int pool_release(unsigned pages, struct err *e)
{
    unsigned base, expected;
    struct pool now, after;
    if (base_load(&base, &expected, e) || pool_read(&now, e))
        return -1;
    unsigned target = base + journal_pool_claims().pages - pages;
    if (now.total == target)
        return 0;
    if (now.total != expected) {
        err_set(
            e, EXIT_NO,
            "huge page pool: it has %u pages, kiln left it at %u: somebody else changed it, so it "
            "stays (it was %u before kiln)",
            now.total, expected, base);
        return 1;
    }
    return resize(target, &after, e) ? -1 : base_save(base, after.total, e);
}
