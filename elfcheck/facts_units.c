// What the flags of all units come to: shares and tallies, by units and by bytes of machine code.
#include "elfcheck/facts_private.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FOLDERS = 5, MAX_LABELS = 64 };

// --- condensing ---

// The words of a producer that are asked for, and those before its flags; paths are left out.
static char *condensed(const char *producer)
{
    static const char *const kept[] = {
        "-O", "-m", "-f", "-D_FORTIFY", "_FORTIFY", "ssp-buffer", "--param=ssp-buffer"};
    struct str s = {0};
    bool flags = false;
    for (size_t n; *producer; producer += n + strspn(producer + n, " ")) {
        n = strcspn(producer, " ");
        flags |= producer[0] == '-';
        bool keep = !flags;
        for (size_t i = 0; i < sizeof kept / sizeof *kept && !keep; i++)
            keep = starts_with(producer, kept[i]);
        if (keep)
            str_addf(&s, "%s%.*s", s.len ? " " : "",
                     (int)(flags && memchr(producer, '/', n) ? strcspn(producer, "/") : n),
                     producer);
    }
    if (flags && producer_level(str_text(&s)) < 0)
        str_add(&s, " -O0"); // it records flags, though none that is kept
    return s.s ? s.s : xstrdup("");
}

static struct unit_kind *condensed_kind(struct dwarf_facts *d, char *producer)
{
    for (size_t i = 0; i < d->nkinds; i++) {
        if (!strcmp(d->kinds[i].producer, producer)) {
            free(producer);
            return &d->kinds[i];
        }
    }
    d->kinds = xrealloc(d->kinds, (d->nkinds + 1) * sizeof *d->kinds);
    d->kinds[d->nkinds] = (struct unit_kind){.producer = producer};
    return &d->kinds[d->nkinds++];
}

// The folders of kinds that became one: as many texts, joined.
static void join_folders(struct unit_kind *kind, const char *folders)
{
    if (!folders)
        return;
    size_t have = kind->folders ? strlen(kind->folders) : 0, more = strlen(folders);
    kind->folders = xrealloc(kind->folders, have + more + 3);
    memcpy(kind->folders + have, have ? ", " : "", have ? 3 : 1);
    memcpy(kind->folders + have + (have ? 2 : 0), folders, more + 1);
}

void units_condense(const struct dwarf_facts *from, struct dwarf_facts *to)
{
    *to = (struct dwarf_facts){.units = from->units,
                               .clang = from->clang,
                               .text_bytes = from->text_bytes,
                               .problem = from->problem ? xstrdup(from->problem) : NULL};
    for (size_t i = 0; i < from->nkinds; i++) {
        const struct unit_kind *k = &from->kinds[i];
        struct unit_kind *kind = condensed_kind(to, condensed(k->producer ? k->producer : ""));
        kind->units += k->units;
        kind->text_bytes += k->text_bytes;
        join_folders(kind, k->folders);
    }
}

// libgcc and crtfastmath.o come with the compiler; nobody chose their flags.
static bool is_compilers_own(const char *producer)
{
    return strstr(producer, "-fbuilding-libgcc") != NULL;
}

// --- folders ---

struct folder {
    char *name;
    size_t units;
};

static void add_folder(struct folder **v, size_t *n, const char *word)
{
    const char *count = strrchr(word, '(');
    size_t units = count ? strtoul(count + 1, NULL, 10) : 1;
    size_t len = count && count > word + 1 ? (size_t)(count - 1 - word) : strlen(word);
    for (size_t i = 0; i < *n; i++) {
        if (strlen((*v)[i].name) == len && !strncmp((*v)[i].name, word, len)) {
            (*v)[i].units += units;
            return;
        }
    }
    *v = xrealloc(*v, (*n + 1) * sizeof **v);
    (*v)[(*n)++] = (struct folder){xstrndup(word, len), units};
}

static int by_units(const void *a, const void *b)
{
    const struct folder *x = a, *y = b;
    return x->units != y->units ? (x->units < y->units ? 1 : -1) : strcmp(x->name, y->name);
}

char *folders_text(const struct strv *folders)
{
    struct folder *v = NULL;
    size_t n = 0;
    struct strv words = {0};
    for (size_t i = 0; i < folders->n && words.n < 4096; i++)
        strv_split(&words, folders->v[i], ",");
    for (size_t i = 0; i < words.n && n < 1024; i++)
        add_folder(&v, &n, trim(words.v[i]));
    if (n)
        qsort(v, n, sizeof *v, by_units);
    struct str s = {0};
    for (size_t i = 0; i < n; i++) {
        if (i < MAX_FOLDERS)
            str_addf(&s, "%s%s (%zu)", i ? ", " : "", v[i].name, v[i].units);
        free(v[i].name);
    }
    if (n > MAX_FOLDERS)
        str_add(&s, ", ...");
    free(v);
    strv_free(&words);
    return s.s ? s.s : xstrdup("");
}

// "in 12 of 14 units (97.1 % of the text)"
static void add_part(struct str *s, size_t units, size_t all, const char *word, uint64_t text,
                     uint64_t all_text)
{
    str_addf(s, "in %zu of %zu %s", units, all, word);
    if (all_text)
        str_addf(s, " (%.1f %% of the text)", 100.0 * (double)text / (double)all_text);
}

// --- shares ---

struct share units_share(const struct reading *r, unit_fn *fn)
{
    struct share s = {0};
    for (size_t i = 0; i < r->units.nkinds; i++) {
        const struct unit_kind *k = &r->units.kinds[i];
        const char *producer = k->producer;
        if (is_compilers_own(producer))
            continue;
        int answer = producer_level(producer) < 0 ? -1 : fn(r, producer);
        *(answer > 0 ? &s.yes : answer == 0 ? &s.no : &s.unknown) += k->units;
        s.text += k->text_bytes;
        s.text_yes += answer > 0 ? k->text_bytes : 0;
        if (answer == 0 && k->folders)
            strv_add(&s.no_folders, k->folders);
    }
    return s;
}

void flags_unknown(struct reading *r, const char *name)
{
    if (r->units.problem)
        fact_unknown(r->out, name, "%s", r->units.problem);
    else if (r->units.units)
        fact_unknown(r->out, name,
                     "the units do not record their flags; clang -grecord-command-line or gcc "
                     "without -gno-record-gcc-switches would tell");
    else
        fact_unknown(r->out, name,
                     "no flags in the file; debug information (-g; clang: and "
                     "-grecord-command-line) would tell");
}

static char *partial_text(const struct reading *r, const struct share *s)
{
    struct str text = {0};
    char *folders = folders_text(&s->no_folders);
    str_add(&text, "partial; ");
    add_part(&text, s->yes, s->yes + s->no + s->unknown, r->units_word, s->text_yes, s->text);
    if (s->no)
        str_addf(&text, "; not in %zu%s%s", s->no, *folders ? ": " : "", folders);
    if (s->unknown)
        str_addf(&text, "; not recorded in %zu", s->unknown);
    free(folders);
    return text.s;
}

void units_fact(struct reading *r, const char *name, unit_fn *fn, const char *flag)
{
    struct share s = units_share(r, fn);
    size_t all = s.yes + s.no + s.unknown;
    if (!s.yes && (s.unknown || !s.no)) {
        flags_unknown(r, name);
    } else if (!s.yes || s.yes == all) {
        fact_known(r->out, name, s.yes ? "yes" : "no", "%s: %s in %s %zu %s", r->units_from, flag,
                   s.yes ? "all" : "none of", all, r->units_word);
    } else {
        char *text = partial_text(r, &s);
        fact_known(r->out, name, text, "%s: %s", r->units_from, flag);
        free(text);
    }
    strv_free(&s.no_folders);
}

// --- tallies ---

void tally_add(struct tally *t, const char *label, const struct unit_kind *k)
{
    if (is_compilers_own(k->producer))
        return;
    size_t i = 0;
    while (i < t->n && strcmp(t->v[i].label, label))
        i++;
    if (i == t->n && i >= MAX_LABELS)
        label = "others", i = MAX_LABELS - 1;
    if (i == t->n) {
        t->v = xrealloc(t->v, ++t->n * sizeof *t->v);
        memset(&t->v[i], 0, sizeof t->v[i]);
        t->v[i].label = xstrdup(i == MAX_LABELS - 1 ? "others" : label);
    }
    t->v[i].units += k->units;
    t->v[i].text += k->text_bytes;
    t->units += k->units;
    t->text += k->text_bytes;
    if (k->folders)
        strv_add(&t->v[i].folders, k->folders);
}

static int label_by_units(const void *a, const void *b)
{
    const typeof(*((struct tally *)0)->v) *x = a, *y = b;
    return x->units != y->units ? (x->units < y->units ? 1 : -1) : strcmp(x->label, y->label);
}

char *tally_text(struct tally *t, const char *word)
{
    struct str s = {0};
    if (t->n)
        qsort(t->v, t->n, sizeof *t->v, label_by_units);
    for (size_t i = 0; i < t->n; i++) {
        if (i == 0) {
            str_addf(&s, "%s ", t->v[0].label);
            if (t->n == 1)
                str_addf(&s, "in all %zu %s", t->units, word);
            else
                add_part(&s, t->v[0].units, t->units, word, t->v[0].text, t->text);
            continue;
        }
        char *folders = folders_text(&t->v[i].folders);
        str_addf(&s, "; %s in %zu%s%s", t->v[i].label, t->v[i].units, *folders ? ": " : "",
                 folders);
        free(folders);
    }
    return s.s ? s.s : xstrdup("");
}

void tally_free(struct tally *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->v[i].label);
        strv_free(&t->v[i].folders);
    }
    free(t->v);
    *t = (struct tally){0};
}
