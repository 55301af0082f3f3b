// The environment is read and changed by hand: setenv and unsetenv may be the program's own (bash
// has some), and those are not ready before main.
#include "remap/remap.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PRELOAD    "LD_PRELOAD"
#define SEPARATORS ": "

static char **find(const char *name)
{
    size_t n = strlen(name);
    for (char **e = environ; e && *e; e++)
        if (!strncmp(*e, name, n) && (*e)[n] == '=')
            return e;
    return NULL;
}

static void drop(char **entry)
{
    for (; *entry; entry++)
        entry[0] = entry[1];
}

// The value, or NULL when it is unset or empty; the variable is gone.
static const char *take(const char *name)
{
    char **entry = find(name);
    const char *value = entry ? strchr(*entry, '=') + 1 : NULL;
    if (entry)
        drop(entry);
    return value && *value ? value : NULL;
}

static bool is_true(const char *value)
{
    return value && strcmp(value, "0") != 0;
}

// The loader takes an entry with a slash as a path, one without from its search path.
static bool is_self(const char *entry, size_t n, const char *self)
{
    const char *slash = strrchr(self, '/');
    const char *name = slash && !memchr(entry, '/', n) ? slash + 1 : self;
    return *self && strlen(name) == n && !memcmp(entry, name, n);
}

// A list longer than the buffer stays as it is; then children get the library too.
static void leave_preload(void)
{
    static char kept[8192];
    char self[512], **variable = find(PRELOAD);
    size_t len = 0;
    if (!variable || strlen(*variable) >= sizeof kept)
        return;
    objects_self(self, sizeof self);
    for (const char *p = strchr(*variable, '=') + 1; *p;) {
        size_t n = strcspn(p, SEPARATORS);
        if (n && !is_self(p, n, self))
            len += (size_t)snprintf(kept + len, sizeof kept - len, "%s%.*s",
                                    len ? ":" : PRELOAD "=", (int)n, p);
        p += n;
        p += strspn(p, SEPARATORS);
    }
    if (len)
        *variable = kept;
    else
        drop(variable);
}

void environment_take(struct settings *s)
{
    const char *way = take("KILN_REMAP");
    *s = (struct settings){
        .way = way ? way : "thp",
        .libraries = take("KILN_REMAP_LIBS"),
        .status = take("KILN_REMAP_STATUS"),
        .perf_map = is_true(take("KILN_REMAP_PERF_MAP")),
        .verbose = is_true(take("KILN_REMAP_VERBOSE")),
    };
    leave_preload();
}
