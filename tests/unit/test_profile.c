#include "common/fs.h"
#include "common/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_profile.XXXXXX";

static void write_profile(const char *name, const char *text)
{
    struct err e;
    char *path = xasprintf("%s/profiles/build/%s.ini", dir, name);
    assert_int_equal(fs_write_atomic(path, text, &e), 0);
    free(path);
}

static int make_share(void **state)
{
    (void)state;
    struct err e;
    if (!mkdtemp(dir))
        return -1;
    char *sub = xasprintf("%s/profiles/build", dir);
    int rc = fs_mkdirs(sub, 0755, &e);
    free(sub);
    setenv("KILN_SHARE", dir, 1);
    write_profile("base", "[profile]\ndescription = the base\ntoolchain = gcc\nlinker = bfd\n"
                          "[cmake]\nWITH_X = no\n[promises]\npie = yes\n");
    write_profile("child", "[profile]\ninherits = base\nlinker = gold\nc-flags = -O2\n"
                           "    -g\n[cmake]\nWITH_Y = a;b\n"
                           "[cmake.mysql<8.0.31]\nOLD = 1\n[cmake.mariadb>=10.6]\nNEW = 1\n");
    return rc;
}

static int remove_share(void **state)
{
    (void)state;
    struct err e;
    return fs_remove_tree(dir, &e);
}

static void descendant_replaces_ancestor(void **state)
{
    (void)state;
    struct err e;
    struct profile p;
    assert_int_equal(profile_load("child", &p, &e), 0);
    assert_string_equal(profile_value(&p, "profile", "linker", ""), "gold");
    assert_string_equal(profile_value(&p, "profile", "toolchain", ""), "gcc");
    assert_string_equal(profile_value(&p, "profile", "c-flags", ""), "-O2 -g");
    assert_string_equal(profile_value(&p, "cmake", "WITH_X", ""), "no");
    assert_string_equal(profile_value(&p, "cmake.mysql<8.0.31", "OLD", ""), "1");
    assert_string_equal(profile_value(&p, "cmake.mariadb>=10.6", "NEW", ""), "1");
    assert_string_equal(profile_find(&p, "profile", "linker")->origin, "child.ini:3");
    assert_string_equal(profile_find(&p, "profile", "toolchain")->origin, "base.ini:3");
    assert_null(profile_find(&p, "profile", "description"));
    assert_int_equal(p.chain.n, 2);
    assert_string_equal(p.chain.v[0], "child");
    assert_string_equal(p.chain.v[1], "base");
    profile_free(&p);
}

static void path_finds_neighbours(void **state)
{
    (void)state;
    struct err e;
    struct profile p;
    char *path = xasprintf("%s/profiles/build/child.ini", dir);
    assert_int_equal(profile_load(path, &p, &e), 0);
    assert_string_equal(p.name, "child");
    assert_string_equal(profile_value(&p, "promises", "pie", ""), "yes");
    profile_free(&p);
    free(path);
}

static void names_are_sorted(void **state)
{
    (void)state;
    struct err e;
    struct strv names = {0};
    assert_int_equal(profile_names(&names, &e), 0);
    assert_true(names.n >= 2);
    assert_string_equal(names.v[0], "base");
    strv_free(&names);
}

// Each: text of bad.ini, and what the message must hold.
static const struct {
    const char *text, *message;
} broken[] = {
    {"[profile]\nlinkr = bfd\n", "bad.ini:2: unknown key 'linkr' in [profile]"},
    {"[profil]\nlinker = bfd\n", "bad.ini:2: unknown section [profil]"},
    {"[cmake.oracle]\nA = 1\n", "bad.ini:2: unknown section [cmake.oracle]"},
    {"[cmake.mysql~8]\nA = 1\n", "bad.ini:2: unknown section"},
    {"[cmake.mysql=<8]\nA = 1\n", "bad.ini:2: unknown section"},
    {"[profile]\nlinker = bfd\n\nlinker = gold\n", "bad.ini:4: 'linker' is given twice"},
    {"[profile]\n\ninherits = nobody\n",
     "bad.ini:3: nobody: no such profile; there are: bad, base, child"},
    {"[profile]\ninherits = bad\n", "bad.ini:2: profiles inherit in a circle: bad -> bad"},
    {"[promises]\nspeed = 9\n", "bad.ini:2: unknown key 'speed' in [promises]"},
    {"no key at all\n", "bad.ini:1: "},
};

static void broken_profiles_name_file_and_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct err e = {0};
        struct profile p;
        write_profile("bad", broken[i].text);
        assert_int_equal(profile_load("bad", &p, &e), -1);
        assert_int_equal(e.code, EXIT_CANNOT_ASK);
        if (!strstr(e.msg, broken[i].message))
            fail_msg("case %zu: '%s' lacks '%s'", i, e.msg, broken[i].message);
    }
}

static void long_circle_is_shown(void **state)
{
    (void)state;
    struct err e = {0};
    struct profile p;
    write_profile("one", "[profile]\ninherits = two\n");
    write_profile("two", "[profile]\ninherits = three\n");
    write_profile("three", "[profile]\nlinker = bfd\ninherits = one\n");
    assert_int_equal(profile_load("one", &p, &e), -1);
    assert_non_null(strstr(e.msg, "three.ini:3: "));
    assert_non_null(strstr(e.msg, "one -> two -> three -> one"));
}

static void unknown_profile_lists_what_exists(void **state)
{
    (void)state;
    struct err e = {0};
    struct profile p;
    assert_int_equal(profile_load("gcc-o9", &p, &e), -1);
    assert_int_equal(e.code, EXIT_CANNOT_ASK);
    assert_non_null(strstr(e.msg, "gcc-o9: no such profile; there are: "));
    assert_non_null(strstr(e.msg, "child"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_sorted),
        cmocka_unit_test(descendant_replaces_ancestor),
        cmocka_unit_test(path_finds_neighbours),
        cmocka_unit_test(broken_profiles_name_file_and_line),
        cmocka_unit_test(long_circle_is_shown),
        cmocka_unit_test(unknown_profile_lists_what_exists),
    };
    return cmocka_run_group_tests(tests, make_share, remove_share);
}
