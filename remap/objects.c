// What is loaded, and which of it may be moved.
#include "remap/remap.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

// Code that runs while text is away: this library's and what it calls.
static const char *const never[] = {"libkiln-remap", "libc.", "libc-", "libpthread",
                                    "ld-",           "ld.so", "ld64",  "linux-vdso"};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Whether name begins with one of the list "a:b"; marks it in *found.
static bool is_wanted(const char *name, const char *list, uint64_t *found)
{
    bool wanted = false;
    for (unsigned i = 0; list && *list && i < 64; i++) {
        size_t n = strcspn(list, ":");
        if (n && !strncmp(name, list, n)) {
            wanted = true;
            *found |= UINT64_C(1) << i;
        }
        list += n;
        list += *list == ':';
    }
    return wanted;
}

static bool is_never(const char *name)
{
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (!strncmp(name, never[i], strlen(never[i])))
            return true;
    return false;
}

static bool has_text_relocations(const struct dl_phdr_info *o)
{
    for (unsigned i = 0; i < o->dlpi_phnum; i++) {
        if (o->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *d = (const ElfW(Dyn) *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
        for (; d->d_tag != DT_NULL; d++)
            if (d->d_tag == DT_TEXTREL || (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_TEXTREL)))
                return true;
    }
    return false;
}

struct search {
    const char *libraries;
    uint64_t found;
    unsigned seen;
    struct part *parts;
    size_t nparts;
    struct reason *reason;
};

static void add_parts(struct search *s, const struct dl_phdr_info *o, const char *name,
                      const char *path)
{
    bool relocated = has_text_relocations(o);
    for (unsigned i = 0; i < o->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &o->dlpi_phdr[i];
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X))
            continue;
        if (s->nparts == MAX_PARTS) {
            reason_set(s->reason, "more than %d executable segments", MAX_PARTS);
            return;
        }
        struct part *p = &s->parts[s->nparts++];
        uintptr_t from = o->dlpi_addr + h->p_vaddr, to = from + h->p_memsz;
        *p = (struct part){.bias = o->dlpi_addr,
                           .from = from & ~(uintptr_t)(SMALL_PAGE - 1),
                           .to = (to + SMALL_PAGE - 1) & ~(uintptr_t)(SMALL_PAGE - 1),
                           .bytes = h->p_memsz,
                           .has_relocations = relocated};
        snprintf(p->path, sizeof p->path, "%s", path);
        snprintf(p->name, sizeof p->name, "%.63s", name);
    }
}

// The loader's list begins with the main program, which has no name there.
static int visit(struct dl_phdr_info *o, size_t size, void *arg)
{
    struct search *s = arg;
    const char *name = file_name(o->dlpi_name);
    (void)size;
    if (s->seen++ == 0)
        add_parts(s, o, program_invocation_short_name, "/proc/self/exe");
    else if (!is_wanted(name, s->libraries, &s->found))
        return 0;
    else if (is_never(name))
        reason_set(s->reason, "%s cannot be moved: it runs while text is moved", name);
    else
        add_parts(s, o, name, o->dlpi_name);
    return 0;
}

static void say_not_loaded(const char *list, uint64_t found, struct reason *r)
{
    for (unsigned i = 0; list && *list; i++) {
        size_t n = strcspn(list, ":");
        if (n && (i >= 64 || !(found >> i & 1)))
            reason_set(r, "no library %.*s is loaded", (int)n, list);
        list += n;
        list += *list == ':';
    }
}

size_t objects_find(const char *libraries, struct part parts[MAX_PARTS], struct reason *r)
{
    struct search s = {.libraries = libraries, .parts = parts, .reason = r};
    dl_iterate_phdr(visit, &s);
    say_not_loaded(libraries, s.found, r);
    return s.nparts;
}

struct self {
    char *path;
    size_t size;
};

static int visit_self(struct dl_phdr_info *o, size_t size, void *arg)
{
    const struct self *self = arg;
    uintptr_t here = (uintptr_t)visit_self;
    (void)size;
    for (unsigned i = 0; i < o->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &o->dlpi_phdr[i];
        if (h->p_type == PT_LOAD && here - o->dlpi_addr - h->p_vaddr < h->p_memsz) {
            snprintf(self->path, self->size, "%s", o->dlpi_name);
            return 1;
        }
    }
    return 0;
}

void objects_self(char *path, size_t n)
{
    *path = 0;
    dl_iterate_phdr(visit_self, &(struct self){path, n});
}
