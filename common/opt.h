// One option table for every command: it parses, checks and makes --help.
#ifndef KILN_OPT_H
#define KILN_OPT_H

#include "common/str.h"

#include <stdbool.h>
#include <stdint.h>

enum opt_kind { OPT_FLAG, OPT_STR, OPT_LIST, OPT_UINT, OPT_DOUBLE };

struct opt {
    const char *name; // long name, without dashes
    char letter;      // 0: none
    enum opt_kind kind;
    void *dst;        // bool, const char *, struct strv, uint64_t or double
    const char *arg;  // word for the value in --help, NULL for flags
    const char *help; // one line
};

struct command {
    const char *name;            // "kiln build"
    const char *synopsis;        // "[OPTIONS] --source DIR --profile NAME"
    const char *about;           // paragraphs for --help
    const struct opt *opts;      // ends with a row whose name is NULL
    unsigned min_args, max_args; // positional arguments; max_args UINT_MAX: any number
    const char *examples;        // NULL or lines
};

// Parses argv[1..]; positional arguments go to *args, those after "--" to *rest (NULL: "--" is not
// taken). --help prints and exits 0; a wrong option prints one line and exits 2.
void opt_parse(const struct command *cmd, int argc, char **argv, struct strv *args,
               struct strv *rest);

// A program with verbs.
struct verb {
    const char *name;
    int (*run)(int argc, char **argv); // argv[0] is the verb
    const char *help;
};
// Runs argv[1] of the table (ends with a NULL name), or prints usage. Sets the program name.
int verb_main(const char *program, const char *about, const struct verb *verbs, int argc,
              char **argv);

#endif
