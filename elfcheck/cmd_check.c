#include "elfcheck/cmd_check.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/opt.h"
#include "common/store.h"
#include "common/sys.h"
#include "elfcheck/check_diff.h"
#include "elfcheck/check_print.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *profile_name, *rules_path, *page_size;
static struct strv required;
static uint64_t pid;
static bool layout_only, as_json, as_junit, diff, pad, unpad, list_rules;

static const struct opt options[] = {
    {"layout", 'l', OPT_FLAG, &layout_only, NULL, "segments and predictions only, at once"},
    {"require", 'r', OPT_LIST, &required, "RULE[=VALUE],...", "fail unless these rules pass"},
    {"profile", 'p', OPT_STR, &profile_name, "P", "verify the promises of this build profile"},
    {"rules", 0, OPT_STR, &rules_path, "FILE", "an INI file: [require] and [advise] RULE = VALUE"},
    {"list-rules", 0, OPT_FLAG, &list_rules, NULL, "print all rules and their values"},
    {"page-size", 0, OPT_STR, &page_size, "SIZE", "huge pages of another size: 1G, 32M, 512M"},
    {"pid", 0, OPT_UINT, &pid, "PID", "a live process: its program, and what of it is huge"},
    {"diff", 0, OPT_FLAG, &diff, NULL, "what differs between two files: facts, modes, sections"},
    {"pad", 0, OPT_FLAG, &pad, NULL, "extend the text segment over the padding behind it"},
    {"unpad", 0, OPT_FLAG, &unpad, NULL, "undo --pad"},
    {"json", 0, OPT_FLAG, &as_json, NULL, "print JSON (kiln.check/1)"},
    {"junit", 0, OPT_FLAG, &as_junit, NULL, "print the rules' results as JUnit XML"},
    {0},
};

static const struct command command = {
    .name = "kiln check",
    .synopsis = "[OPTIONS] FILE | BUILD | system | --pid=PID | --diff A B",
    .about =
        "Prints the load segments of an ELF file, by which ways its text can sit on huge pages "
        "and why\nnot, who built it and how, and whether it keeps rules: a profile's promises, "
        "or yours.\nExit code with rules: 0 all pass, 1 one fails, 3 none fails and one "
        "cannot be known. With --diff:\n0 nothing differs, 1 something does.",
    .opts = options,
    .min_args = 0,
    .max_args = 2,
    .examples = "  kiln check /usr/sbin/mariadbd\n"
                "  kiln check --layout --page-size=32M ./mysqld-of-arm\n"
                "  kiln check ./mysqld --require=modes=hugetlbfs:R+pagecache,relro=full,assertions "
                "--junit\n"
                "  kiln check --diff gcc-o2 clang-o2\n"
                "  kiln check --pid=$(pidof mariadbd) --json",
};

// --- what is asked ---

static int choose_file(const char *name, char **path, struct err *e)
{
    if (strchr(name, '/') || (fs_exists(name) && !fs_is_dir(name))) {
        *path = xstrdup(name);
        return 0;
    }
    struct build b;
    int rc = build_find(name, &b, e);
    if (rc == 0)
        *path = xstrdup(b.server);
    else if (strcmp(name, "system"))
        err_set(e, EXIT_CANNOT_ASK, "%s: no such file, and no such build in the store", name);
    build_free(&b);
    return rc;
}

static int choose_process(char **path, struct err *e)
{
    char *dir = xasprintf("/proc/%llu", (unsigned long long)pid);
    int rc = 0;
    if (!pid || pid > INT_MAX || !sys_exists(dir))
        rc = err_set(e, EXIT_CANNOT_ASK, "process %llu: no such process", (unsigned long long)pid);
    char *exe = xasprintf("%s/exe", dir);
    if (rc == 0)
        *path = sys_path(exe);
    free(exe);
    free(dir);
    return rc;
}

static int wish(struct check_wish *w, struct err *e)
{
    *w = (struct check_wish){.layout_only = layout_only};
    if (page_size && (parse_size(page_size, &w->huge) || !w->huge))
        return err_set(e, EXIT_CANNOT_ASK, "--page-size=%s: not a size such as 2M or 1G",
                       page_size);
    return 0;
}

static bool has_rules(void)
{
    return profile_name || rules_path || required.n;
}

static void check_usage(const struct strv *args)
{
    unsigned jobs = (unsigned)diff + pad + unpad;
    bool more = pid || layout_only || has_rules() || as_junit || jobs > 1 || (page_size && !diff);
    if (jobs && (more || args->n != (diff ? 2 : 1)))
        die(EXIT_CANNOT_ASK, "--%s takes %s and no other option than --json; see --help",
            diff  ? "diff"
            : pad ? "pad"
                  : "unpad",
            diff ? "two files" : "a file");
    if (!jobs && (args->n > 1 || !args->n == !pid))
        die(EXIT_CANNOT_ASK, "give one of FILE and --pid; see 'kiln check --help'");
    if (layout_only && (has_rules() || as_junit))
        die(EXIT_CANNOT_ASK, "--layout reads too little for rules; leave it out");
    if (as_junit && !has_rules())
        die(EXIT_CANNOT_ASK, "--junit prints results of rules: give --require, --rules or "
                             "--profile");
    if (as_junit && as_json)
        die(EXIT_CANNOT_ASK, "give one of --json and --junit");
}

// --- the answers ---

static int apply_rules(const struct check *c, struct profile *p, struct rule_results *r,
                       struct err *e)
{
    if (profile_name && (profile_load(profile_name, p, e) || rules_profile(c, p, r, e)))
        return -1;
    if (rules_path && rules_file(c, rules_path, r, e))
        return -1;
    for (size_t i = 0; i < required.n; i++)
        if (rules_require(c, required.v[i], r, e))
            return -1;
    return 0;
}

static void print(const struct check_output *o)
{
    if (as_junit) {
        check_print_junit(o);
    } else if (as_json) {
        json_t *j = check_json(o);
        json_print(j);
        json_decref(j);
    } else {
        check_print_text(o);
    }
}

static int exit_code_of(const struct rule_results *r)
{
    static const int codes[] = {
        [ANSWER_YES] = EXIT_YES, [ANSWER_NO] = EXIT_NO, [ANSWER_CANNOT_KNOW] = EXIT_CANNOT_KNOW};
    return has_rules() ? codes[rules_verdict(r)] : EXIT_YES;
}

static int answer(const struct check *c, const struct live *live)
{
    struct rule_results rules = {0}, advice = {0};
    struct profile profile = {0};
    struct err e = {0};
    int rc = apply_rules(c, &profile, &rules, &e);
    if (rc == 0) {
        if (c->whole)
            rules_advice(c, &advice);
        struct check_output o = {.c = c,
                                 .live = live,
                                 .rules = has_rules() ? &rules : NULL,
                                 .advice = c->whole ? &advice : NULL,
                                 .profile = profile.name,
                                 .colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR")};
        print(&o);
        rc = exit_code_of(&rules);
    } else {
        rc = err_report(&e);
    }
    profile_free(&profile);
    rules_free(&rules);
    rules_free(&advice);
    return rc;
}

// "/proc/PID/exe" opens the program even when its file was deleted; people want its name.
static void name_program(struct elf_facts *f)
{
    char target[PATH_MAX];
    ssize_t n = readlink(f->path, target, sizeof target - 1);
    if (n > 0) {
        free(f->path);
        f->path = xstrndup(target, (size_t)n);
    }
}

static int check_one(const char *name)
{
    struct err e = {0};
    struct check_wish w;
    struct check c = {0};
    struct live live = {0};
    char *path = NULL;
    int rc = wish(&w, &e) || (name ? choose_file(name, &path, &e) : choose_process(&path, &e)) ||
             check_gather(path, &w, &c, &e);
    if (rc == 0 && !name)
        rc = live_read((pid_t)pid, &c.elf, &live, &e);
    if (rc == 0 && !name)
        name_program(&c.elf);
    rc = rc ? err_report(&e) : answer(&c, name ? NULL : &live);
    live_free(&live);
    check_free(&c);
    free(path);
    return rc;
}

static int check_two(const struct strv *names)
{
    struct err e = {0};
    struct check_wish w;
    struct check c[2] = {0};
    char *paths[2] = {0};
    int rc = wish(&w, &e);
    for (size_t i = 0; i < 2 && rc == 0; i++)
        rc = choose_file(names->v[i], &paths[i], &e) || check_gather(paths[i], &w, &c[i], &e);
    if (rc)
        rc = err_report(&e);
    else
        rc = check_diff(&c[0], &c[1], as_json) ? EXIT_NO : EXIT_YES;
    for (size_t i = 0; i < 2; i++) {
        check_free(&c[i]);
        free(paths[i]);
    }
    return rc;
}

static int pad_one(const char *path)
{
    struct err e = {0};
    struct pad_result r;
    if (pad ? pad_file(path, HUGE_2M, &r, &e) : unpad_file(path, HUGE_2M, &r, &e))
        return err_report(&e);
    if (as_json) {
        json_t *j = pad_json(path, &r);
        json_print(j);
        json_decref(j);
    } else {
        pad_print(path, &r, stdout);
    }
    return EXIT_YES;
}

// Files are read by mapping them: one that gets shorter meanwhile raises this.
static void on_bus_error(int signal)
{
    (void)signal;
    static const char text[] = "kiln-check: the file changed while it was read\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(EXIT_CANNOT_ASK);
    _exit(EXIT_CANNOT_ASK);
}

int cmd_check(int argc, char **argv)
{
    struct strv args = {0};
    int rc = EXIT_YES;
    opt_parse(&command, argc, argv, &args, NULL);
    signal(SIGBUS, on_bus_error);
    if (list_rules) {
        rules_list();
    } else {
        check_usage(&args);
        rc = diff           ? check_two(&args)
             : pad || unpad ? pad_one(args.v[0])
                            : check_one(args.n ? args.v[0] : NULL);
    }
    strv_free(&args);
    return rc;
}
