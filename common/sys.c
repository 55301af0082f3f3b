#include "common/sys.h"
#include "common/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *sys_path(const char *path)
{
    const char *root = getenv("KILN_SYSROOT");
    return xasprintf("%s%s", root ? root : "", path);
}

bool sys_exists(const char *path)
{
    char *p = sys_path(path);
    bool yes = fs_exists(p);
    free(p);
    return yes;
}

int sys_read(const char *path, struct str *out)
{
    char *p = sys_path(path);
    errno = 0;
    int rc = fs_read(p, out, NULL) ? -(errno ? errno : EIO) : 0;
    free(p);
    if (rc == 0 && out->len && out->s[out->len - 1] == '\n')
        out->s[--out->len] = 0;
    return rc;
}

int sys_read_u64(const char *path, uint64_t *out)
{
    struct str s = {0};
    int rc = sys_read(path, &s);
    if (rc == 0)
        rc = parse_u64(str_text(&s), out);
    str_free(&s);
    return rc;
}

int sys_write(const char *path, const char *value)
{
    char *p = sys_path(path);
    int fd = open(p, O_WRONLY | O_CLOEXEC | O_TRUNC);
    free(p);
    if (fd < 0)
        return -errno;
    ssize_t n = write(fd, value, strlen(value));
    int rc = n < 0 ? -errno : 0;
    close(fd);
    return rc;
}

char *sys_choice(const char *path)
{
    struct str s = {0};
    char *word = NULL;
    if (sys_read(path, &s) == 0) {
        char *open = strchr(str_text(&s), '['), *close = open ? strchr(open, ']') : NULL;
        if (close)
            word = xstrndup(open + 1, (size_t)(close - open - 1));
    }
    str_free(&s);
    return word;
}

int sys_field(const char *path, const char *field, uint64_t *out)
{
    struct str s = {0};
    int rc = sys_read(path, &s);
    if (rc == 0) {
        rc = -ENOENT;
        size_t n = strlen(field);
        for (char *line = s.s; line && *line; line = strchr(line, '\n'), line += line != NULL) {
            if (!strncmp(line, field, n) && line[n] == ':') {
                *out = strtoull(line + n + 1, NULL, 10);
                rc = 0;
                break;
            }
        }
    }
    str_free(&s);
    return rc;
}
