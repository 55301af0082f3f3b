// One connection to a server over its Unix socket. Compiles with MySQL's and MariaDB's client API.
#ifndef KILN_CLIENT_H
#define KILN_CLIENT_H

#include "common/err.h"

#include <mysql.h>
#include <stdint.h>
#include <sys/types.h>

// No answer for this long means that the server hangs.
enum { CLIENT_TIMEOUT_SECONDS = 120 };

// Connects as root without a password, as the private servers allow; database may be NULL.
// NULL with *e filled on failure.
MYSQL *client_open(const char *socket, const char *database, struct err *e);
// Runs a statement whose result, if any, is dropped.
int client_run(MYSQL *c, const char *sql, struct err *e);
// The first column of the first row; an empty result or NULL is an error.
int client_number(MYSQL *c, const char *sql, uint64_t *out, struct err *e);
// Fills *e from the connection's last error and returns -1.
int client_error(MYSQL *c, const char *doing, struct err *e);
// The process that listens on the socket, 0 when it cannot be known.
pid_t client_server_pid(const char *socket);

#endif
