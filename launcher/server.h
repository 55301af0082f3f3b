// The server process: its data directory, command line, readiness and end.
#ifndef KILN_SERVER_H
#define KILN_SERVER_H

#include "launcher/knob.h"

// Fills l->version and l->mysql by asking the binary.
int server_identify(struct launch *l, struct err *e);
// Makes the data directory: a clone, or a fresh one.
int server_data(struct launch *l, struct err *e);
// Fills l->argv.
int server_command(struct launch *l, struct err *e);
// Starts it with every condition's child step; fills l->pid, journals it.
int server_spawn(struct launch *l, struct err *e);
// Waits until a query was answered.
int server_ready(struct launch *l, struct err *e);
// SHUTDOWN, TERM, KILL. Fills {"how", "seconds"}.
int server_stop(struct launch *l, json_t *stop, struct err *e);
// Whether it still runs; reaps it if not.
bool server_alive(struct launch *l);
// "exit code 1; its last error lines: ..." for messages, from the log.
void server_last_words(const struct launch *l, struct str *out);

#endif
