// kiln VERB runs the program that owns the verb, as git does.
#include "common/err.h"
#include "common/store.h"
#include "common/str.h"
#include "common/version.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *verb, *program, *help;
} verbs[] = {
    {"doctor", "kiln-launch", "what this host can do, and the command that mends each lack"},
    {"profiles", "kiln-build", "the build profiles, or one of them resolved for a source"},
    {"build", "kiln-build", "build a server from source with a profile"},
    {"list", "kiln-build", "the builds in the store"},
    {"remove", "kiln-build", "remove a build from the store"},
    {"check", "kiln-check",
     "what an ELF file is, what its text can do, and whether it keeps its profile's promises"},
    {"launch", "kiln-launch",
     "start a server under stated conditions, verified on the live process"},
    {"restore", "kiln-launch", "undo what a killed run left behind"},
    {"bench", "kiln-bench", "measure one subject with some workloads"},
    {"compare", "kiln-compare", "measure subjects side by side"},
    {"report", "kiln-report", "print a result again, in another form"},
};

static void help(void)
{
    printf("usage: kiln COMMAND [OPTIONS]\n\n"
           "From MySQL or MariaDB source to tuned server binaries, proven and "
           "compared.\n\ncommands:\n");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        printf("  %-10s %s\n", verbs[i].verb, verbs[i].help);
    printf("\n'kiln COMMAND --help' explains one. Results and builds are kept in %s\n"
           "(KILN_HOME=DIR chooses another place).\n",
           store_home());
}

int main(int argc, char **argv)
{
    err_program("kiln");
    const char *word = argc > 1 ? argv[1] : "--help";
    if (!strcmp(word, "--version")) {
        printf("kiln %s\n", KILN_VERSION);
        return EXIT_YES;
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
        help();
        return argc > 1 ? EXIT_YES : EXIT_CANNOT_ASK;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(verbs[i].verb, word))
            continue;
        char *path = xasprintf("%s/%s", store_bin_dir(), verbs[i].program);
        argv[0] = path;
        execv(path, argv);
        die(EXIT_CANNOT_ASK, "%s: cannot run it: %s", path, strerror(errno));
    }
    die(EXIT_CANNOT_ASK, "%s: no such command; see 'kiln --help'", word);
}
