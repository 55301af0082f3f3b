#include "common/progress.h"
#include "common/proc.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static struct {
    char title[80];
    double total, expected, start, last;
    bool active, shown;
} task;

void progress_begin(const char *title, double total, double expected_seconds)
{
    snprintf(task.title, sizeof task.title, "%s", title);
    task.total = total;
    task.expected = expected_seconds;
    task.start = now_seconds();
    task.last = isatty(STDERR_FILENO) ? 0 : task.start - 8; // first line after two seconds
    task.active = true;
    task.shown = false;
}

static void duration(char *out, size_t size, double s)
{
    if (s >= 90)
        snprintf(out, size, "%.0f min", s / 60);
    else
        snprintf(out, size, "%.0f s", s);
}

static void estimate(char *out, size_t size, double done, double spent)
{
    double share = task.total > 0 ? done / task.total : 0, left = -1;
    if (share > 0.02 && spent > 2)
        left = spent / share - spent;
    else if (task.expected > 0)
        left = task.expected - spent;
    char t[32];
    duration(t, sizeof t, left < 0 ? 0 : left);
    if (left < 0)
        snprintf(out, size, "time left not known yet");
    else
        snprintf(out, size, "about %s left", t);
}

void progress_update(double done, const char *what)
{
    double now = now_seconds();
    bool tty = isatty(STDERR_FILENO);
    if (!task.active || now - task.last < (tty ? 0.2 : 10))
        return;
    task.last = now;
    char left[64], line[400];
    estimate(left, sizeof left, done, now - task.start);
    int n = snprintf(line, sizeof line, "%s: %.0f of %.0f, %s", task.title, done, task.total, left);
    if (what && *what && n > 0 && (size_t)n < sizeof line)
        snprintf(line + n, sizeof line - (size_t)n, "  %s", what);
    if (tty) {
        struct winsize ws;
        size_t width = ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col ? ws.ws_col : 80;
        if (strlen(line) >= width)
            line[width - 1] = 0;
        fprintf(stderr, "\r%s\033[K", line);
    } else {
        fprintf(stderr, "%s\n", line);
    }
    fflush(stderr);
    task.shown = true;
}

void progress_end(void)
{
    if (task.active && task.shown && isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    task.active = false;
}
