#include "common/json.h"
#include "common/fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9) };

json_t *json_new(const char *schema)
{
    return json_pack("{ss}", "schema", schema);
}

int json_save(const json_t *root, const char *path, struct err *e)
{
    char *text = json_dumps(root, FORMAT);
    if (!text)
        return err_set(e, EXIT_NO, "%s: cannot write as JSON", path);
    char *line = xasprintf("%s\n", text);
    int rc = fs_write_atomic(path, line, e);
    free(text);
    free(line);
    return rc;
}

void json_print(const json_t *root)
{
    json_dumpf(root, stdout, FORMAT);
    putchar('\n');
}

json_t *json_open(const char *path, const char *schema, struct err *e)
{
    struct str text = {0};
    if (fs_read(path, &text, e))
        return NULL;
    json_error_t why;
    json_t *root = json_loads(str_text(&text), JSON_REJECT_DUPLICATES, &why);
    str_free(&text);
    if (!root) {
        err_set(e, EXIT_CANNOT_ASK, "%s:%d: not JSON: %s", path, why.line, why.text);
        return NULL;
    }
    if (schema && strcmp(json_text(root, "schema"), schema)) {
        err_set(e, EXIT_CANNOT_ASK, "%s: its schema is '%s', needed is '%s'", path,
                json_text(root, "schema"), schema);
        json_decref(root);
        return NULL;
    }
    return root;
}

const char *json_text(const json_t *obj, const char *key)
{
    const char *s = json_string_value(json_object_get(obj, key));
    return s ? s : "";
}

double json_num(const json_t *obj, const char *key, double fallback)
{
    const json_t *v = json_object_get(obj, key);
    return json_is_number(v) ? json_number_value(v) : fallback;
}

json_t *json_printable(const char *s)
{
    json_t *j = s ? json_string(s) : json_null();
    if (!j) {
        char *text = printable(s, strlen(s));
        j = json_string(text);
        free(text);
    }
    return j;
}
