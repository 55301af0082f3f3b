#include "common/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct failure {
    int errnum;
    char what[120];
};

static _Noreturn void child_fail(int fd, int errnum, const char *what)
{
    struct failure f = {.errnum = errnum};
    snprintf(f.what, sizeof f.what, "%s", what);
    if (write(fd, &f, sizeof f) < 0)
        _exit(126);
    _exit(127);
}

static void redirect(int fd, int target, int report)
{
    if (fd == 0)
        return;
    if (fd < 0)
        fd = open("/dev/null", target ? O_WRONLY : O_RDONLY);
    if (fd < 0 || dup2(fd, target) < 0)
        child_fail(report, errno, "cannot redirect its output");
}

static _Noreturn void child(const struct proc *p, pid_t parent, int report)
{
    const char *what = "cannot prepare";
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigaction(SIGINT, &dfl, NULL);
    sigaction(SIGTERM, &dfl, NULL);
    sigaction(SIGPIPE, &dfl, NULL);
    if (p->own_session)
        setsid();
    redirect(p->in, 0, report);
    redirect(p->out, 1, report);
    redirect(p->err, 2, report);
    if (p->prepare) {
        int rc = p->prepare(p->arg, &what);
        if (rc)
            child_fail(report, -rc, what);
    }
    if (p->drop && (setgroups(0, NULL) || setresgid(p->gid, p->gid, p->gid) ||
                    setresuid(p->uid, p->uid, p->uid)))
        child_fail(report, errno, "cannot drop the uid");
    prctl(PR_SET_PDEATHSIG, p->death_signal ? p->death_signal : SIGKILL);
    if (getppid() != parent)
        _exit(127);
    if (p->cwd && chdir(p->cwd))
        child_fail(report, errno, "cannot enter its directory");
    char *const *argv = (char *const *)p->argv;
    const char *file = p->exec_path ? p->exec_path : argv[0];
    if (p->env)
        execvpe(file, argv, p->env);
    else
        execvp(file, argv);
    child_fail(report, errno, "cannot run it");
}

pid_t proc_spawn(const struct proc *p, struct err *e)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC))
        return err_sys(e, EXIT_NO, "%s: cannot start", p->argv[0]);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        child(p, parent, report[1]);
    close(report[1]);
    if (pid < 0) {
        close(report[0]);
        return err_sys(e, EXIT_NO, "%s: cannot start", p->argv[0]);
    }
    struct failure f;
    ssize_t n;
    do
        n = read(report[0], &f, sizeof f);
    while (n < 0 && errno == EINTR);
    close(report[0]);
    if (n == (ssize_t)sizeof f) {
        waitpid(pid, NULL, 0);
        return err_set(e, EXIT_CANNOT_ASK, "%s: %s: %s", p->exec_path ? p->exec_path : p->argv[0],
                       f.what, strerror(f.errnum));
    }
    return pid;
}

void proc_read_all(int fd, struct str *out)
{
    char buf[8192];
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            str_addn(out, buf, (size_t)n);
}

int proc_capture(const char *const *argv, struct str *out, struct err *e)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC))
        return err_sys(e, EXIT_NO, "%s: cannot start", argv[0]);
    struct proc p = {.argv = argv, .in = -1, .out = fds[1], .err = fds[1]};
    pid_t pid = proc_spawn(&p, e);
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return -1;
    }
    proc_read_all(fds[0], out);
    close(fds[0]);
    int status = 0;
    proc_wait(pid, -1, &status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int proc_wait(pid_t pid, double timeout, int *status)
{
    double end = now_seconds() + timeout, step = 0.001;
    for (;;) {
        pid_t r = waitpid(pid, status, timeout < 0 ? 0 : WNOHANG);
        if (r == pid)
            return 1;
        if (r < 0 && errno != EINTR)
            return -1;
        if (timeout >= 0) {
            if (now_seconds() >= end)
                return 0;
            sleep_seconds(step);
            step = step < 0.02 ? step * 2 : step;
        }
    }
}

const char *proc_status_text(int status)
{
    static char text[100];
    if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, sizeof text, "exit code %d", WEXITSTATUS(status));
    return text;
}

uint64_t proc_start_time(pid_t pid)
{
    char path[64], buf[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, buf, sizeof buf - 1);
    close(fd);
    if (n <= 0)
        return 0;
    buf[n] = 0;
    // The name may hold blanks and brackets: count fields from the last ')'.
    char *p = strrchr(buf, ')');
    if (!p || p[1] != ' ' || p[2] == 'Z')
        return 0;
    p++;
    for (int field = 3; p && field <= 22; field++) {
        p = strchr(p, ' ');
        if (p)
            p++;
    }
    return p ? strtoull(p, NULL, 10) : 0;
}

static double clock_seconds(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double now_seconds(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

double wall_seconds(void)
{
    return clock_seconds(CLOCK_REALTIME);
}

void sleep_seconds(double s)
{
    if (s <= 0)
        return;
    struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};
    nanosleep(&t, NULL);
}

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
    interrupted = sig;
}

void intr_install(void)
{
    struct sigaction sa = {.sa_handler = on_signal};
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool intr_pending(void)
{
    return interrupted != 0;
}

int intr_error(struct err *e)
{
    return err_set(e, EXIT_INTERRUPTED, "interrupted");
}
