#include "elfcheck/dwarf_facts.h"
#include "common/str.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_KINDS = 2000, // a server has some fifty; what comes after them counts as without a producer
    MAX_FOLDERS = 500,
    SHOWN_FOLDERS = 6,
};

const char *const opt_level_names[OPT_LEVELS] = {
    [OPT_O0] = "O0",       [OPT_O1] = "O1", [OPT_O2] = "O2", [OPT_O3] = "O3",
    [OPT_OFAST] = "Ofast", [OPT_OS] = "Os", [OPT_OZ] = "Oz", [OPT_OG] = "Og"};

// --- producer lines ---

// The next word of a line; false at its end. Words are told apart by blanks, as the compiler does.
static bool next_word(const char **at, const char **word, size_t *n)
{
    *word = *at + strspn(*at, " ");
    *n = strcspn(*word, " ");
    *at = *word + *n;
    return *n > 0;
}

static int level_of(const char *word, size_t n)
{
    if (n == 2)
        return OPT_O1; // -O
    for (int i = 0; i < OPT_LEVELS; i++)
        if (strlen(opt_level_names[i]) == n - 1 && !strncmp(word + 1, opt_level_names[i], n - 1))
            return i;
    return OPT_O3; // -O4 and above mean -O3
}

int producer_level(const char *producer)
{
    const char *word;
    size_t n;
    int level = -1;
    while (next_word(&producer, &word, &n)) {
        if (word[0] != '-')
            continue;
        if (n >= 2 && word[1] == 'O')
            level = level_of(word, n);
        else if (level < 0)
            level = OPT_O0; // it records flags
    }
    return level;
}

char *producer_flag(const char *producer, const char *start)
{
    const char *word, *found = NULL;
    size_t n, found_n = 0, skip = strlen(start);
    while (next_word(&producer, &word, &n)) {
        if (n >= skip && !strncmp(word, start, skip)) {
            found = word + skip;
            found_n = n - skip;
        }
    }
    return found ? xstrndup(found, found_n) : NULL;
}

int producer_switch(const char *producer, const char *name)
{
    const char *word;
    size_t n, len = strlen(name);
    int on = -1;
    while (next_word(&producer, &word, &n)) {
        if (n == len + 2 && !strncmp(word, "-f", 2) && !strncmp(word + 2, name, len))
            on = 1;
        else if (n == len + 5 && !strncmp(word, "-fno-", 5) && !strncmp(word + 5, name, len))
            on = 0;
    }
    return on;
}

// --- counting ---

static struct unit_kind *kind_of(struct dwarf_facts *d, const char *producer)
{
    for (size_t i = 0; i < d->nkinds; i++)
        if (!strcmp(d->kinds[i].producer, producer))
            return &d->kinds[i];
    if (d->nkinds >= MAX_KINDS && *producer)
        return kind_of(d, "");
    d->kinds = xrealloc(d->kinds, (d->nkinds + 1) * sizeof *d->kinds);
    d->kinds[d->nkinds] = (struct unit_kind){.producer = xstrdup(producer)};
    return &d->kinds[d->nkinds++];
}

static void count_folder(struct unit_kind *k, const char *folder, size_t n)
{
    for (size_t i = 0; i < k->nfolders; i++) {
        if (!strcmp(k->by_folder[i].name, folder)) {
            k->by_folder[i].units += n;
            return;
        }
    }
    if (k->nfolders >= MAX_FOLDERS)
        return;
    k->by_folder = xrealloc(k->by_folder, (k->nfolders + 1) * sizeof *k->by_folder);
    k->by_folder[k->nfolders++] = (struct folder_count){xstrdup(folder), n};
}

static void count_kind(struct dwarf_facts *d, const char *producer, size_t n, uint64_t text_bytes)
{
    int level = producer_level(producer);
    d->units += n;
    d->text_bytes += text_bytes;
    if (level < 0) {
        d->level_unknown += n;
    } else {
        d->by_level[level] += n;
        d->text_by_level[level] += text_bytes;
    }
    if (starts_with(producer, "GNU "))
        d->gcc += n;
    else if (strstr(producer, "clang version"))
        d->clang += n;
    else
        d->other_compiler += n;
}

void dwarf_facts_add(struct dwarf_facts *d, const char *producer, const char *folder, size_t n,
                     uint64_t text_bytes)
{
    producer = producer ? producer : "";
    if (starts_with(producer, "GNU AS"))
        return;
    struct unit_kind *k = kind_of(d, producer);
    k->units += n;
    k->text_bytes += text_bytes;
    if (folder && *folder)
        count_folder(k, folder, n);
    count_kind(d, producer, n, text_bytes);
}

static int more_units_first(const void *a, const void *b)
{
    const struct unit_kind *x = a, *y = b;
    return x->units == y->units ? strcmp(x->producer, y->producer) : x->units < y->units ? 1 : -1;
}

static int more_folders_first(const void *a, const void *b)
{
    const struct folder_count *x = a, *y = b;
    return x->units == y->units ? strcmp(x->name, y->name) : x->units < y->units ? 1 : -1;
}

static void write_folders(struct unit_kind *k)
{
    struct str b = {0};
    if (k->nfolders)
        qsort(k->by_folder, k->nfolders, sizeof *k->by_folder, more_folders_first);
    for (size_t i = 0; i < k->nfolders && i < SHOWN_FOLDERS; i++)
        str_addf(&b, "%s%s (%zu)", i ? ", " : "", k->by_folder[i].name, k->by_folder[i].units);
    if (k->nfolders > SHOWN_FOLDERS)
        str_addf(&b, ", %zu more", k->nfolders - SHOWN_FOLDERS);
    free(k->folders);
    k->folders = b.s ? b.s : xstrdup("");
}

void dwarf_facts_finish(struct dwarf_facts *d)
{
    for (size_t i = 0; i < d->nkinds; i++)
        write_folders(&d->kinds[i]);
    if (d->nkinds)
        qsort(d->kinds, d->nkinds, sizeof *d->kinds, more_units_first);
}

void dwarf_facts_free(struct dwarf_facts *d)
{
    for (size_t i = 0; i < d->nkinds; i++) {
        for (size_t j = 0; j < d->kinds[i].nfolders; j++)
            free(d->kinds[i].by_folder[j].name);
        free(d->kinds[i].by_folder);
        free(d->kinds[i].producer);
        free(d->kinds[i].folders);
    }
    free(d->kinds);
    free(d->problem);
    *d = (struct dwarf_facts){0};
}

// --- what the child said ---

struct unit_line {
    const char *producer, *path; // in the lines
    uint64_t text_bytes;
};

static bool parse_unit(char *line, const struct strv *producers, struct unit_line *u)
{
    char *end;
    unsigned long long kind = strtoull(line, &end, 10);
    if (end == line || *end != ' ' || kind >= producers->n)
        return false;
    char *bytes = end + 1;
    *u = (struct unit_line){.producer = producers->v[kind]};
    u->text_bytes = strtoull(bytes, &end, 10);
    u->path = end + (*end == ' ');
    return end != bytes && (*end == ' ' || !*end);
}

// Folders that hold libraries: the name below them says more.
static bool is_container(const char *name, size_t n)
{
    static const char *const names[] = {"extra",       "storage",  "plugin", "lib",
                                        "third_party", "external", "src",    "libs"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && !strncmp(name, names[i], n))
            return true;
    return false;
}

static const char *without_dots(const char *path)
{
    while (starts_with(path, "./") || starts_with(path, "../"))
        path = strchr(path, '/') + 1;
    return path;
}

// The folder that tells where a unit comes from, below the folder that nearly all are in:
// "sql", "extra/zlib", "storage/innobase".
static char *folder_of(const char *path, const char *root)
{
    size_t n = strlen(root);
    path = without_dots(!strncmp(path, root, n) ? path + n : path);
    const char *slash = strchr(path, '/');
    if (!slash)
        return xstrdup(".");
    if (path[0] == '/' && (slash = strrchr(path, '/')) == path)
        return xstrdup("/");
    if (path[0] != '/' && is_container(path, (size_t)(slash - path)) && strchr(slash + 1, '/'))
        slash = strchr(slash + 1, '/');
    return xstrndup(path, (size_t)(slash - path));
}

static size_t units_below(const struct unit_line *units, size_t n, const char *root, size_t len)
{
    size_t below = 0;
    for (size_t i = 0; i < n; i++)
        below += !strncmp(units[i].path, root, len);
    return below;
}

// The longest folder, with its slash, that holds nine tenths of the units; "" when none does.
static char *common_root(const struct unit_line *units, size_t n)
{
    size_t best = 0;
    const char *sample = n ? units[n / 2].path : "";
    for (const char *slash = strchr(sample, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t len = (size_t)(slash - sample) + 1;
        if (units_below(units, n, sample, len) * 10 >= n * 9)
            best = len;
    }
    return xstrndup(sample, best);
}

void dwarf_facts_parse(struct dwarf_facts *d, char *lines)
{
    struct strv producers = {0};
    struct unit_line *units = NULL, u;
    size_t n = 0, room = 0;
    for (char *line = lines, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (starts_with(line, "P "))
            strv_add(&producers, line + 2);
        if (!starts_with(line, "U ") || !parse_unit(line + 2, &producers, &u))
            continue;
        if (n == room)
            units = xrealloc(units, (room = room ? 2 * room : 256) * sizeof *units);
        // The list of producers may move when it grows; its strings stay.
        units[n++] = u;
    }
    char *root = common_root(units, n);
    for (size_t i = 0; i < n; i++) {
        char *folder = folder_of(units[i].path, root);
        dwarf_facts_add(d, units[i].producer, folder, 1, units[i].text_bytes);
        free(folder);
    }
    dwarf_facts_finish(d);
    free(root);
    free(units);
    strv_free(&producers);
}
