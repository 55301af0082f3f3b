// cpus=LIST: the CPUs that the server may run on.
#include "launcher/knob.h"

#include "common/sys.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int prepare(struct launch *l, struct knob_state *s, struct err *e)
{
    (void)l;
    bool want[CPU_SETSIZE] = {false};
    cpu_set_t *set = xcalloc(1, sizeof *set), ours;
    s->plan = set;
    int rc = parse_list(s->value, want, CPU_SETSIZE);
    if (rc)
        return err_set(e, EXIT_CANNOT_ASK, "cpus=%s: not a list of CPUs such as 0+2-3", s->value);
    if (sched_getaffinity(0, sizeof ours, &ours))
        return err_sys(e, EXIT_NOT_HERE, "cpus=%s: cannot read our own CPUs", s->value);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!want[cpu])
            continue;
        if (!CPU_ISSET(cpu, &ours))
            return err_set(e, EXIT_NOT_HERE, "cpus=%s: CPU %d is not among those kiln may use (%d)",
                           s->value, cpu, CPU_COUNT(&ours));
        CPU_SET(cpu, set);
    }
    s->seen = json_object();
    return 0;
}

static int child(const struct launch *l, const struct knob_state *s, const char **what)
{
    (void)l;
    *what = "cannot set its CPUs";
    return sched_setaffinity(0, sizeof(cpu_set_t), s->plan) ? -errno : 0;
}

static int verify(const struct launch *l, struct knob_state *s, struct err *e)
{
    cpu_set_t got;
    if (sched_getaffinity(l->pid, sizeof got, &got))
        return err_sys(e, EXIT_NO, "cpus=%s: cannot read the server's CPUs", s->value);
    struct str list = {0};
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &got))
            str_addf(&list, "%s%d", list.len ? "+" : "", cpu);
    json_object_set_new(s->seen, "cpus_allowed", json_string(str_text(&list)));
    int rc = CPU_EQUAL(&got, (cpu_set_t *)s->plan)
                 ? 0
                 : err_set(e, EXIT_NO, "cpus=%s: the server runs on %s", s->value, str_text(&list));
    str_free(&list);
    return rc;
}

const struct knob knob_cpus = {
    .name = "cpus",
    .values = "a list such as 0+2-3",
    .about = "CPUs that the server may run on (sched_setaffinity, gone with the process)",
    .prepare = prepare,
    .child = child,
    .verify = verify,
};
