// pairs ROUNDS COMMAND-A COMMAND-B: runs two commands in alternating rounds and prints medians of
// the ratios A/B, which noise of the machine cannot move as it moves absolute times.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ROUNDS = 1000, MAX_WORDS = 63, WARM_UP = 2 };

struct cost {
    double wall, cpu; // milliseconds
    long peak_kb;     // resident, the mapped file included
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double ms(struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

_Noreturn static void run(char *command)
{
    char *words[MAX_WORDS + 1] = {0};
    size_t n = 0;
    for (char *w = strtok(command, " "); w && n < MAX_WORDS; w = strtok(NULL, " "))
        words[n++] = w;
    int quiet = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(quiet, fd);
    execvp(words[0], words);
    _exit(127);
}

static struct cost measure(const char *command)
{
    char *copy = strdup(command);
    double start = now_ms();
    pid_t pid = vfork();
    if (pid == 0)
        run(copy);
    int status;
    struct rusage u;
    while (wait4(pid, &status, 0, &u) < 0 && errno == EINTR)
        ;
    struct cost c = {now_ms() - start, ms(u.ru_utime) + ms(u.ru_stime), u.ru_maxrss};
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
        fprintf(stderr, "pairs: %s: ended with status %#x\n", command, (unsigned)status);
        exit(2);
    }
    free(copy);
    return c;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

int main(int argc, char **argv)
{
    size_t rounds = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
    static double wall[MAX_ROUNDS], cpu[MAX_ROUNDS], a_wall[MAX_ROUNDS], b_wall[MAX_ROUNDS];
    long peak[2] = {0};
    if (!rounds || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: pairs ROUNDS 'COMMAND-A' 'COMMAND-B'\n");
        return 2;
    }
    for (size_t i = 0; i < rounds + WARM_UP; i++) {
        struct cost c[2];
        for (size_t j = 0; j < 2; j++)
            c[(i + j) % 2] = measure(argv[2 + (i + j) % 2]);
        if (i < WARM_UP)
            continue;
        size_t k = i - WARM_UP;
        wall[k] = c[0].wall / c[1].wall;
        cpu[k] = c[0].cpu / c[1].cpu;
        a_wall[k] = c[0].wall;
        b_wall[k] = c[1].wall;
        for (size_t j = 0; j < 2; j++)
            peak[j] = c[j].peak_kb > peak[j] ? c[j].peak_kb : peak[j];
    }
    double middle = median(wall, rounds);
    printf("A/B %.4f of the time (quartiles %.4f to %.4f), %.4f of the processor time, %zu rounds; "
           "A %.2f ms, B %.2f ms; peak A %ld kB, B %ld kB\n",
           middle, wall[rounds / 4], wall[rounds * 3 / 4], median(cpu, rounds), rounds,
           median(a_wall, rounds), median(b_wall, rounds), peak[0], peak[1]);
    return 0;
}
