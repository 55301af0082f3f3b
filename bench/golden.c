// Golden data directories in the store.
#include "bench/dataset.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/proc.h"
#include "common/str.h"
#include "common/subject.h"
#include "common/version.h"
#include "launcher/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// "mariadb-10.11.14" or "mysql-8.0.40", from "... Ver 10.11.14-MariaDB-... for ...".
static int server_version(const char *server, struct str *out, struct err *e)
{
    struct str text = {0};
    const char *const argv[] = {server, "--no-defaults", "--version", NULL};
    int rc = proc_capture(argv, &text, e);
    const char *ver = rc == 0 ? strstr(str_text(&text), "Ver ") : NULL;
    if (rc >= 0 && !ver)
        err_set(e, EXIT_CANNOT_ASK, "%s: --version does not tell its version", server);
    if (ver) {
        size_t n = strspn(ver + 4, "0123456789.");
        str_add(out, strstr(str_text(&text), "MariaDB") ? "mariadb-" : "mysql-");
        str_addn(out, ver + 4, n);
    }
    str_free(&text);
    return ver ? 0 : -1;
}

// The server settings that shape the files, by content; two copies of one cnf are one data set.
static int cnf_key(const char *cnf, uint32_t *key, struct err *e)
{
    char *path = cnf ? xstrdup(cnf) : store_share("profiles/server/small.cnf");
    struct str text = {0};
    int rc = fs_read(path, &text, e);
    if (rc == 0)
        *key = dataset_crc32(str_text(&text), text.len);
    str_free(&text);
    free(path);
    return rc;
}

static int golden_name(const char *server, const struct dataset *d, struct str *out, struct err *e)
{
    uint32_t cnf = 0;
    if (server_version(server, out, e) || cnf_key(d->cnf, &cnf, e))
        return -1;
    str_addf(out, "-t%lu-r%lu-s%lu-%08x", d->tables, d->rows, d->seed, cnf);
    return 0;
}

static int load_through(const char *socket, const struct dataset *d, struct err *e)
{
    MYSQL *c = client_open(socket, NULL, e);
    if (!c)
        return -1;
    int rc = dataset_load(c, d, e);
    mysql_close(c);
    return rc;
}

// Starts a server on fresh data, loads it, and has its data directory left at data.
static int make_data(const char *build, const struct dataset *d, const char *run_dir,
                     const char *data, struct err *e)
{
    struct subject s = {0};
    struct launch *l = NULL;
    struct launch_options o = {.cnf = d->cnf, .data_to = data, .run_dir = run_dir};
    int rc = subject_parse(build, &s, e);
    if (rc == 0)
        rc = launch_start(&s, &o, &l, e);
    if (rc == 0) {
        rc = load_through(launch_socket(l), d, e);
        int stopped = launch_stop(l, rc ? NULL : e);
        rc = rc ? rc : stopped;
    }
    subject_free(&s);
    return rc;
}

static json_t *golden_facts(const char *name, const struct dataset *d)
{
    json_t *o = json_new("kiln.dataset/1");
    json_t *sums = json_array();
    for (uint32_t t = 1; t <= d->tables; t++)
        json_array_append_new(sums, json_integer((json_int_t)dataset_checksum(d, t)));
    json_object_set_new(o, "kiln", json_string(KILN_VERSION));
    json_object_set_new(o, "name", json_string(name));
    json_object_set_new(o, "tables", json_integer((json_int_t)d->tables));
    json_object_set_new(o, "rows", json_integer((json_int_t)d->rows));
    json_object_set_new(o, "seed", json_integer((json_int_t)d->seed));
    json_object_set_new(o, "checksums", sums);
    return o;
}

static int golden_make(const char *build, const char *name, const struct dataset *d,
                       const char *final, struct err *e)
{
    char *tmp = store_path("datasets/.tmp-%d-%s", getpid(), name);
    char *data = xasprintf("%s/data", tmp), *facts = xasprintf("%s/dataset.json", tmp);
    json_t *o = golden_facts(name, d);
    note("making the data set %s (once; kept in %s)", name, final);
    int rc = fs_mkdirs(tmp, 0755, e);
    if (rc == 0)
        rc = make_data(build, d, tmp, data, e);
    if (rc == 0)
        rc = json_save(o, facts, e);
    // Somebody else may have made the same one meanwhile: theirs is as good.
    if (rc == 0 && rename(tmp, final) && errno != EEXIST && errno != ENOTEMPTY)
        rc = err_sys(e, EXIT_NO, "%s: cannot rename to it", final);
    fs_remove_tree(tmp, NULL);
    json_decref(o);
    free(tmp);
    free(data);
    free(facts);
    return rc;
}

int dataset_golden(const char *build, const struct dataset *d, char **dir, struct err *e)
{
    struct build b = {0};
    struct str name = {0};
    int rc = store_init(e);
    if (rc == 0)
        rc = build_find(build, &b, e);
    if (rc == 0)
        rc = golden_name(b.server, d, &name, e);
    if (rc == 0) {
        char *final = store_path("datasets/%s", str_text(&name));
        *dir = xasprintf("%s/data", final);
        if (!fs_is_dir(*dir))
            rc = golden_make(build, str_text(&name), d, final, e);
        free(final);
    }
    str_free(&name);
    build_free(&b);
    return rc;
}
