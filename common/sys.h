// All of /proc and /sys goes through here, behind a root prefix, so that the real code runs
// against recorded trees of other machines: KILN_SYSROOT=DIR.
#ifndef KILN_SYS_H
#define KILN_SYS_H

#include "common/err.h"
#include "common/str.h"

#include <stdbool.h>
#include <stdint.h>

char *sys_path(const char *path); // prefix + path, malloc'ed
bool sys_exists(const char *path);
// 0 or -errno. Text comes without the final newline.
int sys_read(const char *path, struct str *out);
int sys_read_u64(const char *path, uint64_t *out);
int sys_write(const char *path, const char *value);
// The word in brackets of a file such as transparent_hugepage/enabled; malloc'ed, or NULL.
char *sys_choice(const char *path);
// A field of /proc/meminfo or of /proc/PID/status in kB ("HugePages_Free" in pages): 0 or -errno.
int sys_field(const char *path, const char *field, uint64_t *out);

#endif
