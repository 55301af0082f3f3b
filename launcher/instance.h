// The private places of one server: user, socket directory, data, copies, log.
#ifndef KILN_INSTANCE_H
#define KILN_INSTANCE_H

#include "common/err.h"
#include "launcher/journal.h"

#include <stdbool.h>
#include <sys/types.h>

enum { SOCKET_MAX = 107, LONE_UID = 60577 };

struct instance {
    char *id;
    bool drop; // we are root: the server becomes uid and gid
    uid_t uid;
    gid_t gid;
    char *user;  // its name, or "uid 60577"
    char *run;   // RUN/ID, 0700, the server's: the socket
    char *place; // 0700, the server's, where there is room: data, tmp, copies of binaries
    char *data, *tmp, *socket;
    char *log_dir; // kept: server.err, launch.json
    char *log;
};

// Makes the directories, journalled. user may be NULL (mysql, else an unused uid).
int instance_make(struct instance *in, const char *user, const char *log_dir, struct journal *j,
                  struct err *e);
// A directory of the instance, 0700 and owned by the server's user; path is kept by the caller.
int instance_dir(const struct instance *in, const char *path, struct err *e);
void instance_free(struct instance *in);

#endif
