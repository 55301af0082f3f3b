// Before main: read the wish, find the text, move what can be moved, say what could not.
#include "remap/remap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// text = slots + what fills no slot; slots = moved + what was refused. All in bytes.
struct outcome {
    size_t text, slots, moved;
    double ms;
};

void reason_set(struct reason *r, const char *fmt, ...)
{
    va_list args;
    if (*r->text)
        return;
    va_start(args, fmt);
    vsnprintf(r->text, sizeof r->text, fmt, args);
    va_end(args);
    for (char *c = r->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == '"' || *c == '\\')
            *c = '?';
}

// --- what to move ---

// Pages that differ from the file hold breakpoints, unless the loader wrote relocations. A uprobe's
// breakpoint is known to the kernel by file and offset: copied to anonymous memory it would kill.
static const char *why_not(const struct mapping *m, const struct part *p)
{
    if (strcmp(m->perms, "r-xp") != 0)
        return "is not mapped r-xp";
    if (m->anonymous && !p->has_relocations && m->page < SLOT)
        return "was changed after it was loaded (uprobes, a debugger's breakpoints)";
    return NULL;
}

static uintptr_t slot_up(uintptr_t a)
{
    return (a + SLOT - 1) & ~(uintptr_t)(SLOT - 1);
}

static size_t part_ranges(const struct part *p, struct range *ranges, size_t max, struct reason *r)
{
    struct mapping m[MAX_RANGES];
    int n = mappings_read(p->from, p->to, m, MAX_RANGES);
    size_t found = 0;
    if (n < 0)
        reason_set(r, "/proc/self/smaps: %s", strerror(-n));
    for (int i = 0; i < n && found < max; i++) {
        struct range range = {p, slot_up(m[i].from), m[i].to & ~(uintptr_t)(SLOT - 1), 0};
        const char *why = why_not(&m[i], p);
        if (range.from >= range.to)
            continue;
        if (why)
            reason_set(r, "text of %s %s", p->name, why);
        else
            ranges[found++] = range;
    }
    return found;
}

static void count_text(const struct part *p, struct outcome *o)
{
    uintptr_t from = slot_up(p->from), to = p->to & ~(uintptr_t)(SLOT - 1);
    o->text += p->bytes;
    o->slots += to > from ? to - from : 0;
}

// --- moving ---

static void move_range(const struct way *way, struct range *range, struct reason *r)
{
    if (mappings_huge(range->from, range->to) < range->to - range->from) {
        size_t moved = move_text(way, (char *)range->from, range->to - range->from, r);
        range->huge = mappings_huge(range->from, range->from + moved);
        if (range->huge < moved)
            reason_set(r, "smaps shows fewer 2 MiB pages than were moved");
    } else {
        range->huge = range->to - range->from;
    }
}

static void move_all(const struct settings *s, const struct way *way, struct outcome *o,
                     struct reason *r)
{
    static struct part parts[MAX_PARTS];
    struct range ranges[MAX_RANGES];
    size_t nranges = 0, nparts = objects_find(s->libraries, parts, r);
    for (size_t i = 0; i < nparts; i++) {
        count_text(&parts[i], o);
        nranges += part_ranges(&parts[i], ranges + nranges, MAX_RANGES - nranges, r);
    }
    for (size_t i = 0; i < nranges; i++) {
        move_range(way, &ranges[i], r);
        o->moved += ranges[i].huge;
    }
    if (!o->slots)
        reason_set(r, "no 2 MiB slot is all text");
    int rc = s->perf_map && o->moved ? perf_map_write(ranges, nranges) : 0;
    if (rc)
        reason_set(r, "no perf map in /tmp: %s", strerror(-rc));
}

// Another thread could run text while it is away, and a signal's handler could.
static void move_alone(const struct settings *s, struct outcome *o, struct reason *r)
{
    const struct way *way = way_find(s->way);
    int threads = threads_count();
    sigset_t all, before;
    if (!way)
        reason_set(r, "KILN_REMAP=%s: not thp or pool", s->way);
    else if (threads < 0)
        reason_set(r, "/proc/self/status: %s", strerror(-threads));
    else if (threads != 1)
        reason_set(r, "%d threads run before main, and text is moved under one only", threads);
    else if (sysconf(_SC_PAGESIZE) != SMALL_PAGE)
        reason_set(r, "the kernel's pages are not 4 KiB");
    if (*r->text)
        return;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    move_all(s, way, o, r);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

// --- what is said ---

// One line, unless all went well and nobody asked.
static void say(const struct settings *s, const struct outcome *o, const struct reason *r)
{
    if (!*r->text && !s->verbose)
        return;
    dprintf(STDERR_FILENO,
            "kiln-remap: %s: moved %zu of %zu kB of text to 2 MiB pages (%s) in %.1f ms%s%s\n",
            program_invocation_short_name, o->moved >> 10, (o->text + 1023) >> 10, s->way, o->ms,
            *r->text ? ": " : "", r->text);
}

static int status_open(const char *where)
{
    char *end;
    long fd = strtol(where, &end, 10);
    if (!*end) {
        errno = EBADF;
        return fd > STDERR_FILENO && fd < INT32_MAX ? (int)fd : -1;
    }
    return open(where, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

// The descriptor is closed: the program shall not inherit it.
static void write_status(const struct settings *s, const struct outcome *o, struct reason *r)
{
    if (!s->status)
        return;
    int fd = status_open(s->status);
    if (fd < 0 || dprintf(fd,
                          "{\"schema\": \"kiln.remap/1\", \"pid\": %d, \"way\": \"%s\", "
                          "\"text_bytes\": %zu, \"slot_bytes\": %zu, \"moved_bytes\": %zu, "
                          "\"milliseconds\": %.3f, \"reason\": \"%s\"}\n",
                          getpid(), way_find(s->way) ? s->way : "", o->text, o->slots, o->moved,
                          o->ms, r->text) < 0)
        reason_set(r, "KILN_REMAP_STATUS=%s: %s", s->status, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void __attribute__((constructor(101))) remap(void)
{
    struct settings s;
    struct outcome o = {0};
    struct reason r = {0};
    double start = now_ms();
    environment_take(&s);
    move_alone(&s, &o, &r);
    o.ms = now_ms() - start;
    write_status(&s, &o, &r);
    say(&s, &o, &r);
}
