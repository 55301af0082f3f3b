// Child processes whose output is read line by line, and what is asked of small programs.
#ifndef KILN_CHILD_H
#define KILN_CHILD_H

#include "common/err.h"
#include "common/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct child_job {
    const char *const *argv;
    const char *cwd;                            // NULL: the parent's
    FILE *log;                                  // every byte goes here too; NULL: nowhere
    bool only_stdout;                           // standard error stays the parent's
    void (*line)(void *user, const char *text); // without the newline; may be NULL
    void *user;
};

// Runs the job to its end. Returns its exit status (128+signal for a signal), or -1 with *e
// filled: it could not be started, the log could not be written (disk full), or Ctrl-C, which is
// passed on to the child; it has ended when this returns.
int child_run(const struct child_job *job, struct err *e);
// child_run with all output into *out.
int child_capture(const char *const *argv, const char *cwd, struct str *out, struct err *e);
// Standard output alone.
int child_capture_stdout(const char *const *argv, struct str *out, struct err *e);
// The first line that a program prints, malloc'ed; "" when it fails or prints nothing.
char *child_first_line(const char *const *argv);

// In hex, malloc'ed; NULL with *e filled.
char *sha256_file(const char *path, struct err *e);
char *sha256_text(const char *text, struct err *e);

#endif
