// malloc=glibc|jemalloc|tcmalloc|mimalloc|PATH: the server's allocator.
#include "launcher/knob.h"

#include "common/fs.h"
#include "elfcheck/ld_cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *soname, *package;
} allocators[] = {
    {"jemalloc", "libjemalloc.so.2", "libjemalloc2"},
    {"tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"},
    {"mimalloc", "libmimalloc.so.2", "libmimalloc2.0"},
};

static int choose(struct knob_state *s, char **path, struct err *e)
{
    if (strchr(s->value, '/')) {
        *path = realpath(s->value, NULL);
        return *path ? 0 : err_sys(e, EXIT_CANNOT_ASK, "malloc=%s", s->value);
    }
    for (size_t i = 0; i < sizeof allocators / sizeof *allocators; i++) {
        if (strcmp(allocators[i].name, s->value))
            continue;
        *path = ld_cache_path(allocators[i].soname);
        return *path ? 0
                     : err_set(e, EXIT_NOT_HERE, "malloc=%s: %s is not installed (Debian: %s)",
                               s->value, allocators[i].soname, allocators[i].package);
    }
    return err_set(e, EXIT_CANNOT_ASK, "malloc=%s: not one of %s", s->value, knob_malloc.values);
}

static int prepare(struct launch *l, struct knob_state *s, struct err *e)
{
    s->seen = json_object();
    if (!strcmp(s->value, "glibc"))
        return 0;
    char *path = NULL;
    if (choose(s, &path, e))
        return -1;
    s->plan = realpath(path, NULL);
    strv_add(&l->preload, path);
    free(path);
    return s->plan ? 0 : err_sys(e, EXIT_CANNOT_ASK, "malloc=%s", s->value);
}

// The preloaded file must be mapped; for glibc, none of the others may be.
static int verify(const struct launch *l, struct knob_state *s, struct err *e)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", l->pid);
    struct str maps = {0};
    if (fs_read(path, &maps, e))
        return -1;
    const char *want = s->plan, *other = NULL;
    bool mapped = want && strstr(str_text(&maps), want);
    static const char *const marks[] = {"libjemalloc", "libtcmalloc", "libmimalloc"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks && !want; i++)
        if (strstr(str_text(&maps), marks[i]))
            other = marks[i];
    str_free(&maps);
    json_object_set_new(s->seen, "mapped",
                        json_string(want && mapped ? want
                                    : other        ? other
                                                   : "libc"));
    if (want && !mapped)
        return err_set(e, EXIT_NO,
                       "malloc=%s: %s is not in the server's memory map; see its log for "
                       "a message of the loader",
                       s->value, want);
    return other ? err_set(e, EXIT_NO, "malloc=glibc: the server has %s mapped", other) : 0;
}

const struct knob knob_malloc = {
    .name = "malloc",
    .values = "glibc, jemalloc, tcmalloc, mimalloc, or the path of a library",
    .about = "the server's allocator (LD_PRELOAD of the server process alone)",
    .prepare = prepare,
    .verify = verify,
};
