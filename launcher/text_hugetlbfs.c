// text=hugetlbfs[:R|:RW|:marked][:SIZE]: libhugetlbfs moves code to pages of the huge page pool.
#include "launcher/text_modes.h"

#include "common/fs.h"
#include "common/sys.h"
#include "launcher/pool.h"

#include <dirent.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define POOLS "/sys/kernel/mm/hugepages"

// launcher/pool.h raises and lowers the pool of this size; others are used as they are.
enum { RAISED = HUGE_2M };

// --- the pool ---

static char *pool_file(uint64_t page, const char *name)
{
    return xasprintf(POOLS "/hugepages-%llukB/%s", (unsigned long long)page >> 10, name);
}

static int pool_number(uint64_t page, const char *name, uint64_t *pages)
{
    char *file = pool_file(page, name);
    int rc = sys_read_u64(file, pages);
    free(file);
    return rc;
}

// "2M", "1G"; in kB.
static void add_size(struct str *b, unsigned long long kb)
{
    unsigned shift = kb >> 20 ? 20 : kb >> 10 ? 10 : 0;
    str_addf(b, "%s%llu%c", b->len ? ", " : "", kb >> shift, "KMG"[shift / 10]);
}

// The sizes that the kernel has a pool of; malloc'ed.
static char *pool_sizes(void)
{
    char *dir = sys_path(POOLS);
    struct str sizes = {0};
    struct dirent **names;
    int n = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        unsigned long long kb;
        if (sscanf(names[i]->d_name, "hugepages-%llukB", &kb) == 1)
            add_size(&sizes, kb);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    free(dir);
    return sizes.s ? sizes.s : xstrdup("none");
}

int text_pool_exists(uint64_t page, struct err *e)
{
    uint64_t total;
    char size[16];
    if (pool_number(page, "nr_hugepages", &total) == 0)
        return 0;
    char *sizes = pool_sizes();
    int rc = err_set(e, EXIT_NOT_HERE, "this kernel has no pool of %s pages (it has: %s)",
                     page_size_text(page, size), sizes);
    free(sizes);
    return rc;
}

// The pages that nobody holds, has reserved or has claimed.
static uint64_t pool_free(uint64_t page)
{
    uint64_t free_pages = 0, held = 0;
    pool_number(page, "free_hugepages", &free_pages);
    pool_number(page, "resv_hugepages", &held);
    if (page == RAISED)
        held += journal_pool_claims().need;
    return free_pages > held ? free_pages - held : 0;
}

// In a container /sys is often read-only for root, too.
static bool pool_writable(uint64_t page)
{
    char *file = pool_file(page, "nr_hugepages");
    bool yes = access(file, W_OK) == 0;
    free(file);
    return yes;
}

static int pool_enough(uint64_t page, unsigned need, struct err *e)
{
    uint64_t there = pool_free(page);
    char size[16];
    page_size_text(page, size);
    if (there >= need)
        return 0;
    if (page != RAISED)
        return err_set(e, EXIT_NOT_HERE,
                       "it takes %u pages of %s, %llu are free; kiln raises the pool of 2 MiB "
                       "pages only: reserve them at boot (hugepagesz=, hugepages=)",
                       need, size, (unsigned long long)there);
    if (!pool_writable(page))
        return err_set(e, EXIT_NOT_HERE,
                       "it takes %u pages of %s, %llu are free, and only root can raise the pool",
                       need, size, (unsigned long long)there);
    return text_memory((need - there) * page, "raising the huge page pool", e);
}

// --- the mount ---

static bool may_use(const struct launch *l, const char *dir)
{
    struct stat st;
    if (stat(dir, &st) || !fs_reachable(dir, l->in.uid, l->in.gid))
        return false;
    unsigned shift = st.st_uid == l->in.uid ? 6 : st.st_gid == l->in.gid ? 3 : 0;
    return (st.st_mode >> shift & 7) == 7;
}

// The block size of a hugetlbfs is its page's.
static bool has_pages_of(const char *dir, uint64_t page)
{
    struct statfs fs;
    return statfs(dir, &fs) == 0 && (uint64_t)fs.f_bsize == page;
}

// An existing hugetlbfs of these pages where the server's user may make and execute files;
// malloc'ed, or NULL.
static char *usable_mount(const struct launch *l, uint64_t page)
{
    FILE *f = setmntent("/proc/mounts", "re");
    char *found = NULL;
    for (struct mntent *m; f && !found && (m = getmntent(f));)
        if (!strcmp(m->mnt_type, "hugetlbfs") && strcmp(m->mnt_fsname, "kiln") &&
            !hasmntopt(m, "noexec") && !hasmntopt(m, "ro") && has_pages_of(m->mnt_dir, page) &&
            may_use(l, m->mnt_dir))
            found = xstrdup(m->mnt_dir);
    if (f)
        endmntent(f);
    return found;
}

static int mount_possible(const struct launch *l, uint64_t page, struct err *e)
{
    char *there = usable_mount(l, page);
    int rc = there || text_may_mount()
                 ? 0
                 : err_set(e, EXIT_NOT_HERE,
                           "no hugetlbfs mount that uid %u may use, and only root can make one "
                           "(CAP_SYS_ADMIN)",
                           l->in.uid);
    free(there);
    return rc;
}

static char *find_or_mount(struct launch *l, uint64_t page, struct err *e)
{
    char *mnt = usable_mount(l, page);
    if (mnt)
        return mnt;
    char *options = xasprintf("pagesize=%lluK", (unsigned long long)page >> 10);
    mnt = text_mount(l, "hugetlbfs", options, e);
    free(options);
    return mnt;
}

// --- the start ---

int text_hugetlbfs_able(const struct launch *l, const struct text_plan *p, struct err *e)
{
    if (!libhugetlbfs_path())
        return err_set(e, EXIT_NOT_HERE, "libhugetlbfs is not installed (Debian: libhugetlbfs0)");
    uint64_t page = p->pages.huge;
    return text_pool_exists(page, e) || mount_possible(l, page, e) ||
                   pool_enough(page, p->prediction.pages, e)
               ? -1
               : 0;
}

// HUGETLB_ELFMAP names the segments, each with its page; unset, the marks in the file count, and
// the page is the library's default.
static void say_what_moves(struct launch *l, const char *mode, uint64_t page)
{
    unsigned long long kb = (unsigned long long)page >> 10;
    if (ends_with(mode, ":marked"))
        strv_addf(&l->env, "HUGETLB_DEFAULT_PAGE_SIZE=%lluK", kb);
    else if (ends_with(mode, "W"))
        strv_addf(&l->env, "HUGETLB_ELFMAP=R=%lluK:W=%lluK", kb, kb);
    else
        strv_addf(&l->env, "HUGETLB_ELFMAP=R=%lluK", kb);
}

int text_hugetlbfs(struct launch *l, struct knob_state *s, struct err *e)
{
    const struct text_plan *plan = s->plan;
    const char *library = libhugetlbfs_path();
    uint64_t page = plan->pages.huge;
    unsigned need = plan->prediction.pages, raised = 0;
    bool linked = elf_links_libhugetlbfs(&l->elf);
    char *mnt = find_or_mount(l, page, e);
    if (!mnt || (page == RAISED && pool_claim(l->journal, need, &raised, e))) {
        free(mnt);
        return -1;
    }
    say_what_moves(l, plan->mode->about.name, page);
    strv_addf(&l->env, "HUGETLB_PATH=%s", mnt);
    if (!linked)
        strv_add(&l->preload, library);
    text_seen(s,
              json_pack("{sIsisisssssbsI}", "page_bytes", (json_int_t)page, "pages_needed", need,
                        "pages_added", raised, "mount", mnt, "library", library, "linked", linked,
                        "predicted_bytes", (json_int_t)plan->prediction.text_huge_bytes));
    free(mnt);
    return 0;
}
