#include "common/fs.h"
#include "common/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

int fs_mkdirs(const char *path, mode_t mode, struct err *e)
{
    char *p = xstrdup(path);
    int rc = 0;
    for (char *slash = p + 1; rc == 0; slash++) {
        slash = strchr(slash, '/');
        if (slash)
            *slash = 0;
        if (mkdir(p, mode) && errno != EEXIST)
            rc = err_sys(e, EXIT_CANNOT_ASK, "%s: cannot make the directory", p);
        if (!slash)
            break;
        *slash = '/';
    }
    if (rc == 0 && !fs_is_dir(path))
        rc = err_set(e, EXIT_CANNOT_ASK, "%s: not a directory", path);
    free(p);
    return rc;
}

int fs_read(const char *path, struct str *out, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, EXIT_CANNOT_ASK, "%s", path);
    char buf[65536];
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) > 0)
        str_addn(out, buf, (size_t)n);
    int rc = n < 0 ? err_sys(e, EXIT_CANNOT_ASK, "%s: cannot read", path) : 0;
    close(fd);
    return rc;
}

int fs_write_atomic(const char *path, const char *text, struct err *e)
{
    char *tmp = xasprintf("%s.XXXXXX", path);
    int rc = 0;
    size_t n = strlen(text), done = 0;
    int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0) {
        rc = err_sys(e, EXIT_CANNOT_ASK, "%s: cannot write", path);
        free(tmp);
        return rc;
    }
    while (done < n) {
        ssize_t w = write(fd, text + done, n - done);
        if (w < 0 && errno != EINTR)
            break;
        done += w > 0 ? (size_t)w : 0;
    }
    if (done < n || fchmod(fd, 0644) || fsync(fd))
        rc = err_sys(e, EXIT_CANNOT_ASK, "%s: cannot write", path);
    if (close(fd) && rc == 0)
        rc = err_sys(e, EXIT_CANNOT_ASK, "%s: cannot write", path);
    if (rc == 0 && rename(tmp, path))
        rc = err_sys(e, EXIT_CANNOT_ASK, "%s: cannot write", path);
    if (rc)
        unlink(tmp);
    free(tmp);
    return rc;
}

static int copy_bytes(int in, int out)
{
    if (ioctl(out, FICLONE, in) == 0)
        return 0;
    for (;;) {
        ssize_t n = copy_file_range(in, NULL, out, NULL, 1u << 30, 0);
        if (n == 0)
            return 0;
        if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP))
            break;
        if (n < 0)
            return -1;
    }
    static char buf[1 << 20];
    for (;;) {
        ssize_t n = read(in, buf, sizeof buf);
        if (n <= 0)
            return (int)n;
        for (ssize_t done = 0; done < n;) {
            ssize_t w = write(out, buf + done, (size_t)(n - done));
            if (w < 0)
                return -1;
            done += w;
        }
    }
}

int fs_copy_file(const char *from, const char *to, mode_t mode, struct err *e)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return err_sys(e, EXIT_CANNOT_ASK, "%s", from);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    int rc = 0;
    if (out < 0)
        rc = err_sys(e, EXIT_CANNOT_ASK, "%s: cannot make the copy", to);
    else if (copy_bytes(in, out) || fchmod(out, mode) || fsync(out))
        rc = err_sys(e, EXIT_CANNOT_ASK, "%s: cannot copy %s", to, from);
    close(in);
    if (out >= 0) {
        close(out);
        if (rc)
            unlink(to);
    }
    return rc;
}

int fs_copy_tree(const char *from, const char *to, struct err *e)
{
    const char *argv[] = {"cp", "-a", "--reflink=auto", "-T", from, to, NULL};
    struct str out = {0};
    int rc = proc_capture(argv, &out, e);
    if (rc == 0)
        return str_free(&out), 0;
    if (rc > 0)
        rc = err_set(e, EXIT_CANNOT_ASK, "%s: cannot copy to %s: %s", from, to,
                     trim(out.s ? out.s : (char[]){""}));
    str_free(&out);
    return rc;
}

static uid_t chown_uid;
static gid_t chown_gid;

static int chown_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return lchown(path, chown_uid, chown_gid);
}

int fs_chown_tree(const char *path, uid_t uid, gid_t gid, struct err *e)
{
    chown_uid = uid;
    chown_gid = gid;
    if (nftw(path, chown_one, 16, FTW_PHYS))
        return err_sys(e, EXIT_CANNOT_ASK, "%s: cannot give the files to uid %u", path, uid);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

int fs_remove_tree(const char *path, struct err *e)
{
    if (nftw(path, remove_one, 16, FTW_PHYS | FTW_DEPTH | FTW_MOUNT) && errno != ENOENT)
        return err_sys(e, EXIT_CANNOT_ASK, "%s: cannot remove", path);
    return 0;
}

bool fs_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool fs_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

uint64_t fs_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

int fs_free_bytes(const char *path, uint64_t *bytes)
{
    struct statvfs v;
    if (statvfs(path, &v))
        return -errno;
    *bytes = (uint64_t)v.f_bavail * v.f_frsize;
    return 0;
}

static bool allows(const char *path, uid_t uid, gid_t gid, unsigned want)
{
    struct stat st;
    if (stat(path, &st))
        return false;
    unsigned shift = st.st_uid == uid ? 6 : st.st_gid == gid ? 3 : 0;
    return uid == 0 || ((st.st_mode >> shift) & want) == want;
}

bool fs_reachable(const char *path, uid_t uid, gid_t gid)
{
    char *real = realpath(path, NULL);
    if (!real)
        return false;
    bool ok = allows("/", uid, gid, 1);
    for (char *slash = strchr(real + 1, '/'); ok && slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        ok = allows(real, uid, gid, 1);
        *slash = '/';
    }
    ok = ok && allows(real, uid, gid, fs_is_dir(real) ? 5 : 4);
    free(real);
    return ok;
}

char *fs_find_program(const char *name)
{
    const char *path = getenv("PATH");
    char *all = xasprintf("%s:/usr/local/sbin:/usr/sbin:/sbin", path ? path : "/usr/bin:/bin");
    struct strv dirs = {0};
    strv_split(&dirs, all, ":");
    free(all);
    char *found = NULL;
    for (size_t i = 0; i < dirs.n && !found; i++) {
        struct stat st;
        char *p = xasprintf("%s/%s", dirs.v[i], name);
        if (stat(p, &st) == 0 && S_ISREG(st.st_mode) && access(p, X_OK) == 0)
            found = p;
        else
            free(p);
    }
    strv_free(&dirs);
    return found;
}
