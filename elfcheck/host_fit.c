#include "elfcheck/host_fit.h"
#include "elfcheck/host_fit_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

struct fit fit_say(enum answer answer, const char *evidence, ...)
{
    struct fit fit = {.answer = answer};
    va_list args;
    va_start(args, evidence);
    if (vasprintf(&fit.evidence, evidence, args) < 0)
        fit.evidence = xstrdup("");
    va_end(args);
    return fit;
}

// Names in a file from elsewhere may hold any bytes.
static void add(struct host_fit *out, const char *name, struct fit fit)
{
    char *evidence = printable(fit.evidence, strlen(fit.evidence));
    free(fit.evidence);
    out->v = xrealloc(out->v, (out->n + 1) * sizeof *out->v);
    out->v[out->n++] = (struct host_condition){name, fit.answer, evidence};
}

// --- machine and interpreter ---

// uname's word for a kernel that runs programs of a machine.
static const struct {
    const char *uname;
    uint16_t machine;
    unsigned char class;
    unsigned char data;
} hosts[] = {
    {"x86_64", EM_X86_64, ELFCLASS64, ELFDATA2LSB},
    {"aarch64", EM_AARCH64, ELFCLASS64, ELFDATA2LSB},
    {"ppc64le", EM_PPC64, ELFCLASS64, ELFDATA2LSB},
    {"s390x", EM_S390, ELFCLASS64, ELFDATA2MSB},
    {"riscv64", EM_RISCV, ELFCLASS64, ELFDATA2LSB},
};

// Whether the kernel runs 32-bit programs, or others through binfmt_misc, is not looked at.
static enum answer machine_answer(const struct elf_file *file, const char *uname_word)
{
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        if (strcmp(hosts[i].uname, uname_word))
            continue;
        bool same = file->header.e_machine == hosts[i].machine &&
                    file->header.e_ident[EI_CLASS] == hosts[i].class &&
                    file->header.e_ident[EI_DATA] == hosts[i].data;
        return same ? ANSWER_YES : ANSWER_NO;
    }
    return ANSWER_CANNOT_KNOW;
}

enum answer host_fit_machine(const struct elf_file *file)
{
    struct utsname u;
    return uname(&u) ? ANSWER_CANNOT_KNOW : machine_answer(file, u.machine);
}

static struct fit fit_machine(const struct elf_file *file, const struct elf_facts *f)
{
    struct utsname u;
    const char *bits = f->is_64 ? "64" : "32";
    if (uname(&u))
        return fit_say(ANSWER_CANNOT_KNOW, "uname: %s", strerror(errno));
    enum answer a = machine_answer(file, u.machine);
    return fit_say(a, "the file is for %s, %s-bit; this host is %s%s", f->machine_name, bits,
                   u.machine, a == ANSWER_CANNOT_KNOW ? ", which kiln does not know" : "");
}

static struct fit fit_interpreter(const struct elf_file *file, const struct elf_facts *f)
{
    struct elf_file loader;
    struct stat st;
    struct err e = {0};
    if (!f->interp)
        return fit_say(ANSWER_YES, "it asks for none");
    if (*f->interp != '/')
        return fit_say(ANSWER_CANNOT_KNOW, "'%s' depends on the working directory", f->interp);
    if (fit_open(f->interp, &loader, &st, &e))
        return fit_say(ANSWER_NO, "%s", e.msg);
    bool same = fit_same_machine(file, &loader);
    elf_file_close(&loader);
    return fit_say(same ? ANSWER_YES : ANSWER_NO, "%s%s", f->interp,
                   same ? "" : " is for another machine or class");
}

// --- the whole ---

int host_fit_read(const struct elf_file *file, const struct elf_facts *f, const char *isa_level,
                  struct host_fit *out)
{
    *out = (struct host_fit){0};
    if (f->type != ET_EXEC && f->type != ET_DYN)
        return -ENOEXEC;
    struct fit machine = fit_machine(file, f), libhugetlbfs = {ANSWER_CANNOT_KNOW, NULL};
    bool foreign = machine.answer != ANSWER_YES;
    struct fit libraries =
        foreign ? fit_say(ANSWER_CANNOT_KNOW, "libraries are looked for on the file's own machine")
                : fit_libraries(file, f, &libhugetlbfs);
    add(out, "machine", machine);
    add(out, "isa-level",
        foreign ? fit_say(ANSWER_CANNOT_KNOW, "the CPU is another machine's")
                : fit_isa(file, isa_level));
    add(out, "interpreter", fit_interpreter(file, f));
    add(out, "libraries", libraries);
    if (elf_links_libhugetlbfs(f) && !libhugetlbfs.evidence)
        libhugetlbfs = fit_say(ANSWER_CANNOT_KNOW, "the libraries were not looked for");
    if (elf_links_libhugetlbfs(f))
        add(out, "libhugetlbfs", libhugetlbfs);
    else
        free(libhugetlbfs.evidence);
    return 0;
}

const struct host_condition *host_fit_find(const struct host_fit *fit, const char *name)
{
    for (size_t i = 0; i < fit->n; i++)
        if (!strcmp(fit->v[i].name, name))
            return &fit->v[i];
    return NULL;
}

enum answer host_fit_verdict(const struct host_fit *fit)
{
    enum answer all = fit->n ? ANSWER_YES : ANSWER_CANNOT_KNOW;
    for (size_t i = 0; i < fit->n; i++)
        if (fit->v[i].answer == ANSWER_NO || all == ANSWER_YES)
            all = fit->v[i].answer;
    return all;
}

json_t *host_fit_json(const struct host_fit *fit)
{
    json_t *conditions = json_object();
    for (size_t i = 0; i < fit->n; i++)
        json_object_set_new(conditions, fit->v[i].name,
                            json_pack("{ss ss}", "answer", answer_word(fit->v[i].answer),
                                      "evidence", fit->v[i].evidence));
    return json_pack("{ss so}", "answer", answer_word(host_fit_verdict(fit)), "conditions",
                     conditions);
}

void host_fit_free(struct host_fit *fit)
{
    for (size_t i = 0; i < fit->n; i++)
        free(fit->v[i].evidence);
    free(fit->v);
    *fit = (struct host_fit){0};
}
