// The data set: tables sbtest1..sbtestN of sysbench's shape, every row a pure function of
// (seed, table, row), checked by a checksum that server and client compute apart.
#ifndef KILN_DATASET_H
#define KILN_DATASET_H

#include "bench/client.h"
#include "bench/rng.h"
#include "common/err.h"
#include "common/store.h"

#include <stdbool.h>
#include <stdint.h>

#define DATASET_DATABASE "sbtest"

enum { DATASET_C = 119, DATASET_PAD = 59 }; // characters

struct dataset {
    uint64_t tables, rows, seed;
    const char *cnf; // of the server that makes it; NULL: the launcher's default
};

struct dataset_row {
    uint32_t id, k; // k uniform in [1, rows]
    char c[DATASET_C + 1], pad[DATASET_PAD + 1];
};

// Row id (from 1) of a table (from 1).
void dataset_row(const struct dataset *d, uint32_t table, uint32_t id, struct dataset_row *out);
// Groups of 11 digits joined by '-', len characters and a NUL: 119 for c, 59 for pad.
void dataset_digits(struct rng *r, char *out, unsigned len);
// CRC-32 as in SQL's CRC32() and in zlib (reflected polynomial 0xEDB88320).
uint32_t dataset_crc32(const void *data, size_t n);
// What SUM(CRC32(CONCAT_WS(',', id, k, c, pad))) over one table must be.
uint64_t dataset_checksum(const struct dataset *d, uint32_t table);

// Creates the database and the tables, fills them, adds the secondary index, verifies.
int dataset_load(MYSQL *c, const struct dataset *d, struct err *e);
// 0 when every table has the checksum and the number of rows it must have; else -1, EXIT_NO.
int dataset_verify(MYSQL *c, const struct dataset *d, struct err *e);
// Sets *n to how many of the tables exist.
int dataset_present(MYSQL *c, const struct dataset *d, uint64_t *n, struct err *e);

// A loaded, cleanly stopped data directory, kept once per (flavour, version, tables, rows, seed,
// cnf) in the store's datasets/; made when it is not there. *dir is malloc'ed.
int dataset_golden(const char *build, const struct dataset *d, char **dir, struct err *e);

#endif
