#include "common/str.h"
#include "common/err.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p)
{
    if (!p)
        die(EXIT_NO, "out of memory");
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    return checked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t size)
{
    return checked(realloc(p, size ? size : 1));
}

char *xstrdup(const char *s)
{
    return checked(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
    return checked(strndup(s, n));
}

char *xasprintf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    return checked(n < 0 ? NULL : s);
}

static void str_reserve(struct str *b, size_t more)
{
    if (b->len + more + 1 <= b->cap)
        return;
    b->cap = (b->len + more + 1) * 2;
    b->s = xrealloc(b->s, b->cap);
}

void str_addn(struct str *b, const char *s, size_t n)
{
    str_reserve(b, n);
    memcpy(b->s + b->len, s, n);
    b->len += n;
    b->s[b->len] = 0;
}

void str_add(struct str *b, const char *s)
{
    str_addn(b, s, strlen(s));
}

void str_addf(struct str *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n > 0) {
        str_reserve(b, (size_t)n);
        vsnprintf(b->s + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

const char *str_text(const struct str *b)
{
    return b->s ? b->s : "";
}

void str_reset(struct str *b)
{
    b->len = 0;
    if (b->s)
        b->s[0] = 0;
}

void str_free(struct str *b)
{
    free(b->s);
    *b = (struct str){0};
}

static void strv_take(struct strv *l, char *s)
{
    if (l->n + 2 > l->cap) {
        l->cap = l->cap ? l->cap * 2 : 16;
        l->v = xrealloc(l->v, l->cap * sizeof *l->v);
    }
    l->v[l->n++] = s;
    l->v[l->n] = NULL;
}

void strv_add(struct strv *l, const char *s)
{
    strv_take(l, xstrdup(s));
}

void strv_addf(struct strv *l, const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    strv_take(l, checked(n < 0 ? NULL : s));
}

void strv_addv(struct strv *l, const struct strv *more)
{
    for (size_t i = 0; i < more->n; i++)
        strv_add(l, more->v[i]);
}

bool strv_has(const struct strv *l, const char *s)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->v[i], s))
            return true;
    return false;
}

char *strv_join(const struct strv *l, const char *sep)
{
    struct str b = {0};
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            str_add(&b, sep);
        str_add(&b, l->v[i]);
    }
    return b.s ? b.s : xstrdup("");
}

void strv_split(struct strv *l, const char *s, const char *seps)
{
    while (*s) {
        size_t n = strcspn(s, seps);
        if (n)
            strv_take(l, xstrndup(s, n));
        s += n;
        if (*s)
            s++;
    }
}

void strv_free(struct strv *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
    *l = (struct strv){0};
}

bool starts_with(const char *s, const char *prefix)
{
    return !strncmp(s, prefix, strlen(prefix));
}

bool ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && !strcmp(s + n - m, suffix);
}

char *trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1]))
        s[--n] = 0;
    return s;
}

// strtoull takes blanks, signs and wraps negatives; none of that is a number here.
static int read_u64(const char *s, const char **end, uint64_t *out)
{
    if (!isdigit((unsigned char)*s))
        return -EINVAL;
    errno = 0;
    char *e;
    unsigned long long v = strtoull(s, &e, 10);
    if (errno)
        return -errno;
    *end = e;
    *out = v;
    return 0;
}

int parse_u64(const char *s, uint64_t *out)
{
    const char *end;
    uint64_t v;
    int rc = read_u64(s, &end, &v);
    if (rc)
        return rc;
    if (*end)
        return -EINVAL;
    *out = v;
    return 0;
}

int parse_double(const char *s, double *out)
{
    if (!isdigit((unsigned char)*s) && *s != '.' && *s != '-')
        return -EINVAL;
    errno = 0;
    char *e;
    double v = strtod(s, &e);
    if (errno)
        return -errno;
    if (*e || !isfinite(v))
        return -EINVAL;
    *out = v;
    return 0;
}

int parse_size(const char *s, uint64_t *out)
{
    const char *end;
    uint64_t v;
    int rc = read_u64(s, &end, &v);
    if (rc)
        return rc;
    static const char units[] = "kmgt";
    unsigned shift = 0;
    if (*end) {
        const char *u = strchr(units, tolower((unsigned char)*end));
        if (!u || !*u)
            return -EINVAL;
        shift = 10 * (unsigned)(u - units + 1);
        end++;
        if (*end == 'B' || *end == 'b')
            end++;
    }
    if (*end)
        return -EINVAL;
    if (shift && v > UINT64_MAX >> shift)
        return -ERANGE;
    *out = v << shift;
    return 0;
}

int parse_list(const char *s, bool *bits, size_t nbits)
{
    for (;;) {
        uint64_t a, b;
        int rc = read_u64(s, &s, &a);
        if (rc)
            return rc;
        b = a;
        if (*s == '-' && (rc = read_u64(s + 1, &s, &b)))
            return rc;
        if (b < a)
            return -EINVAL;
        if (b >= nbits)
            return -ERANGE;
        for (; a <= b; a++)
            bits[a] = true;
        if (*s != '+' && *s != ',')
            return *s ? -EINVAL : 0;
        s++;
    }
}

char *printable(const char *s, size_t n)
{
    char *copy = xstrndup(s, n);
    for (char *c = copy; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return copy;
}
