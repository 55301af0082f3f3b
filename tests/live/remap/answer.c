// A program (and, with -DLIBRARY, a library) with six functions a mebibyte apart. It calls them,
// compares its text with its file, and on request (SHOW) starts a child that shows its environment,
// and exits with 42.
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUNCTION(i)                                                                                \
    ".globl " PREFIX #i "\n.type " PREFIX #i ", @function\n" PREFIX #i ":\n"                       \
    "mov $" #i ", %eax\nret\n.skip 1048576, 0x" #i #i "\n.size " PREFIX #i ", 6\n"
#ifdef LIBRARY
#define PREFIX "library"
#else
#define PREFIX "answer"
#endif
#ifdef RELOCATED // the loader writes an address into the text
#define POINTER ".balign 8\n.globl pointer\npointer: .quad " PREFIX "3\n"
#else
#define POINTER
#endif
__asm__(".section .text\n" FUNCTION(1) FUNCTION(2) FUNCTION(3) POINTER FUNCTION(4) FUNCTION(5)
            FUNCTION(6));

#ifdef THREAD
#include <pthread.h>
static void *wait_forever(void *arg)
{
    pause();
    return arg;
}
static void __attribute__((constructor)) start_thread(void)
{
    pthread_t t;
    pthread_create(&t, NULL, wait_forever, NULL);
}
#endif

#ifndef LIBRARY
extern int answer1(void), answer2(void), answer3(void), answer4(void), answer5(void), answer6(void);

#ifdef RELOCATED
extern int (*const pointer)(void);

static int compare(struct dl_phdr_info *o, size_t size, void *arg)
{
    (void)o, (void)size;
    *(int *)arg = pointer != answer3;
    return 1;
}
#else
static int compare(struct dl_phdr_info *o, size_t size, void *arg)
{
    int fd = open(*o->dlpi_name ? o->dlpi_name : "/proc/self/exe", O_RDONLY);
    (void)size;
    for (unsigned i = 0; fd >= 0 && i < o->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &o->dlpi_phdr[i];
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X))
            continue;
        const char *text = (const char *)(o->dlpi_addr + h->p_vaddr);
        char file[16384];
        for (size_t at = 0; at < h->p_filesz; at += sizeof file) {
            size_t n = h->p_filesz - at < sizeof file ? h->p_filesz - at : sizeof file;
            if (pread(fd, file, n, (off_t)(h->p_offset + at)) != (ssize_t)n ||
                memcmp(file, text + at, n) != 0)
                *(int *)arg = 1;
        }
    }
    close(fd);
    return 0;
}
#endif

int main(void)
{
    int sum = answer1() + answer2() + answer3() + answer4() + answer5() + answer6(), differs = 0;
    dl_iterate_phdr(compare, &differs);
    printf("sum %d, text %s\n", sum, differs ? "differs" : "same");
    fflush(stdout);
    if (getenv("SHOW") && system("env | grep -e LD_PRELOAD -e KILN_REMAP | sed 's/^/child /'"))
        return 1;
    return 42;
}
#endif
