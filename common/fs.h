// Files and directories.
#ifndef KILN_FS_H
#define KILN_FS_H

#include "common/err.h"
#include "common/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// All return 0, or -1 with *e filled, unless said otherwise.
int fs_mkdirs(const char *path, mode_t mode, struct err *e); // with parents; existing is fine
int fs_read(const char *path, struct str *out, struct err *e);
int fs_write_atomic(const char *path, const char *text, struct err *e); // whole or not at all
int fs_copy_file(const char *from, const char *to, mode_t mode, struct err *e); // and fsync
int fs_copy_tree(const char *from, const char *to, struct err *e);
int fs_chown_tree(const char *path, uid_t uid, gid_t gid, struct err *e); // follows no links
int fs_remove_tree(const char *path, struct err *e); // follows no links; absent is fine
bool fs_exists(const char *path);
bool fs_is_dir(const char *path);
uint64_t fs_size(const char *path);                   // bytes, 0 when absent
int fs_free_bytes(const char *path, uint64_t *bytes); // 0 or -errno
// Whether a process of this uid and gid (no supplementary groups) can search every directory on
// the way to path and read path itself.
bool fs_reachable(const char *path, uid_t uid, gid_t gid);
// The first executable regular file called name in $PATH or /usr/sbin; malloc'ed, or NULL.
char *fs_find_program(const char *name);

#endif
