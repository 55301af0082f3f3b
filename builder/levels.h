// Which optimisation level each file is really compiled with, from compile_commands.json.
#ifndef KILN_LEVELS_H
#define KILN_LEVELS_H

#include "common/err.h"

#include <jansson.h>
#include <stddef.h>

enum { MAX_LEVELS = 12 };

struct level_count {
    char level[12]; // "-O2"; "none" when the line has no -O, which means -O0
    unsigned files, server_files;
};

struct levels {
    struct level_count rows[MAX_LEVELS];
    size_t n;
    char example[400]; // a server file that is not at the wanted level
};

// The last -O word of a command line, copied into out ("none" when there is none): the one that
// the compiler takes.
void last_level(const char *command, char *out, size_t size);
// Counts all files of a compile_commands.json; those under SOURCE/sql/ are the server's own.
int levels_read(const char *path, const char *source, const char *wanted, struct levels *l,
                struct err *e);
// 0 when every server file is at the wanted level, else -1 with *e filled.
int levels_verify(const struct levels *l, const char *wanted, struct err *e);
json_t *levels_json(const struct levels *l);

#endif
