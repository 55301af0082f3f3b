// Puts a finished build into the store: whole or not at all.
#ifndef KILN_INSTALL_H
#define KILN_INSTALL_H

#include "builder/build.h"

#include <jansson.h>

// Installs the work directory into a temporary directory, writes the manifest, checks the server
// against its profile, and renames; a build of the same name is replaced at once. A server that
// breaks its profile's promises is not installed: -1 with *e filled, the work directory stays.
// *manifest is the new build's.
int install_build(const struct plan *p, const struct outcome *o, json_t **manifest, struct err *e);
// Removes a build: it is gone from the store at once, its files a little later.
int install_remove(const char *name, struct err *e);

#endif
