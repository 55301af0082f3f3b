// What a live process executes: each executable mapping with its huge pages and their mechanism,
// shared libraries included, and whether the running files are still those on disk.
#ifndef KILN_LIVE_H
#define KILN_LIVE_H

#include "elfcheck/coverage.h"

#include <stdio.h>

// One executable mapping; the kernel's own ([vdso], [vsyscall], [uprobes]) are left out. Bytes.
struct live_mapping {
    char *path; // as the kernel says it, " (deleted)" kept; "[anon]" when it has none
    uint64_t from, to;
    uint64_t bytes, huge; // to - from; of these, on 2 MiB or larger pages
    uint64_t hugetlb, file_pmd, shmem_pmd, anon_huge; // huge is their sum
    bool main_program; // lies in the main program's address range, whatever its path is
    char *library;     // the file's name of a mapping outside the main program, or NULL
    uint64_t inode;
    unsigned major, minor; // of the device
};

enum disk_state {
    DISK_SAME,           // the running file is the one under its path
    DISK_REPLACED_ALIKE, // another file with the same build-id is
    DISK_REPLACED,       // a file of another build is, or one that has no build-id to compare
    DISK_DELETED,        // nothing is
    DISK_CANNOT_KNOW,
};
const char *disk_state_word(enum disk_state s); // "same", "replaced-same-build", ...

// A file that the process executes from.
struct live_file {
    char *path; // without " (deleted)"
    bool main_program;
    enum disk_state state;
    char *running_id, *disk_id; // build-ids in hex, for the replaced; NULL: none, or cannot know
    char *reason;               // why it cannot be known, else NULL
};

struct live {
    pid_t pid;
    struct coverage text; // of the main program
    struct live_mapping *maps;
    size_t nmaps; // the main program's first, then by address
    struct live_file *files;
    size_t nfiles; // the main program first
};

// f must be the facts of the file that the process runs. 0, or -1 with *e filled, as
// coverage_read.
int live_read(pid_t pid, const struct elf_facts *f, struct live *l, struct err *e);
// The mappings and the coverage alone, from the text of an smaps file.
void live_from_smaps(const char *smaps, const struct elf_facts *f, uint64_t bias, struct live *l);
void live_free(struct live *l);

// What tells two files apart. The device numbers in maps are not those of stat on btrfs and
// overlayfs: has_device is false for what comes from there.
struct file_identity {
    bool exists, has_device;
    uint64_t device, inode;
    const char *build_id; // hex, or NULL
};
// deleted: the kernel says that the running file's name is gone.
enum disk_state disk_compare(const struct file_identity *running, bool deleted,
                             const struct file_identity *disk);

// Whether a restart would run other files: one is replaced by another build, or deleted.
bool live_needs_restart(const struct live *l);
// A table of the mappings, and one line for each file that is no longer the one on disk.
void live_print(const struct live *l, FILE *to);
// {"mappings": [...], "libraries": {"bytes", "huge_bytes"}, "files": [...], "restart": bool}
json_t *live_json(const struct live *l);

#endif
