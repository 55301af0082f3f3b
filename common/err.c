#include "common/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *program = "kiln";

__attribute__((format(printf, 4, 0))) static int fill(struct err *e, int code, int errnum,
                                                      const char *fmt, va_list ap)
{
    if (!e)
        return -1;
    e->code = code;
    int n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    if (errnum && n >= 0 && (size_t)n < sizeof e->msg)
        snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %s", strerror(errnum));
    return -1;
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(e, code, 0, fmt, ap);
    va_end(ap);
    return -1;
}

int err_sys(struct err *e, int code, const char *fmt, ...)
{
    int errnum = errno;
    va_list ap;
    va_start(ap, fmt);
    fill(e, code, errnum, fmt, ap);
    va_end(ap);
    return -1;
}

void err_program(const char *name)
{
    program = name;
}

// One write for the whole line, so that lines of several processes do not mix; a progress line
// that stands on the terminal is wiped first.
__attribute__((format(printf, 2, 0))) static void say(const char *kind, const char *fmt, va_list ap)
{
    char line[1400];
    int n = snprintf(line, sizeof line, "%s%s: %s", isatty(STDERR_FILENO) ? "\r\033[K" : "",
                     program, kind);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    size_t len = (size_t)n + (m < 0 ? 0 : (size_t)m);
    if (len > sizeof line - 2)
        len = sizeof line - 2;
    line[len] = '\n';
    if (write(STDERR_FILENO, line, len + 1) < 0)
        return;
}

#define SAY(kind)                                                                                  \
    do {                                                                                           \
        va_list ap;                                                                                \
        va_start(ap, fmt);                                                                         \
        say(kind, fmt, ap);                                                                        \
        va_end(ap);                                                                                \
    } while (0)

void note(const char *fmt, ...)
{
    SAY("");
}

void warning(const char *fmt, ...)
{
    SAY("warning: ");
}

void error(const char *fmt, ...)
{
    SAY("");
}

void die(int code, const char *fmt, ...)
{
    SAY("");
    exit(code);
}

int err_report(const struct err *e)
{
    error("%s", e->msg);
    return e->code;
}
