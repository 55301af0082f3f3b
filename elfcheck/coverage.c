#include "elfcheck/coverage.h"
#include "common/sys.h"
#include "elfcheck/predict.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_PAGE = 4096 };

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t overlap(uint64_t a_from, uint64_t a_to, uint64_t b_from, uint64_t b_to)
{
    uint64_t from = max64(a_from, b_from), to = min64(a_to, b_to);
    return to > from ? to - from : 0;
}

// --- smaps ---

static bool field(const char *line, const char *name, uint64_t *bytes)
{
    size_t n = strlen(name);
    if (strncmp(line, name, n) || line[n] != ':')
        return false;
    *bytes = min64(strtoull(line + n + 1, NULL, 10), UINT64_MAX >> 12) * 1024;
    return true;
}

// "FROM-TO PERMS OFFSET MAJOR:MINOR INODE    PATH". The numbers are cut out first: sscanf measures
// the whole string it is given, and a server's smaps has a million bytes.
static bool is_header(const char *line, struct vma *v)
{
    struct vma h = {0};
    char numbers[160];
    int path = 0;
    if (!isdigit((unsigned char)*line) && !(*line >= 'a' && *line <= 'f'))
        return false;
    snprintf(numbers, sizeof numbers, "%.*s", (int)strcspn(line, "\n"), line);
    int n = sscanf(numbers, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 "%n", &h.from,
                   &h.to, h.perms, &h.offset, &h.major, &h.minor, &h.inode, &path);
    if (n != 7 || h.from >= h.to)
        return false;
    h.path = line + path + strspn(line + path, " ");
    h.path_len = strcspn(h.path, "\n");
    *v = h;
    return true;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

bool smaps_next(const char **at, struct vma *v)
{
    const char *line = *at;
    struct vma other;
    while (*line && !is_header(line, v))
        line = next_line(line);
    if (!*line) {
        *at = line;
        return false;
    }
    for (line = next_line(line); *line && !is_header(line, &other); line = next_line(line))
        if (!field(line, "KernelPageSize", &v->page) &&
            !field(line, "FilePmdMapped", &v->file_pmd) &&
            !field(line, "ShmemPmdMapped", &v->shmem_pmd))
            field(line, "AnonHugePages", &v->anon_huge);
    *at = line;
    return true;
}

static uint64_t slots_from(const struct vma *v)
{
    return v->from > UINT64_MAX - HUGE_2M ? v->to : (v->from + HUGE_2M - 1) / HUGE_2M * HUGE_2M;
}

uint64_t vma_slots(const struct vma *v)
{
    return overlap(slots_from(v), v->to / HUGE_2M * HUGE_2M, v->from, v->to);
}

// --- text ---

// The bytes of the program's text, from its first section to its last, within [from, to).
static uint64_t text_within(const struct elf_facts *f, uint64_t bias, uint64_t from, uint64_t to)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->nloads; i++) {
        const struct segment *s = &f->loads[i];
        if (segment_is_text(s))
            sum += overlap(from, to, bias + s->sections_from, bias + s->sections_to);
    }
    return sum;
}

// Takes at most *room bytes of counted, so that the sum of all ways is never above the text.
static uint64_t take(uint64_t counted, uint64_t *room)
{
    uint64_t n = min64(counted, *room);
    *room -= n;
    return n;
}

// smaps says how many bytes of a mapping are huge, not which. A huge page fills a 2 MiB slot of
// addresses that lies wholly inside the mapping. With W bytes in such slots, T of them text (the
// rest padding) and H counted as huge, W - H bytes of slots are small, and in the worst case all of
// these are text: the text's huge bytes are at least T - (W - H) and at most min(T, H). The lower
// bound is taken. It is exact when all slots are huge (H = W: then T) and when no slot holds
// padding (T = W: then H); otherwise it is too low by at most the padding, W - T.
static void count_vma(const struct vma *v, const struct elf_facts *f, uint64_t bias,
                      struct coverage *c)
{
    if (v->page >= HUGE_2M) {
        c->hugetlb += text_within(f, bias, v->from, v->to);
        return;
    }
    uint64_t slots = vma_slots(v);
    uint64_t text = slots ? text_within(f, bias, slots_from(v), slots_from(v) + slots) : 0;
    uint64_t room = slots;
    take(v->file_pmd, &room);
    take(v->shmem_pmd, &room);
    take(v->anon_huge, &room);
    room = text > room ? text - room : 0;
    c->file_pmd += take(v->file_pmd, &room);
    c->shmem_pmd += take(v->shmem_pmd, &room);
    c->anon_huge += take(v->anon_huge, &room);
}

void coverage_from_smaps(const char *smaps, const struct elf_facts *f, uint64_t bias,
                         struct coverage *c)
{
    *c = (struct coverage){.text = elf_text_bytes(f)};
    struct vma v;
    while (smaps_next(&smaps, &v))
        count_vma(&v, f, bias, c);
    c->huge = c->hugetlb + c->file_pmd + c->shmem_pmd + c->anon_huge;
}

// --- the process ---

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

int coverage_smaps(pid_t pid, const struct elf_facts *f, struct str *smaps, uint64_t *bias,
                   struct err *e)
{
    int rc = load_bias(pid, f, bias, e);
    return rc ? rc : read_process(pid, "smaps", smaps, e);
}

int coverage_read(pid_t pid, const struct elf_facts *f, struct coverage *c, struct err *e)
{
    struct str smaps = {0};
    uint64_t bias;
    int rc = coverage_smaps(pid, f, &smaps, &bias, e);
    if (rc == 0)
        coverage_from_smaps(str_text(&smaps), f, bias, c);
    str_free(&smaps);
    return rc;
}

double percent_of(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

double coverage_percent(const struct coverage *c)
{
    return percent_of(c->huge, c->text);
}

json_t *coverage_json(const struct coverage *c)
{
    return json_pack("{sI sI sf s{sI sI sI sI}}", "text_bytes", (json_int_t)c->text,
                     "text_huge_bytes", (json_int_t)c->huge, "text_huge_percent",
                     coverage_percent(c), "by", "hugetlb", (json_int_t)c->hugetlb, "file_pmd",
                     (json_int_t)c->file_pmd, "shmem_pmd", (json_int_t)c->shmem_pmd, "anon_huge",
                     (json_int_t)c->anon_huge);
}
