#include "common/ini.h"
#include "common/str.h"

#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 199, MAX_SECTION = 49 };

struct load {
    FILE *f;
    ini_key *fn;
    void *user;
    struct err *e;
    const char *path;
    int line;        // the line last read
    bool indented;   // it starts with a blank
    int failed_line; // where a limit was broken or the callback said no, else 0
    // The key whose value may still go on in the next line.
    char *section, *key;
    struct str value;
    int key_line;
};

static int fail_at(struct load *l, int line)
{
    l->failed_line = line;
    return 0;
}

static char *read_line(char *buf, int size, void *stream)
{
    struct load *l = stream;
    if (l->failed_line || !fgets(buf, size, l->f))
        return NULL;
    l->line++;
    l->indented = *buf == ' ' || *buf == '\t';
    size_t n = strcspn(buf, "\n");
    if (!buf[n] && !feof(l->f)) {
        err_set(l->e, EXIT_CANNOT_ASK,
                "line longer than %d bytes; continue long values on "
                "indented lines",
                MAX_LINE - 1);
        fail_at(l, l->line);
        return NULL;
    }
    if (strlen(buf) < n || memchr(buf, 0x1, n)) {
        err_set(l->e, EXIT_CANNOT_ASK, "not a text line");
        fail_at(l, l->line);
        return NULL;
    }
    char *close = buf[0] == '[' ? strchr(buf, ']') : NULL;
    if (close && close - buf - 1 > MAX_SECTION) {
        err_set(l->e, EXIT_CANNOT_ASK, "section name longer than %d bytes", MAX_SECTION);
        fail_at(l, l->line);
        return NULL;
    }
    return buf;
}

static int deliver(struct load *l)
{
    if (!l->key)
        return 1;
    struct err why = {0};
    int rc = l->fn(l->user, l->section, l->key, str_text(&l->value), l->key_line, &why);
    free(l->section);
    free(l->key);
    l->section = l->key = NULL;
    str_reset(&l->value);
    if (rc) {
        *l->e = why;
        return fail_at(l, l->key_line);
    }
    return 1;
}

// inih calls with the same key again for a continuation line, which starts with a blank; a key
// written twice looks alike, but starts with none.
static int on_key(void *user, const char *section, const char *name, const char *value)
{
    struct load *l = user;
    if (l->failed_line)
        return 0;
    if (l->key && l->indented && !strcmp(l->key, name)) {
        str_add(&l->value, " ");
        str_add(&l->value, value);
        return 1;
    }
    if (!deliver(l))
        return 0;
    l->section = xstrdup(section);
    l->key = xstrdup(name);
    str_add(&l->value, value);
    l->key_line = l->line;
    return 1;
}

int ini_load(const char *path, ini_key *fn, void *user, struct err *e)
{
    struct err why = {0};
    struct load l = {.fn = fn, .user = user, .path = path, .e = &why, .f = fopen(path, "re")};
    if (!l.f)
        return err_sys(e, EXIT_CANNOT_ASK, "%s", path);
    int rc = ini_parse_stream(read_line, &l, on_key, &l);
    if (rc == 0 && !l.failed_line)
        deliver(&l);
    fclose(l.f);
    free(l.section);
    free(l.key);
    str_free(&l.value);
    if (l.failed_line)
        return err_set(e, why.code, "%s:%d: %s", path, l.failed_line, why.msg);
    if (rc > 0)
        return err_set(e, EXIT_CANNOT_ASK, "%s:%d: neither a [section] nor KEY = VALUE", path, rc);
    if (rc < 0)
        return err_set(e, EXIT_CANNOT_ASK, "%s: cannot read", path);
    return 0;
}
