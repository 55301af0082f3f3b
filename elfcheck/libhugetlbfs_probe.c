// What the installed libhugetlbfs is like. Its SONAME is the same in all versions, so it is asked:
// a small program whose load segments all carry the mark that hugeedit sets is run under it, and
// it says how many it would take ("Executable has too many segments (max 3)"). It counts before it
// looks for pages, a mount or a layout, so this works without privilege, pool or mount.
#include "elfcheck/predict.h"
#include "common/fs.h"
#include "common/proc.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SONAME "libhugetlbfs.so.0"
enum { PF_LINUX_HUGETLB = 0x100000, NEEDED_LOADS = 4 };

// Any small dynamic program that ends by itself will do.
static const char *const subjects[] = {"/bin/true", "/usr/bin/true", "/bin/false"};

const char *libhugetlbfs_path(void)
{
    static char *path;
    static bool asked;
    if (asked)
        return path;
    asked = true;
    // The loader prints what it would load, and runs nothing.
    const char *const argv[] = {"env", "LD_TRACE_LOADED_OBJECTS=1", "LD_PRELOAD=" SONAME,
                                subjects[0], NULL};
    struct str out = {0};
    if (proc_capture(argv, &out, NULL) >= 0) {
        const char *at = strstr(str_text(&out), SONAME " => /");
        if (at) {
            at += strlen(SONAME " => ");
            path = xstrndup(at, strcspn(at, " \n"));
        }
    }
    str_free(&out);
    return path;
}

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

unsigned libhugetlbfs_segment_limit(struct err *e)
{
    if (!libhugetlbfs_path()) {
        err_set(e, EXIT_NOT_HERE, SONAME ": not installed (Debian: libhugetlbfs0)");
        return 0;
    }
    int fd = marked_program();
    if (fd < 0) {
        err_set(e, EXIT_CANNOT_KNOW, "no program to ask " SONAME " with");
        return 0;
    }
    char *program = xasprintf("/proc/self/fd/%d", fd);
    const char *const argv[] = {"env",
                                "-u",
                                "HUGETLB_ELFMAP",
                                "-u",
                                "HUGETLB_RESTRICT_EXE",
                                "-u",
                                "HUGETLB_DEBUG",
                                "HUGETLB_VERBOSE=3",
                                "LD_PRELOAD=" SONAME,
                                program,
                                NULL};
    struct str said = {0};
    unsigned limit = proc_capture(argv, &said, NULL) < 0 ? 0 : limit_in(str_text(&said));
    if (!limit)
        err_set(e, EXIT_CANNOT_KNOW, SONAME ": it does not say how many segments it takes");
    str_free(&said);
    free(program);
    close(fd);
    return limit;
}
