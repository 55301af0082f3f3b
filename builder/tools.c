#include "builder/tools.h"
#include "builder/child.h"
#include "common/fs.h"
#include "common/store.h"

#include <stdlib.h>
#include <string.h>

// Debian's packages.
static const char *const packages[][2] = {
    {"cmake", "cmake"},   {"ninja", "ninja-build"}, {"ccache", "ccache"},
    {"gcc", "gcc"},       {"g++", "g++"},           {"clang", "clang"},
    {"clang++", "clang"}, {"ld.bfd", "binutils"},   {"ld.gold", "binutils"},
    {"ld.lld", "lld"},    {"mold", "mold"},         {"sha256sum", "coreutils"},
};

static const char *const linker_programs[][2] = {
    {"bfd", "ld.bfd"}, {"gold", "ld.gold"}, {"lld", "ld.lld"}, {"mold", "mold"}};

// Versioned compilers come in packages of their own name.
static const char *package_of(const char *program)
{
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (!strcmp(packages[i][0], program))
            return packages[i][1];
    return program;
}

static int need(const char *program, const char *what, struct err *e)
{
    char *p = fs_find_program(program);
    free(p);
    return p ? 0
             : err_set(e, EXIT_CANNOT_ASK, "%s %s is not installed (Debian: apt-get install %s)",
                       what, program, package_of(program));
}

// The word after "VARIABLE " in set(VARIABLE word).
static char *set_value(const char *text, const char *variable)
{
    char *lead = xasprintf("set(%s ", variable);
    const char *p = strstr(text, lead);
    char *v = p ? xstrndup(p + strlen(lead), strcspn(p + strlen(lead), " )\n")) : NULL;
    free(lead);
    return v;
}

static char *version_line(const char *program)
{
    const char *argv[] = {program, "--version", NULL};
    return child_first_line(argv);
}

// The last word of "gcc (Debian 12.2.0-14) 12.2.0", or the number in "Debian clang version 14.0.6".
static struct version find_version(const char *line)
{
    struct version v = {0};
    struct strv words = {0};
    strv_split(&words, line, " ");
    for (size_t i = 0; i < words.n; i++) {
        size_t n = strspn(words.v[i], "0123456789.");
        words.v[i][n] = 0;
        version_parse(words.v[i], &v);
    }
    strv_free(&words);
    return v;
}

int tools_find(const char *toolchain, bool look, struct tools *t, struct err *e)
{
    *t = (struct tools){.toolchain_file = store_share("toolchains/%s.cmake", toolchain)};
    struct str text = {0};
    if (fs_read(t->toolchain_file, &text, e))
        return err_set(e, EXIT_CANNOT_ASK, "%s: no such toolchain (%s)", toolchain,
                       t->toolchain_file);
    t->cc = set_value(str_text(&text), "CMAKE_C_COMPILER");
    t->cxx = set_value(str_text(&text), "CMAKE_CXX_COMPILER");
    str_free(&text);
    if (!t->cc || !t->cxx)
        return err_set(e, EXIT_CANNOT_ASK,
                       "%s: no set(CMAKE_C_COMPILER ...) and set(CMAKE_CXX_COMPILER ...)",
                       t->toolchain_file);
    if (look && (need(t->cc, "the compiler", e) || need(t->cxx, "the compiler", e)))
        return -1;
    char *found = fs_find_program(t->cxx);
    t->compiler = found ? version_line(t->cxx) : xstrdup("");
    t->compiler_version = find_version(t->compiler);
    free(found);
    return 0;
}

int tools_check(struct tools *t, const char *linker, struct err *e)
{
    const char *program = linker;
    for (size_t i = 0; i < sizeof linker_programs / sizeof *linker_programs; i++)
        if (!strcmp(linker_programs[i][0], linker))
            program = linker_programs[i][1];
    if (need("cmake", "the program", e) || need("ninja", "the program", e) ||
        need("ccache", "the program", e) || need("sha256sum", "the program", e) ||
        need(program, "the linker", e))
        return -1;
    t->linker = version_line(program);
    return 0;
}

void tools_free(struct tools *t)
{
    free(t->toolchain_file);
    free(t->cc);
    free(t->cxx);
    free(t->compiler);
    free(t->linker);
    *t = (struct tools){0};
}
