// What the installed libhugetlbfs is like. Its SONAME is the same in all versions, so it is asked:
// a small program whose load segments all carry the mark that hugeedit sets is run under it, and
// it says how many it would take ("Executable has too many segments (max 3)"). It counts before it
// looks for pages, a mount or a layout, so this works without privilege, pool or mount.
#include "elfcheck/predict.h"
#include "common/fs.h"
#include "common/proc.h"
#include "elfcheck/host_fit_private.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SONAME "libhugetlbfs.so.0"
enum { NEEDED_LOADS = 4 };

// Any small dynamic program that ends by itself will do.
static const char *const subjects[] = {"/bin/true", "/usr/bin/true", "/bin/false"};

// Marks up to NEEDED_LOADS load segments of a 64-bit image; returns how many.
static unsigned mark_segments(struct str *image)
{
    Elf64_Ehdr h;
    unsigned marked = 0;
    if (image->len < sizeof h)
        return 0;
    memcpy(&h, image->s, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_phentsize != sizeof(Elf64_Phdr) || h.e_phoff > image->len ||
        h.e_phnum > (image->len - h.e_phoff) / sizeof(Elf64_Phdr))
        return 0;
    for (unsigned i = 0; i < h.e_phnum && marked < NEEDED_LOADS; i++) {
        char *at = image->s + h.e_phoff + i * sizeof(Elf64_Phdr);
        Elf64_Phdr p;
        memcpy(&p, at, sizeof p);
        if (p.p_type != PT_LOAD)
            continue;
        p.p_flags |= PF_LINUX_HUGETLB;
        memcpy(at, &p, sizeof p);
        marked++;
    }
    return marked;
}

// A copy in memory of a program with four marked segments: a descriptor to run it by, or -1.
static int marked_program(void)
{
    int fd = -1;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects && fd < 0; i++) {
        struct str image = {0};
        if (fs_read(subjects[i], &image, NULL) == 0 && mark_segments(&image) == NEEDED_LOADS) {
            fd = memfd_create("kiln-probe", 0); // inherited: the child runs it by its number
            if (fd >= 0 && write(fd, image.s, image.len) != (ssize_t)image.len) {
                close(fd);
                fd = -1;
            }
        }
        str_free(&image);
    }
    return fd;
}

static unsigned limit_in(const char *said)
{
    static const char too_many[] = "too many segments (max ";
    const char *at = strstr(said, too_many);
    if (at)
        return (unsigned)strtoul(at + strlen(too_many), NULL, 10);
    // It listed the segments and did not complain of their number.
    return strstr(said, "Segment 0 (phdr ") ? NEEDED_LOADS : 0;
}

// The one question, asked once: started early, so that it is answered while the file is read.
static struct {
    bool started, ended;
    pid_t pid;
    int fd; // what it says
    char *path;
    unsigned limit;
} probe;

// The loader says which file it took ("calling init: PATH"), the library how many segments.
static pid_t run_marked(int program, int out)
{
    char path[40], *library_path = NULL;
    const char *inherited = getenv("LD_LIBRARY_PATH");
    snprintf(path, sizeof path, "/proc/self/fd/%d", program);
    if (inherited)
        library_path = xasprintf("LD_LIBRARY_PATH=%s", inherited);
    char *env[] = {"HUGETLB_VERBOSE=3", "LD_PRELOAD=" SONAME, "LD_DEBUG=libs", library_path, NULL};
    const char *const argv[] = {"kiln-probe", NULL};
    struct proc p = {.argv = argv, .exec_path = path, .env = env, .in = -1, .out = out, .err = out};
    pid_t pid = proc_spawn(&p, NULL);
    free(library_path);
    return pid;
}

void libhugetlbfs_probe_start(void)
{
    int fds[2];
    if (probe.started)
        return;
    probe.started = true;
    int program = marked_program();
    if (program >= 0 && pipe2(fds, O_CLOEXEC) == 0) {
        probe.pid = run_marked(program, fds[1]);
        probe.fd = fds[0];
        close(fds[1]);
    }
    if (program >= 0)
        close(program);
}

static void probe_end(void)
{
    struct str said = {0};
    libhugetlbfs_probe_start();
    if (probe.ended || probe.pid <= 0)
        return;
    probe.ended = true;
    proc_read_all(probe.fd, &said);
    close(probe.fd);
    proc_wait(probe.pid, -1, &(int){0});
    for (const char *at = str_text(&said); !probe.path && (at = strstr(at, "calling init: "));) {
        at += strlen("calling init: ");
        char *file = xstrndup(at, strcspn(at, "\n"));
        if (strstr(file, "/" SONAME))
            probe.path = file;
        else
            free(file);
    }
    probe.limit = limit_in(str_text(&said));
    str_free(&said);
}

// --- what it says of itself, without running it ---

// "2.23": the only text in its read-only data that is nothing but a version (version.h).
static unsigned stated_version(const struct elf_file *library)
{
    struct bytes b = elf_section_bytes(library, elf_section(library, ".rodata"));
    unsigned found = 0;
    for (size_t at = 0, n; at < b.n; at += n + 1) {
        const char *s = (const char *)b.p + at;
        unsigned major, minor;
        int used = 0;
        n = strnlen(s, b.n - at);
        if (n < 3 || n > 8 || n == b.n - at || s[0] < '0' || s[0] > '9' ||
            sscanf(s, "%2u.%3u%n", &major, &minor, &used) != 2 || (size_t)used != n)
            continue;
        if (found)
            return 0;
        found = major * 1000 + minor;
    }
    return found;
}

unsigned libhugetlbfs_stated_limit(void)
{
    struct elf_file library;
    struct stat st;
    unsigned version = 0;
    // The loader's cache names the file that a preload takes, unless this names another.
    if (!probe.path && !getenv("LD_LIBRARY_PATH"))
        probe.path = ld_cache_path(SONAME);
    if (probe.path && fit_open(probe.path, &library, &st, NULL) == 0) {
        version = stated_version(&library);
        elf_file_close(&library);
    }
    return !version ? 0 : version < 2024 ? 3 : NEEDED_LOADS;
}

// --- answers ---

const char *libhugetlbfs_path(void)
{
    if (!probe.path)
        probe_end();
    return probe.path;
}

unsigned libhugetlbfs_segment_limit(struct err *e)
{
    probe_end();
    if (probe.pid <= 0)
        err_set(e, EXIT_CANNOT_KNOW, "no program to ask " SONAME " with");
    else if (!probe.path)
        err_set(e, EXIT_NOT_HERE, SONAME ": not installed (Debian: libhugetlbfs0)");
    else if (!probe.limit)
        err_set(e, EXIT_CANNOT_KNOW, SONAME ": it does not say how many segments it takes");
    return probe.limit;
}
