// idle=max-latency:US: no idle state whose exit latency is above US microseconds, through an open
// /dev/cpu_dma_latency. The kernel drops the request when the descriptor closes, whatever kills us.
#include "launcher/knob.h"

#include "common/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct idle_plan {
    int32_t max_us;
    int fd; // stays open for as long as this process runs
};

static int open_request(struct idle_plan *p, const char *value, struct err *e)
{
    char *dev = sys_path("/dev/cpu_dma_latency");
    p->fd = open(dev, O_RDWR | O_CLOEXEC);
    int rc = 0;
    if (p->fd < 0)
        rc = err_sys(e, EXIT_NOT_HERE, "idle=%s: %s%s", value, dev,
                     errno == EACCES ? " (needs root)" : "");
    else if (write(p->fd, &p->max_us, sizeof p->max_us) != (ssize_t)sizeof p->max_us)
        rc = err_sys(e, EXIT_NOT_HERE, "idle=%s: %s", value, dev);
    free(dev);
    return rc;
}

static int prepare(struct launch *l, struct knob_state *s, struct err *e)
{
    (void)l;
    struct idle_plan *p = s->plan = xcalloc(1, sizeof *p);
    p->fd = -1;
    uint64_t us;
    if (!starts_with(s->value, "max-latency:") ||
        parse_u64(s->value + strlen("max-latency:"), &us) || us > INT32_MAX)
        return err_set(e, EXIT_CANNOT_ASK, "idle=%s: not %s", s->value, knob_idle.values);
    p->max_us = (int32_t)us;
    struct str driver = {0};
    int rc = sys_read("/sys/devices/system/cpu/cpuidle/current_driver", &driver);
    bool none = rc || !strcmp(str_text(&driver), "none");
    s->seen = json_pack("{ss}", "driver", rc ? "none" : str_text(&driver));
    str_free(&driver);
    if (none)
        return err_set(
            e, EXIT_NOT_HERE,
            "idle=%s: this host has no idle states to choose from (cpuidle driver: none)",
            s->value);
    return open_request(p, s->value, e);
}

// Reading the device gives the limit in force: the lowest of all requests.
static int verify(const struct launch *l, struct knob_state *s, struct err *e)
{
    (void)l;
    const struct idle_plan *p = s->plan;
    int32_t now = -1;
    if (pread(p->fd, &now, sizeof now, 0) != (ssize_t)sizeof now)
        return err_sys(e, EXIT_NO, "idle=%s: cannot read the limit back", s->value);
    json_object_set_new(s->seen, "max_latency_us", json_integer(now));
    return now <= p->max_us
               ? 0
               : err_set(e, EXIT_NO, "idle=%s: the limit in force is %d us", s->value, now);
}

static void release(struct knob_state *s)
{
    struct idle_plan *p = s->plan;
    if (p->fd >= 0)
        close(p->fd);
}

const struct knob knob_idle = {
    .name = "idle",
    .values = "max-latency:US",
    .about = "deepest idle state, by exit latency in microseconds (/dev/cpu_dma_latency, gone with "
             "kiln)",
    .prepare = prepare,
    .verify = verify,
    .release = release,
};
