#include "elfcheck/pad.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    MAX_PHDRS = 1 << 16,
    MAX_SHDRS = 1 << 20,
    MAX_NAMES = 1 << 28,
};

// --- reading ---

// The file while it is looked at and replaced.
struct padding_job {
    const char *path; // as given, for messages
    char *real, *copy;
    int fd;
    struct stat st;
    unsigned char encoding; // ELFDATA2LSB or ELFDATA2MSB
    struct pad_headers h;
};

static int read_at(const struct padding_job *j, int fd, uint64_t offset, void *out, size_t n,
                   struct err *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t r = pread(fd, (char *)out + done, n - done, (off_t)(offset + done));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return err_sys(e, EXIT_CANNOT_ASK, "%s: cannot read", j->path);
        if (r == 0)
            return err_set(e, EXIT_CANNOT_ASK, "%s: it was cut short meanwhile", j->path);
        done += (size_t)r;
    }
    return 0;
}

// n entries of a table in this machine's byte order, one more of zeros behind them; NULL with *e.
static void *read_table(struct padding_job *j, int fd, uint64_t offset, uint64_t n, size_t size,
                        Elf_Type type, const char *what, struct err *e)
{
    uint64_t bytes = n * size; // n has its limit
    if (offset > j->h.file_size || bytes > j->h.file_size - offset) {
        err_set(e, EXIT_CANNOT_ASK,
                "%s: damaged or cut short: the table of %s lies outside the file", j->path, what);
        return NULL;
    }
    void *table = xcalloc(n + 1, size);
    Elf_Data d = {.d_buf = table, .d_type = type, .d_size = bytes, .d_version = EV_CURRENT};
    if (read_at(j, fd, offset, table, bytes, e) == 0 &&
        (n == 0 || elf64_xlatetom(&d, &d, j->encoding)))
        return table;
    if (!e->code)
        err_set(e, EXIT_CANNOT_ASK, "%s: the table of %s cannot be read", j->path, what);
    free(table);
    return NULL;
}

static int read_ident(struct padding_job *j, int fd, struct err *e)
{
    unsigned char id[EI_NIDENT] = {0};
    bool there = j->h.file_size >= sizeof id;
    if (there && read_at(j, fd, 0, id, sizeof id, e))
        return -1;
    if (!there || memcmp(id, ELFMAG, SELFMAG) || id[EI_VERSION] != EV_CURRENT ||
        (id[EI_DATA] != ELFDATA2LSB && id[EI_DATA] != ELFDATA2MSB) ||
        (id[EI_CLASS] != ELFCLASS32 && id[EI_CLASS] != ELFCLASS64))
        return err_set(e, EXIT_CANNOT_ASK, "%s: not an ELF file", j->path);
    if (id[EI_CLASS] == ELFCLASS32)
        return err_set(e, EXIT_NO, "%s: a 32-bit file; only 64-bit files are padded", j->path);
    j->encoding = id[EI_DATA];
    return 0;
}

static int bad_sizes(const struct padding_job *j, struct err *e)
{
    return err_set(e, EXIT_CANNOT_ASK, "%s: damaged: its header's table sizes make no sense",
                   j->path);
}

// Counts that do not fit the header stand in section 0: sh_size, sh_info and sh_link.
static int counts(struct padding_job *j, int fd, uint64_t *phnum, uint64_t *shnum,
                  uint64_t *strings, struct err *e)
{
    const Elf64_Ehdr *h = &j->h.ehdr;
    *phnum = h->e_phnum;
    *shnum = h->e_shoff ? h->e_shnum : 0;
    *strings = h->e_shstrndx;
    bool escaped = h->e_phnum == PN_XNUM || h->e_shstrndx == SHN_XINDEX || h->e_shnum == 0;
    if (h->e_shoff && h->e_shentsize == sizeof(Elf64_Shdr) && escaped) {
        Elf64_Shdr *zero =
            read_table(j, fd, h->e_shoff, 1, sizeof *zero, ELF_T_SHDR, "section headers", e);
        if (!zero)
            return -1;
        *phnum = h->e_phnum == PN_XNUM ? zero->sh_info : *phnum;
        *shnum = h->e_shnum == 0 ? zero->sh_size : *shnum;
        *strings = h->e_shstrndx == SHN_XINDEX ? zero->sh_link : *strings;
        free(zero);
    }
    bool bad = (*phnum && h->e_phentsize != sizeof(Elf64_Phdr)) || *phnum > MAX_PHDRS ||
               (*shnum && h->e_shentsize != sizeof(Elf64_Shdr)) || *shnum > MAX_SHDRS;
    return bad ? bad_sizes(j, e) : 0;
}

static int read_names(struct padding_job *j, int fd, uint64_t index, struct err *e)
{
    if (index == SHN_UNDEF || index >= j->h.nshdrs)
        return 0;
    const Elf64_Shdr *s = &j->h.shdrs[index];
    if (s->sh_type == SHT_NOBITS || !s->sh_size)
        return 0;
    if (s->sh_size > MAX_NAMES)
        return bad_sizes(j, e);
    j->h.names = read_table(j, fd, s->sh_offset, s->sh_size, 1, ELF_T_BYTE, "section names", e);
    j->h.names_size = s->sh_size;
    return j->h.names ? 0 : -1;
}

static void headers_free(struct pad_headers *h)
{
    free(h->phdrs);
    free(h->shdrs);
    free(h->names);
    *h = (struct pad_headers){0};
}

// Every table is checked against the file's size before it is read, and nothing else is read.
static int read_headers(struct padding_job *j, int fd, struct err *e)
{
    uint64_t phnum, shnum, strings;
    headers_free(&j->h);
    j->h.file_size = (uint64_t)j->st.st_size;
    *e = (struct err){0};
    elf_version(EV_CURRENT);
    if (read_ident(j, fd, e))
        return -1;
    Elf64_Ehdr *h = read_table(j, fd, 0, 1, sizeof *h, ELF_T_EHDR, "headers", e);
    if (!h)
        return -1;
    j->h.ehdr = *h;
    free(h);
    if (counts(j, fd, &phnum, &shnum, &strings, e))
        return -1;
    j->h.phdrs = read_table(j, fd, j->h.ehdr.e_phoff, phnum, sizeof *j->h.phdrs, ELF_T_PHDR,
                            "program headers", e);
    if (!j->h.phdrs)
        return -1;
    j->h.nphdrs = phnum;
    j->h.shdrs = read_table(j, fd, shnum ? j->h.ehdr.e_shoff : 0, shnum, sizeof *j->h.shdrs,
                            ELF_T_SHDR, "section headers", e);
    if (!j->h.shdrs)
        return -1;
    j->h.nshdrs = shnum;
    return read_names(j, fd, strings, e);
}

static int job_open(const char *path, struct padding_job *j, struct err *e)
{
    *j = (struct padding_job){.path = path, .fd = -1};
    j->real = realpath(path, NULL);
    if (!j->real)
        return err_sys(e, EXIT_CANNOT_ASK, "%s", path);
    j->fd = open(j->real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (j->fd < 0 || fstat(j->fd, &j->st))
        return err_sys(e, EXIT_CANNOT_ASK, "%s", path);
    if (!S_ISREG(j->st.st_mode))
        return err_set(e, EXIT_CANNOT_ASK, "%s: not an ELF file: %s", path,
                       S_ISDIR(j->st.st_mode) ? "a directory" : "not a regular file");
    return read_headers(j, j->fd, e);
}

static void job_close(struct padding_job *j)
{
    if (j->fd >= 0)
        close(j->fd);
    headers_free(&j->h);
    free(j->real);
    free(j->copy);
}

int pad_plan_file(const char *path, uint64_t huge, struct pad_plan *p, struct err *e)
{
    struct padding_job j;
    struct err own = {0};
    *p = (struct pad_plan){.state = PAD_CANNOT_TELL, .code = EXIT_CANNOT_ASK};
    int rc = job_open(path, &j, e ? e : &own);
    if (rc == 0)
        pad_examine(&j.h, huge, p);
    job_close(&j);
    return rc;
}

// --- replacing ---

// Labels are given to new files by the system's policy, trusted attributes belong to file systems.
static bool may_stay_behind(const char *name)
{
    return !strcmp(name, "security.selinux") || starts_with(name, "trusted.");
}

static bool signs_content(const char *name)
{
    return !strcmp(name, "security.ima") || !strcmp(name, "security.evm");
}

static int copy_attribute(const struct padding_job *j, int out, const char *name, struct err *e)
{
    static char value[65536]; // XATTR_SIZE_MAX
    ssize_t n = fgetxattr(j->fd, name, value, sizeof value);
    if (n >= 0 && (fsetxattr(out, name, value, (size_t)n, 0) == 0 || may_stay_behind(name)))
        return 0;
    if (errno == EOPNOTSUPP || errno == ENODATA)
        return 0;
    return err_sys(e, EXIT_CANNOT_ASK, "%s: its attribute %s cannot be kept; do it as root",
                   j->path, name);
}

static int copy_attributes(const struct padding_job *j, int out, struct err *e)
{
    static char names[65536]; // XATTR_LIST_MAX
    ssize_t n = flistxattr(j->fd, names, sizeof names);
    for (const char *name = names; n > 0 && name < names + n; name += strlen(name) + 1)
        if (!signs_content(name) && copy_attribute(j, out, name, e))
            return -1;
    return 0;
}

// In this order: a change of owner takes set-user-id bits and capabilities away.
static int keep_attributes(const struct padding_job *j, int out, struct err *e)
{
    struct timespec times[2] = {j->st.st_atim, {.tv_nsec = UTIME_NOW}};
    if (fchown(out, j->st.st_uid, j->st.st_gid))
        return err_sys(e, EXIT_CANNOT_ASK, "%s: its owner cannot be kept; do it as root", j->path);
    if (fchmod(out, j->st.st_mode & 07777))
        return err_sys(e, EXIT_CANNOT_ASK, "%s: its mode cannot be kept", j->path);
    if (copy_attributes(j, out, e))
        return -1;
    futimens(out, times);
    return 0;
}

// p_filesz and p_memsz are neighbours.
static int write_sizes(const struct padding_job *j, int out, unsigned program_header, uint64_t size,
                       struct err *e)
{
    _Static_assert(offsetof(Elf64_Phdr, p_memsz) == offsetof(Elf64_Phdr, p_filesz) + 8, "layout");
    uint64_t sizes[2] = {size, size};
    Elf_Data d = {
        .d_buf = sizes, .d_type = ELF_T_XWORD, .d_size = sizeof sizes, .d_version = EV_CURRENT};
    uint64_t at =
        j->h.ehdr.e_phoff + program_header * sizeof(Elf64_Phdr) + offsetof(Elf64_Phdr, p_filesz);
    if (elf64_xlatetof(&d, &d, j->encoding) &&
        pwrite(out, sizes, sizeof sizes, (off_t)at) == sizeof sizes)
        return 0;
    return err_sys(e, EXIT_CANNOT_ASK, "%s: the copy cannot be written", j->path);
}

// What was written is read back.
static int prove(struct padding_job *j, int out, uint64_t huge, uint64_t size, struct err *e)
{
    struct pad_plan p;
    if (read_headers(j, out, e))
        return -1;
    pad_examine(&j->h, huge, &p);
    enum pad_state want = size == p.padded_filesz ? PAD_DONE : PAD_POSSIBLE;
    if (p.filesz != size || p.state != want)
        return err_set(e, EXIT_NO, "%s: left alone: the copy does not read back as written: %s",
                       j->path, p.reason);
    return 0;
}

// Whether the name still stands for what was copied.
static int unchanged(const struct padding_job *j, struct err *e)
{
    struct stat now;
    const struct stat *was = &j->st;
    if (lstat(j->real, &now))
        return err_sys(e, EXIT_CANNOT_ASK, "%s", j->path);
    if (now.st_dev == was->st_dev && now.st_ino == was->st_ino && now.st_size == was->st_size &&
        now.st_mtim.tv_sec == was->st_mtim.tv_sec && now.st_mtim.tv_nsec == was->st_mtim.tv_nsec &&
        now.st_nlink == was->st_nlink)
        return 0;
    return err_set(e, EXIT_CANNOT_ASK, "%s: left alone: somebody changed it meanwhile; try again",
                   j->path);
}

static int write_copy(struct padding_job *j, const struct pad_plan *p, uint64_t huge, uint64_t size,
                      struct err *e)
{
    int out = open(j->copy, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (out < 0)
        return err_sys(e, EXIT_CANNOT_ASK, "%s", j->copy);
    int rc = write_sizes(j, out, p->program_header, size, e);
    if (rc == 0)
        rc = prove(j, out, huge, size, e);
    if (rc == 0)
        rc = keep_attributes(j, out, e);
    if (rc == 0 && fsync(out))
        rc = err_sys(e, EXIT_CANNOT_ASK, "%s: the copy cannot be written", j->path);
    if (close(out) && rc == 0)
        rc = err_sys(e, EXIT_CANNOT_ASK, "%s: the copy cannot be written", j->path);
    return rc;
}

// The rename stands even when the directory cannot be synced.
static void sync_directory(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

static bool is_pending(const sigset_t *set)
{
    sigset_t waiting;
    sigpending(&waiting);
    for (int s = 1; s < NSIG; s++)
        if (sigismember(set, s) == 1 && sigismember(&waiting, s) == 1)
            return true;
    return false;
}

static int replace_blocked(struct padding_job *j, const struct pad_plan *p, uint64_t huge,
                           uint64_t size, const sigset_t *signals, struct err *e)
{
    struct err why = {0};
    // On failure it removes what it made, and touches nothing that was there.
    if (fs_copy_file(j->real, j->copy, 0600, &why))
        return err_set(e, why.code, "%s: cannot be replaced by a changed copy in its directory: %s",
                       j->path, why.msg);
    int rc = write_copy(j, p, huge, size, e);
    if (rc == 0)
        rc = unchanged(j, e);
    if (rc == 0 && is_pending(signals))
        rc = err_set(e, EXIT_INTERRUPTED, "%s: interrupted, it is as it was", j->path);
    if (rc == 0 && rename(j->copy, j->real))
        rc = err_sys(e, EXIT_CANNOT_ASK, "%s: cannot be replaced", j->path);
    if (rc)
        unlink(j->copy);
    return rc;
}

// Signals wait until the copy is in place or gone; they then do what they always do.
static int replace(struct padding_job *j, const struct pad_plan *p, uint64_t huge, uint64_t size,
                   struct err *e)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t signals, before;
    if (j->st.st_nlink > 1)
        return err_set(e, EXIT_NO,
                       "%s: the file has %llu names (hard links), and only this one would be "
                       "changed; make it a file of its own first: cp -p FILE NEW && mv NEW FILE",
                       j->path, (unsigned long long)j->st.st_nlink);
    size_t dir = (size_t)(strrchr(j->real, '/') - j->real);
    j->copy = xasprintf("%.*s/.kiln-pad.%d", (int)dir, j->real, getpid());
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&signals, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    int rc = replace_blocked(j, p, huge, size, &signals, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    j->copy[dir ? dir : 1] = 0;
    if (rc == 0)
        sync_directory(j->copy);
    return rc;
}

static int change(struct padding_job *j, uint64_t huge, struct pad_result *r, struct err *e)
{
    struct pad_plan p;
    pad_examine(&j->h, huge, &p);
    if (p.state == PAD_CANNOT_TELL || p.code == EXIT_CANNOT_ASK ||
        (!r->undo && p.state == PAD_IMPOSSIBLE))
        return err_set(e, p.code, "%s: %s%s", j->path,
                       p.code == EXIT_CANNOT_ASK ? ""
                       : r->undo                 ? "cannot be unpadded: "
                                                 : "cannot be padded: ",
                       p.reason);
    r->changed = p.state == (r->undo ? PAD_DONE : PAD_POSSIBLE);
    r->old_filesz = p.filesz;
    r->new_filesz = !r->changed ? p.filesz : r->undo ? p.linked_filesz : p.padded_filesz;
    if (r->changed && replace(j, &p, huge, r->new_filesz, e))
        return -1;
    r->state = !r->changed ? p.state : r->undo ? PAD_POSSIBLE : PAD_DONE;
    r->program_header = p.program_header;
    r->padding = r->state == PAD_DONE ? r->new_filesz - p.linked_filesz : 0;
    r->slots = r->state == PAD_DONE ? p.padded_slots : p.linked_slots;
    return 0;
}

static int run(const char *path, uint64_t huge, bool undo, struct pad_result *r, struct err *e)
{
    struct padding_job j;
    struct err own = {0};
    *r = (struct pad_result){.undo = undo, .huge = huge};
    e = e ? e : &own;
    int rc = job_open(path, &j, e);
    if (rc == 0)
        rc = change(&j, huge, r, e);
    job_close(&j);
    if (rc)
        r->changed = false;
    return rc;
}

int pad_file(const char *path, uint64_t huge, struct pad_result *r, struct err *e)
{
    return run(path, huge, false, r, e);
}

int unpad_file(const char *path, uint64_t huge, struct pad_result *r, struct err *e)
{
    return run(path, huge, true, r, e);
}

// --- words ---

const char *pad_state_text(enum pad_state s)
{
    static const char *const words[] = {[PAD_POSSIBLE] = "not padded",
                                        [PAD_DONE] = "padded",
                                        [PAD_NEEDLESS] = "the text fills its last slot by itself",
                                        [PAD_IMPOSSIBLE] = "not padded, and cannot be",
                                        [PAD_CANNOT_TELL] = "cannot tell"};
    return words[s];
}

void pad_print(const char *path, const struct pad_result *r, FILE *out)
{
    uint64_t mib = r->huge >> 20;
    if (r->undo && !r->changed) {
        fprintf(out, "%s: not padded, nothing to undo\n", path);
        return;
    }
    fprintf(out, "%s: program header %u: p_filesz 0x%" PRIx64, path, r->program_header,
            r->old_filesz);
    if (r->changed && r->undo)
        fprintf(out, " -> 0x%" PRIx64 " (-%" PRIu64 " bytes of padding)", r->new_filesz,
                r->old_filesz - r->new_filesz);
    else if (r->changed)
        fprintf(out, " -> 0x%" PRIx64 " (+%" PRIu64 " bytes of padding)", r->new_filesz,
                r->padding);
    else if (r->state == PAD_DONE)
        fprintf(out, " is padded already (%" PRIu64 " bytes of padding)", r->padding);
    else
        fprintf(out, " reaches the end of its %" PRIu64 " MiB slot without padding", mib);
    fprintf(out, "; text %scovers %" PRIu64 " whole %" PRIu64 " MiB slot%s\n",
            r->changed ? "now " : "", r->slots, mib, r->slots == 1 ? "" : "s");
}

json_t *pad_json(const char *path, const struct pad_result *r)
{
    json_t *o = json_new("kiln.pad/1"), *file = json_string(path);
    json_object_set_new(o, "file", file ? file : json_string("(not UTF-8)"));
    json_object_set_new(o, "action", json_string(r->undo ? "unpad" : "pad"));
    json_object_set_new(o, "changed", json_boolean(r->changed));
    json_object_set_new(o, "padded", json_boolean(r->state == PAD_DONE));
    json_object_set_new(o, "state", json_string(pad_state_text(r->state)));
    json_object_set_new(o, "program_header", json_integer(r->program_header));
    json_object_set_new(o, "old_filesz", json_integer((json_int_t)r->old_filesz));
    json_object_set_new(o, "new_filesz", json_integer((json_int_t)r->new_filesz));
    json_object_set_new(o, "padding_bytes", json_integer((json_int_t)r->padding));
    json_object_set_new(o, "slot_bytes", json_integer((json_int_t)r->huge));
    json_object_set_new(o, "whole_slots", json_integer((json_int_t)r->slots));
    return o;
}
