// The journal and the pool's claims, on a made-up /sys tree (KILN_SYSROOT) and run directory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/fs.h"
#include "common/proc.h"
#include "common/str.h"
#include "common/sys.h"
#include "launcher/journal.h"
#include "launcher/pool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

// store_run_dir() is asked once in a process: one directory for the whole program.
static char dir[] = "/tmp/kiln-unit.XXXXXX";

static void put(const char *path, const char *text)
{
    char *p = sys_path(path), *copy = xstrdup(p);
    *strrchr(copy, '/') = 0;
    assert_int_equal(fs_mkdirs(copy, 0755, NULL), 0);
    assert_int_equal(fs_write_atomic(p, text, NULL), 0);
    free(copy);
    free(p);
}

static int setup(void **state)
{
    (void)state;
    put(POOL "nr_hugepages", "5\n");
    put(POOL "free_hugepages", "3\n");
    put(POOL "resv_hugepages", "1\n");
    put(POOL "surplus_hugepages", "0\n");
    put("/proc/sys/kernel/random/boot_id", "boot-1\n");
    return 0;
}

static unsigned pool_total(void)
{
    uint64_t v = 0;
    assert_int_equal(sys_read_u64(POOL "nr_hugepages", &v), 0);
    return (unsigned)v;
}

static void a_claim_adds_only_what_lacks(void **state)
{
    (void)state;
    struct journal *j;
    struct err e = {0};
    unsigned raised;
    assert_int_equal(journal_open(&j, &e), 0);
    assert_int_equal(pool_claim(j, 6, &raised, &e), 0); // 3 free, 1 of them reserved: 2 usable
    assert_int_equal(raised, 4);
    assert_int_equal(pool_total(), 9);
    assert_int_equal(journal_undo(j, &e), 0);
    assert_int_equal(pool_total(), 5);
}

static void overlapping_claims_end_at_the_base(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct journal *j[2];
        struct err e = {0};
        unsigned raised;
        assert_int_equal(journal_open(&j[0], &e), 0);
        assert_int_equal(journal_open(&j[1], &e), 0);
        assert_int_equal(pool_claim(j[0], 6, &raised, &e), 0);
        assert_int_equal(pool_claim(j[1], 2, &raised, &e),
                         0); // the first may not have mapped its yet
        assert_int_equal(raised, 2);
        assert_int_equal(pool_total(), 11);
        assert_int_equal(journal_undo(j[first], &e), 0);
        assert_int_equal(pool_total(), first ? 9 : 7);
        assert_int_equal(journal_undo(j[!first], &e), 0);
        assert_int_equal(pool_total(), 5);
    }
}

static void a_pool_changed_by_others_stays(void **state)
{
    (void)state;
    struct journal *j;
    struct err e = {0};
    unsigned raised, found, busy;
    assert_int_equal(journal_open(&j, &e), 0);
    assert_int_equal(pool_claim(j, 6, &raised, &e), 0);
    put(POOL "nr_hugepages", "50\n");
    assert_int_equal(journal_undo(j, &e), -1);
    assert_non_null(strstr(e.msg, "somebody else changed it"));
    assert_int_equal(pool_total(), 50);
    assert_int_equal(journal_restore(&found, &busy, &e), 0);
    assert_int_equal(found + busy, 0); // told once, not for ever
}

static void a_dead_owner_is_undone_by_the_next(void **state)
{
    (void)state;
    unsigned found, busy;
    struct err e = {0};
    char *tree = xasprintf("%s/left", dir);
    assert_int_equal(fs_mkdirs(tree, 0755, &e), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct journal *j;
        unsigned raised;
        _exit(journal_open(&j, NULL) || journal_tree(j, tree, NULL) ||
              pool_claim(j, 6, &raised, NULL));
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(pool_total(), 9);
    assert_int_equal(journal_restore(&found, &busy, &e), 0);
    assert_int_equal(found, 1);
    assert_int_equal(pool_total(), 5);
    assert_false(fs_exists(tree));
    free(tree);
}

static void a_running_owner_is_left_alone(void **state)
{
    (void)state;
    struct journal *j;
    struct err e = {0};
    unsigned found, busy;
    assert_int_equal(journal_open(&j, &e), 0);
    assert_int_equal(journal_restore(&found, &busy, &e), 0);
    assert_int_equal(found, 0);
    assert_int_equal(busy, 1);
    assert_int_equal(journal_undo(j, &e), 0);
}

// After a reboot the pool is what the boot made it, and a pid says nothing.
static void another_boot_touches_no_pool(void **state)
{
    (void)state;
    struct journal *j;
    struct err e = {0};
    unsigned raised, found, busy;
    assert_int_equal(journal_open(&j, &e), 0);
    assert_int_equal(pool_claim(j, 6, &raised, &e), 0);
    put("/proc/sys/kernel/random/boot_id", "boot-2\n");
    assert_int_equal(journal_restore(&found, &busy, &e), 0);
    assert_int_equal(found, 1);
    assert_int_equal(pool_total(), 9);
    assert_int_equal(journal_undo(j, &e), 0);
}

int main(void)
{
    if (!mkdtemp(dir))
        return 2;
    char *run = xasprintf("%s/run", dir), *root = xasprintf("%s/root", dir);
    setenv("KILN_RUN", run, 1);
    setenv("KILN_SYSROOT", root, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_claim_adds_only_what_lacks, setup),
        cmocka_unit_test_setup(overlapping_claims_end_at_the_base, setup),
        cmocka_unit_test_setup(a_pool_changed_by_others_stays, setup),
        cmocka_unit_test_setup(a_dead_owner_is_undone_by_the_next, setup),
        cmocka_unit_test_setup(a_running_owner_is_left_alone, setup),
        cmocka_unit_test_setup(another_boot_touches_no_pool, setup),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    fs_remove_tree(dir, NULL);
    free(run);
    free(root);
    return rc;
}
