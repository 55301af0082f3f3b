#include "elfcheck/coverage.h"
#include "common/sys.h"
#include "elfcheck/predict.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_PAGE = 4096 };

// One mapping of smaps; sizes in bytes.
struct vma {
    uint64_t from, to, page, file_pmd, shmem_pmd, anon_huge;
};

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t overlap(uint64_t a_from, uint64_t a_to, uint64_t b_from, uint64_t b_to)
{
    uint64_t from = a_from > b_from ? a_from : b_from, to = min64(a_to, b_to);
    return to > from ? to - from : 0;
}

// Takes at most *room bytes of counted, so that the sum of all ways is never above the overlap.
static uint64_t take(uint64_t counted, uint64_t *room)
{
    uint64_t n = min64(counted, *room);
    *room -= n;
    return n;
}

static void count_segment(const struct vma *v, uint64_t from, uint64_t to, struct coverage *c)
{
    uint64_t room = overlap(v->from, v->to, from, to);
    if (v->page >= HUGE_2M) {
        c->hugetlb += take(room, &room);
        return;
    }
    c->file_pmd += take(v->file_pmd, &room);
    c->shmem_pmd += take(v->shmem_pmd, &room);
    c->anon_huge += take(v->anon_huge, &room);
}

static void count_vma(const struct vma *v, const struct elf_facts *f, uint64_t bias,
                      struct coverage *c)
{
    for (size_t i = 0; i < f->nloads; i++) {
        const struct segment *s = &f->loads[i];
        if (segment_is_text(s))
            count_segment(v, bias + s->vaddr, bias + s->vaddr + s->filesz, c);
    }
}

static bool field(const char *line, const char *name, uint64_t *bytes)
{
    size_t n = strlen(name);
    if (strncmp(line, name, n) || line[n] != ':')
        return false;
    *bytes = strtoull(line + n + 1, NULL, 10) * 1024;
    return true;
}

static bool is_header(const char *line, struct vma *v)
{
    uint64_t from, to;
    char perms[5];
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, perms) != 3)
        return false;
    *v = (struct vma){.from = from, .to = to};
    return true;
}

void coverage_from_smaps(const char *smaps, const struct elf_facts *f, uint64_t bias,
                         struct coverage *c)
{
    *c = (struct coverage){.text = elf_text_bytes(f)};
    struct vma v = {0};
    for (const char *line = smaps; line && *line;) {
        struct vma next;
        if (is_header(line, &next)) {
            count_vma(&v, f, bias, c);
            v = next;
        } else if (!field(line, "KernelPageSize", &v.page) &&
                   !field(line, "FilePmdMapped", &v.file_pmd) &&
                   !field(line, "ShmemPmdMapped", &v.shmem_pmd)) {
            field(line, "AnonHugePages", &v.anon_huge);
        }
        line = strchr(line, '\n');
        line += line != NULL;
    }
    count_vma(&v, f, bias, c);
    c->huge = c->hugetlb + c->file_pmd + c->shmem_pmd + c->anon_huge;
}

// A word of the auxiliary vector: pairs of type and value, as wide as the process's words.
static bool auxv_value(const struct str *auxv, bool is_64, uint64_t type, uint64_t *value)
{
    size_t w = is_64 ? 8 : 4;
    for (size_t at = 0; at + 2 * w <= auxv->len; at += 2 * w) {
        uint64_t pair[2] = {0};
        memcpy(&pair[0], auxv->s + at, w);
        memcpy(&pair[1], auxv->s + at + w, w);
        if (pair[0] == type) {
            *value = pair[1];
            return true;
        }
    }
    return false;
}

static int read_process(pid_t pid, const char *file, struct str *out, struct err *e)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    int rc = sys_read(path, out);
    if (rc == -ENOENT || rc == -ESRCH)
        return err_set(e, EXIT_CANNOT_ASK, "process %d: no such process", pid);
    if (rc == -EACCES || rc == -EPERM)
        return err_set(e, EXIT_CANNOT_ASK,
                       "process %d: not allowed to read its memory map; only "
                       "root and its own user may",
                       pid);
    if (rc)
        return err_set(e, EXIT_CANNOT_ASK, "%s: %s", path, strerror(-rc));
    if (!out->len)
        return err_set(e, EXIT_CANNOT_ASK, "process %d: it has exited, or is a kernel thread", pid);
    return 0;
}

// The loader put the program at entry - e_entry; a base off the page grid is another program's.
static int load_bias(pid_t pid, const struct elf_facts *f, uint64_t *bias, struct err *e)
{
    struct str auxv = {0};
    uint64_t entry = 0;
    int rc = read_process(pid, "auxv", &auxv, e);
    if (rc == 0 && !auxv_value(&auxv, f->is_64, AT_ENTRY, &entry))
        rc = err_set(e, EXIT_CANNOT_KNOW, "process %d: its auxiliary vector has no entry", pid);
    str_free(&auxv);
    *bias = entry - f->entry;
    if (rc == 0 && (*bias % SMALL_PAGE || (f->type == ET_EXEC && *bias)))
        rc = err_set(e, EXIT_CANNOT_ASK, "process %d does not run %s", pid, f->path);
    return rc;
}

int coverage_read(pid_t pid, const struct elf_facts *f, struct coverage *c, struct err *e)
{
    struct str smaps = {0};
    uint64_t bias;
    int rc = load_bias(pid, f, &bias, e);
    if (rc == 0)
        rc = read_process(pid, "smaps", &smaps, e);
    if (rc == 0)
        coverage_from_smaps(str_text(&smaps), f, bias, c);
    str_free(&smaps);
    return rc;
}

double coverage_percent(const struct coverage *c)
{
    return c->text ? 100.0 * (double)c->huge / (double)c->text : 0;
}

json_t *coverage_json(const struct coverage *c)
{
    return json_pack("{sI sI sf s{sI sI sI sI}}", "text_bytes", (json_int_t)c->text,
                     "text_huge_bytes", (json_int_t)c->huge, "text_huge_percent",
                     coverage_percent(c), "by", "hugetlb", (json_int_t)c->hugetlb, "file_pmd",
                     (json_int_t)c->file_pmd, "shmem_pmd", (json_int_t)c->shmem_pmd, "anon_huge",
                     (json_int_t)c->anon_huge);
}
