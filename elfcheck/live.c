#include "elfcheck/live.h"
#include "common/json.h"
#include "common/proc.h"
#include "common/sys.h"
#include "elfcheck/predict.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DELETED " (deleted)"

// --- mappings, from text ---

// The program's addresses from its first load segment to the end of its last, on the page grid of
// any machine: what lies there is the program, under whatever name its text was moved.
struct span {
    uint64_t from, to;
};

static struct span program_span(const struct elf_facts *f, uint64_t bias)
{
    struct span s = {UINT64_MAX, 0};
    for (size_t i = 0; i < f->nloads; i++) {
        uint64_t from = bias + f->loads[i].vaddr, to = from + f->loads[i].memsz;
        s.from = from < s.from ? from : s.from;
        s.to = to > s.to ? to : s.to;
    }
    return s;
}

static bool is_kernels(const char *path)
{
    static const char *const names[] = {"[vdso]", "[vsyscall]", "[uprobes]", "[sigpage]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(path, names[i]))
            return true;
    return false;
}

// Names that begin like a path and are none.
static bool is_on_disk(const char *path)
{
    static const char *const none[] = {"/memfd:", "/SYSV", "/dev/zero", "/[aio]", "/anon_hugepage"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (starts_with(path, none[i]))
            return false;
    return *path == '/';
}

static char *without_deleted(const char *path)
{
    size_t n = strlen(path);
    return xstrndup(path, ends_with(path, DELETED) ? n - strlen(DELETED) : n);
}

static char *library_name(const char *path)
{
    char *file = without_deleted(path);
    char *name = is_on_disk(file) ? xstrdup(strrchr(file, '/') + 1) : NULL;
    free(file);
    return name;
}

static uint64_t take(uint64_t counted, uint64_t *room)
{
    uint64_t n = counted < *room ? counted : *room;
    *room -= n;
    return n;
}

static struct live_mapping mapping_of(const struct vma *v, char *path, const struct span *program)
{
    struct live_mapping m = {.path = path,
                             .from = v->from,
                             .to = v->to,
                             .bytes = v->to - v->from,
                             .main_program = v->from < program->to && v->to > program->from,
                             .inode = v->inode,
                             .major = v->major,
                             .minor = v->minor};
    uint64_t room = v->page >= HUGE_2M ? 0 : vma_slots(v);
    m.hugetlb = v->page >= HUGE_2M ? m.bytes : 0;
    m.file_pmd = take(v->file_pmd, &room);
    m.shmem_pmd = take(v->shmem_pmd, &room);
    m.anon_huge = take(v->anon_huge, &room);
    m.huge = m.hugetlb + m.file_pmd + m.shmem_pmd + m.anon_huge;
    m.library = m.main_program ? NULL : library_name(path);
    return m;
}

static void add_mappings(const char *smaps, const struct span *program, bool of_main,
                         struct live *l)
{
    struct vma v;
    while (smaps_next(&smaps, &v)) {
        char *path = v.path_len ? printable(v.path, v.path_len) : xstrdup("[anon]");
        struct live_mapping m = mapping_of(&v, path, program);
        if (v.perms[2] != 'x' || is_kernels(path) || m.main_program != of_main) {
            free(m.library);
            free(path);
            continue;
        }
        l->maps = xrealloc(l->maps, (l->nmaps + 1) * sizeof *l->maps);
        l->maps[l->nmaps++] = m;
    }
}

void live_from_smaps(const char *smaps, const struct elf_facts *f, uint64_t bias, struct live *l)
{
    struct span program = program_span(f, bias);
    *l = (struct live){0};
    coverage_from_smaps(smaps, f, bias, &l->text);
    add_mappings(smaps, &program, true, l);
    add_mappings(smaps, &program, false, l);
}

void live_free(struct live *l)
{
    for (size_t i = 0; i < l->nmaps; i++) {
        free(l->maps[i].path);
        free(l->maps[i].library);
    }
    for (size_t i = 0; i < l->nfiles; i++) {
        free(l->files[i].path);
        free(l->files[i].running_id);
        free(l->files[i].disk_id);
        free(l->files[i].reason);
    }
    free(l->maps);
    free(l->files);
    *l = (struct live){0};
}

// --- running file and file on disk ---

static const char *const state_words[] = {[DISK_SAME] = "same",
                                          [DISK_REPLACED_ALIKE] = "replaced-same-build",
                                          [DISK_REPLACED] = "replaced",
                                          [DISK_DELETED] = "deleted",
                                          [DISK_CANNOT_KNOW] = "cannot-know"};

const char *disk_state_word(enum disk_state s)
{
    return state_words[s];
}

// An inode that is mapped is not given to another file: the same number on the same device is the
// same file. Where the device is not known, the kernel's mark must not speak against it; and
// without that mark another number proves nothing, since overlayfs has two for each file.
enum disk_state disk_compare(const struct file_identity *running, bool deleted,
                             const struct file_identity *disk)
{
    bool devices = running->has_device && disk->has_device;
    if (!running->exists)
        return DISK_CANNOT_KNOW;
    if (!disk->exists)
        return deleted ? DISK_DELETED : DISK_CANNOT_KNOW;
    if (running->inode == disk->inode && (devices ? running->device == disk->device : !deleted))
        return DISK_SAME;
    if (!devices && !deleted)
        return DISK_CANNOT_KNOW;
    bool alike = running->build_id && disk->build_id && !strcmp(running->build_id, disk->build_id);
    return alike ? DISK_REPLACED_ALIKE : DISK_REPLACED;
}

// 0 or -errno.
static int identify(const char *path, struct file_identity *id)
{
    struct stat st;
    *id = (struct file_identity){0};
    if (stat(path, &st))
        return -errno;
    *id = (struct file_identity){
        .exists = true, .has_device = true, .device = st.st_dev, .inode = st.st_ino};
    return 0;
}

// NULL when it is no ELF file, has none, or may not be read. Devices and pipes are not opened.
static char *build_id_of(const char *path)
{
    struct stat st;
    struct elf_facts f = {0};
    struct err e = {0};
    if (stat(path, &st) || !S_ISREG(st.st_mode) || elf_facts_read(path, &f, &e))
        return NULL;
    char *id = f.build_id ? xstrdup(f.build_id) : NULL;
    elf_facts_free(&f);
    return id;
}

// The path as the process sees it (it may be in a container), or as we do when its root is closed
// to us or not recorded.
static char *path_on_disk(pid_t pid, const char *path)
{
    char *root = xasprintf("/proc/%d/root/.", pid);
    bool open = sys_exists(root);
    char *seen = xasprintf("%.*s%s", open ? (int)strlen(root) - 2 : 0, root, path);
    char *out = sys_path(seen);
    free(root);
    free(seen);
    return out;
}

// running: what the kernel gives as the running file itself, NULL when only the inode is known.
static void compare_file(pid_t pid, const char *running, uint64_t inode, bool deleted,
                         struct live_file *file)
{
    // The kernel writes \\ooo and we write '?' for what is not printable.
    if (strpbrk(file->path, "?\\")) {
        file->state = DISK_CANNOT_KNOW;
        file->reason = xasprintf("%s: its name is not printable", file->path);
        return;
    }
    struct file_identity now = {.exists = inode != 0, .inode = inode}, disk;
    char *path = path_on_disk(pid, file->path);
    if (running)
        identify(running, &now);
    int rc = identify(path, &disk);
    file->state = rc && rc != -ENOENT ? DISK_CANNOT_KNOW : disk_compare(&now, deleted, &disk);
    if (file->state == DISK_REPLACED) {
        file->running_id = running ? build_id_of(running) : NULL;
        file->disk_id = build_id_of(path);
        now.build_id = file->running_id;
        disk.build_id = file->disk_id;
        file->state = disk_compare(&now, deleted, &disk);
    }
    if (file->state == DISK_CANNOT_KNOW)
        file->reason = rc ? xasprintf("%s: %s", file->path, strerror(-rc))
                          : xstrdup("another inode number, and only root may look at the file "
                                    "that is mapped (/proc/PID/map_files)");
    free(path);
}

static struct live_file *add_file(struct live *l, char *path)
{
    l->files = xrealloc(l->files, (l->nfiles + 1) * sizeof *l->files);
    l->files[l->nfiles] = (struct live_file){.path = path};
    return &l->files[l->nfiles++];
}

static void add_program(struct live *l)
{
    char link[PATH_MAX];
    char *proc = xasprintf("/proc/%d/exe", l->pid), *exe = sys_path(proc);
    ssize_t n = readlink(exe, link, sizeof link - 1);
    link[n < 0 ? 0 : n] = 0;
    char *path = without_deleted(n < 0 ? proc : link);
    struct live_file *file = add_file(l, printable(path, strlen(path)));
    free(path);
    file->main_program = true;
    if (n < 0) {
        file->state = DISK_CANNOT_KNOW;
        file->reason = xasprintf("%s: %s", proc, strerror(errno));
    } else {
        compare_file(l->pid, exe, 0, ends_with(link, DELETED), file);
    }
    free(exe);
    free(proc);
}

// Of several mappings of one file the first tells.
static bool seen_before(const struct live *l, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (l->maps[j].library && l->maps[j].inode == l->maps[i].inode &&
            !strcmp(l->maps[j].path, l->maps[i].path))
            return true;
    return false;
}

static void add_library(struct live *l, const struct live_mapping *m)
{
    char *proc = xasprintf("/proc/%d/map_files/%llx-%llx", l->pid, (unsigned long long)m->from,
                           (unsigned long long)m->to);
    char *running = sys_path(proc);
    struct file_identity id;
    bool allowed = identify(running, &id) == 0;
    struct live_file *file = add_file(l, without_deleted(m->path));
    compare_file(l->pid, allowed ? running : NULL, m->inode, ends_with(m->path, DELETED), file);
    free(running);
    free(proc);
}

int live_read(pid_t pid, const struct elf_facts *f, struct live *l, struct err *e)
{
    struct str smaps = {0};
    uint64_t bias, started = proc_start_time(pid);
    *l = (struct live){0};
    int rc = coverage_smaps(pid, f, &smaps, &bias, e);
    if (rc == 0) {
        live_from_smaps(str_text(&smaps), f, bias, l);
        l->pid = pid;
        add_program(l);
        for (size_t i = 0; i < l->nmaps; i++)
            if (l->maps[i].library && !seen_before(l, i))
                add_library(l, &l->maps[i]);
    }
    str_free(&smaps);
    if (rc == 0 && proc_start_time(pid) != started)
        rc = err_set(e, EXIT_CANNOT_ASK, "process %d: it has exited", pid);
    if (rc)
        live_free(l);
    return rc;
}

bool live_needs_restart(const struct live *l)
{
    for (size_t i = 0; i < l->nfiles; i++)
        if (l->files[i].state == DISK_REPLACED || l->files[i].state == DISK_DELETED)
            return true;
    return false;
}

// --- output ---

static char *mechanisms(const struct live_mapping *m)
{
    struct strv words = {0};
    if (m->hugetlb)
        strv_add(&words, "hugetlb");
    if (m->file_pmd)
        strv_add(&words, "page cache");
    if (m->shmem_pmd)
        strv_add(&words, "tmpfs");
    if (m->anon_huge)
        strv_add(&words, "anonymous");
    char *text = words.n ? strv_join(&words, "+") : xstrdup("-");
    strv_free(&words);
    return text;
}

static void print_mapping(const struct live_mapping *m, FILE *to)
{
    char *by = mechanisms(m);
    const char *of = m->main_program ? "main program" : m->library ? m->library : "no file";
    fprintf(to, "%9llu %11llu %6.1f  %-11s %-20s %s\n", (unsigned long long)m->bytes / 1024,
            (unsigned long long)m->huge / 1024, percent_of(m->huge, m->bytes), by, of, m->path);
    free(by);
}

static void print_state(const struct live_file *f, FILE *to)
{
    switch (f->state) {
    case DISK_SAME:
        break;
    case DISK_REPLACED_ALIKE:
        fprintf(to, "%s: the file on disk is another one of the same build (build-id %s)\n",
                f->path, f->running_id);
        break;
    case DISK_REPLACED:
        fprintf(to, "%s: replaced on disk; running build-id %s, on disk %s: restart to use it\n",
                f->path, f->running_id ? f->running_id : "unknown",
                f->disk_id ? f->disk_id : "unknown");
        break;
    case DISK_DELETED:
        fprintf(to, "%s: deleted on disk, still running\n", f->path);
        break;
    case DISK_CANNOT_KNOW:
        fprintf(to, "cannot know whether the running file is still on disk: %s\n", f->reason);
        break;
    }
}

static struct live_mapping libraries_sum(const struct live *l)
{
    struct live_mapping sum = {0};
    for (size_t i = 0; i < l->nmaps; i++) {
        sum.bytes += l->maps[i].library ? l->maps[i].bytes : 0;
        sum.huge += l->maps[i].library ? l->maps[i].huge : 0;
    }
    return sum;
}

void live_print(const struct live *l, FILE *to)
{
    fprintf(to, "process %d: %llu of %llu text bytes on 2 MiB pages (%.1f %%)\n", l->pid,
            (unsigned long long)l->text.huge, (unsigned long long)l->text.text,
            coverage_percent(&l->text));
    fprintf(to, "%9s %11s %6s  %-11s %-20s %s\n", "kB", "kB ON 2 MiB", "%", "BY", "OF", "MAPPING");
    for (size_t i = 0; i < l->nmaps; i++)
        print_mapping(&l->maps[i], to);
    struct live_mapping libraries = libraries_sum(l);
    size_t same = 0;
    for (size_t i = 0; i < l->nfiles; i++)
        same += l->files[i].state == DISK_SAME;
    fprintf(to, "shared libraries: %llu of %llu kB on 2 MiB pages (%.1f %%)\n",
            (unsigned long long)libraries.huge / 1024, (unsigned long long)libraries.bytes / 1024,
            percent_of(libraries.huge, libraries.bytes));
    fprintf(to, "running files that are still those on disk: %zu of %zu\n", same, l->nfiles);
    for (size_t i = 0; i < l->nfiles; i++)
        print_state(&l->files[i], to);
}

static json_t *mapping_json(const struct live_mapping *m)
{
    return json_pack("{so sb so sI sI sI sI sf s{sI sI sI sI}}", "path", json_printable(m->path),
                     "main_program", m->main_program, "library", json_printable(m->library), "from",
                     (json_int_t)m->from, "to", (json_int_t)m->to, "bytes", (json_int_t)m->bytes,
                     "huge_bytes", (json_int_t)m->huge, "huge_percent",
                     percent_of(m->huge, m->bytes), "by", "hugetlb", (json_int_t)m->hugetlb,
                     "file_pmd", (json_int_t)m->file_pmd, "shmem_pmd", (json_int_t)m->shmem_pmd,
                     "anon_huge", (json_int_t)m->anon_huge);
}

static json_t *file_json(const struct live_file *f)
{
    return json_pack("{so sb ss ss? ss? so}", "path", json_printable(f->path), "main_program",
                     f->main_program, "on_disk", disk_state_word(f->state), "running_build_id",
                     f->running_id, "disk_build_id", f->disk_id, "reason",
                     json_printable(f->reason));
}

json_t *live_json(const struct live *l)
{
    json_t *maps = json_array(), *files = json_array();
    for (size_t i = 0; i < l->nmaps; i++)
        json_array_append_new(maps, mapping_json(&l->maps[i]));
    for (size_t i = 0; i < l->nfiles; i++)
        json_array_append_new(files, file_json(&l->files[i]));
    struct live_mapping libraries = libraries_sum(l);
    json_t *o = coverage_json(&l->text);
    json_object_set_new(o, "pid", json_integer(l->pid));
    json_t *more = json_pack("{so s{sI sI} so sb}", "mappings", maps, "libraries", "bytes",
                             (json_int_t)libraries.bytes, "huge_bytes", (json_int_t)libraries.huge,
                             "files", files, "restart", live_needs_restart(l));
    json_object_update(o, more);
    json_decref(more);
    return o;
}
