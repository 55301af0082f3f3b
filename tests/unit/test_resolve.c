// Profile resolution with fixed profiles: which option gets which flag, from where.
#include "builder/hint.h"
#include "builder/levels.h"
#include "builder/resolve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct profile_key keys[16];
static struct profile profile;

static void key(const char *section, const char *name, const char *value)
{
    profile.keys = keys;
    keys[profile.n++] =
        (struct profile_key){(char *)section, (char *)name, (char *)value, (char *)"test.ini:7"};
}

static int fresh(void **state)
{
    (void)state;
    profile = (struct profile){.name = (char *)"test"};
    return 0;
}

static struct target target(enum flavour f, unsigned major, unsigned minor, unsigned patch)
{
    return (struct target){.flavour = f,
                           .version = {major, minor, patch},
                           .toolchain_file = "/t/gcc.cmake",
                           .home = "/store"};
}

static void assert_arg(const struct resolution *r, const char *name, const char *want)
{
    const struct cmake_arg *a = resolution_arg(r, name);
    if (!want) {
        assert_null(a);
        return;
    }
    assert_non_null(a);
    char *v = cmake_arg_value(a);
    assert_string_equal(v, want);
    free(v);
}

static void resolve_ok(struct target t, struct resolution *r)
{
    struct err e = {0};
    if (resolve(&profile, &t, r, &e))
        fail_msg("%s", e.msg);
}

static void empty_profile_pins_linker_and_level(void **state)
{
    (void)state;
    struct resolution r;
    resolve_ok(target(FLAVOUR_MARIADB, 10, 11, 18), &r);
    assert_arg(&r, "WITH_MYSQLD_LDFLAGS", "-fuse-ld=bfd");
    assert_arg(&r, "CMAKE_EXE_LINKER_FLAGS", NULL);
    assert_arg(&r, "CMAKE_CXX_FLAGS", "-ffile-prefix-map=/store=/kiln");
    assert_arg(&r, "CMAKE_CXX_FLAGS_RELWITHDEBINFO", "-O2 -g -DNDEBUG");
    assert_string_equal(resolution_arg(&r, "CMAKE_TOOLCHAIN_FILE")->parts[0].origin, "kiln");
    resolution_free(&r);
}

static void level_goes_to_the_build_type_with_its_origin(void **state)
{
    (void)state;
    struct resolution r;
    key("profile", "optimisation", "-Ofast");
    resolve_ok(target(FLAVOUR_MYSQL, 8, 0, 45), &r);
    const struct cmake_arg *a = resolution_arg(&r, "CMAKE_C_FLAGS_RELWITHDEBINFO");
    assert_string_equal(a->parts[0].text, "-Ofast");
    assert_string_equal(a->parts[0].origin, "test.ini:7");
    assert_string_equal(a->parts[1].origin, "kiln");
    resolution_free(&r);
}

static void each_linker_gets_only_what_it_knows(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"bfd", "-fuse-ld=bfd -Wl,-z,max-page-size=2097152"},
        {"gold", "-fuse-ld=gold -Wl,-z,max-page-size=2097152"},
        {"lld", "-fuse-ld=lld -Wl,-z,max-page-size=2097152 -Wl,-z,separate-code"},
        {"mold", "-fuse-ld=mold -Wl,-z,max-page-size=2097152 -Wl,-z,separate-code"},
    };
    for (size_t i = 0; i < 4; i++) {
        struct resolution r;
        fresh(NULL);
        key("profile", "linker", rows[i][0]);
        key("profile", "text-alignment", "2M");
        resolve_ok(target(FLAVOUR_MYSQL, 8, 0, 45), &r);
        assert_arg(&r, "CMAKE_EXE_LINKER_FLAGS", rows[i][1]);
        assert_arg(&r, "WITH_MYSQLD_LDFLAGS", NULL);
        resolution_free(&r);
    }
}

static void two_segments_without_pie(void **state)
{
    (void)state;
    struct resolution r;
    key("profile", "separate-code", "no");
    key("profile", "pie", "no");
    key("profile", "server-link-flags", "-lhugetlbfs");
    resolve_ok(target(FLAVOUR_MARIADB, 10, 11, 18), &r);
    assert_arg(&r, "WITH_MYSQLD_LDFLAGS",
               "-fuse-ld=bfd -Wl,-z,noseparate-code -no-pie -lhugetlbfs");
    resolution_free(&r);
}

static void assert_refused(const char *word)
{
    struct resolution r;
    struct err e = {0};
    struct target t = target(FLAVOUR_MARIADB, 10, 11, 18);
    assert_int_equal(resolve(&profile, &t, &r, &e), -1);
    assert_int_equal(e.code, EXIT_CANNOT_ASK);
    assert_non_null(strstr(e.msg, "test.ini:7"));
    assert_non_null(strstr(e.msg, word));
}

static void wrong_values_name_their_line(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"linker", "ld"},
        {"optimisation", "-O9"},
        {"text-alignment", "3M"},
        {"text-alignment", "huge"},
        {"pie", "maybe"},
        {"separate-code", "perhaps"},
        {"pad", "2M"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fresh(NULL);
        key("profile", rows[i][0], rows[i][1]);
        assert_refused(rows[i][1]);
    }
}

static void gold_cannot_join_code(void **state)
{
    (void)state;
    key("profile", "linker", "gold");
    key("profile", "separate-code", "no");
    assert_refused("separate-code");
}

static void padding_is_off_unless_asked_for_and_needs_alignment(void **state)
{
    (void)state;
    struct resolution r;
    struct target t = target(FLAVOUR_MARIADB, 10, 11, 18);
    resolve_ok(t, &r);
    assert_false(r.pad);
    assert_string_equal(r.pad_origin, "kiln");
    resolution_free(&r);
    key("profile", "pad", "yes");
    assert_refused("text-alignment = 2M");
    key("profile", "text-alignment", "2M");
    resolve_ok(t, &r);
    assert_true(r.pad);
    assert_string_equal(r.pad_origin, "test.ini:7");
    resolution_free(&r);
    key("profile", "separate-code", "no");
    assert_refused("separate-code = no");
    profile.n--;
    key("profile", "linker", "gold");
    assert_refused("gold puts data");
    fresh(NULL);
    key("profile", "pad", "no");
    resolve_ok(t, &r);
    assert_false(r.pad);
    assert_string_equal(r.pad_origin, "test.ini:7");
    resolution_free(&r);
}

static void mysql_linker_options_follow_the_version(void **state)
{
    (void)state;
    struct resolution r;
    resolve_ok(target(FLAVOUR_MYSQL, 8, 0, 30), &r);
    assert_arg(&r, "USE_LD_GOLD", "OFF");
    assert_arg(&r, "USE_LD_LLD", "OFF");
    resolution_free(&r);
    resolve_ok(target(FLAVOUR_MYSQL, 8, 0, 31), &r);
    assert_arg(&r, "USE_LD_GOLD", NULL);
    assert_arg(&r, "USE_LD_LLD", "OFF");
    resolution_free(&r);
    resolve_ok(target(FLAVOUR_MYSQL, 8, 4, 0), &r);
    assert_arg(&r, "USE_LD_LLD", NULL);
    resolution_free(&r);
}

static void boost_of_the_tree_is_for_mysql_alone(void **state)
{
    (void)state;
    struct resolution r;
    struct target my = target(FLAVOUR_MYSQL, 8, 0, 45), maria = target(FLAVOUR_MARIADB, 10, 11, 18);
    my.boost = maria.boost = "/src/boost";
    resolve_ok(my, &r);
    assert_arg(&r, "WITH_BOOST", "/src/boost");
    resolution_free(&r);
    resolve_ok(maria, &r);
    assert_arg(&r, "WITH_BOOST", NULL);
    resolution_free(&r);
}

static void profile_options_come_last(void **state)
{
    (void)state;
    struct resolution r;
    key("cmake", "MYSQL_MAINTAINER_MODE", "ON");
    key("cmake.mysql", "WITH_LTO", "ON");
    resolve_ok(target(FLAVOUR_MARIADB, 10, 11, 18), &r);
    assert_arg(&r, "MYSQL_MAINTAINER_MODE", "ON");
    assert_arg(&r, "WITH_LTO", NULL);
    resolution_free(&r);
}

static void sections_match_versions(void **state)
{
    (void)state;
    struct version v = {8, 0, 31};
    assert_int_equal(cmake_section_applies("cmake", FLAVOUR_MYSQL, v), 1);
    assert_int_equal(cmake_section_applies("cmake.mysql", FLAVOUR_MYSQL, v), 1);
    assert_int_equal(cmake_section_applies("cmake.mariadb", FLAVOUR_MYSQL, v), 0);
    assert_int_equal(cmake_section_applies("cmake.mysql<8.0.31", FLAVOUR_MYSQL, v), 0);
    assert_int_equal(cmake_section_applies("cmake.mysql<=8.0.31", FLAVOUR_MYSQL, v), 1);
    assert_int_equal(cmake_section_applies("cmake.mysql>=8", FLAVOUR_MYSQL, v), 1);
    assert_int_equal(cmake_section_applies("cmake.mysql>8.1", FLAVOUR_MYSQL, v), 0);
    assert_int_equal(cmake_section_applies("cmake.mysql<new", FLAVOUR_MYSQL, v), -1);
    assert_int_equal(cmake_section_applies("profile", FLAVOUR_MYSQL, v), -1);
}

static void last_level_wins(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"g++ -O3 -g -O2 -c x.cc", "-O2"}, {"g++ -O2 -DX=-O3 -c x.cc", "-O2"},
        {"g++ -c x.cc", "none"},           {"g++ -O -c x.cc", "-O1"},
        {"g++ -c x.cc -Ofast", "-Ofast"},  {"g++ -Os -I/a-O2/b -c x.cc", "-Os"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char level[12];
        last_level(rows[i][0], level, sizeof level);
        assert_string_equal(level, rows[i][1]);
    }
}

static void levels_must_be_the_wanted_ones(void **state)
{
    (void)state;
    struct err e = {0};
    struct levels good = {.rows = {{"-O2", 9, 5}, {"-O3", 2, 0}}, .n = 2};
    struct levels bad = {.rows = {{"-O2", 9, 5}, {"-O3", 2, 1}}, .n = 2};
    struct levels none = {.rows = {{"-O2", 9, 0}}, .n = 1};
    assert_int_equal(levels_verify(&good, "-O2", &e), 0);
    assert_int_equal(levels_verify(&bad, "-O2", &e), -1);
    assert_non_null(strstr(e.msg, "1 of 6 server files are compiled with -O3"));
    assert_int_equal(levels_verify(&none, "-O2", &e), -1);
}

static void known_causes_have_hints(void **state)
{
    (void)state;
    assert_non_null(strstr(hint_for("x.cc:1: fatal error: numa.h: No such file"), "libnuma-dev"));
    assert_non_null(strstr(hint_for("ld: cannot find -lhugetlbfs"), "libhugetlbfs-dev"));
    assert_null(hint_for("x.cc:1: error: expected ';'"));
    assert_true(is_error_line("x.cc:1:2: error: expected ';'"));
    assert_false(is_error_line("[3/9] Building CXX object x.cc.o"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, fresh)
    const struct CMUnitTest tests[] = {
        T(empty_profile_pins_linker_and_level),
        T(level_goes_to_the_build_type_with_its_origin),
        T(each_linker_gets_only_what_it_knows),
        T(two_segments_without_pie),
        T(wrong_values_name_their_line),
        T(gold_cannot_join_code),
        T(padding_is_off_unless_asked_for_and_needs_alignment),
        T(mysql_linker_options_follow_the_version),
        T(boost_of_the_tree_is_for_mysql_alone),
        T(profile_options_come_last),
        T(sections_match_versions),
        T(last_level_wins),
        T(levels_must_be_the_wanted_ones),
        T(known_causes_have_hints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
