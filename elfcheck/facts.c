#include "elfcheck/facts_private.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LINES = 4096, // of .GCC.command.line; the linker merges equal ones
    MAX_AROUND = 64,  // bytes of a version
};

static const char *const texts[TEXTS] = {
    [TEXT_MARIADB] = "-MariaDB",
    [TEXT_GROUP] = "mysqld-",
    [TEXT_PERCONA] = "Percona Server",
    [TEXT_POSTGRES] = "postgres (PostgreSQL) ",
    [TEXT_PFS_VARIABLE] = "performance_schema_max_thread_instances",
    [TEXT_JEMALLOC] = "<jemalloc>: ",
    [TEXT_TCMALLOC] = "TCMALLOC_",
    [TEXT_MIMALLOC] = "mimalloc: ",
    [TEXT_LIBNUMA] = "libnuma: Warning: ",
    [TEXT_LIBGCOV] = "libgcov profiling error:",
};

// --- the list ---

// Whatever the file put into them is made printable.
static void add(struct facts *l, const char *name, const char *value, const char *evidence)
{
    l->v = xrealloc(l->v, (l->n + 1) * sizeof *l->v);
    l->v[l->n++] = (struct fact){.name = name,
                                 .value = value ? printable(value, strlen(value)) : NULL,
                                 .evidence = printable(evidence, strlen(evidence))};
}

enum { MAX_EVIDENCE = 2000 };

void fact_known(struct facts *l, const char *name, const char *value, const char *evidence, ...)
{
    char text[MAX_EVIDENCE];
    va_list ap;
    va_start(ap, evidence);
    vsnprintf(text, sizeof text, evidence, ap);
    va_end(ap);
    add(l, name, value, text);
}

void fact_unknown(struct facts *l, const char *name, const char *would_tell, ...)
{
    char text[MAX_EVIDENCE];
    va_list ap;
    va_start(ap, would_tell);
    vsnprintf(text, sizeof text, would_tell, ap);
    va_end(ap);
    add(l, name, NULL, text);
}

const struct fact *facts_find(const struct facts *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->v[i].name, name))
            return &l->v[i];
    return NULL;
}

void facts_free(struct facts *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].value);
        free(l->v[i].evidence);
    }
    free(l->v);
    *l = (struct facts){0};
}

// The file's bytes may be no UTF-8; JSON must be.
static json_t *json_text(const char *s)
{
    json_t *j = s ? json_string(s) : json_null();
    if (j)
        return j;
    char *ascii = xstrdup(s);
    for (char *c = ascii; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    j = json_string(ascii);
    free(ascii);
    return j;
}

json_t *facts_json(const struct facts *l)
{
    json_t *o = json_object();
    for (size_t i = 0; i < l->n; i++) {
        json_t *fact = json_object();
        json_object_set_new(fact, "value", json_text(l->v[i].value));
        json_object_set_new(fact, "evidence", json_text(l->v[i].evidence));
        json_object_set_new(o, l->v[i].name, fact);
    }
    return o;
}

// --- the reading ---

bool is_loadable(const struct reading *r)
{
    return r->elf->nloads && (r->elf->type == ET_EXEC || r->elf->type == ET_DYN);
}

bool is_dynamic(const struct reading *r)
{
    return is_loadable(r) && r->elf->needed.n && r->names.dynsym && r->names.complete;
}

const char *needed_library(const struct reading *r, const char *start)
{
    for (size_t i = 0; i < r->elf->needed.n; i++)
        if (starts_with(r->elf->needed.v[i], start))
            return r->elf->needed.v[i];
    return NULL;
}

// From the NUL before the text to the NUL behind it: malloc'ed; NULL when that is too far away.
static char *string_around(struct bytes b, size_t at)
{
    size_t from = at, to = at;
    while (from && b.p[from - 1] && at - from < MAX_AROUND)
        from--;
    while (to < b.n && b.p[to] && to - at < 2 * MAX_AROUND)
        to++;
    bool whole = (!from || !b.p[from - 1]) && to < b.n && !b.p[to];
    return whole ? xstrndup((const char *)b.p + from, to - from) : NULL;
}

static bool is_version(const char *s, const char *rest)
{
    size_t digits = strspn(s, "0123456789.");
    return digits > 2 && !strncmp(s + digits, rest, strlen(rest));
}

static bool keep(char **place, char *s, bool good)
{
    good = good && !*place;
    if (good)
        *place = s;
    return good;
}

static void see_text(void *context, size_t text, struct bytes data, size_t at)
{
    struct reading *r = context;
    r->texts[text]++;
    char *s = text <= TEXT_POSTGRES ? string_around(data, at) : NULL;
    if (!s)
        return;
    bool kept = (text == TEXT_MARIADB && keep(&r->mariadb, s, is_version(s, "-MariaDB"))) ||
                (text == TEXT_GROUP &&
                 keep(&r->group, s, starts_with(s, "mysqld-") && is_version(s + 7, ""))) ||
                (text == TEXT_PERCONA && keep(&r->percona, s, true)) ||
                (text == TEXT_POSTGRES && keep(&r->postgres, s, true));
    if (!kept)
        free(s);
}

// The command lines that -frecord-gcc-switches and -frecord-command-line leave behind.
static void read_command_lines(const struct elf_file *file, struct dwarf_facts *d)
{
    struct bytes b = elf_section_bytes(file, elf_section(file, ".GCC.command.line"));
    for (size_t at = 0, lines = 0; at < b.n && lines < MAX_LINES; lines++) {
        const unsigned char *end = memchr(b.p + at, 0, b.n - at);
        size_t n = end ? (size_t)(end - b.p) - at : b.n - at;
        char *line = xstrndup((const char *)b.p + at, n);
        // One option a line (gcc before 11) does not tell what stood together.
        if (n && line[0] != '-')
            dwarf_facts_add(d, line, NULL, 1, 0);
        free(line);
        at += n + 1;
    }
}

struct reading *facts_start(const struct elf_file *file, const struct elf_facts *elf)
{
    struct reading *r = xcalloc(1, sizeof *r);
    *r = (struct reading){.file = file, .elf = elf};
    server_names(&r->names);
    build_names(&r->names);
    hardening_names(&r->names);
    names_read(&r->names, file);
    r->rodata = read_only_data(file, 0).p != NULL;
    texts_find(file, texts, TEXTS, see_text, r);
    return r;
}

void facts_finish(struct reading *r, const struct dwarf_facts *dwarf, struct facts *out)
{
    struct dwarf_facts lines = {0};
    *out = (struct facts){0};
    r->out = out;
    if (!dwarf->units)
        read_command_lines(r->file, &lines);
    r->units_from = lines.units ? ".GCC.command.line" : "DW_AT_producer";
    r->units_word = lines.units ? "command lines" : "units";
    units_condense(lines.units ? &lines : dwarf, &r->units);
    server_facts(r);
    build_facts(r);
    debug_facts(r);
    hardening_facts(r);
    names_free(&r->names);
    dwarf_facts_free(&lines);
    dwarf_facts_free(&r->units);
    free(r->mariadb);
    free(r->group);
    free(r->percona);
    free(r->postgres);
    free(r);
}

void facts_read(const struct elf_file *file, const struct elf_facts *elf,
                const struct dwarf_facts *dwarf, struct facts *out)
{
    facts_finish(facts_start(file, elf), dwarf, out);
}
