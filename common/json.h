// What is common to all of kiln's JSON files, on top of jansson.
#ifndef KILN_JSON_H
#define KILN_JSON_H

#include "common/err.h"

#include <jansson.h>

// A new object whose "schema" is name/version, for instance "kiln.manifest/1".
json_t *json_new(const char *schema);
int json_save(const json_t *root, const char *path, struct err *e); // atomically
void json_print(const json_t *root);                                // to standard output
// Reads a file whose schema must be the one given (NULL: any).
json_t *json_open(const char *path, const char *schema, struct err *e);
// A string of any bytes, printable where it is not UTF-8; null for NULL.
json_t *json_printable(const char *s);
// Strings by key, "" when absent.
const char *json_text(const json_t *obj, const char *key);
double json_num(const json_t *obj, const char *key, double fallback);

#endif
