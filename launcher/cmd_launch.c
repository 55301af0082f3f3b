#include "common/err.h"
#include "common/json.h"
#include "common/opt.h"
#include "common/proc.h"
#include "common/table.h"
#include "launcher/commands.h"
#include "launcher/knob.h"
#include "launcher/launch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *cnf, *user, *datadir;
    uint64_t port;
    double timeout;
    bool verify_only, program, json;
} opt;

static const struct opt opts[] = {
    {"cnf", 0, OPT_STR, &opt.cnf, "FILE",
     "my.cnf for the server (default: profiles/server/small.cnf)"},
    {"datadir", 0, OPT_STR, &opt.datadir, "DIR", "use this data directory in place, and keep it"},
    {"user", 0, OPT_STR, &opt.user, "NAME",
     "as root: the server's user (default: mysql, else uid 60577)"},
    {"port", 0, OPT_UINT, &opt.port, "N",
     "listen on 127.0.0.1:N as well (default: Unix socket only)"},
    {"timeout", 0, OPT_DOUBLE, &opt.timeout, "S",
     "seconds until a query must be answered (default 60)"},
    {"verify-only", 0, OPT_FLAG, &opt.verify_only, NULL, "start, verify, print, stop"},
    {"program", 0, OPT_FLAG, &opt.program, NULL,
     "the subject is any program: start it with the arguments after --"},
    {"json", 0, OPT_FLAG, &opt.json, NULL, "print what was asked and got as JSON"},
    {0},
};

static char *about(void)
{
    struct str b = {0};
    str_add(
        &b,
        "Starts a server on a private data directory and Unix socket, waits until it answered a\n"
        "query, reads every condition back from the live process, and stays until Ctrl-C or TERM;\n"
        "then it stops the server and puts everything back.\n\n"
        "SUBJECT is BUILD[@KNOB=VALUE[!|?],...]; BUILD is a name in the store, a path, or\n"
        "\"system\". '!' (the default) requires a condition, '?' goes on without it. "
        "Conditions:\n");
    for (size_t i = 0; knobs[i]; i++)
        str_addf(&b, "  %-7s %s\n          %s\n", knobs[i]->name, knobs[i]->about,
                 knobs[i]->values);
    return b.s;
}

// One line for what was read back, from its JSON.
static char *seen_text(const json_t *seen)
{
    struct str b = {0};
    const char *key;
    json_t *v;
    json_object_foreach ((json_t *)(uintptr_t)seen, key, v) {
        char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(5));
        if (text && !json_is_object(v))
            str_addf(&b, "%s%s=%s", b.len ? " " : "", key, text);
        free(text);
    }
    return b.s ? b.s : xstrdup("");
}

static void print_conditions(const json_t *facts)
{
    const json_t *list = json_object_get(facts, "conditions");
    if (!json_array_size(list))
        return;
    static const char *const columns[] = {"CONDITION", "STATUS", "READ BACK", NULL};
    struct table *t = table_new(columns);
    size_t i;
    json_t *c;
    json_array_foreach (list, i, c) {
        char *name = xasprintf("%s=%s", json_text(c, "knob"), json_text(c, "value"));
        char *seen = seen_text(json_object_get(c, "seen"));
        const char *why = json_text(c, "why");
        table_row(t, (const char *[]){name, json_text(c, "status"), *why ? why : seen});
        free(name);
        free(seen);
    }
    table_print(t, stdout);
}

static void print_text(const json_t *facts)
{
    printf("server   %s, pid %.0f, user %s\n", json_text(facts, "server"),
           json_num(facts, "pid", 0), json_text(facts, "user"));
    if (json_object_get(facts, "text_bytes"))
        printf("text     %.0f of %.0f kB on 2 MiB pages (%.1f %%), %.0f kB on 4 KiB pages\n",
               json_num(facts, "text_huge_bytes", 0) / 1024,
               json_num(facts, "text_bytes", 0) / 1024, json_num(facts, "text_huge_percent", 0),
               (json_num(facts, "text_bytes", 0) - json_num(facts, "text_huge_bytes", 0)) / 1024);
    if (*json_text(facts, "socket"))
        printf("socket   %s  (mariadb --socket=%s -u root)\n", json_text(facts, "socket"),
               json_text(facts, "socket"));
    printf("log      %s\n", json_text(facts, "log"));
    print_conditions(facts);
}

static int supervise(struct launch *l, struct err *e)
{
    if (!opt.json)
        printf("running; Ctrl-C stops the server and puts everything back\n");
    fflush(stdout);
    while (!intr_pending())
        if (launch_wait(l, 0.25, e))
            return -1;
    return 0;
}

int cmd_launch(int argc, char **argv)
{
    struct command cmd = {
        .name = "kiln launch",
        .synopsis = "[OPTIONS] SUBJECT [-- SERVER OPTIONS]",
        .about = about(),
        .opts = opts,
        .min_args = 1,
        .max_args = 1,
        .examples = "  kiln launch gcc-o2-hugetext@text=hugetlbfs:R --verify-only\n"
                    "  kiln launch system@cpus=0,malloc=jemalloc?\n"
                    "  kiln launch --program ./prog@text=pagecache -- arguments of prog",
    };
    struct strv args = {0}, rest = {0};
    opt_parse(&cmd, argc, argv, &args, &rest);
    struct launch_options o = {.cnf = opt.cnf,
                               .user = opt.user,
                               .datadir = opt.datadir,
                               .port = opt.port,
                               .ready_timeout = opt.timeout,
                               .server_args = &rest,
                               .program = opt.program ? &rest : NULL};
    struct subject s;
    struct launch *l;
    struct err e = {0}, ended = {0};
    intr_install();
    if (subject_parse(args.v[0], &s, &e))
        return err_report(&e);
    if (isatty(STDERR_FILENO))
        note("starting %s: some seconds", s.text);
    if (launch_start(&s, &o, &l, &e))
        return err_report(&e);
    if (opt.json && !opt.verify_only)
        json_print(launch_facts(l));
    else if (!opt.json)
        print_text(launch_facts(l));
    json_t *facts = json_incref(launch_facts(l));
    int rc = opt.verify_only ? 0 : supervise(l, &ended);
    if (launch_stop(l, &e) && rc == 0) {
        rc = -1;
        ended = e;
    }
    if (opt.json && opt.verify_only)
        json_print(facts);
    json_decref(facts);
    subject_free(&s);
    return rc ? err_report(&ended) : EXIT_YES;
}
