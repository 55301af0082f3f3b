// Debug information may come from anywhere, and libdw was not made for hostile input: it is read in
// a child process with little time and memory, which says what it found in lines of text. The
// library is loaded there, so that nothing else waits for it and its own libraries.
#include "elfcheck/dwarf_facts.h"
#include "common/proc.h"
#include "common/str.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_SECONDS = 1,          // of processor time; 200 MB of debug information take 0.1 s
    MAX_WALL_MS = 1800,       // of patience
    MAX_MEMORY = 160 << 20,   // beyond what is mapped, bytes
    MAX_EXPANDED = 128 << 20, // compressed sections, bytes
    MAX_LINES = 32 << 20,     // of what the child says, bytes
    PIPE_BYTES = 1 << 20,
    MAX_TEXT = 4000, // of a producer or path, bytes
};

// --- in the child ---

#define LIBDW "libdw.so.1"
#define FUNCTIONS(X)                                                                               \
    X(dwarf_begin_elf)                                                                             \
    X(dwarf_get_units)                                                                             \
    X(dwarf_ranges) X(dwarf_attr) X(dwarf_formstring) X(dwarf_tag) X(dwarf_srclang)
static struct {
#define MEMBER(f) typeof(f) *f;
    FUNCTIONS(MEMBER)
} libdw;

enum { CHILD_FAILED = 1, CHILD_NO_LIBRARY = 2 };

static bool load_libdw(void)
{
    void *library = dlopen(LIBDW, RTLD_NOW);
    bool all = library;
#define LOAD(f) all = all && (libdw.f = dlsym(library, #f));
    FUNCTIONS(LOAD)
    return all;
}

struct speaker {
    FILE *out;
    const struct elf_file *file;
    const char **producers; // as spoken; libdw's strings
    size_t nproducers;
};

// A name of a length that can be borne, without line ends and what else a terminal would obey.
static void speak(FILE *out, const char *s)
{
    for (size_t i = 0; s[i] && i < MAX_TEXT; i++)
        putc_unlocked(s[i] < ' ' || s[i] > '~' ? '?' : s[i], out);
}

// Units of one kind come one after the other, and most share one string of .debug_str.
static size_t producer_number(struct speaker *s, const char *producer)
{
    for (size_t i = s->nproducers; i-- > 0;)
        if (s->producers[i] == producer)
            return i;
    for (size_t i = s->nproducers; i-- > 0;)
        if (!strcmp(s->producers[i], producer))
            return i;
    s->producers = xrealloc(s->producers, (s->nproducers + 1) * sizeof *s->producers);
    s->producers[s->nproducers] = producer;
    fputs("P ", s->out);
    speak(s->out, producer);
    putc_unlocked('\n', s->out);
    return s->nproducers++;
}

static bool is_code(const struct elf_file *f, Dwarf_Addr from, Dwarf_Addr to)
{
    for (size_t i = 0; i < f->nphdrs; i++) {
        const GElf_Phdr *p = &f->phdrs[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && from >= p->p_vaddr &&
            to - p->p_vaddr <= p->p_memsz)
            return true;
    }
    return false;
}

// Ranges that the linker dropped have addresses outside the text.
static uint64_t code_bytes(const struct elf_file *f, Dwarf_Die *unit)
{
    Dwarf_Addr base, from, to;
    uint64_t sum = 0;
    ptrdiff_t at = 0;
    while ((at = libdw.dwarf_ranges(unit, at, &base, &from, &to)) > 0)
        if (to > from && is_code(f, from, to))
            sum += to - from;
    return sum;
}

static const char *text_of(Dwarf_Die *unit, unsigned name)
{
    Dwarf_Attribute attr;
    const char *s = libdw.dwarf_formstring(libdw.dwarf_attr(unit, name, &attr));
    return s ? s : "";
}

static void speak_unit(struct speaker *s, Dwarf_Die *unit)
{
    const char *name = text_of(unit, DW_AT_name);
    const char *folder = *name == '/' ? "" : text_of(unit, DW_AT_comp_dir);
    size_t number = producer_number(s, text_of(unit, DW_AT_producer));
    fprintf(s->out, "U %zu %llu ", number, (unsigned long long)code_bytes(s->file, unit));
    speak(s->out, folder);
    if (*folder)
        putc_unlocked('/', s->out);
    speak(s->out, name);
    putc_unlocked('\n', s->out);
}

// clang's assembler names its producer as the compiler does; only the language tells.
static void speak_units(struct speaker *s, Dwarf *dw)
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;
    uint8_t type;
    while (libdw.dwarf_get_units(dw, cu, &cu, NULL, &type, &die, NULL) == 0) {
        bool compiled = (type == DW_UT_compile || type == DW_UT_skeleton) &&
                        libdw.dwarf_tag(&die) != DW_TAG_partial_unit;
        if (compiled && libdw.dwarf_srclang(&die) != DW_LANG_Mips_Assembler)
            speak_unit(s, &die);
    }
}

static uint64_t mapped_now(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long long pages = 0;
    if (f && fscanf(f, "%llu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit(int what, uint64_t value)
{
    struct rlimit r = {value, value};
    setrlimit(what, &r);
}

_Noreturn static void child(const struct elf_file *file, int fd)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit(RLIMIT_CPU, MAX_SECONDS);
    limit(RLIMIT_CORE, 0);
    int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (quiet >= 0)
        dup2(quiet, STDERR_FILENO);
    uint64_t mapped = mapped_now();
    if (mapped)
        limit(RLIMIT_AS, mapped + MAX_MEMORY);
    if (!load_libdw())
        _exit(CHILD_NO_LIBRARY);
    struct speaker s = {.out = fdopen(fd, "w"), .file = file};
    Dwarf *dw = s.out ? libdw.dwarf_begin_elf(file->elf, DWARF_C_READ, NULL) : NULL;
    if (!dw)
        _exit(CHILD_FAILED);
    speak_units(&s, dw);
    _exit(fflush(s.out) ? CHILD_FAILED : 0);
}

// --- in the parent ---

// Milliseconds of a clock that only goes forward.
static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// All that comes until the child ends; false when it takes too long or gets too much.
static bool listen_to(int fd, int64_t end, struct str *said)
{
    int64_t left;
    char buf[1 << 16];
    while ((left = end - now_ms()) > 0 && said->len < MAX_LINES) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, (int)left) <= 0 && errno != EINTR)
            return false;
        ssize_t n = read(fd, buf, sizeof buf);
        if (n == 0)
            return true;
        if (n > 0)
            str_addn(said, buf, (size_t)n);
        else if (errno != EINTR)
            return false;
    }
    return false;
}

static void judge(struct dwarf_facts *d, bool heard, int status, bool some)
{
    bool cut = WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL && WTERMSIG(status) != SIGXCPU;
    if (cut)
        d->problem = xasprintf("its debug information is damaged (libdw ended with signal %d)",
                               WTERMSIG(status));
    else if (!heard || WIFSIGNALED(status))
        d->problem = xstrdup("its debug information takes too long to read");
    else if (WEXITSTATUS(status) == CHILD_NO_LIBRARY)
        d->problem = xstrdup(LIBDW " is not installed (Debian: libdw1)");
    else if (WEXITSTATUS(status) || !some)
        d->problem = xstrdup("its debug information is damaged, or too big");
}

static void start_child(const struct elf_file *file, struct dwarf_reading *r)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC)) {
        r->problem = xasprintf("no pipe: %s", strerror(errno));
        return;
    }
    fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES); // so that the child need not wait for us
    fflush(NULL);
    r->pid = fork();
    if (r->pid == 0)
        child(file, fds[1]);
    close(fds[1]);
    if (r->pid > 0) {
        r->fd = fds[0];
        return;
    }
    r->problem = xasprintf("no child process: %s", strerror(errno));
    close(fds[0]);
}

static void end_child(struct dwarf_reading *r, struct dwarf_facts *d)
{
    struct str said = {0};
    bool heard = listen_to(r->fd, r->end_ms, &said);
    int status = 0;
    close(r->fd);
    if (!heard)
        kill(r->pid, SIGKILL);
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        ;
    judge(d, heard, status, said.len > 0);
    if (!d->problem)
        dwarf_facts_parse(d, said.s);
    str_free(&said);
}

// What compressed sections would take: libdw expands them all at once.
static uint64_t expanded_bytes(const struct elf_file *file)
{
    uint64_t sum = 0;
    for (size_t i = 1; i < file->nshdrs; i++) {
        GElf_Chdr c;
        if (!(file->shdrs[i].sh_flags & SHF_COMPRESSED) || !elf_section_bytes(file, i).n ||
            !gelf_getchdr(elf_getscn(file->elf, i), &c))
            continue;
        sum = c.ch_size > UINT64_MAX - sum ? UINT64_MAX : sum + c.ch_size;
    }
    return sum;
}

void dwarf_facts_start(const struct elf_file *file, struct dwarf_reading *r)
{
    *r = (struct dwarf_reading){.end_ms = now_ms() + MAX_WALL_MS};
    size_t info = elf_section(file, ".debug_info");
    if (!info)
        info = elf_section(file, ".zdebug_info");
    if (!elf_section_bytes(file, info).n)
        return;
    uint64_t expanded = expanded_bytes(file);
    if (file->header.e_type == ET_REL)
        r->problem =
            xstrdup("an object file's debug information is not read: it is not linked yet");
    else if (expanded > MAX_EXPANDED)
        r->problem = xasprintf("its compressed debug sections expand to %llu MB; 'objcopy "
                               "--decompress-debug-sections FILE COPY' makes a copy that can be "
                               "read",
                               (unsigned long long)(expanded >> 20));
    else
        start_child(file, r);
}

void dwarf_facts_end(struct dwarf_reading *r, struct dwarf_facts *d)
{
    *d = (struct dwarf_facts){.problem = r->problem};
    if (r->pid > 0)
        end_child(r, d);
    *r = (struct dwarf_reading){0};
}

void dwarf_facts_read(const struct elf_file *file, struct dwarf_facts *d)
{
    struct dwarf_reading r;
    dwarf_facts_start(file, &r);
    dwarf_facts_end(&r, d);
}
