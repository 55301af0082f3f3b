// What this host can do. One row of the table is one question; each answers with what was seen and,
// where something lacks, the command that mends it.
#include "common/err.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/opt.h"
#include "common/proc.h"
#include "common/store.h"
#include "common/sys.h"
#include "common/table.h"
#include "elfcheck/predict.h"
#include "launcher/commands.h"
#include "launcher/pool.h"
#include "launcher/sqlclient.h"

#include <dirent.h>
#include <numa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

enum state { GOOD, LACKS, UNKNOWN };

struct answer_text {
    char seen[200], mend[200];
};

#define SEEN(...) snprintf(a->seen, sizeof a->seen, __VA_ARGS__)
#define MEND(...) snprintf(a->mend, sizeof a->mend, __VA_ARGS__)

static enum state ask_kernel(struct answer_text *a)
{
    struct str v = {0};
    int rc = sys_read("/proc/sys/kernel/osrelease", &v);
    SEEN("Linux %s, %ld CPUs", rc ? "?" : str_text(&v), sysconf(_SC_NPROCESSORS_ONLN));
    str_free(&v);
    return rc ? UNKNOWN : GOOD;
}

static enum state ask_pool(struct answer_text *a)
{
    struct pool p;
    struct err e;
    if (pool_read(&p, &e)) {
        SEEN("no pool of 2 MiB pages");
        MEND("a kernel with CONFIG_HUGETLBFS");
        return LACKS;
    }
    SEEN("%u pages, %u free, %u reserved; kiln adds what a start needs and takes it back", p.total,
         p.free, p.reserved);
    if (geteuid() != 0 && p.free == 0) {
        MEND("as root: echo 16 > /proc/sys/vm/nr_hugepages");
        return LACKS;
    }
    return GOOD;
}

static enum state ask_libhugetlbfs(struct answer_text *a)
{
    struct err e = {0};
    if (!libhugetlbfs_path()) {
        SEEN("not installed");
        MEND("apt-get install libhugetlbfs0");
        return LACKS;
    }
    unsigned limit = libhugetlbfs_segment_limit(&e);
    if (!limit) {
        SEEN("%.80s; %.100s", libhugetlbfs_path(), e.msg);
        return UNKNOWN;
    }
    SEEN("%s, remaps at most %u segments", libhugetlbfs_path(), limit);
    return GOOD;
}

static enum state ask_thp(struct answer_text *a)
{
    char *mode = sys_choice("/sys/kernel/mm/transparent_hugepage/enabled");
    SEEN("%s", mode ? mode : "not in this kernel");
    bool lacks = !mode || !strcmp(mode, "never");
    if (lacks)
        MEND("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    free(mode);
    return lacks ? LACKS : GOOD;
}

static enum state ask_nodes(struct answer_text *a)
{
    if (numa_available() < 0) {
        SEEN("no NUMA policy here");
        return LACKS;
    }
    int n = numa_num_configured_nodes();
    SEEN("%d node%s%s", n, n == 1 ? "" : "s",
         n == 1 ? ": policies are accepted and change nothing" : "");
    return GOOD;
}

static enum state ask_idle(struct answer_text *a)
{
    struct str driver = {0};
    int rc = sys_read("/sys/devices/system/cpu/cpuidle/current_driver", &driver);
    bool none = rc || !strcmp(str_text(&driver), "none");
    SEEN(none ? "no driver: idle= is not possible here" : "driver %s", str_text(&driver));
    str_free(&driver);
    return none ? LACKS : GOOD;
}

static enum state ask_pmu(struct answer_text *a)
{
    bool there = sys_exists("/sys/bus/event_source/devices/cpu") ||
                 sys_exists("/sys/bus/event_source/devices/cpu_core") ||
                 sys_exists("/sys/bus/event_source/devices/armv8_pmuv3_0");
    SEEN(there ? "hardware counters" : "no hardware counters (a virtual machine without a PMU?)");
    return there ? GOOD : LACKS;
}

static enum state ask_client(struct answer_text *a)
{
    struct err e = {0};
    if (sql_available(&e)) {
        SEEN("%.190s", e.msg);
        MEND("apt-get install libmariadb3");
        return LACKS;
    }
    SEEN("found");
    return GOOD;
}

static enum state ask_server(struct answer_text *a)
{
    struct build b;
    struct err e = {0};
    int rc = build_find("system", &b, &e);
    SEEN("%s", rc ? "none" : b.server);
    build_free(&b);
    if (rc)
        MEND("apt-get install mariadb-server-core (only for the subject \"system\")");
    return rc ? LACKS : GOOD;
}

static enum state ask_tools(struct answer_text *a)
{
    static const struct {
        const char *program, *package;
    } tools[] = {{"cmake", "cmake"}, {"ninja", "ninja-build"}, {"ccache", "ccache"},
                 {"gcc", "gcc"},     {"g++", "g++"},           {"bison", "bison"},
                 {"clang", "clang"}, {"ld.lld", "lld"},        {"dpkg-source", "dpkg-dev"}};
    struct strv missing = {0}, packages = {0};
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        char *path = fs_find_program(tools[i].program);
        if (!path) {
            strv_add(&missing, tools[i].program);
            strv_add(&packages, tools[i].package);
        }
        free(path);
    }
    char *names = strv_join(&missing, " "), *install = strv_join(&packages, " ");
    bool lacks = missing.n > 0;
    SEEN(lacks ? "missing: %s" : "all there%s", names);
    if (lacks)
        MEND("apt-get install %s", install);
    free(names);
    free(install);
    strv_free(&missing);
    strv_free(&packages);
    return lacks ? LACKS : GOOD;
}

static enum state ask_room(struct answer_text *a)
{
    uint64_t bytes;
    char *dir = xstrdup(store_home()), *slash;
    while (!fs_exists(dir) && (slash = strrchr(dir, '/')) && slash != dir)
        *slash = 0;
    int rc = fs_free_bytes(dir, &bytes);
    free(dir);
    if (rc)
        return UNKNOWN;
    SEEN("%s has %.1f GiB free", store_home(), (double)bytes / (1 << 30));
    if (bytes < 8ull << 30)
        MEND("a source build takes about 8 GiB: set KILN_HOME to a roomier place");
    return bytes < 8ull << 30 ? LACKS : GOOD;
}

static enum state ask_leftovers(struct answer_text *a)
{
    char *dir = xasprintf("%s/journal", store_run_dir());
    DIR *d = opendir(dir);
    unsigned n = 0;
    for (struct dirent *f; d && (f = readdir(d));)
        n += f->d_name[0] != '.';
    if (d)
        closedir(d);
    free(dir);
    SEEN(n ? "%u journals: running or killed" : "none%.0u", n);
    if (n)
        MEND("kiln restore (running ones are not touched)");
    return GOOD;
}

static const struct {
    const char *name;
    enum state (*ask)(struct answer_text *a);
    const char *use;
} questions[] = {
    {"kernel", ask_kernel, ""},
    {"huge page pool", ask_pool, "text=hugetlbfs"},
    {"libhugetlbfs", ask_libhugetlbfs, "text=hugetlbfs"},
    {"transparent huge pages", ask_thp, "text=pagecache"},
    {"NUMA", ask_nodes, "numa="},
    {"idle states", ask_idle, "idle="},
    {"counters", ask_pmu, "bench"},
    {"client library", ask_client, "launch, bench"},
    {"system server", ask_server, "subject \"system\""},
    {"build tools", ask_tools, "build"},
    {"room", ask_room, "build, bench"},
    {"leftovers", ask_leftovers, "restore"},
};

int cmd_doctor(int argc, char **argv)
{
    static bool as_json;
    static const struct opt opts[] = {{"json", 0, OPT_FLAG, &as_json, NULL, "print as JSON"}, {0}};
    static const struct command cmd = {
        .name = "kiln doctor",
        .synopsis = "[--json]",
        .about =
            "Says what this host can do for kiln, and for each lack the command that mends it.\n"
            "Changes nothing.",
        .opts = opts,
    };
    static const char *const words[] = {"ok", "lacks", "not known"};
    static const char *const columns[] = {"WHAT", "STATE", "SEEN", "USED BY", "MEND WITH", NULL};
    struct strv args = {0};
    opt_parse(&cmd, argc, argv, &args, NULL);
    struct table *t = table_new(columns);
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        struct answer_text a = {0};
        enum state s = questions[i].ask(&a);
        table_row(t,
                  (const char *[]){questions[i].name, words[s], a.seen, questions[i].use, a.mend});
        json_array_append_new(list, json_pack("{ss ss ss ss ss}", "what", questions[i].name,
                                              "state", words[s], "seen", a.seen, "used_by",
                                              questions[i].use, "mend", a.mend));
    }
    if (as_json) {
        json_t *root = json_new("kiln.doctor/1");
        json_object_set(root, "answers", list);
        json_print(root);
        json_decref(root);
    } else {
        table_print(t, stdout);
    }
    json_decref(list);
    return EXIT_YES;
}
