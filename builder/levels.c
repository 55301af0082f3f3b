#include "builder/levels.h"
#include "common/json.h"
#include "common/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void last_level(const char *command, char *out, size_t size)
{
    snprintf(out, size, "none");
    for (const char *p = command; (p = strstr(p, "-O")); p += 2) {
        size_t n = strcspn(p, " \t\"'");
        bool word = p == command || strchr(" \t\"'", p[-1]);
        if (word && n == 2) // a bare -O is -O1
            snprintf(out, size, "-O1");
        else if (word && n < 8)
            snprintf(out, size, "%.*s", (int)n, p);
    }
}

static struct level_count *row_of(struct levels *l, const char *level)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->rows[i].level, level))
            return &l->rows[i];
    if (l->n == MAX_LEVELS)
        return &l->rows[MAX_LEVELS - 1];
    snprintf(l->rows[l->n].level, sizeof l->rows->level, "%s", level);
    return &l->rows[l->n++];
}

static void count(struct levels *l, const json_t *entry, const char *server_dir, const char *wanted)
{
    const char *file = json_text(entry, "file");
    char level[12];
    last_level(json_text(entry, "command"), level, sizeof level);
    struct level_count *row = row_of(l, level);
    row->files++;
    if (!starts_with(file, server_dir))
        return;
    row->server_files++;
    if (strcmp(level, wanted) && !*l->example)
        snprintf(l->example, sizeof l->example, "%s", file);
}

int levels_read(const char *path, const char *source, const char *wanted, struct levels *l,
                struct err *e)
{
    *l = (struct levels){0};
    json_error_t why;
    json_t *root = json_load_file(path, 0, &why);
    if (!json_is_array(root)) {
        json_decref(root);
        return err_set(e, EXIT_NO, "%s: cannot tell the optimisation level: %s", path, why.text);
    }
    char *dir = xasprintf("%s/sql/", source);
    size_t i;
    json_t *entry;
    json_array_foreach (root, i, entry)
        count(l, entry, dir, wanted);
    free(dir);
    json_decref(root);
    return 0;
}

int levels_verify(const struct levels *l, const char *wanted, struct err *e)
{
    unsigned right = 0, wrong = 0;
    const char *other = "";
    for (size_t i = 0; i < l->n; i++) {
        const struct level_count *row = &l->rows[i];
        if (!strcmp(row->level, wanted)) {
            right += row->server_files;
        } else if (row->server_files) {
            wrong += row->server_files;
            other = row->level;
        }
    }
    if (wrong)
        return err_set(e, EXIT_NO,
                       "the profile asks for %s, but %u of %u server files are compiled with %s, "
                       "for instance %s",
                       wanted, wrong, wrong + right, other, l->example);
    if (!right)
        return err_set(e, EXIT_NO,
                       "no server file in the compile commands: cannot tell whether "
                       "they are compiled with %s",
                       wanted);
    return 0;
}

json_t *levels_json(const struct levels *l)
{
    json_t *a = json_array();
    for (size_t i = 0; i < l->n; i++)
        json_array_append_new(a, json_pack("{ss si si}", "level", l->rows[i].level, "files",
                                           (int)l->rows[i].files, "server_files",
                                           (int)l->rows[i].server_files));
    return a;
}
