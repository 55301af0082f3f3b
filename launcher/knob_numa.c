// numa=interleave:NODES|bind:NODES: memory policy of the server, through libnuma.
#include "launcher/knob.h"

#include "common/fs.h"

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct numa_plan {
    int mode; // MPOL_INTERLEAVE or MPOL_BIND
    struct bitmask *nodes;
};

// libnuma prints its warnings; ours say more, with the condition's name.
void numa_warn(int num, char *fmt, ...)
{
    (void)num, (void)fmt;
}

static const char *mode_name(int mode)
{
    return mode == MPOL_BIND ? "bind" : "interleave";
}

static int parse(struct numa_plan *p, const char *value, struct err *e)
{
    const char *nodes = strchr(value, ':');
    size_t n = nodes ? (size_t)(nodes - value) : strlen(value);
    p->mode = n == 10 && !strncmp(value, "interleave", n) ? MPOL_INTERLEAVE
              : n == 4 && !strncmp(value, "bind", n)      ? MPOL_BIND
                                                          : -1;
    if (p->mode < 0)
        return err_set(e, EXIT_CANNOT_ASK, "numa=%s: not one of %s", value, knob_numa.values);
    // Lists inside a value use '+', numactl's use ','.
    char *list = xstrdup(nodes ? nodes + 1 : "all");
    for (char *c = list; *c; c++)
        if (*c == '+')
            *c = ',';
    p->nodes = numa_parse_nodestring(list);
    free(list);
    if (!p->nodes || numa_bitmask_weight(p->nodes) == 0)
        return err_set(
            e, EXIT_NOT_HERE,
            "numa=%s: not a list of nodes that this host has and kiln may use (highest node "
            "is %d)",
            value, numa_max_node());
    return 0;
}

static int prepare(struct launch *l, struct knob_state *s, struct err *e)
{
    (void)l;
    struct numa_plan *p = s->plan = xcalloc(1, sizeof *p);
    if (numa_available() < 0)
        return err_set(e, EXIT_NOT_HERE,
                       "numa=%s: this kernel, or this container, has no NUMA policy", s->value);
    s->seen = json_pack("{si}", "host_nodes", numa_num_configured_nodes());
    return parse(p, s->value, e);
}

static int child(const struct launch *l, const struct knob_state *s, const char **what)
{
    (void)l;
    const struct numa_plan *p = s->plan;
    *what = "cannot set its NUMA policy";
    return set_mempolicy(p->mode, p->nodes->maskp, p->nodes->size + 1) ? -errno : 0;
}

// numa_maps has, for each mapping, its policy and the pages it holds on each node. Pages of a file
// were perhaps in the cache before, wherever that is: only memory of the server's own counts.
static void add_line(const struct numa_plan *p, char *line, uint64_t *with, uint64_t *node_bytes,
                     size_t nodes)
{
    uint64_t page = 4096;
    if (strstr(line, " file="))
        return;
    char *size = strstr(line, "kernelpagesize_kB=");
    if (size)
        page = strtoull(size + strlen("kernelpagesize_kB="), NULL, 10) * 1024;
    char *save, *word = strtok_r(line, " ", &save);
    word = strtok_r(NULL, " ", &save);
    bool ours = word && starts_with(word, mode_name(p->mode));
    while ((word = strtok_r(NULL, " ", &save))) {
        unsigned node;
        unsigned long long pages;
        if (sscanf(word, "N%u=%llu", &node, &pages) != 2)
            continue;
        if (ours)
            *with += pages * page;
        if (ours && node < nodes)
            node_bytes[node] += pages * page;
    }
}

static int verify(const struct launch *l, struct knob_state *s, struct err *e)
{
    const struct numa_plan *p = s->plan;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/numa_maps", l->pid);
    struct str text = {0};
    uint64_t with = 0, outside = 0, node_bytes[64] = {0};
    if (fs_read(path, &text, e))
        return -1;
    struct strv lines = {0};
    strv_split(&lines, str_text(&text), "\n");
    str_free(&text);
    for (size_t i = 0; i < lines.n; i++)
        add_line(p, lines.v[i], &with, node_bytes, 64);
    strv_free(&lines);
    json_t *by_node = json_object();
    for (unsigned n = 0; n < 64; n++) {
        char key[8];
        snprintf(key, sizeof key, "%u", n);
        if (node_bytes[n])
            json_object_set_new(by_node, key, json_integer((json_int_t)node_bytes[n]));
        if (!numa_bitmask_isbitset(p->nodes, n))
            outside += node_bytes[n];
    }
    json_object_set_new(s->seen, "bytes_under_policy", json_integer((json_int_t)with));
    json_object_set_new(s->seen, "bytes_by_node", by_node);
    if (!with)
        return err_set(e, EXIT_NO, "numa=%s: no memory of the server is under this policy",
                       s->value);
    if (p->mode == MPOL_BIND && outside)
        return err_set(e, EXIT_NO, "numa=%s: %llu kB of the server lie on other nodes", s->value,
                       (unsigned long long)outside >> 10);
    return 0;
}

static void release(struct knob_state *s)
{
    struct numa_plan *p = s->plan;
    if (p->nodes)
        numa_bitmask_free(p->nodes);
}

const struct knob knob_numa = {
    .name = "numa",
    .values = "interleave[:NODES], bind[:NODES]; NODES as numactl writes them, with + for a comma",
    .about = "NUMA memory policy of the server (set_mempolicy, gone with the process)",
    .prepare = prepare,
    .child = child,
    .verify = verify,
    .release = release,
};
