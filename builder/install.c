#include "builder/install.h"
#include "builder/manifest.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/store.h"
#include "elfcheck/pad.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// One component of one directory, its subdirectories left alone.
static int install_part(const struct plan *p, const char *tree, const char *part,
                        const char *component, struct err *e)
{
    char *script = xasprintf("%s/cmake_install.cmake", part);
    char *prefix = xasprintf("-DCMAKE_INSTALL_PREFIX=%s", tree);
    char *comp = xasprintf("-DCMAKE_INSTALL_COMPONENT=%s", component);
    const char *argv[] = {"cmake", prefix, comp, "-DCMAKE_INSTALL_LOCAL_ONLY=1",
                          "-P",    script, NULL};
    int rc = build_run(p, argv, "installing", e);
    free(script);
    free(prefix);
    free(comp);
    return rc;
}

static int install_all(const struct plan *p, const char *tree, struct err *e)
{
    const char *argv[] = {"cmake", "--install", ".", "--prefix", tree, NULL};
    return build_run(p, argv, "installing", e);
}

static int install_tree(const struct plan *p, const char *tree, struct err *e)
{
    unsetenv("DESTDIR");
    if (!p->set->parts)
        return install_all(p, tree, e);
    // The character sets belong to the component Common, all else that a server needs to Server.
    for (const char *const *part = p->set->parts; *part; part++)
        if (install_part(p, tree, *part, "Server", e) || install_part(p, tree, *part, "Common", e))
            return -1;
    return 0;
}

enum { TEXT_SLOT = 2 << 20 };

// The last change to the file: what comes after, such as strip, would take it back.
static int pad_server(const struct plan *p, const char *tree, struct pad_result *r, struct err *e)
{
    struct err why = {0};
    char *file = xasprintf("%s/%s", tree, p->set->server);
    bool asked = p->r.pad && fs_exists(file); // one that is missing is told of later
    int rc = asked ? pad_file(file, TEXT_SLOT, r, &why) : 0;
    const char *reason = starts_with(why.msg, file) ? why.msg + strlen(file) + 2 : why.msg;
    if (rc)
        err_set(e, why.code, "%s: %s: pad = yes: the server %s; it stays in %s", p->name,
                p->r.pad_origin, reason, p->work);
    free(file);
    return rc;
}

static void put_padding(json_t *manifest, const struct plan *p, const struct pad_result *r)
{
    json_t *server = json_object_get(manifest, "server");
    char *reason =
        r->changed ? xasprintf("%s: p_filesz 0x%llx -> 0x%llx", p->r.pad_origin,
                               (unsigned long long)r->old_filesz, (unsigned long long)r->new_filesz)
        : p->r.pad ? xstrdup(pad_state_text(r->state))
                   : xasprintf("%s: pad = no", p->r.pad_origin);
    json_object_set_new(server, "padded", json_boolean(p->r.pad && r->state == PAD_DONE));
    json_object_set_new(server, "padded_reason", json_string(reason));
    free(reason);
}

// "linker: found gold, ...; pie: ..." of all promises that were broken.
static char *broken_promises(const json_t *check)
{
    struct str text = {0};
    size_t i;
    json_t *row;
    json_array_foreach (json_object_get(check, "results"), i, row) {
        if (!strcmp(json_text(row, "verdict"), "fail"))
            str_addf(&text, "\n  %s = %s (%s): %s", json_text(row, "rule"), json_text(row, "value"),
                     json_text(row, "origin"), json_text(row, "evidence"));
    }
    char *copy = xstrdup(str_text(&text));
    str_free(&text);
    return copy;
}

static int refuse(const struct plan *p, const json_t *manifest, struct err *e)
{
    const json_t *result = json_object_get(json_object_get(manifest, "check"), "result");
    const json_t *promises = json_object_get(result, "rules");
    char *broken = broken_promises(promises);
    err_set(e, EXIT_NO,
            "%s: the server breaks its profile's promises and is not installed; it stays in %s%s",
            p->name, p->work, broken);
    free(broken);
    return -1;
}

static json_t *fill(const struct plan *p, const struct outcome *o, const char *tree, struct err *e)
{
    struct pad_result padding = {0};
    json_t *m = NULL;
    if (install_tree(p, tree, e) == 0 && pad_server(p, tree, &padding, e) == 0)
        m = manifest_make(p, o, tree, e);
    if (m)
        put_padding(m, p, &padding);
    char *file = xasprintf("%s/manifest.json", tree);
    int rc = m ? manifest_check(m, p, tree, e) : -1;
    const char *answer = json_text(json_object_get(m, "check"), "answer");
    if (rc == 0 && !strcmp(answer, "no"))
        rc = refuse(p, m, e);
    else if (rc == 0 && strcmp(answer, "yes"))
        warning("%s: kiln check could not tell whether the server keeps its profile's promises",
                p->name);
    if (rc == 0)
        rc = json_save(m, file, e);
    free(file);
    if (rc == 0)
        return m;
    json_decref(m);
    return NULL;
}

static int put_in_place(const char *tree, const char *home, struct err *e)
{
    bool replace = fs_exists(home);
    if (renameat2(AT_FDCWD, tree, AT_FDCWD, home, replace ? RENAME_EXCHANGE : RENAME_NOREPLACE))
        return err_sys(e, EXIT_NO, "%s", home);
    return 0; // after an exchange, tree is the old build
}

int install_build(const struct plan *p, const struct outcome *o, json_t **manifest, struct err *e)
{
    char *home = store_path("builds/%s", p->name), *tree = store_path("builds/.%s.XXXXXX", p->name);
    int rc = -1;
    if (!mkdtemp(tree)) {
        err_sys(e, EXIT_NO, "%s", tree);
    } else {
        chmod(tree, 0755);
        *manifest = fill(p, o, tree, e);
        rc = *manifest ? put_in_place(tree, home, e) : -1;
        fs_remove_tree(tree, NULL);
    }
    free(home);
    free(tree);
    return rc;
}

int install_remove(const char *name, struct err *e)
{
    if (strchr(name, '/') || *name == '.' || !*name)
        return err_set(e, EXIT_CANNOT_ASK, "%s: not the name of a build", name);
    char *home = store_path("builds/%s", name), *away = store_path("builds/.%s.%d", name, getpid());
    int rc = 0;
    if (rename(home, away))
        rc = errno == ENOENT
                 ? err_set(e, EXIT_CANNOT_ASK, "%s: no such build in %s/builds", name, store_home())
                 : err_sys(e, EXIT_NO, "%s", home);
    else
        rc = fs_remove_tree(away, e);
    free(home);
    free(away);
    return rc;
}
