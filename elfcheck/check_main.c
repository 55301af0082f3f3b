// kiln-check: what an ELF file is, what its text can do, and whether it keeps its promises.
#include "elfcheck/cmd_check.h"
#include "common/err.h"
#include "common/opt.h"

#include <string.h>

static const struct verb verbs[] = {
    {"check", cmd_check, "facts, predictions and a profile's promises on an ELF file"},
    {0},
};

// Called by kiln with the verb; by itself the verb may be left out.
static bool verb_left_out(int argc, char **argv)
{
    static const char *const own[] = {"check", "--version"};
    for (size_t i = 0; argc > 1 && i < sizeof own / sizeof *own; i++)
        if (!strcmp(argv[1], own[i]))
            return false;
    return argc > 1;
}

int main(int argc, char **argv)
{
    if (!verb_left_out(argc, argv))
        return verb_main("kiln-check",
                         "Reads ELF files of any machine; changes only what --pad is given.", verbs,
                         argc, argv);
    err_program("kiln-check");
    return cmd_check(argc, argv);
}
