// under WHAT PROGRAM...: runs the program with something in its way.
//   thp-disable  no transparent huge pages (PR_SET_THP_DISABLE)
//   mdwe         nothing that was not executable becomes so (PR_SET_MDWE)
//   poke         as a debugger does: a word of the text is written, with what it was
//   N            the Nth system call of libkiln-remap.so fails with ENOMEM, and what it was is
//                written to descriptor 9: its number, or "none" when there are fewer
// The library's calls are those from its first look at /proc/self/smaps to its SIG_SETMASK.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

static bool opens_smaps(pid_t pid, const struct user_regs_struct *r)
{
    long word[2] = {ptrace(PTRACE_PEEKDATA, pid, r->rsi, 0),
                    ptrace(PTRACE_PEEKDATA, pid, r->rsi + 8, 0)};
    return r->orig_rax == SYS_openat && !memcmp(word, "/proc/self/smaps", sizeof word);
}

static void poke(pid_t pid)
{
    char path[64];
    Elf64_auxv_t a;
    snprintf(path, sizeof path, "/proc/%d/auxv", pid);
    int fd = open(path, O_RDONLY);
    while (read(fd, &a, sizeof a) == sizeof a && a.a_type != AT_NULL)
        if (a.a_type == AT_ENTRY) // what is whole slots of the text lies behind it
            for (int i = 0; i < 6; i++) {
                unsigned long at = a.a_un.a_val + (unsigned long)i * 0x100000;
                ptrace(PTRACE_POKETEXT, pid, at, ptrace(PTRACE_PEEKTEXT, pid, at, 0));
            }
    close(fd);
}

struct state {
    long wanted, seen;
    bool entry, within, failing;
};

static void on_syscall(pid_t pid, struct state *s)
{
    struct user_regs_struct r;
    ptrace(PTRACE_GETREGS, pid, 0, &r);
    s->entry = !s->entry;
    if (!s->entry) {
        if (s->failing) {
            r.rax = (unsigned long)-ENOMEM;
            ptrace(PTRACE_SETREGS, pid, 0, &r);
        }
        s->failing = false;
        return;
    }
    s->within |= s->seen == 0 && opens_smaps(pid, &r);
    s->within &= !(r.orig_rax == SYS_rt_sigprocmask && r.rdi == SIG_SETMASK);
    if (s->within && ++s->seen == s->wanted) {
        dprintf(9, "%llu\n", r.orig_rax);
        s->failing = true;
        r.orig_rax = (unsigned long)-1;
        ptrace(PTRACE_SETREGS, pid, 0, &r);
    }
}

static int trace(pid_t pid, bool pokes, struct state *s)
{
    int status;
    waitpid(pid, &status, 0);
    ptrace(PTRACE_SETOPTIONS, pid, 0,
           PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
    for (int signal = 0;;) {
        ptrace(s->wanted ? PTRACE_SYSCALL : PTRACE_CONT, pid, 0, signal);
        waitpid(pid, &status, 0);
        if (!WIFSTOPPED(status))
            break;
        signal = 0;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80))
            on_syscall(pid, s);
        else if (status >> 8 != (SIGTRAP | PTRACE_EVENT_EXEC << 8))
            signal = WSTOPSIG(status);
        else if (pokes)
            poke(pid);
    }
    if (s->wanted && s->seen < s->wanted)
        dprintf(9, "none\n");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    struct state s = {0};
    if (argc < 3)
        return 2;
    if (!strcmp(argv[1], "thp-disable") || !strcmp(argv[1], "mdwe")) {
        int option = *argv[1] == 't' ? PR_SET_THP_DISABLE : PR_SET_MDWE;
        if (prctl(option, 1, 0, 0, 0))
            return 77;
        execvp(argv[2], argv + 2);
        return 127;
    }
    s.wanted = atol(argv[1]);
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    return trace(pid, !strcmp(argv[1], "poke"), &s);
}
