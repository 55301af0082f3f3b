#include "common/opt.h"
#include "common/err.h"
#include "common/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(const struct command *c)
{
    printf("usage: %s %s\n\n%s\n\noptions:\n", c->name, c->synopsis, c->about);
    for (const struct opt *o = c->opts; o->name; o++) {
        char left[80];
        int n = o->letter ? snprintf(left, sizeof left, "-%c, --%s", o->letter, o->name)
                          : snprintf(left, sizeof left, "    --%s", o->name);
        if (o->arg)
            snprintf(left + n, sizeof left - (size_t)n, "=%s", o->arg);
        printf(strlen(left) > 30 ? "  %s\n%33s%s\n" : "  %-30s %.0s%s\n", left, "", o->help);
    }
    printf("  -h, --help                     this text\n");
    if (c->examples)
        printf("\nexamples:\n%s\n", c->examples);
    printf(
        "\nexit codes: 0 yes, 1 no, 2 could not ask, 3 cannot know, 77 not possible on this host, "
        "130 interrupted\n");
}

static _Noreturn void usage(const struct command *c, const char *what, const char *word)
{
    die(EXIT_CANNOT_ASK, "%s%s%s; see '%s --help'", word, *word ? ": " : "", what, c->name);
}

static void store(const struct command *c, const struct opt *o, const char *value)
{
    int rc = 0;
    switch (o->kind) {
    case OPT_FLAG:
        *(bool *)o->dst = true;
        break;
    case OPT_STR:
        *(const char **)o->dst = value;
        break;
    case OPT_LIST:
        strv_add(o->dst, value);
        break;
    case OPT_UINT:
        rc = parse_u64(value, o->dst);
        break;
    case OPT_DOUBLE:
        rc = parse_double(value, o->dst);
        break;
    }
    if (rc)
        die(EXIT_CANNOT_ASK, "--%s=%s: not a number; see '%s --help'", o->name, value, c->name);
}

static const struct opt *find(const struct command *c, const char *name, size_t n, char letter)
{
    for (const struct opt *o = c->opts; o->name; o++)
        if (letter ? o->letter == letter : strlen(o->name) == n && !strncmp(o->name, name, n))
            return o;
    return NULL;
}

// One option at argv[*i]; moves *i on when the value is the next word.
static void take(const struct command *c, int argc, char **argv, int *i)
{
    char *word = argv[*i];
    bool is_long = word[1] == '-';
    char *eq = is_long ? strchr(word, '=') : NULL;
    const struct opt *o =
        is_long ? find(c, word + 2, eq ? (size_t)(eq - word - 2) : strlen(word + 2), 0)
                : find(c, "", 0, word[1]);
    if (!o)
        usage(c, "no such option", word);
    const char *value = eq ? eq + 1 : !is_long && word[2] ? word + 2 : NULL;
    if (o->kind == OPT_FLAG && value)
        usage(c, "takes no value", word);
    if (o->kind != OPT_FLAG && !value) {
        if (*i + 1 >= argc)
            usage(c, "needs a value", word);
        value = argv[++*i];
    }
    store(c, o, value);
}

void opt_parse(const struct command *c, int argc, char **argv, struct strv *args, struct strv *rest)
{
    int i = 1;
    for (; i < argc; i++) {
        if (!strcmp(argv[i], "--"))
            break;
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            print_help(c);
            exit(EXIT_YES);
        }
        if (argv[i][0] == '-' && argv[i][1])
            take(c, argc, argv, &i);
        else
            strv_add(args, argv[i]);
    }
    if (i < argc && !rest)
        usage(c, "takes no arguments after", "--");
    for (i++; i < argc; i++)
        strv_add(rest, argv[i]);
    if (args->n < c->min_args)
        usage(c, "an argument is missing", "");
    if (args->n > c->max_args)
        usage(c, "one argument too many", args->v[c->max_args]);
}

int verb_main(const char *program, const char *about, const struct verb *verbs, int argc,
              char **argv)
{
    err_program(program);
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *word = argc > 1 ? argv[1] : "--help";
    if (!strcmp(word, "--version")) {
        printf("%s %s\n", program, KILN_VERSION);
        return EXIT_YES;
    }
    for (const struct verb *v = verbs; v->name; v++)
        if (!strcmp(v->name, word))
            return v->run(argc - 1, argv + 1);
    if (strcmp(word, "--help") && strcmp(word, "-h"))
        die(EXIT_CANNOT_ASK, "%s: no such command; see '%s --help'", word, program);
    printf("usage: %s COMMAND [OPTIONS]\n\n%s\n\ncommands:\n", program, about);
    for (const struct verb *v = verbs; v->name; v++)
        printf("  %-12s %s\n", v->name, v->help);
    printf("\n'%s COMMAND --help' explains one.\n", program);
    return argc > 1 ? EXIT_YES : EXIT_CANNOT_ASK;
}
