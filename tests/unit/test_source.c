// Telling MariaDB from MySQL, versions, and apt's source lists.
#include "builder/apt.h"
#include "builder/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NUMBERS(a, b, c)                                                                           \
    "MYSQL_VERSION_MAJOR=" #a "\nMYSQL_VERSION_MINOR=" #b "\nMYSQL_VERSION_PATCH=" #c "\n"

static void flavours_are_told_by_content(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool known;
        enum flavour flavour;
        struct version version;
    } rows[] = {
        {NUMBERS(10, 11, 18) "SERVER_MATURITY=stable\n", true, FLAVOUR_MARIADB, {10, 11, 18}},
        {NUMBERS(8, 0, 45) "MYSQL_VERSION_EXTRA=\nMYSQL_VERSION_STABILITY=\"LTS\"\n",
         true,
         FLAVOUR_MYSQL,
         {8, 0, 45}},
        {NUMBERS(9, 1, 0) "MYSQL_VERSION_MATURITY=\"INNOVATION\"\n",
         true,
         FLAVOUR_MYSQL,
         {9, 1, 0}},
        {NUMBERS(5, 7, 44) "MYSQL_VERSION_EXTRA=\n", true, FLAVOUR_MYSQL, {5, 7, 44}},
        {NUMBERS(10, 11, 18), false, 0, {0}},
        {"VERSION=1.2\n", false, 0, {0}},
        {"", false, 0, {0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum flavour f = FLAVOUR_NONE;
        struct version v = {0};
        assert_int_equal(source_read_version(rows[i].text, &f, &v), rows[i].known);
        if (!rows[i].known)
            continue;
        assert_int_equal(f, rows[i].flavour);
        assert_int_equal(version_compare(v, rows[i].version), 0);
    }
}

static void versions_are_whole(void **state)
{
    (void)state;
    struct version v;
    assert_true(version_parse("8.0.45", &v));
    assert_int_equal(v.patch, 45);
    assert_true(version_parse("8", &v));
    assert_false(version_parse("8.0.45-log", &v));
    assert_false(version_parse("8.", &v));
    assert_false(version_parse("", &v));
    assert_true(version_compare((struct version){8, 0, 9}, (struct version){8, 0, 10}) < 0);
}

static void names_carry_flavour_and_version(void **state)
{
    (void)state;
    enum flavour f;
    struct version v;
    assert_true(source_parse_name("mysql-8.0.45", &f, &v));
    assert_int_equal(f, FLAVOUR_MYSQL);
    assert_false(source_parse_name("postgres-17.1", &f, &v));
    assert_false(source_parse_name("mariadb-", &f, &v));
}

static void one_line_lists_keep_this_release(void **state)
{
    (void)state;
    struct str out = {0};
    const char *text =
        "# deb http://mirror.example.org/debian bookworm main\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://mirror.example.org/debian bookworm "
        "main contrib\n"
        "deb http://mirror.example.org/debian trixie main\n"
        "deb https://packages.example.org/apt bookworm main\n"
        "deb http://security.example.org/debian-security bookworm-security main\n";
    assert_int_equal(apt_convert_list(text, "debian", "bookworm", &out), 2);
    assert_string_equal(out.s, "Types: deb-src\nURIs: http://mirror.example.org/debian\n"
                               "Suites: bookworm\nComponents: main contrib\nSigned-By: /k.gpg\n\n"
                               "Types: deb-src\nURIs: http://security.example.org/debian-security\n"
                               "Suites: bookworm-security\nComponents: main\n\n");
    str_free(&out);
}

static void deb822_stanzas_keep_their_key(void **state)
{
    (void)state;
    struct str out = {0};
    const char *text = "Types: deb\nURIs: http://mirror.example.org/debian\n"
                       "Suites: bookworm bookworm-updates trixie\nComponents: main\n"
                       "Signed-By:\n -----BEGIN-----\n .\n x\n"
                       "\nTypes: deb\nURIs: https://deb.example.com/node\nSuites: bookworm\n"
                       "Components: main\n"
                       "\nEnabled: no\nTypes: deb\nURIs: http://x/debian\nSuites: bookworm\n"
                       "Components: main\n";
    assert_int_equal(apt_convert_deb822(text, "debian", "bookworm", &out), 1);
    assert_string_equal(out.s, "Types: deb-src\nURIs: http://mirror.example.org/debian\n"
                               "Suites: bookworm bookworm-updates\nComponents: main\n"
                               "Signed-By:\n -----BEGIN-----\n .\n x\n\n");
    str_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flavours_are_told_by_content),
        cmocka_unit_test(versions_are_whole),
        cmocka_unit_test(names_carry_flavour_and_version),
        cmocka_unit_test(one_line_lists_keep_this_release),
        cmocka_unit_test(deb822_stanzas_keep_their_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
