// fill FILE: brings FILE into the page cache in 2 MiB folios, and prints how many bytes of it then
// can be mapped so and how many whole 2 MiB the file has. fill -s FILE: a single page of every 2
// MiB, which keeps larger folios out of the cache while it stays there. kiln-launch has code of its
// own for this; the matrix shares none with it, so that it tests the prediction and not the
// launcher.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HUGE = 2 << 20, SMALL = 4096 };

static void check(int good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

// FilePmdMapped of the mapping that begins at address.
static unsigned long long pmd_mapped(const char *address)
{
    char start[40], line[4096];
    snprintf(start, sizeof start, "%lx-", (unsigned long)address);
    FILE *f = fopen("/proc/self/smaps", "r");
    check(f != NULL, "smaps");
    unsigned long long kb = 0;
    int here = 0;
    while (fgets(line, sizeof line, f)) {
        if (!strncmp(line, start, strlen(start)))
            here = 1;
        else if (here && sscanf(line, "FilePmdMapped: %llu", &kb) == 1)
            break;
    }
    fclose(f);
    return kb * 1024;
}

static void read_single_pages(int fd, size_t size)
{
    char page[SMALL];
    // Without read-ahead, what is read is what is brought in.
    check(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) == 0, "no read-ahead");
    for (size_t at = 0; at < size; at += HUGE)
        check(pread(fd, page, sizeof page, (off_t)at) > 0, "read");
}

int main(int argc, char **argv)
{
    int small = argc == 3 && !strcmp(argv[1], "-s");
    int fd = argc == 2 || small ? open(argv[argc - 1], O_RDONLY) : -1;
    check(fd >= 0, "fill [-s] FILE");
    struct stat st;
    // Only clean pages can be dropped, and only folios that are read in anew are large.
    check(fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "drop");
    check(fstat(fd, &st) == 0, "stat");
    size_t size = (size_t)st.st_size, room = (size + HUGE - 1) / HUGE * HUGE;
    if (small) {
        read_single_pages(fd, size);
        return 0;
    }
    char *any = mmap(NULL, room + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(any != MAP_FAILED, "address space");
    char *at = (char *)(((uintptr_t)any + HUGE - 1) / HUGE * HUGE);
    check(mmap(at, room, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == at, "map");
    check(madvise(at, room, MADV_HUGEPAGE) == 0, "MADV_HUGEPAGE");
    unsigned sum = 0;
    for (size_t i = 0; i < size; i += SMALL)
        sum += ((volatile unsigned char *)at)[i];
    (void)sum;
    printf("%llu %zu\n", pmd_mapped(at), size / HUGE * HUGE);
    return 0;
}
