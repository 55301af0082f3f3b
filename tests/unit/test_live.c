#include "elfcheck/live.h"
#include "common/fs.h"
#include "common/proc.h"

#include <elf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MB = 1 << 20 };

static char dir[] = "/tmp/test_live.XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return !mkdtemp(dir) || chdir(dir);
}

static int remove_dir(void **state)
{
    (void)state;
    return chdir("/") || fs_remove_tree(dir, NULL);
}

// A PIE with 4 MiB of text at 2 MiB, data behind.
static struct segment loads[] = {
    {.flags = PF_R, .filesz = 2 * MB, .memsz = 2 * MB},
    {.flags = PF_R | PF_X,
     .vaddr = 2 * MB,
     .filesz = 4 * MB,
     .memsz = 4 * MB,
     .sections_from = 2 * MB,
     .sections_to = 6 * MB},
    {.flags = PF_R | PF_W, .vaddr = 6 * MB, .filesz = MB, .memsz = MB},
};
static const struct elf_facts facts = {.is_64 = true, .loads = loads, .nloads = 3};
static const uint64_t bias = 0x555555400000;

static const char smaps[] =
    "555555400000-555555600000 r--p 00000000 08:01 77 /x/server\n"
    "KernelPageSize:        4 kB\n"
    "555555600000-555555800000 r-xp 00000000 00:2f 9 /mnt/huge/libhugetlbfs.tmp.a (deleted)\n"
    "KernelPageSize:     2048 kB\nPrivate_Hugetlb:    2048 kB\n"
    "555555800000-555555a00000 r-xp 00000000 00:00 0 \n"
    "KernelPageSize:        4 kB\nAnonHugePages:      2048 kB\n"
    "7f0000000000-7f0000600000 r-xp 00000000 00:01 5 /memfd:jit (deleted)\n"
    "KernelPageSize:        4 kB\nShmemPmdMapped:     4096 kB\n"
    "7f0001000000-7f0001601000 r-xp 00000000 08:01 78 /lib/libc.so.6 (deleted)\n"
    "KernelPageSize:        4 kB\nFilePmdMapped:      2048 kB\n"
    "7f0002000000-7f0002001000 rw-p 00000000 08:01 78 /lib/libc.so.6 (deleted)\n"
    "KernelPageSize:        4 kB\n"
    "7ffff7fc0000-7ffff7fc2000 r-xp 00000000 00:00 0 [vdso]\n"
    "KernelPageSize:        4 kB\n";

static void executable_mappings_and_whose_they_are(void **state)
{
    (void)state;
    struct live l;
    live_from_smaps(smaps, &facts, bias, &l);
    assert_int_equal(l.nmaps, 4);
    assert_string_equal(l.maps[0].path, "/mnt/huge/libhugetlbfs.tmp.a (deleted)");
    assert_true(l.maps[0].main_program);
    assert_null(l.maps[0].library);
    assert_int_equal(l.maps[0].hugetlb, 2 * MB);
    assert_string_equal(l.maps[1].path, "[anon]");
    assert_true(l.maps[1].main_program);
    assert_int_equal(l.maps[1].anon_huge, 2 * MB);
    assert_int_equal(l.maps[1].huge, 2 * MB);
    assert_false(l.maps[2].main_program);
    assert_null(l.maps[2].library); // a memfd is no file
    assert_int_equal(l.maps[2].shmem_pmd, 4 * MB);
    assert_string_equal(l.maps[3].library, "libc.so.6");
    assert_int_equal(l.maps[3].bytes, 6 * MB + 4096);
    assert_int_equal(l.maps[3].huge, 2 * MB);
    assert_int_equal(l.maps[3].file_pmd, 2 * MB);
    assert_int_equal(l.text.text, 4 * MB);
    assert_int_equal(l.text.huge, 4 * MB);
    live_free(&l);
}

// In smaps libraries may come first; the main program is listed first all the same.
static void main_program_comes_first(void **state)
{
    (void)state;
    struct live l;
    live_from_smaps("00400000-00500000 r-xp 00000000 08:01 78 /lib/liba.so\nRss: 4 kB\n"
                    "555555600000-555555a00000 r-xp 00000000 08:01 77 /x/server\nRss: 4 kB\n",
                    &facts, bias, &l);
    assert_int_equal(l.nmaps, 2);
    assert_string_equal(l.maps[0].path, "/x/server");
    assert_string_equal(l.maps[1].library, "liba.so");
    live_free(&l);
}

static void odd_text_is_harmless(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "",
        "x",
        "5-4 r-xp 0 0:0 0 /x\n",
        "1-2 r-xp 0 0:0 0",
        "1-2 r-xp 0 0:0 0 \001\377\033[31m\n",
        "200000-401000 r-xp 0 0:0 0 /x\nFilePmdMapped: 8192 kB\n",
        "0-ffffffffffffffff r-xp 0 0:0 0 /\nFilePmdMapped: 99999999999999999999999 kB\n"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct live l;
        live_from_smaps(odd[i], &facts, bias, &l);
        for (size_t j = 0; j < l.nmaps; j++) {
            assert_true(l.maps[j].huge <= l.maps[j].bytes);
            assert_null(strpbrk(l.maps[j].path, "\033\377"));
        }
        json_t *o = live_json(&l);
        assert_non_null(o);
        json_decref(o);
        live_free(&l);
    }
}

static void files_are_compared(void **state)
{
    (void)state;
    const struct file_identity by_stat = {true, true, 8, 100, "aa"},
                               by_maps = {true, false, 0, 100, NULL};
    const struct file_identity none = {0};
    struct file_identity disk = {true, true, 8, 100, "aa"};
    assert_int_equal(disk_compare(&by_stat, false, &disk), DISK_SAME);
    // A mapped inode is given to no other file: the kernel's mark is of a name that came back.
    assert_int_equal(disk_compare(&by_stat, true, &disk), DISK_SAME);
    assert_int_equal(disk_compare(&by_maps, false, &disk), DISK_SAME);
    assert_int_equal(disk_compare(&by_maps, true, &disk), DISK_REPLACED);
    disk.device = 9;
    disk.build_id = "bb";
    assert_int_equal(disk_compare(&by_stat, false, &disk), DISK_REPLACED);
    disk.device = 8;
    disk.inode = 101;
    assert_int_equal(disk_compare(&by_stat, true, &disk), DISK_REPLACED);
    assert_int_equal(disk_compare(&by_maps, true, &disk), DISK_REPLACED);
    assert_int_equal(disk_compare(&by_maps, false, &disk), DISK_CANNOT_KNOW); // overlayfs
    disk.build_id = "aa";
    assert_int_equal(disk_compare(&by_stat, true, &disk), DISK_REPLACED_ALIKE);
    disk.build_id = NULL;
    assert_int_equal(disk_compare(&by_stat, true, &disk), DISK_REPLACED);
    assert_int_equal(disk_compare(&by_stat, true, &none), DISK_DELETED);
    assert_int_equal(disk_compare(&by_stat, false, &none), DISK_CANNOT_KNOW);
    assert_int_equal(disk_compare(&none, false, &disk), DISK_CANNOT_KNOW);
}

// --- real processes ---

static struct live live_of(pid_t pid)
{
    char exe[64];
    struct elf_facts f;
    struct err e = {0};
    struct live l = {0};
    snprintf(exe, sizeof exe, "/proc/%d/exe", pid);
    if (elf_facts_read(exe, &f, &e) || live_read(pid, &f, &l, &e))
        fail_msg("%s", e.msg);
    elf_facts_free(&f);
    return l;
}

static const struct live_file *find_file(const struct live *l, const char *end)
{
    for (size_t i = 0; i < l->nfiles; i++)
        if (ends_with(l->files[i].path, end))
            return &l->files[i];
    fail_msg("no file %s", end);
    return NULL;
}

static void own_process(void **state)
{
    (void)state;
    struct live l = live_of(getpid());
    assert_true(l.maps[0].main_program);
    assert_true(l.text.text > 0);
    assert_true(l.files[0].main_program);
    assert_true(ends_with(l.files[0].path, "test_live"));
    for (size_t i = 0; i < l.nfiles; i++)
        if (l.files[i].state != DISK_SAME)
            fail_msg("%s: %s", l.files[i].path, disk_state_word(l.files[i].state));
    assert_false(find_file(&l, "/libc.so.6")->main_program);
    assert_false(live_needs_restart(&l));
    live_free(&l);
}

static void no_such_process(void **state)
{
    (void)state;
    struct live l;
    struct err e = {0};
    assert_int_equal(live_read(4194305, &facts, &l, &e), -1);
    assert_non_null(strstr(e.msg, "no such process"));
    assert_int_equal(l.nmaps, 0);
}

static pid_t child;

static int end_child(void **state)
{
    (void)state;
    if (child > 0) {
        kill(child, SIGKILL);
        proc_wait(child, -1, NULL);
    }
    child = 0;
    return 0;
}

static void copy_over(const char *from, const char *to)
{
    struct err e = {0};
    if (fs_copy_file(from, "new", 0755, &e) || rename("new", to))
        fail_msg("%s to %s: %s", from, to, e.msg);
}

static enum disk_state program_state(bool ids)
{
    struct live l = live_of(child);
    enum disk_state state = l.files[0].state;
    assert_true(ends_with(l.files[0].path, "/program"));
    assert_int_equal(ids, l.files[0].running_id && l.files[0].disk_id);
    assert_int_equal(live_needs_restart(&l), state == DISK_REPLACED || state == DISK_DELETED);
    live_free(&l);
    return state;
}

static void program_is_replaced_on_disk(void **state)
{
    (void)state;
    struct err e = {0};
    copy_over("/bin/sleep", "program");
    const char *const argv[] = {"./program", "60", NULL};
    child = proc_spawn(&(struct proc){.argv = argv, .exec_path = "./program"}, &e);
    if (child < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(program_state(false), DISK_SAME);
    copy_over("/bin/sleep", "program");
    assert_int_equal(program_state(true), DISK_REPLACED_ALIKE);
    copy_over("/bin/true", "program");
    assert_int_equal(program_state(true), DISK_REPLACED);
    assert_int_equal(unlink("program"), 0);
    assert_int_equal(mkfifo("program", 0600), 0); // is not opened
    assert_int_equal(program_state(false), DISK_REPLACED);
    assert_int_equal(unlink("program"), 0);
    assert_int_equal(program_state(false), DISK_DELETED);
}

static void compile(const char *flags)
{
    struct strv argv = {0};
    struct str out = {0};
    struct err e = {0};
    char *gcc = fs_find_program("gcc");
    if (!gcc)
        skip();
    free(gcc);
    strv_add(&argv, "gcc");
    strv_split(&argv, flags, " ");
    if (proc_capture((const char *const *)argv.v, &out, &e))
        fail_msg("gcc %s: %s%s", flags, str_text(&out), e.msg);
    strv_free(&argv);
    str_free(&out);
}

static char *printed(const struct live *l)
{
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    live_print(l, to);
    fclose(to);
    return text;
}

static void start_with_library(void)
{
    struct err e = {0};
    int out[2];
    char c;
    fs_write_atomic("lib.c", "int number(void) { return 1; }\n", NULL);
    fs_write_atomic("main.c",
                    "#include <unistd.h>\nint number(void);\n"
                    "int main(void) { write(1, \"x\", number()); pause(); return 0; }\n",
                    NULL);
    compile("-w -shared -fPIC -Wl,--build-id=sha1 lib.c -o liba.so");
    compile("-w main.c liba.so -Wl,-rpath,$ORIGIN -o caller");
    assert_int_equal(pipe(out), 0);
    const char *const argv[] = {"./caller", NULL};
    child = proc_spawn(&(struct proc){.argv = argv, .exec_path = "./caller", .out = out[1]}, &e);
    close(out[1]);
    if (child < 0 || read(out[0], &c, 1) != 1)
        fail_msg("caller: %s", e.msg);
    close(out[0]);
}

static void library_is_upgraded_under_a_process(void **state)
{
    (void)state;
    start_with_library();
    struct live l = live_of(child);
    assert_int_equal(find_file(&l, "/liba.so")->state, DISK_SAME);
    assert_int_equal(l.files[0].state, DISK_SAME);
    live_free(&l);
    fs_write_atomic("lib.c", "int number(void) { return 2; }\n", NULL);
    compile("-w -shared -fPIC -Wl,--build-id=sha1 lib.c -o lib.new");
    assert_int_equal(rename("lib.new", "liba.so"), 0);
    l = live_of(child);
    assert_int_equal(find_file(&l, "/liba.so")->state, DISK_REPLACED);
    assert_true(live_needs_restart(&l));
    char *text = printed(&l);
    assert_non_null(strstr(text, "/liba.so: replaced on disk; running build-id "));
    assert_non_null(strstr(text, "main program"));
    free(text);
    json_t *o = live_json(&l);
    assert_true(json_is_true(json_object_get(o, "restart")));
    assert_int_equal(json_array_size(json_object_get(o, "mappings")), l.nmaps);
    assert_int_equal(json_array_size(json_object_get(o, "files")), l.nfiles);
    json_decref(o);
    live_free(&l);
    assert_int_equal(unlink("liba.so"), 0);
    l = live_of(child);
    assert_int_equal(find_file(&l, "/liba.so")->state, DISK_DELETED);
    live_free(&l);
}

// Without map_files (not root) only the inode in maps tells.
static struct live recorded(const char *mark, uint64_t inode)
{
    struct live l;
    struct err e = {0};
    char path[128], *text = xasprintf("7f0001000000-7f0001601000 r-xp 0 fe:01 %llu /liba.so%s\n",
                                      (unsigned long long)inode, mark);
    const uint64_t auxv[] = {AT_ENTRY, bias, AT_NULL, 0};
    snprintf(path, sizeof path, "root/proc/%d", getpid());
    fs_mkdirs(path, 0700, NULL);
    snprintf(path, sizeof path, "root/proc/%d/smaps", getpid());
    fs_write_atomic(path, text, NULL);
    free(text);
    snprintf(path, sizeof path, "root/proc/%d/auxv", getpid());
    FILE *out = fopen(path, "w");
    fwrite(auxv, sizeof auxv, 1, out);
    fclose(out);
    setenv("KILN_SYSROOT", "root", 1);
    int rc = live_read(getpid(), &facts, &l, &e);
    unsetenv("KILN_SYSROOT");
    if (rc)
        fail_msg("%s", e.msg);
    return l;
}

static enum disk_state recorded_state(const char *mark, uint64_t inode)
{
    struct live l = recorded(mark, inode);
    const struct live_file *f = find_file(&l, "/liba.so");
    enum disk_state state = f->state;
    assert_int_equal(f->reason != NULL, state == DISK_CANNOT_KNOW);
    assert_null(f->running_id);
    live_free(&l);
    return state;
}

static void inode_alone(void **state)
{
    (void)state;
    struct stat st;
    struct live l = recorded("", 1);
    assert_int_equal(l.files[0].state, DISK_CANNOT_KNOW); // no exe
    live_free(&l);
    fs_write_atomic("root/liba.so", "x", NULL);
    assert_int_equal(stat("root/liba.so", &st), 0);
    assert_int_equal(recorded_state("", st.st_ino), DISK_SAME);
    assert_int_equal(recorded_state(" (deleted)", st.st_ino), DISK_REPLACED);
    assert_int_equal(recorded_state(" (deleted)", st.st_ino + 1), DISK_REPLACED);
    assert_int_equal(recorded_state("", st.st_ino + 1), DISK_CANNOT_KNOW);
    unlink("root/liba.so");
    assert_int_equal(recorded_state("", st.st_ino), DISK_CANNOT_KNOW);
    assert_int_equal(recorded_state(" (deleted)", st.st_ino), DISK_DELETED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(executable_mappings_and_whose_they_are),
        cmocka_unit_test(main_program_comes_first),
        cmocka_unit_test(odd_text_is_harmless),
        cmocka_unit_test(files_are_compared),
        cmocka_unit_test(own_process),
        cmocka_unit_test(no_such_process),
        cmocka_unit_test_teardown(program_is_replaced_on_disk, end_child),
        cmocka_unit_test_teardown(library_is_upgraded_under_a_process, end_child),
        cmocka_unit_test(inode_alone),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
