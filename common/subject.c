#include "common/subject.h"
#include "common/str.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int add_one(struct subject *s, const char *word, struct err *e)
{
    const char *eq = strchr(word, '=');
    size_t n = strlen(word);
    if (!eq || eq == word || !eq[1])
        return err_set(e, EXIT_CANNOT_ASK, "%s: condition '%s' is not KNOB=VALUE", s->text, word);
    for (const char *p = word; p < eq; p++)
        if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && *p != '-')
            return err_set(e, EXIT_CANNOT_ASK, "%s: '%.*s' is no knob's name", s->text,
                           (int)(eq - word), word);
    char mark = word[n - 1];
    if (mark == '!' || mark == '?')
        n--;
    if (word + n == eq + 1)
        return err_set(e, EXIT_CANNOT_ASK, "%s: condition '%s' has no value", s->text, word);
    struct condition c = {.knob = xstrndup(word, (size_t)(eq - word)),
                          .value = xstrndup(eq + 1, (size_t)(word + n - eq - 1)),
                          .prefer = mark == '?'};
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->conditions[i].knob, c.knob)) {
            free(s->conditions[i].knob);
            free(s->conditions[i].value);
            s->conditions[i] = c;
            return 0;
        }
    s->conditions = xrealloc(s->conditions, (s->n + 1) * sizeof c);
    s->conditions[s->n++] = c;
    return 0;
}

int subject_add(struct subject *s, const char *conditions, struct err *e)
{
    struct strv words = {0};
    strv_split(&words, conditions, ",");
    int rc = 0;
    for (size_t i = 0; i < words.n && rc == 0; i++)
        rc = add_one(s, words.v[i], e);
    strv_free(&words);
    return rc;
}

int subject_parse(const char *text, struct subject *s, struct err *e)
{
    *s = (struct subject){.text = xstrdup(text)};
    // malloc=/usr/lib/x.so also holds slashes: the first '@' that a KNOB= or no '/' follows ends
    // the build.
    const char *at = text;
    while ((at = strchr(at, '@'))) {
        size_t word = strcspn(at + 1, "=/,@");
        if (at[1 + word] == '=' || !strchr(at, '/'))
            break;
        at++;
    }
    s->build = at ? xstrndup(text, (size_t)(at - text)) : xstrdup(text);
    if (!*s->build)
        return err_set(e, EXIT_CANNOT_ASK, "'%s': a subject starts with a build's name", text);
    if (at && !at[1])
        return err_set(e, EXIT_CANNOT_ASK, "%s: no condition after '@'", text);
    return at ? subject_add(s, at + 1, e) : 0;
}

const struct condition *subject_get(const struct subject *s, const char *knob)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->conditions[i].knob, knob))
            return &s->conditions[i];
    return NULL;
}

void subject_free(struct subject *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->conditions[i].knob);
        free(s->conditions[i].value);
    }
    free(s->conditions);
    free(s->text);
    free(s->build);
    *s = (struct subject){0};
}
