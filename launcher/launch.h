// Starting a database server under stated conditions, and stopping it.
#ifndef KILN_LAUNCH_H
#define KILN_LAUNCH_H

#include "common/err.h"
#include "common/str.h"
#include "common/subject.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct launch_options {
    const char *cnf;       // a my.cnf; NULL: profiles/server/small.cnf
    const char *data_from; // a data directory to clone; NULL: a fresh one is initialised
    const char *data_to;   // where the data directory goes after a clean stop; NULL: nowhere
    const char *user;      // the server's user when root; NULL: mysql, else an unused uid
    const char *run_dir;   // existing directory for launch.json and server.err; NULL: a new
                           // one under the store's runs/
    const struct strv *server_args; // more options for the server, or NULL
    double ready_timeout;           // seconds; 0: 60
    const char *datadir;            // an existing data directory, used in place and kept
    uint64_t port;                  // also listen on 127.0.0.1:port; 0: the Unix socket only
    const struct strv *program;     // not NULL: the subject is any program, started with these
                                    // arguments; no data directory, no query
};

struct launch; // a started server

// Plans and applies every condition, starts the server, waits until it answered a query, reads the
// conditions back. 0, or -1 with *e filled and everything undone. Call from the main thread.
int launch_start(const struct subject *s, const struct launch_options *o, struct launch **out,
                 struct err *e);
pid_t launch_pid(const struct launch *l);
const char *launch_socket(const struct launch *l);
// What was asked and what was got, borrowed: {"subject", "server", "pid", "conditions": [...],
// "text_bytes", "text_huge_bytes", "text_huge_percent", ...}.
json_t *launch_facts(const struct launch *l);
// 0 when the server still runs and its text is where it was; -1 with *e filled.
int launch_verify(struct launch *l, struct err *e);
// SHUTDOWN, then TERM, then KILL; undoes the conditions, removes the instance. Frees l whatever it
// returns: 0, or -1 with *e filled when something could not be put back or the server had died.
int launch_stop(struct launch *l, struct err *e);
// Waits at most seconds for the server to end by itself: 1 when it has ended (*e says how), else 0.
int launch_wait(struct launch *l, double seconds, struct err *e);

#endif
