#include "launcher/instance.h"

#include "common/fs.h"
#include "common/proc.h"
#include "common/store.h"
#include "common/str.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int choose_user(struct instance *in, const char *user, struct err *e)
{
    if (geteuid() != 0) {
        if (user)
            return err_set(e, EXIT_NOT_HERE,
                           "--user=%s: only root can start a server as another "
                           "user",
                           user);
        in->uid = geteuid();
        in->gid = getegid();
        in->user = xasprintf("uid %u", in->uid);
        return 0;
    }
    struct passwd *pw = getpwnam(user ? user : "mysql");
    if (user && !pw)
        return err_set(e, EXIT_CANNOT_ASK, "--user=%s: no such user", user);
    if (pw && pw->pw_uid == 0)
        return err_set(e, EXIT_CANNOT_ASK, "--user=%s: a server must not run as root", user);
    in->drop = true;
    in->uid = pw ? pw->pw_uid : LONE_UID;
    in->gid = pw ? pw->pw_gid : LONE_UID;
    in->user = pw ? xstrdup(pw->pw_name) : xasprintf("uid %u", in->uid);
    return 0;
}

int instance_dir(const struct instance *in, const char *path, struct err *e)
{
    if (mkdir(path, 0700))
        return err_sys(e, EXIT_CANNOT_ASK, "%s: cannot make the directory", path);
    if (in->drop && lchown(path, in->uid, in->gid))
        return err_sys(e, EXIT_CANNOT_ASK, "%s: cannot give it to %s", path, in->user);
    return 0;
}

// The store may lie under a closed home directory: then /var/tmp, which has room and is open.
static int choose_place(struct instance *in, struct err *e)
{
    char *parent = store_path("instances");
    if (fs_mkdirs(parent, 0755, e)) {
        free(parent);
        return -1;
    }
    if (fs_reachable(parent, in->uid, in->gid))
        in->place = xasprintf("%s/%s", parent, in->id);
    else
        in->place = xasprintf("/var/tmp/kiln-%s", in->id);
    free(parent);
    return 0;
}

static char *new_id(void)
{
    static unsigned serial;
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    return xasprintf("%s-%d-%u", stamp, getpid(), serial++);
}

int instance_make(struct instance *in, const char *user, const char *log_dir, struct journal *j,
                  struct err *e)
{
    *in = (struct instance){.id = new_id()};
    if (choose_user(in, user, e) || store_init(e) || choose_place(in, e))
        return -1;
    in->run = xasprintf("%s/%s", store_run_dir(), in->id);
    in->socket = xasprintf("%s/sock", in->run);
    in->data = xasprintf("%s/data", in->place);
    in->tmp = xasprintf("%s/tmp", in->place);
    if (strlen(in->socket) > SOCKET_MAX)
        return err_set(
            e, EXIT_CANNOT_ASK,
            "%s: the socket's path has %zu bytes, the most is %d; set KILN_RUN to a shorter "
            "directory",
            in->socket, strlen(in->socket), SOCKET_MAX);
    if (!fs_reachable(store_run_dir(), in->uid, in->gid))
        return err_set(e, EXIT_CANNOT_ASK,
                       "%s: %s cannot reach it; set KILN_RUN to an open directory", store_run_dir(),
                       in->user);
    if (journal_tree(j, in->run, e) || instance_dir(in, in->run, e) ||
        journal_tree(j, in->place, e) || instance_dir(in, in->place, e) ||
        instance_dir(in, in->tmp, e))
        return -1;
    in->log_dir = log_dir ? xstrdup(log_dir) : store_path("runs/%s", in->id);
    in->log = xasprintf("%s/server.err", in->log_dir);
    return fs_mkdirs(in->log_dir, 0755, e);
}

void instance_free(struct instance *in)
{
    char *all[] = {in->id,  in->user,   in->run,     in->place, in->data,
                   in->tmp, in->socket, in->log_dir, in->log};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    *in = (struct instance){0};
}
