#include "builder/build.h"
#include "builder/commands.h"
#include "builder/manifest.h"
#include "common/json.h"
#include "common/opt.h"
#include "common/table.h"

#include <stdio.h>
#include <stdlib.h>

static struct {
    const char *source, *name, *feature_set;
    bool json;
} o;

static const struct opt opts[] = {
    {"for", 0, OPT_STR, &o.name, "NAME-VERSION", "resolve for this server (mariadb-10.11.18)"},
    {"source", 's', OPT_STR, &o.source, "DIR", "resolve for this source tree"},
    {"feature-set", 0, OPT_STR, &o.feature_set, "SET", "minimal (default) or upstream"},
    {"json", 0, OPT_FLAG, &o.json, NULL, "as JSON"},
    {0},
};

static const struct command command = {
    .name = "kiln profiles",
    .synopsis = "[NAME [--for mariadb-10.11.18 | --source DIR]]",
    .about = "Lists the build profiles, or shows what one of them becomes for a server: every\n"
             "option of cmake with the file and line that each flag comes from.",
    .opts = opts,
    .max_args = 1,
    .examples = "  kiln profiles\n"
                "  kiln profiles clang-o3-hugetext --for mysql-8.0.45",
};

static json_t *list_json(const struct strv *names, struct err *e)
{
    json_t *j = json_new("kiln.profiles/1"), *a = json_array();
    for (size_t i = 0; i < names->n; i++) {
        struct profile p;
        if (profile_load(names->v[i], &p, e)) {
            json_decref(a);
            json_decref(j);
            return NULL;
        }
        json_array_append_new(
            a, json_pack("{ss ss ss ss ss ss}", "name", p.name, "toolchain",
                         profile_value(&p, "profile", "toolchain", "gcc"), "linker",
                         profile_value(&p, "profile", "linker", "bfd"), "optimisation",
                         profile_value(&p, "profile", "optimisation", "-O2"), "text_alignment",
                         profile_value(&p, "profile", "text-alignment", "default"), "description",
                         profile_value(&p, "profile", "description", "")));
        profile_free(&p);
    }
    json_object_set_new(j, "profiles", a);
    return j;
}

static int print_list(void)
{
    struct err e = {0};
    struct strv names = {0};
    json_t *j = profile_names(&names, &e) ? NULL : list_json(&names, &e);
    strv_free(&names);
    if (!j)
        return err_report(&e);
    if (o.json) {
        json_print(j);
    } else {
        static const char *const columns[] = {"profile", "toolchain",   "linker", "level",
                                              "text",    "description", NULL};
        struct table *t = table_new(columns);
        size_t i;
        json_t *row;
        json_array_foreach (json_object_get(j, "profiles"), i, row) {
            const char *cells[] = {json_text(row, "name"),           json_text(row, "toolchain"),
                                   json_text(row, "linker"),         json_text(row, "optimisation"),
                                   json_text(row, "text_alignment"), json_text(row, "description")};
            table_row(t, cells);
        }
        table_print(t, stdout);
    }
    json_decref(j);
    return EXIT_YES;
}

static int find_source(struct source *s, struct err *e)
{
    if (o.source)
        return source_detect(o.source, s, e);
    if (!source_parse_name(o.name, &s->flavour, &s->version))
        return err_set(e, EXIT_CANNOT_ASK,
                       "%s: not a server and its version, such as mariadb-10.11.18 or mysql-8.0.45",
                       o.name);
    s->name = xstrdup(o.name);
    return 0;
}

static void print_resolved(const struct plan *p)
{
    static const char *const columns[] = {"option", "value", "from", NULL};
    struct table *t = table_new(columns);
    for (size_t i = 0; i < p->r.n; i++)
        for (size_t k = 0; k < p->r.args[i].n; k++) {
            const struct part *part = &p->r.args[i].parts[k];
            const char *cells[] = {k ? "" : p->r.args[i].name, part->text, part->origin};
            table_row(t, cells);
        }
    char *chain = strv_join(&p->profile.chain, " -> ");
    char *flags = strv_join(&p->r.server_link_flags, " ");
    printf("%s for %s, feature set %s\n%s\n\n", chain, p->source.name, p->set->name,
           profile_value(&p->profile, "profile", "description", ""));
    table_print(t, stdout);
    printf("\nthe server links with: %s\n", flags);
    printf("its text is padded to 2 MiB: %s (%s)\n", p->r.pad ? "yes" : "no", p->r.pad_origin);
    free(chain);
    free(flags);
}

static json_t *resolved_json(const struct plan *p)
{
    json_t *j = json_new("kiln.profile/1");
    json_object_set_new(j, "for", json_string(p->source.name));
    json_object_set_new(j, "feature_set", json_string(p->set->name));
    json_object_set_new(j, "profile", profile_json(&p->profile));
    json_object_set_new(j, "resolved", resolution_json(&p->r));
    return j;
}

static int print_one(const char *name)
{
    struct err e = {0};
    struct plan p = {0};
    if (profile_load(name, &p.profile, &e) || find_source(&p.source, &e) ||
        plan_resolve(&p, o.feature_set, false, &e))
        return err_report(&e);
    if (o.json) {
        json_t *j = resolved_json(&p);
        json_print(j);
        json_decref(j);
    } else {
        print_resolved(&p);
    }
    source_free(&p.source);
    plan_free(&p);
    return EXIT_YES;
}

int cmd_profiles(int argc, char **argv)
{
    o.feature_set = "minimal";
    o.name = "mariadb-10.11.18";
    struct strv args = {0};
    opt_parse(&command, argc, argv, &args, NULL);
    int rc = args.n ? print_one(args.v[0]) : print_list();
    strv_free(&args);
    return rc;
}
