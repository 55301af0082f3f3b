// From a profile and a source to the arguments of cmake, each flag with its origin. Nothing here
// reads a file or starts a process.
#ifndef KILN_RESOLVE_H
#define KILN_RESOLVE_H

#include "builder/source.h"
#include "common/profile.h"

// Where a flag comes from: "gcc-o2.ini:4" or "kiln".
struct part {
    char *text, *origin;
};

// -DNAME=part part part
struct cmake_arg {
    char *name;
    struct part *parts;
    size_t n;
};

struct resolution {
    struct cmake_arg *args;
    size_t n;
    char *toolchain, *linker, *level; // "gcc", "bfd", "-O2"
    struct strv server_link_flags;    // what the server's link line gets
    bool pad;                         // the installed server's text is padded to 2 MiB
    char *pad_origin;
};

// What a build is resolved for.
struct target {
    enum flavour flavour;
    struct version version;
    struct version compiler;       // {0}: not known
    const char *toolchain_file;    // path
    const char *home;              // the store, mapped to /kiln in debug information
    const char *boost;             // the tree's own Boost (MySQL 8.0), or NULL
    const struct profile *feature; // options of the feature set, in [cmake] sections; or NULL
};

// 0, or -1 with *e filled: a value that is not allowed (file and line are named), a flag that the
// profile's linker does not know.
int resolve(const struct profile *p, const struct target *t, struct resolution *r, struct err *e);
// The argument of this name, or NULL; its value, malloc'ed.
const struct cmake_arg *resolution_arg(const struct resolution *r, const char *name);
char *cmake_arg_value(const struct cmake_arg *arg);
// Whether a section such as "cmake", "cmake.mysql" or "cmake.mysql<8.0.31" speaks of this source:
// 1 yes, 0 no, -1 not a section of cmake options.
int cmake_section_applies(const char *section, enum flavour f, struct version v);
void resolution_free(struct resolution *r);

#endif
