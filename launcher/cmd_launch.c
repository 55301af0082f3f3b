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
    const char *cnf, *user, *datadir, *explain;
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
    {"explain", 0, OPT_STR, &opt.explain, "KNOB",
     "say what a condition does, needs and costs, and how it is verified; start nothing"},
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

// --- explain ---

// The conditions whose rows in the table of knobs have no explanation of their own.
static const struct {
    const char *knob;
    struct explanation is;
} explanations[] = {
    {"cpus",
     {.name = "LIST",
      .does = "the server runs on these CPUs only (sched_setaffinity before it starts)",
      .needs = "CPUs that kiln itself may use; no privilege",
      .costs = "nothing: it goes with the process",
      .verified = "the live process's affinity is exactly the list"}},
    {"numa",
     {.name = "interleave[:NODES], bind[:NODES]",
      .does = "the server's memory is spread over the nodes, or comes from them alone "
              "(set_mempolicy before it starts)",
      .needs = "a kernel with NUMA policies; a container may deny them",
      .costs = "nothing: it goes with the process; a bound server fails when its nodes are full",
      .verified = "numa_maps: memory is under the policy; for bind, none lies on another node"}},
    {"malloc",
     {.name = "glibc, jemalloc, tcmalloc, mimalloc, PATH",
      .does = "the server's allocator, preloaded in the server process alone",
      .needs = "the library, found by the loader's cache or at PATH; no privilege",
      .costs = "what the allocator costs: memory, most of all",
      .verified = "the process's memory map: the library is mapped; for glibc, no other is"}},
    {"idle",
     {.name = "max-latency:US",
      .does = "no CPU goes into an idle state with an exit latency above US microseconds, by a "
              "request to /dev/cpu_dma_latency that is held open",
      .needs = "root; a host with an idle driver (most virtual machines have none)",
      .costs = "power on every CPU of the host for as long as kiln runs; the kernel takes the "
               "request back when kiln ends, however it ends",
      .verified = "the limit in force, read from /dev/cpu_dma_latency"}},
};

static const struct explanation *explanation_of(const struct knob *k, size_t i)
{
    if (k->explain)
        return k->explain(i);
    for (size_t j = 0; j < sizeof explanations / sizeof *explanations && i == 0; j++)
        if (!strcmp(explanations[j].knob, k->name))
            return &explanations[j].is;
    return NULL;
}

static void print_explanation(const struct knob *k)
{
    const struct explanation *x;
    printf("%s: %s\n", k->name, k->about);
    for (size_t i = 0; (x = explanation_of(k, i)); i++)
        printf("\n%s=%s\n  does      %s\n  needs     %s\n  costs     %s\n  verified  %s\n", k->name,
               x->name, x->does, x->needs, x->costs, x->verified);
}

static int explain(const char *name)
{
    struct str names = {0};
    for (size_t i = 0; knobs[i]; i++) {
        if (!strcmp(knobs[i]->name, name)) {
            print_explanation(knobs[i]);
            str_free(&names);
            return EXIT_YES;
        }
        str_addf(&names, "%s%s", i ? ", " : "", knobs[i]->name);
    }
    die(EXIT_CANNOT_ASK, "--explain=%s: no such condition; there are %s", name, str_text(&names));
}

// --- results ---

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

// Why a condition that chooses among several ways did not take the others.
static void print_passed_over(const json_t *condition)
{
    json_t *others = json_object_get(json_object_get(condition, "seen"), "passed_over"), *why;
    const char *way;
    json_object_foreach (others, way, why)
        printf("%s=%s passed over %s: %s\n", json_text(condition, "knob"),
               json_text(condition, "value"), way, json_string_value(why));
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
    json_array_foreach (list, i, c)
        print_passed_over(c);
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
        .synopsis = "[OPTIONS] SUBJECT [-- SERVER OPTIONS]\n       kiln launch --explain KNOB",
        .about = about(),
        .opts = opts,
        .max_args = 1,
        .examples = "  kiln launch gcc-o2-hugetext@text=hugetlbfs:R --verify-only\n"
                    "  kiln launch system@cpus=0,malloc=jemalloc?\n"
                    "  kiln launch --program ./prog@text=pagecache -- arguments of prog",
    };
    struct strv args = {0}, rest = {0};
    opt_parse(&cmd, argc, argv, &args, &rest);
    if (opt.explain)
        return explain(opt.explain);
    if (!args.n)
        die(EXIT_CANNOT_ASK, "an argument is missing; see 'kiln launch --help'");
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
