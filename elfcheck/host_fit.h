// Whether this host can run a program: machine, instruction set, dynamic loader, libraries. Nothing
// is run to find out.
#ifndef KILN_HOST_FIT_H
#define KILN_HOST_FIT_H

#include "elfcheck/elf_facts.h"
#include "elfcheck/predict.h"

#include <jansson.h>

struct host_condition {
    const char *name; // "machine", "isa-level", "interpreter", "libraries", "libhugetlbfs"
    enum answer answer;
    char *evidence; // what was found, or what is missing and how to mend it
};

struct host_fit {
    struct host_condition *v;
    size_t n; // "libhugetlbfs" is there only when the file needs it
};

// isa_level: what the file was compiled for, a level ("baseline", "x86-64-v3") or a -march
// ("skylake-avx512"), NULL when that is not known. A need that the file itself records counts too.
// 0, or -ENOEXEC when the file is neither a program nor a shared library. What cannot be looked at
// is an answer, cannot-know, and no error.
int host_fit_read(const struct elf_file *file, const struct elf_facts *f, const char *isa_level,
                  struct host_fit *out);
// Whether the file is for this host's machine.
enum answer host_fit_machine(const struct elf_file *file);
const struct host_condition *host_fit_find(const struct host_fit *fit, const char *name);
// No when one condition says no; else cannot-know when one does.
enum answer host_fit_verdict(const struct host_fit *fit);
// {"answer": "no", "conditions": {"libraries": {"answer": ..., "evidence": ...}, ...}}
json_t *host_fit_json(const struct host_fit *fit);
void host_fit_free(struct host_fit *fit);

#endif
