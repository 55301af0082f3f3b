// INI files through inih. Debian's build of inih cuts lines at 200 bytes and section names at 49;
// here a line that would be cut is an error, never a shorter value. Long values go over several
// indented lines, which arrive joined by blanks.
#ifndef KILN_INI_H
#define KILN_INI_H

#include "common/err.h"

// Called once for each key, in the file's order. Returns 0, or -1 with *e filled: the file's name
// and line are put in front.
typedef int ini_key(void *user, const char *section, const char *key, const char *value, int line,
                    struct err *e);

// 0, or -1 with *e filled ("FILE:LINE: why").
int ini_load(const char *path, ini_key *fn, void *user, struct err *e);

#endif
