// text=none, pagecache, tmpfs: code that stays in a file, by the folios that the file's cache
// holds.
#include "launcher/text_modes.h"

#include "common/fs.h"
#include "common/sys.h"
#include "launcher/pagecache.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int text_none(struct launch *l, struct knob_state *s, struct err *e)
{
    text_seen(s, json_pack("{ss}", "cache", "own copy, filled with 4 KiB folios"));
    text_keep_library_out(l);
    return text_own_copy(l, e) || pagecache_fill_small(l->exec, &l->elf, e) ? -1 : 0;
}

// --- page cache ---

int text_pagecache_able(const struct launch *l, const struct text_plan *p, struct err *e)
{
    (void)p;
    return pagecache_try_huge(l->in.place, e);
}

int text_pagecache(struct launch *l, struct knob_state *s, struct err *e)
{
    const struct text_plan *plan = s->plan;
    uint64_t filled, need = plan->prediction.text_huge_bytes;
    text_keep_library_out(l);
    if (text_own_copy(l, e) || pagecache_fill_huge(l->exec, &l->elf, &filled, e))
        return -1;
    text_seen(s, json_pack("{sssIsI}", "cache", "own copy, filled with 2 MiB folios",
                           "cache_huge_bytes", (json_int_t)filled, "predicted_bytes",
                           (json_int_t)need));
    if (filled < need)
        return err_set(e, EXIT_NOT_HERE,
                       "%s: text=pagecache: the page cache took %llu kB as 2 MiB folios, %llu kB "
                       "are needed: memory is in pieces",
                       l->exec, (unsigned long long)filled >> 10, (unsigned long long)need >> 10);
    return 0;
}

// --- tmpfs ---

// The copy is whole slots, the last filled up with zeros: a write of a whole slot gets one folio of
// 2 MiB in every kernel, smaller ones do not in those that size folios by the write.
static uint64_t copy_size(const struct launch *l)
{
    return (fs_size(l->exec) + HUGE_2M - 1) / HUGE_2M * HUGE_2M;
}

int text_tmpfs_able(const struct launch *l, const struct text_plan *p, struct err *e)
{
    (void)p;
    if (!text_may_mount())
        return err_set(e, EXIT_NOT_HERE, "only root can mount a tmpfs (CAP_SYS_ADMIN)");
    char *mode = sys_choice("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    bool denied = mode && !strcmp(mode, "deny");
    bool missing = !mode;
    free(mode);
    if (missing)
        return err_set(e, EXIT_NOT_HERE, "this kernel's tmpfs has no 2 MiB pages");
    if (denied)
        return err_set(e, EXIT_NOT_HERE,
                       "2 MiB pages of tmpfs are denied; echo never > "
                       "/sys/kernel/mm/transparent_hugepage/shmem_enabled lifts that");
    return text_memory(copy_size(l), "the copy on tmpfs", e);
}

// Bytes read until the buffer is full or the file ends; -1 on error.
static ssize_t read_slot(int fd, char *slot)
{
    size_t n = 0;
    while (n < HUGE_2M) {
        ssize_t got = read(fd, slot + n, HUGE_2M - n);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

static int copy_slots(int in, int out)
{
    char *slot = xcalloc(1, HUGE_2M);
    ssize_t n;
    int rc = 0;
    while (rc == 0 && (n = read_slot(in, slot)) != 0) {
        if (n > 0)
            memset(slot + n, 0, HUGE_2M - (size_t)n);
        rc = n < 0 || write(out, slot, HUGE_2M) != HUGE_2M ? -1 : 0;
    }
    free(slot);
    return rc;
}

static int copy_in_slots(const char *from, const char *to, struct err *e)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0755);
    int rc = in < 0 || out < 0 || copy_slots(in, out)
                 ? err_sys(e, EXIT_NOT_HERE, "%s: cannot copy %s", to, from)
                 : 0;
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return rc;
}

static char *mount_tmpfs(struct launch *l, struct err *e)
{
    char *options =
        xasprintf("huge=always,size=%lluk,nr_inodes=16",
                  (unsigned long long)(copy_size(l) + HUGE_2M) >> 10); // and one slot of slack
    char *dir = text_mount(l, "tmpfs", options, e);
    free(options);
    return dir;
}

int text_tmpfs(struct launch *l, struct knob_state *s, struct err *e)
{
    const struct text_plan *plan = s->plan;
    char *dir = mount_tmpfs(l, e);
    if (!dir)
        return -1;
    char *name = xstrdup(l->exec);
    char *copy = xasprintf("%s/%s", dir, basename(name));
    int rc = copy_in_slots(l->exec, copy, e);
    if (rc == 0) {
        text_keep_library_out(l);
        text_seen(s, json_pack("{sssIsI}", "mount", dir, "copy_bytes", (json_int_t)copy_size(l),
                               "predicted_bytes", (json_int_t)plan->prediction.text_huge_bytes));
        free(l->exec);
        l->exec = xstrdup(copy);
    }
    free(copy);
    free(name);
    free(dir);
    return rc;
}
