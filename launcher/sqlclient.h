// As much of a client as a launcher needs: is the server ready, and stop it. The client library is
// opened at run time, so that kiln-launch runs on hosts without one.
#ifndef KILN_SQLCLIENT_H
#define KILN_SQLCLIENT_H

#include "common/err.h"
#include "common/str.h"

// Runs one statement as root over the Unix socket; *answer (or NULL) takes the first column of the
// first row. 0, or -1 with *e filled (the server's or the library's message).
int sql_query(const char *socket, const char *statement, struct str *answer, struct err *e);
// 0 when a client library can be opened, else -1 with *e filled (what to install).
int sql_available(struct err *e);

#endif
