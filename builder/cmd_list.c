#include "builder/commands.h"
#include "builder/install.h"
#include "builder/manifest.h"
#include "common/json.h"
#include "common/opt.h"
#include "common/store.h"
#include "common/table.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static bool json;

static const struct opt list_opts[] = {
    {"json", 0, OPT_FLAG, &json, NULL, "the manifests as JSON"},
    {0},
};
static const struct command list_command = {
    .name = "kiln list",
    .synopsis = "[--json]",
    .about = "The builds in the store: name, source, profile, feature set, size of the server,\n"
             "when it was built, and whether it keeps its profile's promises.",
    .opts = list_opts,
};

static const struct opt remove_opts[] = {{0}};
static const struct command remove_command = {
    .name = "kiln remove",
    .synopsis = "NAME...",
    .about = "Removes builds from the store. Sources and ccache stay.",
    .opts = remove_opts,
    .min_args = 1,
    .max_args = 1000,
};

static int visible(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

// The manifests of all builds; a build without a readable one is named and left out.
static json_t *all_manifests(void)
{
    char *dir = store_path("builds");
    struct dirent **names = NULL;
    json_t *all = json_array();
    int n = scandir(dir, &names, visible, alphasort);
    for (int i = 0; i < n; i++) {
        struct err e = {0};
        json_t *m = manifest_open(names[i]->d_name, &e);
        if (m)
            json_array_append_new(all, m);
        else
            warning("%s", e.msg);
        free(names[i]);
    }
    free(names);
    free(dir);
    return all;
}

static void add_row(struct table *t, const json_t *m)
{
    const json_t *server = json_object_get(m, "server");
    char *size = xasprintf("%.0f MB", json_num(server, "size", 0) / 1e6);
    const char *cells[] = {json_text(m, "name"),
                           json_text(json_object_get(m, "source"), "name"),
                           json_text(json_object_get(m, "profile"), "name"),
                           json_text(m, "feature_set"),
                           size,
                           json_text(m, "built_at"),
                           json_text(json_object_get(m, "check"), "answer")};
    table_row(t, cells);
    free(size);
}

int cmd_list(int argc, char **argv)
{
    struct strv args = {0};
    opt_parse(&list_command, argc, argv, &args, NULL);
    json_t *all = all_manifests(), *m;
    if (json) {
        json_t *j = json_new("kiln.builds/1");
        json_object_set(j, "builds", all);
        json_print(j);
        json_decref(j);
    } else {
        static const char *const columns[] = {"name",    "source",   "profile", "features",
                                              ">server", "built at", "check",   NULL};
        struct table *t = table_new(columns);
        size_t i;
        json_array_foreach (all, i, m)
            add_row(t, m);
        table_print(t, stdout);
    }
    json_decref(all);
    return EXIT_YES;
}

int cmd_remove(int argc, char **argv)
{
    struct strv args = {0};
    struct err e = {0};
    opt_parse(&remove_command, argc, argv, &args, NULL);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < args.n; i++)
        rc = install_remove(args.v[i], &e);
    strv_free(&args);
    return rc ? err_report(&e) : EXIT_YES;
}
