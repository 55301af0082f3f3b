#include "bench/client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int client_error(MYSQL *c, const char *doing, struct err *e)
{
    return err_set(e, EXIT_CANNOT_ASK, "%s: %s (error %u)", doing, mysql_error(c), mysql_errno(c));
}

MYSQL *client_open(const char *socket, const char *database, struct err *e)
{
    unsigned timeout = CLIENT_TIMEOUT_SECONDS, connect_timeout = 10;
    MYSQL *c = mysql_init(NULL);
    if (!c) {
        err_set(e, EXIT_NO, "client library: out of memory");
        return NULL;
    }
    mysql_options(c, MYSQL_OPT_CONNECT_TIMEOUT, &connect_timeout);
    mysql_options(c, MYSQL_OPT_READ_TIMEOUT, &timeout);
    mysql_options(c, MYSQL_OPT_WRITE_TIMEOUT, &timeout);
    mysql_options(c, MYSQL_SET_CHARSET_NAME, "latin1");
    if (!mysql_real_connect(c, "localhost", "root", "", database, 0, socket, 0)) {
        client_error(c, socket, e);
        mysql_close(c);
        return NULL;
    }
    return c;
}

int client_run(MYSQL *c, const char *sql, struct err *e)
{
    if (mysql_query(c, sql)) {
        char start[80];
        strncpy(start, sql, sizeof start - 1);
        start[sizeof start - 1] = 0;
        return client_error(c, start, e);
    }
    MYSQL_RES *r = mysql_store_result(c);
    if (r)
        mysql_free_result(r);
    return mysql_errno(c) ? client_error(c, "result", e) : 0;
}

int client_number(MYSQL *c, const char *sql, uint64_t *out, struct err *e)
{
    MYSQL_RES *r = mysql_query(c, sql) ? NULL : mysql_store_result(c);
    if (!r)
        return client_error(c, sql, e);
    MYSQL_ROW row = mysql_fetch_row(r);
    int rc = row && row[0] ? 0 : err_set(e, EXIT_CANNOT_ASK, "%s: no value", sql);
    if (rc == 0)
        *out = strtoull(row[0], NULL, 10);
    mysql_free_result(r);
    return rc;
}

pid_t client_server_pid(const char *socket_path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    if (strlen(socket_path) >= sizeof a.sun_path)
        return 0;
    memcpy(a.sun_path, socket_path, strlen(socket_path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    if (connect(fd, (struct sockaddr *)&a, sizeof a) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
        peer.pid = 0;
    close(fd);
    return peer.pid;
}
