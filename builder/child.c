#include "builder/child.h"
#include "common/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOP_SECONDS = 20 }; // for ninja to end its compilers

static void feed(const struct child_job *job, struct str *line, const char *buf, size_t n)
{
    while (n) {
        const char *end = memchr(buf, '\n', n);
        size_t part = end ? (size_t)(end - buf) : n;
        str_addn(line, buf, part);
        if (!end)
            return;
        if (job->line)
            job->line(job->user, str_text(line));
        str_reset(line);
        buf += part + 1;
        n -= part + 1;
    }
}

static int stop(pid_t pid, int *status)
{
    kill(pid, SIGINT);
    if (proc_wait(pid, STOP_SECONDS, status) == 0) {
        kill(pid, SIGKILL);
        proc_wait(pid, -1, status);
    }
    return -1;
}

static int read_all(const struct child_job *job, int fd, struct err *e)
{
    char buf[16384];
    struct str line = {0};
    int rc = 0;
    while (rc == 0) {
        if (intr_pending()) {
            rc = intr_error(e);
            break;
        }
        ssize_t n = read(fd, buf, sizeof buf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        if (job->log && (fwrite(buf, 1, (size_t)n, job->log) < (size_t)n || fflush(job->log)))
            rc = err_sys(e, EXIT_NO, "cannot write the log");
        feed(job, &line, buf, (size_t)n);
    }
    if (rc == 0 && line.len && job->line)
        job->line(job->user, line.s);
    str_free(&line);
    return rc;
}

int child_run(const struct child_job *job, struct err *e)
{
    int fds[2], status = 0;
    if (pipe2(fds, O_CLOEXEC))
        return err_sys(e, EXIT_NO, "%s: cannot start", job->argv[0]);
    // TERM when we are killed: ninja then ends its compilers, which SIGKILL would not let it do.
    struct proc p = {.argv = job->argv,
                     .cwd = job->cwd,
                     .in = -1,
                     .out = fds[1],
                     .err = job->only_stdout ? 0 : fds[1],
                     .death_signal = SIGTERM};
    pid_t pid = proc_spawn(&p, e);
    close(fds[1]);
    int rc = pid < 0 ? -1 : read_all(job, fds[0], e);
    close(fds[0]);
    if (pid < 0)
        return -1;
    if (rc)
        return stop(pid, &status);
    proc_wait(pid, -1, &status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void append(void *user, const char *text)
{
    str_add(user, text);
    str_add(user, "\n");
}

int child_capture(const char *const *argv, const char *cwd, struct str *out, struct err *e)
{
    struct child_job job = {.argv = argv, .cwd = cwd, .line = append, .user = out};
    return child_run(&job, e);
}

int child_capture_stdout(const char *const *argv, struct str *out, struct err *e)
{
    struct child_job job = {.argv = argv, .only_stdout = true, .line = append, .user = out};
    return child_run(&job, e);
}

char *child_first_line(const char *const *argv)
{
    struct str out = {0};
    int rc = child_capture(argv, NULL, &out, NULL);
    char *line = rc == 0 ? xstrndup(str_text(&out), strcspn(str_text(&out), "\n")) : xstrdup("");
    str_free(&out);
    return line;
}

char *sha256_file(const char *path, struct err *e)
{
    const char *argv[] = {"sha256sum", "--", path, NULL};
    struct str out = {0};
    int rc = child_capture(argv, NULL, &out, e);
    // A name with a backslash or newline makes sha256sum put '\' first.
    const char *hex = str_text(&out) + (*str_text(&out) == '\\');
    char *sum = rc == 0 && strlen(hex) > 64 ? xstrndup(hex, 64) : NULL;
    if (!sum && rc >= 0)
        err_set(e, EXIT_NO, "%s: sha256sum failed", path);
    str_free(&out);
    return sum;
}

char *sha256_text(const char *text, struct err *e)
{
    int fd = memfd_create("kiln", 0); // stays open for the child, which reads it by its name
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        err_sys(e, EXIT_NO, "cannot hash");
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    char *path = xasprintf("/proc/self/fd/%d", fd);
    char *sum = sha256_file(path, e);
    free(path);
    close(fd);
    return sum;
}
