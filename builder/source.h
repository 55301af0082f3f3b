// A server's source tree: where it is, whose it is, which version it is.
#ifndef KILN_SOURCE_H
#define KILN_SOURCE_H

#include "common/err.h"
#include "common/str.h"

#include <stdbool.h>

enum flavour { FLAVOUR_NONE, FLAVOUR_MARIADB, FLAVOUR_MYSQL };

const char *flavour_name(enum flavour f); // "mariadb", "mysql"

struct version {
    unsigned major, minor, patch;
};

// "8.0.45", "8.0" or "8"; false when the text is no version.
bool version_parse(const char *text, struct version *v);
int version_compare(struct version a, struct version b); // < 0, 0, > 0

struct source {
    char *name; // "mariadb-10.11.18"
    char *dir;  // absolute path of the tree
    char *from; // what was asked for: a directory, a tarball or apt:PACKAGE
    enum flavour flavour;
    struct version version;
    char *checksum;     // sha256, in hex
    char *checksum_how; // of what
};

// Reads the text of a file VERSION or MYSQL_VERSION. False when it belongs to neither.
bool source_read_version(const char *text, enum flavour *f, struct version *v);
// "mariadb-10.11.18" or "mysql-8.0.45", without a tree.
bool source_parse_name(const char *name, enum flavour *f, struct version *v);
// Fills name, dir, flavour and version from a tree. 0, or -1 with *e filled.
int source_detect(const char *dir, struct source *s, struct err *e);
// DIR, TARBALL or apt:PACKAGE; the last two are unpacked in the store's sources/, whole or not at
// all. Fills everything.
int source_open(const char *spec, struct source *s, struct err *e);
// Moves a tree that was unpacked under a temporary name to its own name in the store, unless that
// name stands already, and makes *s the tree there.
int source_adopt(const char *tree, struct source *s, struct err *e);
void source_free(struct source *s);

#endif
