#include "elfcheck/check_diff.h"
#include "common/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One line of the comparison; a value that one file lacks is NULL.
struct pair {
    const char *name;
    char *a, *b;
};

struct pairs {
    struct pair *v;
    size_t n;
};

static void add(struct pairs *l, const char *name, const char *a, const char *b)
{
    if (a && b && !strcmp(a, b))
        return;
    if (!a && !b)
        return;
    l->v = xrealloc(l->v, (l->n + 1) * sizeof *l->v);
    l->v[l->n++] = (struct pair){name, a ? xstrdup(a) : NULL, b ? xstrdup(b) : NULL};
}

static void pairs_free(struct pairs *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].a);
        free(l->v[i].b);
    }
    free(l->v);
}

// What decides about the code, and no name of a file.
static bool is_flag(const char *word)
{
    static const char *const starts[] = {"-O", "-f", "-m", "-g", "-std=", "--param", "-p"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (starts_with(word, starts[i]))
            return !strstr(word, "prefix-map=");
    return false;
}

// The flags of a's producer that b's has not, in their order.
static char *own_words(const char *a, const char *b)
{
    struct strv words = {0}, others = {0}, own = {0};
    strv_split(&words, a, " ");
    strv_split(&others, b, " ");
    for (size_t i = 0; i < words.n; i++)
        if (is_flag(words.v[i]) && !strv_has(&others, words.v[i]))
            strv_add(&own, words.v[i]);
    char *text = strv_join(&own, " ");
    strv_free(&words);
    strv_free(&others);
    strv_free(&own);
    return text;
}

// How most units of the one were compiled and most of the other were not.
static void compare_flags(const struct check *a, const struct check *b, struct pairs *l)
{
    if (!a->dwarf.nkinds || !b->dwarf.nkinds)
        return;
    const char *first = a->dwarf.kinds[0].producer, *second = b->dwarf.kinds[0].producer;
    char *only_a = own_words(first, second), *only_b = own_words(second, first);
    add(l, "flags of most units", only_a, only_b);
    free(only_a);
    free(only_b);
}

// What can be known of one and not of the other differs, too.
static void compare_facts(const struct check *a, const struct check *b, struct pairs *l)
{
    add(l, "type", elf_type_name(&a->elf), elf_type_name(&b->elf));
    add(l, "machine", a->elf.machine_name, b->elf.machine_name);
    char *layout_a = elf_layout_text(&a->elf), *layout_b = elf_layout_text(&b->elf);
    add(l, "load-segments", layout_a, layout_b);
    free(layout_a);
    free(layout_b);
    for (size_t i = 0; i < a->facts.n; i++) {
        const struct fact *other = facts_find(&b->facts, a->facts.v[i].name);
        add(l, a->facts.v[i].name, a->facts.v[i].value, other ? other->value : NULL);
    }
    compare_flags(a, b, l);
}

static char *answer_text(const struct prediction *p)
{
    if (p->answer == ANSWER_NO)
        return xstrdup(answer_word(p->answer));
    if (!p->text_huge_bytes)
        return xasprintf("%s, %llu bytes of data", answer_word(p->answer),
                         (unsigned long long)p->data_huge_bytes);
    return xasprintf("%s, %llu of %llu text bytes", answer_word(p->answer),
                     (unsigned long long)p->text_huge_bytes, (unsigned long long)p->text_bytes);
}

static void compare_modes(const struct check *a, const struct check *b, struct pairs *l)
{
    for (size_t i = 0; i < a->nmodes; i++) {
        const struct mode_answer *other = check_mode(b, a->modes[i].mode);
        const struct prediction *p[2] = {&a->modes[i].now, other ? &other->now : NULL};
        char *text[2] = {0};
        for (size_t j = 0; j < 2 && p[j]; j++)
            text[j] = answer_text(p[j]);
        add(l, a->modes[i].mode, text[0], text[1]);
        free(text[0]);
        free(text[1]);
    }
}

// --- sizes by section ---

struct size_pair {
    char *name;
    uint64_t a, b;
};

struct sizes {
    struct size_pair *v;
    size_t n;
};

enum { MAX_COMPARED = 4096 }; // sections of a file; an object file can have 10^5

static struct size_pair *size_of(struct sizes *l, const char *name, size_t n)
{
    char *text = printable(name, n);
    for (size_t i = 0; i < l->n; i++) {
        if (!strcmp(l->v[i].name, text)) {
            free(text);
            return &l->v[i];
        }
    }
    l->v = xrealloc(l->v, (l->n + 1) * sizeof *l->v);
    l->v[l->n] = (struct size_pair){.name = text};
    return &l->v[l->n++];
}

static void compare_sections(const struct check *a, const struct check *b, struct sizes *l)
{
    const struct elf_file *files[] = {&a->file, &b->file};
    for (size_t j = 0; j < 2; j++) {
        for (size_t i = 1; i < files[j]->nshdrs && i < MAX_COMPARED; i++) {
            const char *name = files[j]->names[i];
            struct size_pair *p = size_of(l, name, strnlen(name, 64));
            *(j ? &p->b : &p->a) += files[j]->shdrs[i].sh_size;
        }
    }
    struct size_pair *p = size_of(l, "(file)", 6);
    p->a = a->file.image.n;
    p->b = b->file.image.n;
}

static uint64_t distance(const struct size_pair *p)
{
    return p->a > p->b ? p->a - p->b : p->b - p->a;
}

static int farther_first(const void *x, const void *y)
{
    uint64_t a = distance(x), b = distance(y);
    return a < b ? 1
           : a > b
               ? -1
               : strcmp(((const struct size_pair *)x)->name, ((const struct size_pair *)y)->name);
}

// --- output ---

static void print_pairs(const char *title, const struct pairs *l)
{
    printf("%s%s\n", title, l->n ? "" : ": the same");
    for (size_t i = 0; i < l->n; i++)
        printf("  %s\n    A  %s\n    B  %s\n", l->v[i].name, l->v[i].a ? l->v[i].a : "cannot know",
               l->v[i].b ? l->v[i].b : "cannot know");
}

static void print_sizes(const struct sizes *l)
{
    printf("sizes of sections, bytes\n  %-28s %12s %12s %12s %8s\n", "SECTION", "A", "B", "B - A",
           "B / A");
    for (size_t i = 0; i < l->n; i++) {
        const struct size_pair *p = &l->v[i];
        if (p->a == p->b)
            continue;
        printf("  %-28s %12" PRIu64 " %12" PRIu64 " %+12" PRId64, p->name, p->a, p->b,
               (int64_t)(p->b - p->a));
        if (p->a && p->b)
            printf(" %8.3f\n", (double)p->b / (double)p->a);
        else
            printf(" %8s\n", "-");
    }
}

static json_t *pairs_json(const struct pairs *l)
{
    json_t *o = json_object();
    for (size_t i = 0; i < l->n; i++)
        json_object_set_new(o, l->v[i].name,
                            json_pack("{ss? ss?}", "a", l->v[i].a, "b", l->v[i].b));
    return o;
}

static json_t *sizes_json(const struct sizes *l)
{
    json_t *o = json_object();
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].a != l->v[i].b)
            json_object_set_new(
                o, l->v[i].name,
                json_pack("{sI sI}", "a", (json_int_t)l->v[i].a, "b", (json_int_t)l->v[i].b));
    return o;
}

size_t check_diff(const struct check *a, const struct check *b, bool as_json)
{
    struct pairs facts = {0}, modes = {0};
    struct sizes sizes = {0};
    compare_facts(a, b, &facts);
    compare_modes(a, b, &modes);
    compare_sections(a, b, &sizes);
    qsort(sizes.v, sizes.n, sizeof *sizes.v, farther_first);
    if (as_json) {
        json_t *o = json_new("kiln.check-diff/1");
        json_object_set_new(o, "facts", pairs_json(&facts));
        json_object_set_new(o, "modes", pairs_json(&modes));
        json_object_set_new(o, "sections", sizes_json(&sizes));
        json_print(o);
        json_decref(o);
    } else {
        printf("A  %s\nB  %s\n\n", a->elf.path, b->elf.path);
        print_pairs("facts that differ", &facts);
        print_pairs("ways to huge pages that differ", &modes);
        print_sizes(&sizes);
    }
    size_t n = facts.n + modes.n;
    pairs_free(&facts);
    pairs_free(&modes);
    for (size_t i = 0; i < sizes.n; i++)
        free(sizes.v[i].name);
    free(sizes.v);
    return n;
}
