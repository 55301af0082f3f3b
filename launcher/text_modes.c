// The table of the ways to stated pages under a server's code, and what they share.
#include "launcher/text_modes.h"

#include "common/fs.h"
#include "common/sys.h"
#include "elfcheck/coverage.h"

#include <libgen.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNTED(field) offsetof(struct coverage, field)

const struct text_mode text_modes[] = {
    {
        .about = {.name = "none",
                  .does = "code on 4 KiB pages, made sure of: the server runs from a copy whose "
                          "page cache holds folios of 4 KiB",
                  .needs = "room for a copy of the file",
                  .costs = "the copy",
                  .verified = "smaps: nothing of the text is on huge pages"},
        .counter = COUNTED(huge),
        .prepare = text_none,
    },
    {
        .about = {.name = "pagecache",
                  .does = "code on 2 MiB pages of the page cache: the server runs from a copy that "
                          "is read into 2 MiB folios before the start",
                  .needs = "text aligned to 2 MiB; a file system with large folios (ext4 from "
                           "Linux 6.16, xfs); no privilege",
                  .costs = "the copy; a head or tail that fills no 2 MiB slot stays small; the "
                           "kernel may take the pages back: kiln bench looks again at the end",
                  .verified = "smaps: FilePmdMapped of the text"},
        .predicted_as = "pagecache",
        .by_auto = true,
        .counter = COUNTED(file_pmd),
        .able = text_pagecache_able,
        .prepare = text_pagecache,
    },
    {
        .about = {.name = "tmpfs",
                  .does =
                      "code on 2 MiB pages of a tmpfs: the server runs from a copy on a private "
                      "tmpfs that is mounted with huge=always",
                  .needs = "text aligned to 2 MiB; root, to mount; memory for the copy",
                  .costs = "memory of the file's size that cannot be dropped; a head or tail that "
                           "fills no 2 MiB slot stays small",
                  .verified = "smaps: ShmemPmdMapped of the text"},
        .predicted_as = "tmpfs",
        .by_auto = true,
        .counter = COUNTED(shmem_pmd),
        .able = text_tmpfs_able,
        .prepare = text_tmpfs,
    },
    {
        .about = {.name = "hugetlbfs:marked",
                  .does = "what hugeedit marked in the file, on pages of the huge page pool: "
                          "libhugetlbfs moves it before main",
                  .needs = "a file marked by 'hugeedit --text', segments aligned to the page; "
                           "libhugetlbfs; a pool with free pages, or root to raise it; root for a "
                           "mount, unless one may be used",
                  .costs = "pool memory; perf and gdb lose the file's name for the code",
                  .verified = "smaps: the text lies on pages of the pool"},
        .predicted_as = "hugetlbfs:marked",
        .pool = true,
        .by_auto = true,
        .counter = COUNTED(hugetlb),
        .able = text_hugetlbfs_able,
        .prepare = text_hugetlbfs,
    },
    {
        .about = {.name = "hugetlbfs:R",
                  .does = "code and read-only data on pages of the huge page pool: libhugetlbfs, "
                          "preloaded in the server alone, moves them before main "
                          "(HUGETLB_ELFMAP=R); hugetlbfs alone means this",
                  .needs = "segments aligned to the page, and no more of them than libhugetlbfs "
                           "takes (3 up to version 2.23, 4 from 2.24); libhugetlbfs; a pool with "
                           "free pages, or root to raise it; root for a mount, unless one may be "
                           "used",
                  .costs = "pool memory; perf and gdb lose the file's name for the code",
                  .verified = "smaps: the text lies on pages of the pool"},
        .predicted_as = "hugetlbfs:R",
        .pool = true,
        .by_auto = true,
        .counter = COUNTED(hugetlb),
        .able = text_hugetlbfs_able,
        .prepare = text_hugetlbfs,
    },
    {
        .about = {.name = "hugetlbfs:RW",
                  .does = "code and all data on pages of the huge page pool (HUGETLB_ELFMAP=RW)",
                  .needs = "as hugetlbfs:R, and four segments are one too many for libhugetlbfs "
                           "2.23; text=auto never takes it",
                  .costs = "as hugetlbfs:R; data takes its pages twice while it is moved, and what "
                           "RELRO made read-only can be written again",
                  .verified = "smaps: the text lies on pages of the pool"},
        .predicted_as = "hugetlbfs:RW",
        .pool = true,
        .counter = COUNTED(hugetlb),
        .able = text_hugetlbfs_able,
        .prepare = text_hugetlbfs,
    },
    {
        .about = {.name = "remap",
                  .does = "code moved to anonymous 2 MiB pages before main, by kiln's own library "
                          "libkiln-remap.so, preloaded in the server alone",
                  .needs = "that library beside kiln's programs; a dynamic program whose text "
                           "covers a whole 2 MiB slot",
                  .costs = "memory for the moved code; perf and gdb lose the file's name for it; a "
                           "head or tail that fills no 2 MiB slot stays small",
                  .verified = "smaps: AnonHugePages of the text, or pages of the pool"},
        .predicted_as = "remap",
        .by_auto = true,
        .counter = COUNTED(huge),
        .able = text_remap_able,
        .prepare = text_remap,
    },
    {
        .about = {.name = "auto",
                  .does =
                      "the way with the most text on huge pages by prediction, among those this "
                      "host can do now; of equals the cheapest: pagecache, tmpfs, "
                      "hugetlbfs:marked, hugetlbfs:R, remap",
                  .needs = "one that works; else text=auto fails with the best reason, and "
                           "text=auto? makes sure of 4 KiB pages and goes on",
                  .costs = "what the way it takes costs",
                  .verified = "as the way it takes; the result says which that is, and why not the "
                              "others"},
        .counter = COUNTED(huge),
        .prepare = text_auto,
    },
    {.about = {.name = NULL}},
};

const struct text_mode *text_mode_find(const char *name)
{
    for (const struct text_mode *m = text_modes; m->about.name; m++)
        if (!strcmp(m->about.name, name))
            return m;
    return NULL;
}

int text_predict(const struct launch *l, struct text_plan *p, struct err *e)
{
    unsigned limit = p->mode->pool ? libhugetlbfs_segment_limit(NULL) : 0;
    char size[16];
    if (!page_sizes_of(l->elf.machine, p->page, &p->pages))
        return err_set(e, p->page ? EXIT_NOT_HERE : EXIT_CANNOT_KNOW, "%s has no pages of %s",
                       l->elf.machine_name,
                       p->page ? page_size_text(p->page, size) : "a size that is known");
    if (!predict_mode(p->mode->predicted_as, &l->elf, &p->pages, limit, &p->prediction))
        return err_set(e, EXIT_CANNOT_KNOW, "there is no prediction for it");
    const struct prediction *got = &p->prediction;
    if (got->answer != ANSWER_YES)
        return err_set(e, got->answer == ANSWER_NO ? EXIT_NO : EXIT_CANNOT_KNOW, "%s", got->reason);
    return got->text_huge_bytes ? 0 : err_set(e, EXIT_NO, "it would move no text");
}

int text_own_copy(struct launch *l, struct err *e)
{
    char *dir = xasprintf("%s/bin", l->in.place);
    char *name = xstrdup(l->exec);
    char *copy = xasprintf("%s/%s", dir, basename(name));
    bool done = !strcmp(l->exec, copy);
    int rc = done ? 0 : instance_dir(&l->in, dir, e);
    if (rc == 0 && !done)
        rc = fs_copy_file(l->exec, copy, 0755, e);
    if (rc == 0) {
        free(l->exec);
        l->exec = copy;
    } else {
        free(copy);
    }
    free(name);
    free(dir);
    return rc;
}

void text_keep_library_out(struct launch *l)
{
    if (elf_links_libhugetlbfs(&l->elf) && !strv_has(&l->env, "HUGETLB_ELFMAP=no"))
        strv_add(&l->env, "HUGETLB_ELFMAP=no");
}

bool text_may_mount(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {0};
    return syscall(SYS_capget, &head, caps) == 0 &&
           (caps[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN));
}

char *text_mount(struct launch *l, const char *type, const char *options, struct err *e)
{
    char *dir = xasprintf("%s/%s", l->in.run, type);
    char *all = xasprintf("uid=%u,gid=%u,mode=0700,%s", l->in.uid, l->in.gid, options);
    int rc = instance_dir(&l->in, dir, e);
    if (rc == 0)
        rc = journal_mount(l->journal, dir, e);
    if (rc == 0 && mount("kiln", dir, type, MS_NOSUID | MS_NODEV, all))
        rc = err_sys(e, EXIT_NOT_HERE, "%s: cannot mount %s with %s", dir, type, options);
    free(all);
    if (rc == 0)
        return dir;
    free(dir);
    return NULL;
}

void text_seen(struct knob_state *s, json_t *more)
{
    json_object_update(s->seen, more);
    json_decref(more);
}

int text_memory(uint64_t bytes, const char *what, struct err *e)
{
    uint64_t kb;
    if (sys_field("/proc/meminfo", "MemAvailable", &kb) || kb >= bytes >> 10)
        return 0;
    return err_set(e, EXIT_NOT_HERE, "%s takes %llu MiB, and %llu MiB of memory are available",
                   what, (unsigned long long)bytes >> 20, (unsigned long long)kb >> 10);
}
