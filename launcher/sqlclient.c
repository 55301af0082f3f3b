#include "launcher/sqlclient.h"

#include <dlfcn.h>
#include <mysql.h>
#include <string.h>

// The functions have the same signatures in MySQL's and MariaDB's libraries.
static struct {
    void *handle;
    __typeof__(&mysql_init) init;
    __typeof__(&mysql_options) options;
    __typeof__(&mysql_real_connect) real_connect;
    __typeof__(&mysql_query) query;
    __typeof__(&mysql_store_result) store_result;
    __typeof__(&mysql_fetch_row) fetch_row;
    __typeof__(&mysql_free_result) free_result;
    __typeof__(&mysql_error) error;
    __typeof__(&mysql_close) close;
} lib;

int sql_available(struct err *e)
{
    static const char *const names[] = {"libmariadb.so.3", "libmysqlclient.so.21",
                                        "libmysqlclient.so.24"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !lib.handle; i++)
        lib.handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!lib.handle)
        return err_set(e, EXIT_NOT_HERE,
                       "no client library to ask the server with; install libmariadb3");
    const struct {
        const char *name;
        void *to;
    } symbols[] = {{"mysql_init", &lib.init},
                   {"mysql_options", &lib.options},
                   {"mysql_real_connect", &lib.real_connect},
                   {"mysql_query", &lib.query},
                   {"mysql_store_result", &lib.store_result},
                   {"mysql_fetch_row", &lib.fetch_row},
                   {"mysql_free_result", &lib.free_result},
                   {"mysql_error", &lib.error},
                   {"mysql_close", &lib.close}};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *sym = dlsym(lib.handle, symbols[i].name);
        if (!sym)
            return err_set(e, EXIT_NOT_HERE, "the client library has no %s", symbols[i].name);
        memcpy(symbols[i].to, &sym, sizeof sym);
    }
    return 0;
}

int sql_query(const char *socket, const char *statement, struct str *answer, struct err *e)
{
    if (sql_available(e))
        return -1;
    MYSQL *m = lib.init(NULL);
    unsigned seconds = 10;
    lib.options(m, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    lib.options(m, MYSQL_OPT_READ_TIMEOUT, &seconds);
    int rc = 0;
    if (!lib.real_connect(m, NULL, "root", "", NULL, 0, socket, 0) || lib.query(m, statement))
        rc = err_set(e, EXIT_CANNOT_ASK, "%s: %s", socket, lib.error(m));
    MYSQL_RES *res = rc ? NULL : lib.store_result(m);
    if (res) {
        MYSQL_ROW row = lib.fetch_row(res);
        if (row && row[0] && answer)
            str_add(answer, row[0]);
        lib.free_result(res);
    }
    lib.close(m);
    return rc;
}
