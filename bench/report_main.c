// kiln-report: a result again, in another form.
#include "bench/report.h"
#include "common/json.h"
#include "common/opt.h"

static const char *format = "text";

static const struct opt opts[] = {
    {"format", 'f', OPT_STR, &format, "NAME", "text (default), markdown, csv, tsv or json"},
    {.name = NULL},
};

static const struct command command = {
    .name = "kiln report",
    .synopsis = "[--format=NAME] FILE",
    .about =
        "Prints the table of a comparison again, computed from the rounds in its compare.json.\n"
        "Ratios are subject / base; a verdict never claims more than its interval supports.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .examples = "  kiln report --format=markdown compare.json\n",
};

static int cmd_report(int argc, char **argv)
{
    struct strv args = {0};
    struct err e = {0};
    struct report r = {0};
    opt_parse(&command, argc, argv, &args, NULL);
    json_t *root =
        report_format_check(format, &e) ? NULL : json_open(args.v[0], "kiln.compare/1", &e);
    int code = !root || report_model(root, &r, &e) ? err_report(&e) : EXIT_YES;
    if (code == EXIT_YES)
        report_print(&r, format, stdout);
    report_free(&r);
    json_decref(root);
    strv_free(&args);
    return code;
}

int main(int argc, char **argv)
{
    static const struct verb verbs[] = {
        {"report", cmd_report, "print a result again, in another form"}, {.name = NULL}};
    return verb_main("kiln-report", "Prints results.", verbs, argc, argv);
}
