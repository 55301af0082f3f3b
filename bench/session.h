// One client connection with a workload's statements prepared on it. Used by one thread.
#ifndef KILN_SESSION_H
#define KILN_SESSION_H

#include "bench/driver.h"

struct session;

// Connects, prepares every statement for every table; draws from stream f(seed, thread).
// NULL with *e filled on failure.
struct session *session_open(const struct workload *w, const struct driver_options *o,
                             unsigned thread, struct err *e);
// Runs one event and adds what was executed to *c. 0, or the server's or client's error number.
unsigned session_event(struct session *s, struct counts *c);
// The last event's error as text; returns -1.
int session_error(const struct session *s, struct err *e);
int session_rollback(struct session *s, struct err *e);
void session_close(struct session *s); // NULL is fine

#endif
