#include "bench/session.h"
#include "bench/client.h"
#include "bench/dataset.h"
#include "common/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SQL_BYTES = 600 };

// Client errors that mean that the server is no longer there (errmsg.h).
enum { SERVER_GONE = 2006, SERVER_LOST = 2013 };

struct session {
    const struct workload *w;
    MYSQL *c;
    uint64_t tables, rows;
    struct rng rng;
    MYSQL_STMT **stmt[STATEMENTS_MAX]; // [statement][table - 1]; NULL for the text protocol
    // Bound to the statements: one set of places for all of them.
    int32_t number[PARAMS_MAX];
    char text[PARAMS_MAX][DATASET_C + 1];
    unsigned long length[PARAMS_MAX];
    char error[500];
    unsigned code;
};

static bool is_text(enum param p)
{
    return p == PARAM_C || p == PARAM_PAD;
}

static void draw(struct session *s, const struct statement *st)
{
    for (size_t i = 0; i < workload_params(st); i++) {
        unsigned len = st->params[i] == PARAM_C ? DATASET_C : DATASET_PAD;
        switch (st->params[i]) {
        case PARAM_NONE:
            break;
        case PARAM_KEY:
            s->number[i] = (int32_t)rng_below(&s->rng, s->rows) + 1;
            break;
        case PARAM_LAST:
            s->number[i] = s->number[i - 1] + (int32_t)s->w->range - 1;
            break;
        case PARAM_BEYOND:
            s->number[i] = s->number[i - 1] + (int32_t)s->w->range;
            break;
        case PARAM_C:
        case PARAM_PAD:
            dataset_digits(&s->rng, s->text[i], len);
            s->length[i] = len;
            break;
        }
    }
}

static unsigned failed(struct session *s, unsigned code, const char *why)
{
    s->code = code;
    snprintf(s->error, sizeof s->error, "%s", why);
    return code;
}

static void count_write(struct counts *c, uint64_t affected)
{
    if (affected > 0)
        c->writes++;
    else
        c->noop_writes++;
}

static unsigned run_prepared(struct session *s, MYSQL_STMT *stmt, enum kind kind, struct counts *c)
{
    if (mysql_stmt_execute(stmt) || (kind == KIND_READ && mysql_stmt_store_result(stmt)))
        return failed(s, mysql_stmt_errno(stmt), mysql_stmt_error(stmt));
    if (kind == KIND_WRITE) {
        count_write(c, mysql_stmt_affected_rows(stmt));
        return 0;
    }
    c->reads++;
    c->rows += mysql_stmt_num_rows(stmt);
    mysql_stmt_free_result(stmt);
    return 0;
}

static unsigned run_sql(struct session *s, const char *sql, size_t n)
{
    if (mysql_real_query(s->c, sql, n))
        return failed(s, mysql_errno(s->c), mysql_error(s->c));
    return 0;
}

// Puts the drawn values in place of the '?'; they hold digits and '-' only.
static size_t fill_in(const struct session *s, const struct statement *st, unsigned table,
                      char *out, size_t size)
{
    size_t n = 0, param = 0;
    for (const char *p = st->sql; *p && n < size; p++) {
        if (p[0] == '%' && p[1] == 'u') {
            n += (size_t)snprintf(out + n, size - n, "%u", table);
            p++;
        } else if (*p != '?') {
            out[n++] = *p;
        } else if (is_text(st->params[param])) {
            n += (size_t)snprintf(out + n, size - n, "'%s'", s->text[param]);
            param++;
        } else {
            n += (size_t)snprintf(out + n, size - n, "%d", s->number[param++]);
        }
    }
    return n;
}

static unsigned run_text(struct session *s, const struct statement *st, unsigned table,
                         struct counts *c)
{
    char sql[SQL_BYTES];
    unsigned code = run_sql(s, sql, fill_in(s, st, table, sql, sizeof sql));
    if (code)
        return code;
    if (st->kind == KIND_WRITE) {
        count_write(c, mysql_affected_rows(s->c));
        return 0;
    }
    MYSQL_RES *r = mysql_store_result(s->c);
    if (!r)
        return failed(s, mysql_errno(s->c), mysql_error(s->c));
    c->reads++;
    c->rows += mysql_num_rows(r);
    mysql_free_result(r);
    return 0;
}

static unsigned run_statement(struct session *s, size_t i, struct counts *c)
{
    const struct statement *st = &s->w->statements[i];
    unsigned table = (unsigned)rng_below(&s->rng, s->tables), code = 0;
    for (unsigned n = 0; n < st->repeat && !code; n++) {
        draw(s, st);
        code = s->w->text ? run_text(s, st, table + 1, c)
                          : run_prepared(s, s->stmt[i][table], st->kind, c);
    }
    return code;
}

static unsigned control(struct session *s, const char *sql, struct counts *c)
{
    unsigned code = run_sql(s, sql, strlen(sql));
    c->control += code == 0;
    return code;
}

unsigned session_event(struct session *s, struct counts *c)
{
    unsigned code = s->w->transaction ? control(s, "BEGIN", c) : 0;
    for (size_t i = 0; i < STATEMENTS_MAX && s->w->statements[i].sql && !code; i++)
        code = run_statement(s, i, c);
    if (!code && s->w->transaction)
        code = control(s, "COMMIT", c);
    return code;
}

int session_error(const struct session *s, struct err *e)
{
    bool gone = s->code == SERVER_GONE || s->code == SERVER_LOST;
    return err_set(e, EXIT_CANNOT_ASK, "%s: %s%s (error %u)", s->w->name,
                   gone ? "the server is gone or hangs: " : "", s->error, s->code);
}

int session_rollback(struct session *s, struct err *e)
{
    return mysql_rollback(s->c) ? client_error(s->c, "ROLLBACK", e) : 0;
}

static int bind(struct session *s, const struct statement *st, MYSQL_STMT *stmt)
{
    MYSQL_BIND b[PARAMS_MAX];
    memset(b, 0, sizeof b);
    for (size_t i = 0; i < workload_params(st); i++) {
        bool text = is_text(st->params[i]);
        b[i].buffer_type = text ? MYSQL_TYPE_STRING : MYSQL_TYPE_LONG;
        b[i].buffer = text ? (void *)s->text[i] : (void *)&s->number[i];
        b[i].buffer_length = sizeof s->text[i];
        b[i].length = text ? &s->length[i] : NULL;
    }
    return mysql_stmt_bind_param(stmt, b) ? -1 : 0;
}

static int prepare(struct session *s, size_t i, unsigned table, struct err *e)
{
    const struct statement *st = &s->w->statements[i];
    char sql[SQL_BYTES], *place = strstr(st->sql, "%u");
    int n = snprintf(sql, sizeof sql, "%.*s%u%s", (int)(place - st->sql), st->sql, table + 1,
                     place + 2);
    MYSQL_STMT *stmt = s->stmt[i][table] = mysql_stmt_init(s->c);
    if (!stmt || mysql_stmt_prepare(stmt, sql, (unsigned long)n) || bind(s, st, stmt))
        return err_set(e, EXIT_CANNOT_ASK, "%s: cannot prepare '%s': %s", s->w->name, sql,
                       stmt ? mysql_stmt_error(stmt) : "out of memory");
    return 0;
}

static int prepare_all(struct session *s, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < STATEMENTS_MAX && s->w->statements[i].sql && rc == 0; i++) {
        s->stmt[i] = xcalloc(s->tables, sizeof *s->stmt[i]);
        for (unsigned t = 0; t < s->tables && rc == 0; t++)
            rc = prepare(s, i, t, e);
    }
    return rc;
}

struct session *session_open(const struct workload *w, const struct driver_options *o,
                             unsigned thread, struct err *e)
{
    struct session *s = xcalloc(1, sizeof *s);
    *s = (struct session){.w = w, .tables = o->tables, .rows = o->rows};
    // Another stream for each workload, else one would warm the keys of the next.
    rng_seed(&s->rng, o->seed ^ dataset_crc32(w->name, strlen(w->name)), thread);
    s->c = client_open(o->socket, DATASET_DATABASE, e);
    if (!s->c || (!w->text && prepare_all(s, e))) {
        session_close(s);
        return NULL;
    }
    return s;
}

void session_close(struct session *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < STATEMENTS_MAX; i++) {
        for (uint64_t t = 0; s->stmt[i] && t < s->tables; t++)
            if (s->stmt[i][t])
                mysql_stmt_close(s->stmt[i][t]);
        free(s->stmt[i]);
    }
    if (s->c)
        mysql_close(s->c);
    free(s);
}
