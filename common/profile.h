// Build profiles: INI files with inheritance. profiles/build/NAME.ini, or a path.
//
//   [profile]   description, inherits, toolchain, linker, optimisation, text-alignment, pie,
//               separate-code, c-flags, cxx-flags, server-link-flags, pad
//   [cmake], [cmake.mariadb], [cmake.mysql], [cmake.mysql<8.0.31] ...   OPTION = VALUE
//   [promises]  what kiln check --profile verifies on the binary
#ifndef KILN_PROFILE_H
#define KILN_PROFILE_H

#include "common/err.h"
#include "common/str.h"

struct profile_key {
    char *section, *key, *value;
    char *origin; // "gcc-o2.ini:12"
};

// A profile with all it inherits: a key of a descendant replaced its ancestor's.
struct profile {
    char *name, *path;
    struct strv chain; // names, the profile itself first, its root last
    struct profile_key *keys;
    size_t n;
};

// 0, or -1 with *e filled: unknown profile (its neighbours are named), unknown section or key, a
// key given twice, a cycle of inheritance; file and line are in the message.
int profile_load(const char *name, struct profile *p, struct err *e);
// The key, or NULL.
const struct profile_key *profile_find(const struct profile *p, const char *section,
                                       const char *key);
const char *profile_value(const struct profile *p, const char *section, const char *key,
                          const char *fallback);
// Names of all profiles in the profiles/build directory, sorted.
int profile_names(struct strv *names, struct err *e);
void profile_free(struct profile *p);

#endif
