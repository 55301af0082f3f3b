#include "launcher/journal.h"

#include "common/fs.h"
#include "common/json.h"
#include "common/proc.h"
#include "common/store.h"
#include "common/str.h"
#include "common/sys.h"
#include "launcher/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

struct journal {
    char *path;
    int fd;
    json_t *lines; // array of all lines; line 0 is the owner
};

static char *boot_id(void)
{
    struct str s = {0};
    sys_read("/proc/sys/kernel/random/boot_id", &s);
    return s.s ? s.s : xstrdup("");
}

static char *journal_dir(void)
{
    return xasprintf("%s/journal", store_run_dir());
}

// One write for the line: a reader sees it whole or cut short at the end, and a cut line means that
// its change was not made yet.
static int append(struct journal *j, json_t *line, struct err *e)
{
    char *text = json_dumps(line, JSON_COMPACT);
    char *row = xasprintf("%s\n", text);
    int rc = 0;
    if (write(j->fd, row, strlen(row)) != (ssize_t)strlen(row) || fsync(j->fd))
        rc = err_sys(e, EXIT_NO, "%s: cannot write the journal", j->path);
    else
        json_array_append(j->lines, line);
    free(text);
    free(row);
    json_decref(line);
    return rc;
}

int journal_open(struct journal **out, struct err *e)
{
    static unsigned serial;
    char *dir = journal_dir();
    int rc = store_init_run(e) || fs_mkdirs(dir, 0700, e) ? -1 : 0;
    if (rc) {
        free(dir);
        return rc;
    }
    struct journal *j = xcalloc(1, sizeof *j);
    uint64_t start = proc_start_time(getpid());
    j->path = xasprintf("%s/%d-%llu-%u", dir, getpid(), (unsigned long long)start, serial++);
    free(dir);
    j->lines = json_array();
    j->fd = open(j->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (j->fd < 0)
        rc = err_sys(e, EXIT_NO, "%s: cannot make the journal", j->path);
    char *boot = boot_id();
    if (rc == 0)
        rc = append(
            j, json_pack("{sssisI}", "boot", boot, "pid", getpid(), "start", (json_int_t)start), e);
    free(boot);
    if (rc) {
        if (j->fd >= 0)
            unlink(j->path), close(j->fd);
        json_decref(j->lines);
        free(j->path);
        free(j);
        return rc;
    }
    *out = j;
    return 0;
}

int journal_process(struct journal *j, pid_t pid, struct err *e)
{
    return append(j,
                  json_pack("{sssisI}", "op", "process", "pid", pid, "start",
                            (json_int_t)proc_start_time(pid)),
                  e);
}

int journal_mount(struct journal *j, const char *path, struct err *e)
{
    return append(j, json_pack("{ssss}", "op", "mount", "path", path), e);
}

int journal_tree(struct journal *j, const char *path, struct err *e)
{
    return append(j, json_pack("{ssss}", "op", "tree", "path", path), e);
}

int journal_pool(struct journal *j, unsigned pages, unsigned need, struct err *e)
{
    return append(j, json_pack("{sssisi}", "op", "pool", "pages", (int)pages, "need", (int)need),
                  e);
}

static int undo_process(const json_t *line, struct err *e)
{
    pid_t pid = (pid_t)json_num(line, "pid", 0);
    uint64_t start = (uint64_t)json_num(line, "start", 0);
    if (pid <= 0 || !start || proc_start_time(pid) != start)
        return 0;
    kill(pid, SIGKILL);
    for (int i = 0; i < 500 && proc_start_time(pid) == start; i++)
        sleep_seconds(0.02);
    return proc_start_time(pid) == start
               ? err_set(e, EXIT_NO, "pid %d: the server does not end", pid)
               : 0;
}

// A mapping that is being torn down can hold the mount for a moment.
static int undo_mount(const char *path, struct err *e)
{
    for (int i = 0; umount2(path, UMOUNT_NOFOLLOW); i++) {
        if (errno == EINVAL || errno == ENOENT)
            break; // no longer a mount
        if (errno != EBUSY || i == 100)
            return err_sys(e, EXIT_NO, "%s: cannot unmount", path);
        sleep_seconds(0.05);
    }
    return 0;
}

// The claim and its mark go under one lock: who comes next counts the claims that are left.
static int undo_pool(struct journal *j, size_t i, struct err *e)
{
    int lock = journal_lock(e);
    if (lock < 0)
        return -1;
    int rc = pool_release((unsigned)json_num(json_array_get(j->lines, i), "pages", 0), e);
    if (rc >= 0 && append(j, json_pack("{si}", "undone", (int)i), rc ? NULL : e))
        rc = -1;
    close(lock);
    return rc ? -1 : 0;
}

static int undo_line(struct journal *j, size_t i, bool same_boot, struct err *e)
{
    const json_t *line = json_array_get(j->lines, i);
    const char *op = json_text(line, "op"), *path = json_text(line, "path");
    int rc = 0;
    if (!strcmp(op, "process") && same_boot)
        rc = undo_process(line, e);
    else if (!strcmp(op, "mount") && same_boot)
        rc = undo_mount(path, e);
    else if (!strcmp(op, "tree"))
        rc = fs_remove_tree(path, e);
    else if (!strcmp(op, "pool") && same_boot)
        return undo_pool(j, i, e);
    return rc ? rc : append(j, json_pack("{si}", "undone", (int)i), e);
}

static bool is_undone(const json_t *lines, size_t i)
{
    for (size_t k = i + 1; k < json_array_size(lines); k++) {
        const json_t *n = json_object_get(json_array_get(lines, k), "undone");
        if (n && (size_t)json_integer_value(n) == i)
            return true;
    }
    return false;
}

static int undo_all(struct journal *j, struct err *e)
{
    char *boot = boot_id();
    bool same_boot = !strcmp(boot, json_text(json_array_get(j->lines, 0), "boot"));
    free(boot);
    int rc = 0;
    bool left = false;
    for (size_t i = json_array_size(j->lines); i-- > 1;) {
        struct err why = {0};
        if (!json_object_get(json_array_get(j->lines, i), "op") || is_undone(j->lines, i))
            continue;
        if (undo_line(j, i, same_boot, &why) && rc == 0) {
            rc = -1;
            if (e)
                *e = why;
        }
        left = left || !is_undone(j->lines, i);
    }
    if (!left)
        unlink(j->path);
    return rc;
}

static void journal_free(struct journal *j)
{
    close(j->fd);
    json_decref(j->lines);
    free(j->path);
    free(j);
}

int journal_undo(struct journal *j, struct err *e)
{
    int rc = undo_all(j, e);
    journal_free(j);
    return rc;
}

// A journal written by somebody else; NULL when it cannot be read. A last line that was cut short
// belongs to a change that was not made.
static struct journal *journal_load(const char *path)
{
    struct str text = {0};
    struct journal *j = xcalloc(1, sizeof *j);
    j->path = xstrdup(path);
    j->lines = json_array();
    j->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (j->fd >= 0 && fs_read(path, &text, NULL) == 0) {
        struct strv rows = {0};
        strv_split(&rows, str_text(&text), "\n");
        for (size_t i = 0; i < rows.n; i++) {
            json_t *line = json_loads(rows.v[i], 0, NULL);
            if (!json_is_object(line)) {
                json_decref(line);
                break;
            }
            json_array_append_new(j->lines, line);
        }
        strv_free(&rows);
    }
    str_free(&text);
    if (j->fd < 0) {
        json_decref(j->lines);
        free(j->path);
        free(j);
        return NULL;
    }
    return j;
}

static bool owner_alive(const struct journal *j)
{
    const json_t *owner = json_array_get(j->lines, 0);
    pid_t pid = (pid_t)json_num(owner, "pid", 0);
    uint64_t start = (uint64_t)json_num(owner, "start", 0);
    char *boot = boot_id();
    bool alive = !strcmp(boot, json_text(owner, "boot")) && pid > 0 && start &&
                 proc_start_time(pid) == start;
    free(boot);
    return alive;
}

// Calls fn on every journal there is.
static void each_journal(void (*fn)(struct journal *j, void *arg), void *arg)
{
    char *dir = journal_dir();
    struct dirent **names;
    int n = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char *path = xasprintf("%s/%s", dir, names[i]->d_name);
        struct journal *j = names[i]->d_name[0] == '.' ? NULL : journal_load(path);
        if (j)
            fn(j, arg);
        free(path);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    free(dir);
}

struct restore {
    unsigned *found, *busy;
    struct err *e;
    int rc;
};

static void restore_one(struct journal *j, void *arg)
{
    struct restore *r = arg;
    struct err why = {0};
    if (owner_alive(j)) {
        ++*r->busy;
    } else {
        ++*r->found;
        if (undo_all(j, &why) && r->rc == 0) {
            r->rc = -1;
            *r->e = why;
        }
    }
    journal_free(j);
}

int journal_restore(unsigned *found, unsigned *busy, struct err *e)
{
    struct err why = {0};
    struct restore r = {.found = found, .busy = busy, .e = &why};
    *found = *busy = 0;
    each_journal(restore_one, &r);
    if (r.rc && e)
        *e = why;
    return r.rc;
}

int journal_lock(struct err *e)
{
    if (store_init_run(e))
        return -1;
    char *path = xasprintf("%s/lock", store_run_dir());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        err_sys(e, EXIT_NO, "%s: cannot open the lock", path);
    else
        while (flock(fd, LOCK_EX) && errno == EINTR)
            ;
    free(path);
    return fd;
}

static void add_claims(struct journal *j, void *arg)
{
    struct pool_claims *sum = arg;
    for (size_t i = 1; i < json_array_size(j->lines); i++) {
        const json_t *line = json_array_get(j->lines, i);
        if (strcmp(json_text(line, "op"), "pool") || is_undone(j->lines, i))
            continue;
        sum->count++;
        sum->pages += (unsigned)json_num(line, "pages", 0);
        sum->need += (unsigned)json_num(line, "need", 0);
    }
    journal_free(j);
}

struct pool_claims journal_pool_claims(void)
{
    struct pool_claims sum = {0};
    each_journal(add_claims, &sum);
    return sum;
}
