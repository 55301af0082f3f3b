// The manifest of a build: how it was made, what came out, and what the checker says of it.
#ifndef KILN_MANIFEST_H
#define KILN_MANIFEST_H

#include "builder/build.h"

#include <jansson.h>

#define MANIFEST_SCHEMA "kiln.manifest/1"

// tree: the installed files, still under their temporary name. NULL with *e filled.
json_t *manifest_make(const struct plan *p, const struct outcome *o, const char *tree,
                      struct err *e);
// Runs kiln-check on the server with the build's profile and puts its result under "check":
// {"answer": "yes"|"no"|"cannot know", "result": its JSON}. -1 with *e filled when interrupted.
int manifest_check(json_t *manifest, const struct plan *p, const char *tree, struct err *e);
// A profile's keys with their origins, and cmake's options with theirs.
json_t *profile_json(const struct profile *p);
json_t *resolution_json(const struct resolution *r);
// The manifest of a build in the store, or NULL.
json_t *manifest_open(const char *name, struct err *e);

#endif
