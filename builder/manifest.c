#include "builder/manifest.h"
#include "builder/child.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/proc.h"
#include "common/store.h"
#include "common/version.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static json_t *list_json(const struct strv *l)
{
    json_t *a = json_array();
    for (size_t i = 0; i < l->n; i++)
        json_array_append_new(a, json_string(l->v[i]));
    return a;
}

json_t *profile_json(const struct profile *p)
{
    json_t *keys = json_array();
    for (size_t i = 0; i < p->n; i++)
        json_array_append_new(keys, json_pack("{ss ss ss ss}", "section", p->keys[i].section, "key",
                                              p->keys[i].key, "value", p->keys[i].value, "origin",
                                              p->keys[i].origin));
    return json_pack("{ss so so}", "name", p->name, "chain", list_json(&p->chain), "keys", keys);
}

static json_t *arg_json(const struct cmake_arg *a)
{
    json_t *parts = json_array();
    for (size_t i = 0; i < a->n; i++)
        json_array_append_new(
            parts, json_pack("{ss ss}", "text", a->parts[i].text, "origin", a->parts[i].origin));
    char *value = cmake_arg_value(a);
    json_t *j = json_pack("{ss ss so}", "name", a->name, "value", value, "parts", parts);
    free(value);
    return j;
}

json_t *resolution_json(const struct resolution *r)
{
    json_t *args = json_array();
    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(args, arg_json(&r->args[i]));
    return json_pack("{ss ss ss so s{sb ss} so}", "toolchain", r->toolchain, "linker", r->linker,
                     "optimisation", r->level, "server_link_flags",
                     list_json(&r->server_link_flags), "pad", "value", (int)r->pad, "origin",
                     r->pad_origin, "cmake", args);
}

static json_t *source_json(const struct source *s)
{
    char *version = xasprintf("%u.%u.%u", s->version.major, s->version.minor, s->version.patch);
    json_t *j = json_pack("{ss ss ss ss ss ss}", "name", s->name, "flavour",
                          flavour_name(s->flavour), "version", version, "from", s->from, "checksum",
                          s->checksum, "checksum_of", s->checksum_how);
    free(version);
    return j;
}

// In hex, or "" when the linker wrote none.
static char *build_id(const char *file)
{
    const char *argv[] = {"readelf", "-n", file, NULL};
    struct str out = {0};
    child_capture(argv, NULL, &out, NULL);
    const char *p = strstr(str_text(&out), "Build ID: ");
    char *id = p ? xstrndup(p + 10, strspn(p + 10, "0123456789abcdef")) : xstrdup("");
    str_free(&out);
    return id;
}

static json_t *server_json(const struct plan *p, const char *tree, struct err *e)
{
    char *file = xasprintf("%s/%s", tree, p->set->server);
    json_t *j = NULL;
    if (!fs_exists(file)) {
        err_set(e, EXIT_NO, "%s: the build installed no %s; log: %s", p->name, p->set->server,
                p->log);
    } else {
        char *sum = sha256_file(file, e), *id = build_id(file);
        if (sum)
            j = json_pack("{ss ss ss sI}", "path", p->set->server, "sha256", sum, "build_id", id,
                          "size", (json_int_t)fs_size(file));
        free(sum);
        free(id);
    }
    free(file);
    return j;
}

static json_t *time_json(double seconds)
{
    char text[40];
    time_t t = (time_t)seconds;
    struct tm tm;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
    return json_string(text);
}

static void put_outcome(json_t *j, const struct plan *p, const struct outcome *o)
{
    json_object_set_new(j, "built_at", time_json(wall_seconds()));
    json_object_set_new(j, "wall_seconds", json_real(o->wall_seconds));
    json_object_set_new(j, "configure_seconds", json_real(o->configure_seconds));
    json_object_set_new(j, "cpu_seconds", json_real(o->cpu_seconds));
    json_object_set_new(j, "jobs", json_integer(p->jobs));
    json_object_set_new(
        j, "ccache",
        json_pack("{si si}", "hits", (int)o->ccache_hits, "misses", (int)o->ccache_misses));
    json_object_set_new(j, "optimisation_levels", levels_json(&o->levels));
}

json_t *manifest_make(const struct plan *p, const struct outcome *o, const char *tree,
                      struct err *e)
{
    json_t *server = server_json(p, tree, e);
    if (!server)
        return NULL;
    struct strv command = {0};
    plan_command(p, &command);
    json_t *j = json_new(MANIFEST_SCHEMA);
    json_object_set_new(j, "name", json_string(p->name));
    json_object_set_new(j, "kiln", json_string(KILN_VERSION));
    json_object_set_new(j, "source", source_json(&p->source));
    json_object_set_new(j, "profile", profile_json(&p->profile));
    json_object_set_new(j, "feature_set", json_string(p->set->name));
    json_object_set_new(j, "resolved", resolution_json(&p->r));
    json_object_set_new(j, "cmake_command", list_json(&command));
    json_object_set_new(j, "compiler", json_string(p->tools.compiler));
    json_object_set_new(j, "linker", json_string(p->tools.linker));
    put_outcome(j, p, o);
    json_object_set_new(j, "server", server);
    json_object_set_new(j, "inputs", json_string(p->inputs));
    strv_free(&command);
    return j;
}

static const char *answer_text(int code)
{
    return code == EXIT_YES ? "yes" : code == EXIT_NO ? "no" : "cannot know";
}

int manifest_check(json_t *manifest, const struct plan *p, const char *tree, struct err *e)
{
    char *checker = xasprintf("%s/kiln-check", store_bin_dir());
    char *file = xasprintf("%s/%s", tree, p->set->server);
    const char *argv[] = {checker, "check", file, "--profile", p->profile.path, "--json", NULL};
    struct str out = {0};
    int code = fs_exists(checker) ? child_capture_stdout(argv, &out, e) : EXIT_CANNOT_KNOW;
    json_t *result = json_loads(str_text(&out), 0, NULL);
    if (code == EXIT_NO && !result) // it died
        code = EXIT_CANNOT_KNOW;
    json_object_set_new(manifest, "check",
                        json_pack("{ss so*}", "answer", answer_text(code), "result", result));
    str_free(&out);
    free(checker);
    free(file);
    return code < 0 ? -1 : 0;
}

json_t *manifest_open(const char *name, struct err *e)
{
    char *file = store_path("builds/%s/manifest.json", name);
    json_t *j = json_open(file, MANIFEST_SCHEMA, e);
    free(file);
    return j;
}
