// Strings that grow, lists of strings, and strict parsing of numbers.
#ifndef KILN_STR_H
#define KILN_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Allocation never fails: the program ends with one line instead.
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// A copy in which every byte that is no printable ASCII is '?': names in a file from elsewhere must
// not reach a terminal, and JSON holds UTF-8 only. malloc'ed.
char *printable(const char *s, size_t n);

// A growable string; s is NUL-terminated as soon as something was added, "" through str_text
// before.
struct str {
    char *s;
    size_t len, cap;
};
void str_add(struct str *b, const char *s);
void str_addn(struct str *b, const char *s, size_t n);
void str_addf(struct str *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *str_text(const struct str *b);
void str_reset(struct str *b);
void str_free(struct str *b);

// A growable list of owned strings; v is NULL-terminated as soon as something was added.
struct strv {
    char **v;
    size_t n, cap;
};
void strv_add(struct strv *l, const char *s);
void strv_addf(struct strv *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strv_addv(struct strv *l, const struct strv *more);
bool strv_has(const struct strv *l, const char *s);
char *strv_join(const struct strv *l, const char *sep);           // malloc'ed
void strv_split(struct strv *l, const char *s, const char *seps); // empty words are dropped
void strv_free(struct strv *l);

bool starts_with(const char *s, const char *prefix);
bool ends_with(const char *s, const char *suffix);
char *trim(char *s); // in place; returns the first character that is no blank

// Whole-string parsers: 0 or -EINVAL / -ERANGE; nothing is stored on error.
int parse_u64(const char *s, uint64_t *out);
int parse_double(const char *s, double *out);
int parse_size(const char *s, uint64_t *out); // bytes: "2M", "4k", "1G", "512"
// A list of numbers, "0+2-3" (or "0,2-3" as /sys writes it), into bits[0..nbits): -EINVAL when
// malformed, -ERANGE when a number is not under nbits.
int parse_list(const char *s, bool *bits, size_t nbits);

#endif
