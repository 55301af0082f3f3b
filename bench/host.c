#include "bench/compare.h"
#include "common/sys.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static json_t *text_or_null(const char *s)
{
    return s && *s ? json_string(s) : json_null();
}

static json_t *cpu_model(void)
{
    struct str text = {0};
    json_t *model = json_null();
    const char *line =
        sys_read("/proc/cpuinfo", &text) ? NULL : strstr(str_text(&text), "model name");
    if (line && (line = strchr(line, ':'))) {
        char *name = xstrndup(line + 1, strcspn(line + 1, "\n"));
        model = text_or_null(trim(name));
        free(name);
    }
    str_free(&text);
    return model;
}

json_t *compare_host(void)
{
    struct utsname u = {0};
    uint64_t memory_kb = 0;
    uname(&u);
    char *thp = sys_choice("/sys/kernel/mm/transparent_hugepage/enabled");
    int rc = sys_field("/proc/meminfo", "MemTotal", &memory_kb);
    json_t *o = json_object();
    json_object_set_new(o, "name", text_or_null(u.nodename));
    json_object_set_new(o, "kernel", text_or_null(u.release));
    json_object_set_new(o, "machine", text_or_null(u.machine));
    json_object_set_new(o, "cpu_model", cpu_model());
    json_object_set_new(o, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    json_object_set_new(o, "memory_kb", rc ? json_null() : json_integer((json_int_t)memory_kb));
    json_object_set_new(o, "thp_enabled", text_or_null(thp));
    free(thp);
    return o;
}
