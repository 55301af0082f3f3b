// The store: sources, builds, data sets and runs under $KILN_HOME, and the private run directory.
#ifndef KILN_STORE_H
#define KILN_STORE_H

#include "common/err.h"
#include "common/str.h"

#include <jansson.h>

// $KILN_HOME; else /var/lib/kiln for root, else ${XDG_DATA_HOME:-$HOME/.local/share}/kiln.
const char *store_home(void);
char *store_path(const char *fmt, ...) __attribute__((format(printf, 1, 2))); // malloc'ed
int store_init(struct err *e); // makes the directories, 0755
// $KILN_RUN; else /run/kiln for root, else $XDG_RUNTIME_DIR/kiln, else /tmp/kiln-UID. Journals and
// sockets live here.
const char *store_run_dir(void);
int store_init_run(struct err *e); // makes it; refuses one that somebody else owns
// Where the files that belong to the programs are: profiles/, toolchains/. $KILN_SHARE, else
// beside the program's bin directory (a checkout or an installed tree). Malloc'ed.
char *store_share(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
// The directory of the running program, for starting its siblings. Static.
const char *store_bin_dir(void);

// A server binary: a build of the store, a path, or "system".
struct build {
    char *name;       // as asked
    char *server;     // path of the server binary
    char *basedir;    // --basedir for it
    char *messages;   // --lc-messages-dir
    json_t *manifest; // NULL when it is none of the store's
};
int build_find(const char *name, struct build *b, struct err *e);
void build_free(struct build *b);

#endif
