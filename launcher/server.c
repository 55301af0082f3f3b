#include "launcher/server.h"

#include "common/fs.h"
#include "common/json.h"
#include "common/proc.h"
#include "launcher/sqlclient.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int server_identify(struct launch *l, struct err *e)
{
    const char *argv[] = {l->build.server, "--no-defaults", "--version", NULL};
    struct str out = {0};
    int rc = proc_capture(argv, &out, e);
    if (rc < 0)
        return -1;
    l->version = xstrdup(trim(out.s ? out.s : (char[]){""}));
    str_free(&out);
    l->mysql = !strstr(l->version, "MariaDB");
    if (rc || !strstr(l->version, "Ver "))
        return err_set(e, EXIT_CANNOT_ASK,
                       "%s: not a MySQL or MariaDB server (--version says: %.200s)",
                       l->build.server, l->version);
    return 0;
}

// The last lines that say ERROR, or else the last lines.
void server_last_words(const struct launch *l, struct str *out)
{
    struct str text = {0};
    struct strv lines = {0};
    size_t from = 0, shown = 0;
    fs_read(l->in.log, &text, NULL);
    strv_split(&lines, str_text(&text), "\n");
    bool errors = strcasestr(str_text(&text), "error") != NULL;
    for (size_t i = lines.n, hits = 0; i-- > 0 && hits < 3;)
        if (!errors || strcasestr(lines.v[i], "error"))
            from = i, hits++;
    for (size_t i = from; i < lines.n && shown < 3; i++)
        if (!errors || strcasestr(lines.v[i], "error"))
            str_addf(out, "\n  %.250s", lines.v[i]), shown++;
    strv_free(&lines);
    str_free(&text);
}

static int fail_with_log(struct launch *l, const char *what, int status, struct err *e)
{
    struct str words = {0};
    server_last_words(l, &words);
    err_set(e, EXIT_NO, "%s: %s (%s); its log is %s%s%s", l->subject.text, what,
            proc_status_text(status), l->in.log, words.len ? ", its last lines:" : " and empty",
            str_text(&words));
    str_free(&words);
    return -1;
}

static int open_log(const struct launch *l, struct err *e)
{
    int fd = open(l->in.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    return fd < 0 ? err_sys(e, EXIT_CANNOT_ASK, "%s: cannot write", l->in.log) : fd;
}

// Runs the server once to its end, with SQL on its standard input, as its user.
static int run_once(struct launch *l, const char *const *argv, const char *sql, struct err *e)
{
    int in = -1, log = open_log(l, e);
    if (log < 0)
        return -1;
    if (sql) {
        in = memfd_create("bootstrap", MFD_CLOEXEC);
        if (in < 0 || write(in, sql, strlen(sql)) < 0 || lseek(in, 0, SEEK_SET) < 0) {
            close(log);
            return err_sys(e, EXIT_NO, "cannot hold the bootstrap SQL");
        }
    }
    struct proc p = {.argv = argv,
                     .exec_path = l->build.server,
                     .in = in,
                     .out = log,
                     .err = log,
                     .own_session = true,
                     .cwd = l->in.place,
                     .drop = l->in.drop,
                     .uid = l->in.uid,
                     .gid = l->in.gid};
    pid_t pid = proc_spawn(&p, e);
    close(log);
    if (in >= 0)
        close(in);
    if (pid < 0)
        return -1;
    int status = 0;
    while (proc_wait(pid, 0.5, &status) == 0)
        if (intr_pending())
            kill(pid, SIGKILL);
    if (intr_pending())
        return intr_error(e);
    return status ? fail_with_log(l, "initialising the data directory failed", status, e) : 0;
}

static int bootstrap_sql(const struct launch *l, struct str *sql, struct err *e)
{
    static const struct {
        const char *file;
        bool needed;
    } files[] = {{"mysql_system_tables.sql", true},
                 {"mysql_performance_tables.sql", true},
                 {"mysql_system_tables_data.sql", true},
                 {"maria_add_gis_sp_bootstrap.sql", false},
                 {"mysql_sys_schema.sql", false}};
    str_add(sql, "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = xasprintf("%s/%s", l->build.messages, files[i].file);
        int rc = files[i].needed || fs_exists(path) ? fs_read(path, sql, e) : 0;
        free(path);
        if (rc)
            return rc;
        str_add(sql, "\n");
    }
    return 0;
}

static int data_fresh(struct launch *l, struct err *e)
{
    if (instance_dir(&l->in, l->in.data, e))
        return -1;
    char *data = xasprintf("--datadir=%s", l->in.data);
    char *base = xasprintf("--basedir=%s", l->build.basedir);
    char *messages = xasprintf("--lc-messages-dir=%s", l->build.messages);
    char *tmp = xasprintf("--tmpdir=%s", l->in.tmp);
    int rc;
    if (l->mysql) {
        const char *argv[] = {l->build.server,
                              "--no-defaults",
                              "--initialize-insecure",
                              base,
                              data,
                              messages,
                              tmp,
                              NULL};
        rc = run_once(l, argv, NULL, e);
    } else {
        const char *argv[] = {l->build.server,
                              "--no-defaults",
                              "--bootstrap",
                              base,
                              data,
                              messages,
                              tmp,
                              "--innodb-buffer-pool-size=64M",
                              "--log-warnings=0",
                              "--enforce-storage-engine=",
                              "--max-allowed-packet=8M",
                              NULL};
        struct str sql = {0};
        rc = bootstrap_sql(l, &sql, e);
        if (rc == 0)
            rc = run_once(l, argv, str_text(&sql), e);
        str_free(&sql);
    }
    free(data);
    free(base);
    free(messages);
    free(tmp);
    return rc;
}

// InnoDB locks its first file with fcntl: a lock held there means another server is running on it.
static int data_in_use(const char *dir, struct err *e)
{
    static const char *const files[] = {"ibdata1", "aria_log_control"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = xasprintf("%s/%s", dir, files[i]);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        free(path);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (fd < 0)
            continue;
        int rc = fcntl(fd, F_GETLK, &lock);
        close(fd);
        if (rc == 0 && lock.l_type != F_UNLCK)
            return err_set(e, EXIT_CANNOT_ASK,
                           "%s: in use by the server with pid %d; stop it first", dir, lock.l_pid);
    }
    return 0;
}

// A directory of somebody else: used as it is, and left where it is.
static int data_existing(struct launch *l, struct err *e)
{
    const char *dir = l->opt.datadir;
    struct stat st;
    if (stat(dir, &st))
        return err_sys(e, EXIT_CANNOT_ASK, "%s", dir);
    if (!S_ISDIR(st.st_mode))
        return err_set(e, EXIT_CANNOT_ASK, "%s: not a directory", dir);
    if (data_in_use(dir, e))
        return -1;
    if (!fs_reachable(dir, l->in.uid, l->in.gid))
        return err_set(e, EXIT_CANNOT_ASK, "%s: %s cannot read it; choose its owner with --user",
                       dir, l->in.user);
    free(l->in.data);
    l->in.data = realpath(dir, NULL);
    return 0;
}

int server_data(struct launch *l, struct err *e)
{
    if (l->opt.datadir)
        return data_existing(l, e);
    if (!l->opt.data_from)
        return data_fresh(l, e);
    if (fs_copy_tree(l->opt.data_from, l->in.data, e))
        return -1;
    if (l->in.drop && fs_chown_tree(l->in.data, l->in.uid, l->in.gid, e))
        return -1;
    return chmod(l->in.data, 0700) ? err_sys(e, EXIT_CANNOT_ASK, "%s", l->in.data) : 0;
}

static int port_free(uint64_t port, struct err *e)
{
    if (port == 0 || port > 65535)
        return err_set(e, EXIT_CANNOT_ASK, "--port=%llu: not a port", (unsigned long long)port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int rc = bind(fd, (struct sockaddr *)&a, sizeof a)
                 ? err_sys(e, EXIT_CANNOT_ASK, "127.0.0.1:%llu: cannot listen there",
                           (unsigned long long)port)
                 : 0;
    close(fd);
    return rc;
}

int server_command(struct launch *l, struct err *e)
{
    char *cnf = xasprintf("%s/my.cnf", l->in.place);
    char *given = l->opt.cnf ? xstrdup(l->opt.cnf) : store_share("profiles/server/small.cnf");
    int rc = fs_copy_file(given, cnf, 0644, e);
    free(given);
    if (rc == 0 && l->opt.port)
        rc = port_free(l->opt.port, e);
    strv_add(&l->argv, l->exec);
    strv_addf(&l->argv, "--defaults-file=%s", cnf);
    strv_addf(&l->argv, "--basedir=%s", l->build.basedir);
    strv_addf(&l->argv, "--datadir=%s", l->in.data);
    strv_addf(&l->argv, "--tmpdir=%s", l->in.tmp);
    strv_addf(&l->argv, "--socket=%s", l->in.socket);
    strv_addf(&l->argv, "--pid-file=%s/server.pid", l->in.place);
    if (l->build.messages)
        strv_addf(&l->argv, "--lc-messages-dir=%s", l->build.messages);
    if (l->opt.port) {
        strv_addf(&l->argv, "--port=%llu", (unsigned long long)l->opt.port);
        strv_add(&l->argv, "--bind-address=127.0.0.1");
    } else {
        strv_add(&l->argv, "--skip-networking");
    }
    if (l->mysql)
        strv_add(&l->argv, "--mysqlx=OFF");
    if (l->opt.server_args)
        strv_addv(&l->argv, l->opt.server_args);
    free(cnf);
    return rc;
}

static int apply_in_child(void *arg, const char **what)
{
    const struct launch *l = arg;
    for (size_t i = 0; i < l->nknobs; i++) {
        const struct knob_state *s = &l->knobs[i];
        int rc = s->skipped || !s->knob->child ? 0 : s->knob->child(l, s, what);
        if (rc)
            return rc;
    }
    return 0;
}

int server_spawn(struct launch *l, struct err *e)
{
    if (l->preload.n) {
        char *libs = strv_join(&l->preload, ":");
        strv_addf(&l->env, "LD_PRELOAD=%s", libs);
        free(libs);
    }
    int log = open_log(l, e);
    if (log < 0)
        return -1;
    struct proc p = {.argv = (const char *const *)l->argv.v,
                     .exec_path = l->exec,
                     .env = l->env.v,
                     .cwd = l->in.place,
                     .in = -1,
                     .out = log,
                     .err = log,
                     .own_session = true,
                     .drop = l->in.drop,
                     .uid = l->in.uid,
                     .gid = l->in.gid,
                     .prepare = apply_in_child,
                     .arg = l};
    l->pid = proc_spawn(&p, e);
    close(log);
    if (l->pid < 0)
        return -1;
    return journal_process(l->journal, l->pid, e);
}

bool server_alive(struct launch *l)
{
    if (l->pid <= 0 || l->waited)
        return false;
    if (proc_wait(l->pid, 0, &l->exit_status) == 0)
        return true;
    l->waited = true;
    return false;
}

int server_ready(struct launch *l, struct err *e)
{
    double start = now_seconds(), limit = l->opt.ready_timeout > 0 ? l->opt.ready_timeout : 60;
    struct err last = {0};
    if (sql_available(e))
        return -1;
    for (;;) {
        if (!server_alive(l))
            return fail_with_log(l, "the server did not start", l->exit_status, e);
        if (fs_exists(l->in.socket) && sql_query(l->in.socket, "SELECT 1", NULL, &last) == 0)
            return 0;
        if (intr_pending())
            return intr_error(e);
        if (now_seconds() - start > limit)
            return err_set(e, EXIT_NO,
                           "%s: the server answered no query within %.0f s (%s); its log is "
                           "%s",
                           l->subject.text, limit, last.msg, l->in.log);
        sleep_seconds(0.05);
    }
}

int server_stop(struct launch *l, json_t *stop, struct err *e)
{
    static const struct {
        const char *how;
        int signal; // 0: the SQL statement
        double seconds;
    } steps[] = {{"SHUTDOWN", 0, 60}, {"TERM", SIGTERM, 20}, {"KILL", SIGKILL, 20}};
    double start = now_seconds();
    for (size_t i = 0; i < sizeof steps / sizeof *steps && server_alive(l); i++) {
        if (steps[i].signal)
            kill(l->pid, steps[i].signal);
        else if (l->opt.program || sql_query(l->in.socket, "SHUTDOWN", NULL, NULL))
            continue;
        json_object_set_new(stop, "how", json_string(steps[i].how));
        l->waited = proc_wait(l->pid, steps[i].seconds, &l->exit_status) == 1;
    }
    json_object_set_new(stop, "seconds", json_real(now_seconds() - start));
    if (!l->waited)
        return err_set(e, EXIT_NO, "pid %d: the server does not end", l->pid);
    return 0;
}
