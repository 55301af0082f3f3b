// Child processes. Every child dies with its parent (PR_SET_PDEATHSIG, set after the uid is
// dropped, since the kernel clears it there).
#ifndef KILN_PROC_H
#define KILN_PROC_H

#include "common/err.h"
#include "common/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc {
    const char *const *argv; // argv[0] is looked up in PATH unless exec_path is given
    const char *exec_path;   // the file to run, or NULL
    char *const *env;        // NULL: the parent's
    const char *cwd;         // NULL: the parent's
    int in, out, err;        // descriptors for 0, 1, 2; 0 means "the parent's"; -1 /dev/null
    bool own_session;        // setsid: Ctrl-C on the terminal does not reach it
    bool drop;               // become uid and gid, with no supplementary groups
    uid_t uid;
    gid_t gid;
    int death_signal; // sent when the parent dies; 0: SIGKILL
    // Runs in the child before the uid is dropped; returns 0, or -errno with *what set to a
    // static text. Must be async-signal-safe enough for a single-threaded parent.
    int (*prepare)(void *arg, const char **what);
    void *arg;
};

// Starts the child; returns its pid, or -1 with *e filled (a missing program included).
pid_t proc_spawn(const struct proc *p, struct err *e);
// Runs argv to its end, standard output and error into *out; returns the exit status, 128+signal
// for a signal, or -1 with *e filled when it could not be started.
int proc_capture(const char *const *argv, struct str *out, struct err *e);
// Everything that comes from a descriptor until its end.
void proc_read_all(int fd, struct str *out);
// Waits for pid at most timeout seconds (< 0: for ever). Returns 1 and the wait status, 0 on
// timeout, -1 when there is no such child.
int proc_wait(pid_t pid, double timeout, int *status);
// "exit code 3", "signal 11 (Segmentation fault)"; into a static buffer.
const char *proc_status_text(int status);
// Start time of a process in clock ticks since boot (/proc/PID/stat field 22), 0 when gone. A pid
// and its start time name a process for ever.
uint64_t proc_start_time(pid_t pid);

double now_seconds(void);     // CLOCK_MONOTONIC
double wall_seconds(void);    // CLOCK_REALTIME
void sleep_seconds(double s); // returns early on a signal

// Ctrl-C and TERM: set a flag and are seen by whoever loops.
void intr_install(void);
bool intr_pending(void);
int intr_error(struct err *e); // fills *e with "interrupted" and EXIT_INTERRUPTED, returns -1

#endif
