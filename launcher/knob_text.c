// text=none|pagecache|hugetlbfs[:R|RW]: which pages the server's code lies on.
#include "launcher/knob.h"

#include "common/fs.h"
#include "common/proc.h"
#include "elfcheck/coverage.h"
#include "elfcheck/predict.h"
#include "launcher/pagecache.h"
#include "launcher/pool.h"

#include <errno.h>
#include <libgen.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

struct text_plan {
    bool huge;           // the text must come up on huge pages
    uint64_t huge_bytes; // at least so many
    char letters[3];     // of HUGETLB_ELFMAP
};

// A copy of the binary in the instance: its page cache is nobody else's.
static int own_copy(struct launch *l, struct err *e)
{
    char *dir = xasprintf("%s/bin", l->in.place);
    char *name = xstrdup(l->exec);
    char *copy = xasprintf("%s/%s", dir, basename(name));
    int rc = instance_dir(&l->in, dir, e);
    if (rc == 0)
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

// A program that is linked with libhugetlbfs and marked by hugeedit would take pages of the pool
// whatever was asked for.
static void keep_library_out(struct launch *l)
{
    if (elf_links_libhugetlbfs(&l->elf))
        strv_add(&l->env, "HUGETLB_ELFMAP=no");
}

static int prepare_none(struct launch *l, struct knob_state *s, struct err *e)
{
    s->seen = json_pack("{ss}", "cache", "own copy, filled with 4 KiB folios");
    keep_library_out(l);
    return own_copy(l, e) || pagecache_fill_small(l->exec, &l->elf, e) ? -1 : 0;
}

static void predict_text(const struct launch *l, const char *mode, unsigned limit,
                         struct prediction *p)
{
    struct page_sizes pages;
    *p = (struct prediction){.answer = ANSWER_CANNOT_KNOW, .reason = "unknown machine"};
    if (page_sizes_of(l->elf.machine, 0, &pages))
        predict_mode(mode, &l->elf, &pages, limit, p);
}

static int prepare_pagecache(struct launch *l, struct knob_state *s, struct err *e)
{
    struct text_plan *plan = s->plan;
    struct prediction p;
    predict_text(l, "pagecache", 0, &p);
    if (p.answer != ANSWER_YES || !p.text_huge_bytes)
        return err_set(e, EXIT_NO, "%s: text=pagecache cannot work: %s", l->build.server, p.reason);
    plan->huge = true;
    plan->huge_bytes = p.text_huge_bytes;
    keep_library_out(l);
    uint64_t filled;
    if (own_copy(l, e) || pagecache_fill_huge(l->exec, &l->elf, &filled, e))
        return -1;
    s->seen =
        json_pack("{sssIsI}", "cache", "own copy, filled with 2 MiB folios", "cache_huge_bytes",
                  (json_int_t)filled, "predicted_bytes", (json_int_t)plan->huge_bytes);
    if (filled < plan->huge_bytes)
        return err_set(
            e, EXIT_NOT_HERE,
            "%s: text=pagecache: the page cache took %llu kB as 2 MiB folios, %llu kB are "
            "needed: this file system has no large folios (ext4 from Linux 6.16, xfs), or "
            "memory is in pieces",
            l->exec, (unsigned long long)filled >> 10, (unsigned long long)plan->huge_bytes >> 10);
    return 0;
}

static bool may_use(const struct launch *l, const char *dir)
{
    struct stat st;
    if (stat(dir, &st) || !fs_reachable(dir, l->in.uid, l->in.gid))
        return false;
    unsigned shift = st.st_uid == l->in.uid ? 6 : st.st_gid == l->in.gid ? 3 : 0;
    return (st.st_mode >> shift & 7) == 7;
}

// An existing hugetlbfs of 2 MiB pages where the server's user may make and execute files;
// malloc'ed.
static char *usable_mount(const struct launch *l)
{
    FILE *f = setmntent("/proc/mounts", "re");
    char *found = NULL;
    for (struct mntent *m; f && !found && (m = getmntent(f));) {
        char *size = hasmntopt(m, "pagesize");
        bool fits = !size || starts_with(size, "pagesize=2M");
        if (!strcmp(m->mnt_type, "hugetlbfs") && strcmp(m->mnt_fsname, "kiln") && fits &&
            !hasmntopt(m, "noexec") && !hasmntopt(m, "ro") && may_use(l, m->mnt_dir))
            found = xstrdup(m->mnt_dir);
    }
    if (f)
        endmntent(f);
    return found;
}

static char *private_mount(struct launch *l, struct err *e)
{
    char *dir = xasprintf("%s/huge", l->in.run);
    char *opts = xasprintf("uid=%u,gid=%u,mode=0700,pagesize=2M", l->in.uid, l->in.gid);
    int rc = instance_dir(&l->in, dir, e);
    if (rc == 0)
        rc = journal_mount(l->journal, dir, e);
    if (rc == 0 && mount("kiln", dir, "hugetlbfs", MS_NOSUID | MS_NODEV, opts))
        rc = err_sys(e, EXIT_NOT_HERE, "%s: cannot mount hugetlbfs", dir);
    free(opts);
    if (rc == 0)
        return dir;
    free(dir);
    return NULL;
}

static int prepare_hugetlbfs(struct launch *l, struct knob_state *s, struct err *e)
{
    struct text_plan *plan = s->plan;
    const char *library = libhugetlbfs_path();
    if (!library)
        return err_set(e, EXIT_NOT_HERE,
                       "text=hugetlbfs: libhugetlbfs is not installed (Debian: "
                       "libhugetlbfs0)");
    unsigned limit = libhugetlbfs_segment_limit(e), raised;
    if (!limit)
        return -1;
    struct prediction p;
    predict_text(l, strchr(plan->letters, 'W') ? "hugetlbfs:RW" : "hugetlbfs:R", limit, &p);
    if (p.answer != ANSWER_YES)
        return err_set(e, p.answer == ANSWER_NO ? EXIT_NO : EXIT_CANNOT_KNOW,
                       "%s: text=hugetlbfs:%s cannot work: %s", l->build.server, plan->letters,
                       p.reason);
    plan->huge = true;
    plan->huge_bytes = p.text_huge_bytes;
    unsigned need = p.pages;
    char *mnt = usable_mount(l);
    if (!mnt && geteuid() != 0)
        return err_set(e, EXIT_NOT_HERE,
                       "text=hugetlbfs: no hugetlbfs mount that uid %u may use, and "
                       "only root can make one",
                       geteuid());
    if (!mnt)
        mnt = private_mount(l, e);
    if (!mnt || pool_claim(l->journal, need, &raised, e)) {
        free(mnt);
        return -1;
    }
    strv_addf(&l->env, "HUGETLB_ELFMAP=%s", plan->letters);
    strv_addf(&l->env, "HUGETLB_PATH=%s", mnt);
    bool linked = elf_links_libhugetlbfs(&l->elf);
    if (!linked)
        strv_add(&l->preload, library);
    s->seen = json_pack("{sisisssssb}", "pages_needed", need, "pages_added", raised, "mount", mnt,
                        "library", library, "linked", linked);
    free(mnt);
    return 0;
}

static int prepare(struct launch *l, struct knob_state *s, struct err *e)
{
    struct text_plan *plan = s->plan = xcalloc(1, sizeof *plan);
    if (!strcmp(s->value, "none"))
        return prepare_none(l, s, e);
    if (!strcmp(s->value, "pagecache"))
        return prepare_pagecache(l, s, e);
    if (!strcmp(s->value, "hugetlbfs") || !strcmp(s->value, "hugetlbfs:R") ||
        !strcmp(s->value, "hugetlbfs:RW")) {
        snprintf(plan->letters, sizeof plan->letters, "%s", ends_with(s->value, "RW") ? "RW" : "R");
        return prepare_hugetlbfs(l, s, e);
    }
    return err_set(e, EXIT_CANNOT_ASK, "text=%s: not one of %s", s->value, knob_text.values);
}

static int judge(const struct text_plan *plan, const char *value, const struct coverage *c,
                 struct err *e)
{
    if (!plan->huge)
        return c->huge ? err_set(e, EXIT_NO, "text=%s: %llu kB of the text are on 2 MiB pages",
                                 value, (unsigned long long)c->huge >> 10)
                       : 0;
    if (c->huge >= plan->huge_bytes)
        return 0;
    return err_set(e, EXIT_NO,
                   "text=%s: the server runs with %llu of %llu kB of its text on 2 MiB pages, "
                   "expected were %llu kB",
                   value, (unsigned long long)c->huge >> 10, (unsigned long long)c->text >> 10,
                   (unsigned long long)plan->huge_bytes >> 10);
}

// libhugetlbfs remaps before main, but the first look can come before that when nothing tells that
// the program is up: a little patience costs nothing.
static int verify(const struct launch *l, struct knob_state *s, struct err *e)
{
    const struct text_plan *plan = s->plan;
    struct coverage c;
    double end = now_seconds() + 2;
    for (;;) {
        if (coverage_read(l->pid, &l->elf, &c, e))
            return -1;
        if (judge(plan, s->value, &c, e) == 0 || now_seconds() > end)
            break;
        sleep_seconds(0.05);
    }
    json_t *seen = coverage_json(&c);
    json_object_update(s->seen, seen);
    json_decref(seen);
    return judge(plan, s->value, &c, e);
}

const struct knob knob_text = {
    .name = "text",
    .values = "none, pagecache, hugetlbfs, hugetlbfs:R, hugetlbfs:RW",
    .about = "pages under the server's code: 4 KiB made sure of, or 2 MiB by the page cache or "
             "libhugetlbfs",
    .prepare = prepare,
    .verify = verify,
};
