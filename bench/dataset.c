#include "bench/dataset.h"
#include "common/proc.h"
#include "common/progress.h"
#include "common/str.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INSERT_BYTES = 512 * 1024 }; // a statement's size, about 2600 rows

void dataset_digits(struct rng *r, char *out, unsigned len)
{
    uint64_t bits = 0;
    for (unsigned i = 0, left = 0; i < len; i++) {
        if (i % 12 == 11) {
            out[i] = '-';
            continue;
        }
        if (left == 0) {
            bits = rng_next(r);
            left = 11;
        }
        // The high word times ten: the next decimal of bits seen as a fraction.
        unsigned __int128 p = (unsigned __int128)bits * 10;
        out[i] = (char)('0' + (unsigned)(p >> 64));
        bits = (uint64_t)p;
        left--;
    }
    out[len] = 0;
}

void dataset_row(const struct dataset *d, uint32_t table, uint32_t id, struct dataset_row *out)
{
    struct rng r;
    rng_seed(&r, d->seed, (uint64_t)table << 32 | id);
    out->id = id;
    out->k = (uint32_t)rng_below(&r, d->rows) + 1;
    dataset_digits(&r, out->c, DATASET_C);
    dataset_digits(&r, out->pad, DATASET_PAD);
}

static uint32_t crc_table[256];

static void crc_init(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i;
        for (int bit = 0; bit < 8; bit++)
            v = v & 1 ? v >> 1 ^ 0xEDB88320u : v >> 1;
        crc_table[i] = v;
    }
}

uint32_t dataset_crc32(const void *data, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, crc_init);
    uint32_t crc = ~0u;
    for (const unsigned char *p = data; n--; p++)
        crc = crc >> 8 ^ crc_table[(crc ^ *p) & 255];
    return ~crc;
}

static uint32_t row_crc(const struct dataset_row *r)
{
    char text[256];
    int n = snprintf(text, sizeof text, "%u,%u,%s,%s", r->id, r->k, r->c, r->pad);
    return dataset_crc32(text, (size_t)n);
}

uint64_t dataset_checksum(const struct dataset *d, uint32_t table)
{
    struct dataset_row row;
    uint64_t sum = 0;
    for (uint32_t id = 1; id <= d->rows; id++) {
        dataset_row(d, table, id, &row);
        sum += row_crc(&row);
    }
    return sum;
}

static int run_fmt(MYSQL *c, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int run_fmt(MYSQL *c, struct err *e, const char *fmt, ...)
{
    char sql[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(sql, sizeof sql, fmt, ap);
    va_end(ap);
    return client_run(c, sql, e);
}

static int insert_flush(MYSQL *c, struct str *sql, struct err *e)
{
    int rc = sql->len ? client_run(c, str_text(sql), e) : 0;
    str_reset(sql);
    return rc;
}

static int insert_rows(MYSQL *c, const struct dataset *d, uint32_t table, struct err *e)
{
    struct dataset_row row;
    struct str sql = {0};
    int rc = 0;
    for (uint32_t id = 1; id <= d->rows && rc == 0; id++) {
        dataset_row(d, table, id, &row);
        if (sql.len == 0)
            str_addf(&sql, "INSERT INTO sbtest%u (id, k, c, pad) VALUES ", table);
        else
            str_add(&sql, ",");
        str_addf(&sql, "(%u,%u,'%s','%s')", row.id, row.k, row.c, row.pad);
        if (sql.len < INSERT_BYTES)
            continue;
        rc = insert_flush(c, &sql, e);
        progress_update((double)((table - 1) * d->rows + id), "rows");
        if (rc == 0 && intr_pending())
            rc = intr_error(e);
    }
    if (rc == 0)
        rc = insert_flush(c, &sql, e);
    str_free(&sql);
    return rc;
}

static int load_table(MYSQL *c, const struct dataset *d, uint32_t table, struct err *e)
{
    if (run_fmt(c, e,
                "CREATE TABLE sbtest%u (id INTEGER NOT NULL AUTO_INCREMENT, "
                "k INTEGER NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', "
                "pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id)) ENGINE=InnoDB",
                table) ||
        insert_rows(c, d, table, e))
        return -1;
    return run_fmt(c, e, "CREATE INDEX k_%u ON sbtest%u (k)", table, table);
}

int dataset_load(MYSQL *c, const struct dataset *d, struct err *e)
{
    if (client_run(c, "CREATE DATABASE IF NOT EXISTS " DATASET_DATABASE " CHARACTER SET latin1",
                   e) ||
        client_run(c, "USE " DATASET_DATABASE, e))
        return -1;
    int rc = 0;
    progress_begin("load", (double)(d->tables * d->rows), 0);
    for (uint32_t t = 1; t <= d->tables && rc == 0; t++)
        rc = load_table(c, d, t, e);
    progress_end();
    return rc ? rc : dataset_verify(c, d, e);
}

static int verify_table(MYSQL *c, const struct dataset *d, uint32_t table, struct err *e)
{
    char sql[200];
    uint64_t rows = 0, sum = 0, want = dataset_checksum(d, table);
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM " DATASET_DATABASE ".sbtest%u", table);
    if (client_number(c, sql, &rows, e))
        return -1;
    if (rows != d->rows)
        return err_set(e, EXIT_NO, "sbtest%u: it has %lu rows, the data set has %lu", table, rows,
                       d->rows);
    snprintf(sql, sizeof sql,
             "SELECT SUM(CRC32(CONCAT_WS(',', id, k, c, pad))) FROM " DATASET_DATABASE ".sbtest%u",
             table);
    if (client_number(c, sql, &sum, e))
        return -1;
    if (sum != want)
        return err_set(e, EXIT_NO, "sbtest%u: its checksum is %lu, for seed %lu it must be %lu",
                       table, sum, d->seed, want);
    return 0;
}

int dataset_verify(MYSQL *c, const struct dataset *d, struct err *e)
{
    int rc = 0;
    for (uint32_t t = 1; t <= d->tables && rc == 0; t++)
        rc = verify_table(c, d, t, e);
    return rc;
}

int dataset_present(MYSQL *c, const struct dataset *d, uint64_t *n, struct err *e)
{
    *n = 0;
    for (uint64_t t = 1; t <= d->tables; t++) {
        char sql[200];
        uint64_t one = 0;
        snprintf(
            sql, sizeof sql,
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema='" DATASET_DATABASE
            "' AND table_name='sbtest%lu'",
            t);
        if (client_number(c, sql, &one, e))
            return -1;
        *n += one;
    }
    return 0;
}
