#include "elfcheck/cmd_check.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/opt.h"
#include "common/store.h"
#include "common/sys.h"
#include "common/table.h"
#include "elfcheck/coverage.h"
#include "elfcheck/rules.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name, *letters; // letters of HUGETLB_ELFMAP; NULL: the page cache
} modes[] = {{"hugetlbfs:R", "R"}, {"hugetlbfs:RW", "RW"}, {"pagecache", NULL}};
enum { NMODES = sizeof modes / sizeof *modes };

static const char *profile_name;
static uint64_t pid;
static bool as_json;

static const struct opt options[] = {
    {"profile", 'p', OPT_STR, &profile_name, "P", "verify the promises of this build profile"},
    {"pid", 0, OPT_UINT, &pid, "PID", "a live process: its program, and how much text is huge"},
    {"json", 0, OPT_FLAG, &as_json, NULL, "print JSON (kiln.check/1)"},
    {0},
};

static const struct command command = {
    .name = "kiln check",
    .synopsis = "[OPTIONS] FILE | BUILD | system | --pid=PID",
    .about = "Prints the load segments of an ELF file, whether its text can sit on 2 MiB pages and "
             "why not,\nwho compiled and linked it and how, and whether it keeps a profile's "
             "promises.\nExit code with --profile: 0 all pass, 1 one fails, 3 none fails and one "
             "cannot be known.",
    .opts = options,
    .min_args = 0,
    .max_args = 1,
    .examples = "  kiln check /usr/sbin/mariadbd\n"
                "  kiln check gcc-o2-hugetext --profile=gcc-o2-hugetext\n"
                "  kiln check --pid=$(pidof mariadbd) --json",
};

// All that is known, gathered before the first line is printed.
struct report {
    struct elf_facts elf;
    struct dwarf_facts dwarf;
    unsigned segment_limit;
    struct err no_limit; // why it is not known
    struct prediction modes[NMODES];
    struct profile profile; // name is NULL without --profile
    struct check_result promises;
    struct coverage live; // with --pid
};

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

static void predict(struct report *r)
{
    r->segment_limit = libhugetlbfs_segment_limit(&r->no_limit);
    for (size_t i = 0; i < NMODES; i++) {
        if (modes[i].letters)
            predict_hugetlbfs(&r->elf, modes[i].letters, r->segment_limit, &r->modes[i]);
        else
            predict_pagecache(&r->elf, &r->modes[i]);
    }
}

static int gather(const char *path, struct report *r, struct err *e)
{
    if (profile_name && profile_load(profile_name, &r->profile, e))
        return -1;
    if (elf_facts_read(path, &r->elf, e) || dwarf_facts_read(path, &r->dwarf, e))
        return -1;
    if (pid && coverage_read((pid_t)pid, &r->elf, &r->live, e))
        return -1;
    if (pid)
        name_program(&r->elf);
    predict(r);
    struct check_subject s = {&r->elf, &r->dwarf, r->segment_limit};
    return profile_name ? check_promises(&s, &r->profile, &r->promises, e) : 0;
}

static void report_free(struct report *r)
{
    elf_facts_free(&r->elf);
    profile_free(&r->profile);
    check_result_free(&r->promises);
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static const char *or_unknown(const char *s)
{
    return s ? s : "cannot know";
}

static void flags_text(uint32_t flags, char out[8])
{
    snprintf(out, 8, "%s%s%s%s", flags & PF_R ? "R" : "", flags & PF_W ? "W" : "",
             flags & PF_X ? "E" : "", flags & 0x100000 ? "+H" : "");
}

static void print_segments(const struct elf_facts *f)
{
    static const char *const columns[] = {">LOAD",  ">OFFSET", ">ADDRESS", ">FILESZ",
                                          ">MEMSZ", ">ALIGN",  "FLAGS",    "CONGRUENT MOD 2 MiB",
                                          NULL};
    struct table *t = table_new(columns);
    for (size_t i = 0; i < f->nloads; i++) {
        const struct segment *s = &f->loads[i];
        const uint64_t numbers[] = {s->offset, s->vaddr, s->filesz, s->memsz, s->align};
        char cell[8][24];
        snprintf(cell[0], sizeof cell[0], "%zu", i);
        for (size_t j = 0; j < 5; j++)
            snprintf(cell[j + 1], sizeof cell[0], "0x%llx", (unsigned long long)numbers[j]);
        flags_text(s->flags, cell[6]);
        table_row(t, (const char *const[]){cell[0], cell[1], cell[2], cell[3], cell[4], cell[5],
                                           cell[6], segment_congruent(s, HUGE_2M) ? "yes" : "no"});
    }
    table_print(t, stdout);
}

static void print_levels(const struct dwarf_facts *d)
{
    printf("optimisation  ");
    const char *sep = "";
    for (int i = 0; i < OPT_LEVELS; i++) {
        if (!d->by_level[i])
            continue;
        printf("%s-%s in %zu", sep, opt_level_names[i], d->by_level[i]);
        sep = ", ";
    }
    if (d->level_unknown)
        printf("%snot recorded in %zu", sep, d->level_unknown);
    if (d->units)
        printf(" of %zu compilation units\n", d->units);
    else
        printf("cannot know: no debug information\n");
}

static void print_facts(const struct report *r)
{
    const struct elf_facts *f = &r->elf;
    char *needed = strv_join(&f->needed, " ");
    printf("file          %s\n", f->path);
    printf("type          %s, %s, %s-bit%s%s%s\n", elf_type_name(f), f->machine_name,
           f->is_64 ? "64" : "32", f->stripped ? ", stripped" : "",
           f->has_debug_info ? ", with debug information" : "",
           f->textrel ? ", with text relocations" : "");
    printf("compiler      %s%s%s%s\n", or_unknown(f->compiler), f->compiler ? " (" : "",
           f->compiler ? f->compiler_evidence : "", f->compiler ? ")" : "");
    printf("linker        %s%s%s%s\n", or_unknown(f->linker), f->linker ? " (" : "",
           f->linker ? f->linker_evidence : "", f->linker ? ")" : "");
    print_levels(&r->dwarf);
    printf("build-id      %s\n", f->build_id ? f->build_id : "none");
    printf("interpreter   %s\n", f->interp ? f->interp : "none");
    printf("libraries     %s\n", *needed ? needed : "none");
    free(needed);
}

static void print_modes(const struct report *r)
{
    if (r->segment_limit)
        printf("libhugetlbfs  %s, takes %u load segments\n", libhugetlbfs_path(), r->segment_limit);
    else
        printf("libhugetlbfs  %s\n", r->no_limit.msg);
    for (size_t i = 0; i < NMODES; i++) {
        const struct prediction *p = &r->modes[i];
        printf("%-13s %s: %s%.1f %% of the text on 2 MiB pages", modes[i].name,
               answer_word(p->answer), p->answer == ANSWER_CANNOT_KNOW ? "at most " : "",
               percent(p->text_huge_bytes, p->text_bytes));
        if (p->pages)
            printf(", %u pages of the pool", p->pages);
        printf("; %s\n", p->reason);
    }
}

static void print_live(const struct coverage *c)
{
    printf("process %-5llu %llu of %llu text bytes on 2 MiB pages (%.1f %%): hugetlb %llu, page "
           "cache %llu, tmpfs %llu, anonymous %llu\n",
           (unsigned long long)pid, (unsigned long long)c->huge, (unsigned long long)c->text,
           coverage_percent(c), (unsigned long long)c->hugetlb, (unsigned long long)c->file_pmd,
           (unsigned long long)c->shmem_pmd, (unsigned long long)c->anon_huge);
}

static void print_promises(const struct report *r)
{
    const struct check_result *c = &r->promises;
    printf("\npromises of %s: %s\n", r->profile.name,
           c->n ? verdict_word(check_verdict(c)) : "it makes none");
    for (size_t i = 0; i < c->n; i++) {
        const struct promise_result *p = &c->v[i];
        printf("  %-11s %s=%s: %s\n", verdict_word(p->answer), p->key, p->value, p->evidence);
        if (*p->advice)
            printf("  %-11s %s\n", "", p->advice);
    }
}

static void print_text(const struct report *r)
{
    print_facts(r);
    printf("text          %llu bytes\n\n", (unsigned long long)elf_text_bytes(&r->elf));
    print_segments(&r->elf);
    printf("\n");
    print_modes(r);
    if (pid)
        print_live(&r->live);
    if (r->profile.name)
        print_promises(r);
}

static json_t *segments_json(const struct elf_facts *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->nloads; i++) {
        const struct segment *s = &f->loads[i];
        char flags[8];
        flags_text(s->flags, flags);
        json_array_append_new(
            list, json_pack("{si ss sI sI sI sI sI sb sb sI}", "program_header", (int)s->index,
                            "flags", flags, "offset", (json_int_t)s->offset, "vaddr",
                            (json_int_t)s->vaddr, "filesz", (json_int_t)s->filesz, "memsz",
                            (json_int_t)s->memsz, "align", (json_int_t)s->align, "text",
                            segment_is_text(s), "congruent_2m", segment_congruent(s, HUGE_2M),
                            "slots_2m", (json_int_t)segment_slots(s, HUGE_2M)));
    }
    return list;
}

static json_t *modes_json(const struct report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < NMODES; i++) {
        const struct prediction *p = &r->modes[i];
        json_array_append_new(
            list, json_pack("{ss ss ss sI sI sf si}", "mode", modes[i].name, "answer",
                            answer_word(p->answer), "reason", p->reason, "text_bytes",
                            (json_int_t)p->text_bytes, "text_huge_bytes",
                            (json_int_t)p->text_huge_bytes, "text_huge_percent",
                            percent(p->text_huge_bytes, p->text_bytes), "pages", (int)p->pages));
    }
    return list;
}

static json_t *units_json(const struct dwarf_facts *d)
{
    json_t *levels = json_object();
    for (int i = 0; i < OPT_LEVELS; i++)
        if (d->by_level[i])
            json_object_set_new(levels, opt_level_names[i],
                                json_integer((json_int_t)d->by_level[i]));
    return json_pack("{sI so sI s{sI sI sI}}", "units", (json_int_t)d->units, "levels", levels,
                     "not_recorded", (json_int_t)d->level_unknown, "compilers", "gcc",
                     (json_int_t)d->gcc, "clang", (json_int_t)d->clang, "other",
                     (json_int_t)d->other_compiler);
}

static json_t *needed_json(const struct elf_facts *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->needed.n; i++)
        json_array_append_new(list, json_string(f->needed.v[i]));
    return list;
}

// An ELF file may hold any bytes where names are expected; JSON holds UTF-8 only.
static void set_text(json_t *o, const char *key, const char *s)
{
    json_t *v = s ? json_string(s) : json_null();
    json_object_set_new(o, key, v ? v : json_string("(not UTF-8)"));
}

static json_t *report_json(const struct report *r)
{
    const struct elf_facts *f = &r->elf;
    json_t *o = json_new("kiln.check/1");
    set_text(o, "file", f->path);
    set_text(o, "type", elf_type_name(f));
    set_text(o, "machine", f->machine_name);
    set_text(o, "build_id", f->build_id);
    set_text(o, "interpreter", f->interp);
    set_text(o, "compiler", f->compiler);
    set_text(o, "compiler_evidence", f->compiler_evidence);
    set_text(o, "linker", f->linker);
    set_text(o, "linker_evidence", f->linker_evidence);
    json_object_set_new(o, "bits", json_integer(f->is_64 ? 64 : 32));
    json_object_set_new(o, "pie", json_boolean(f->pie));
    json_object_set_new(o, "static", json_boolean(f->is_static));
    json_object_set_new(o, "stripped", json_boolean(f->stripped));
    json_object_set_new(o, "debug_info", json_boolean(f->has_debug_info));
    json_object_set_new(o, "text_relocations", json_boolean(f->textrel));
    json_object_set_new(o, "needed", needed_json(f));
    json_object_set_new(o, "optimisation", units_json(&r->dwarf));
    json_object_set_new(o, "text_bytes", json_integer((json_int_t)elf_text_bytes(f)));
    json_object_set_new(o, "segments", segments_json(f));
    json_object_set_new(
        o, "libhugetlbfs",
        json_pack("{ss? si}", "path", libhugetlbfs_path(), "segment_limit", (int)r->segment_limit));
    json_object_set_new(o, "modes", modes_json(r));
    if (pid) {
        json_object_set_new(o, "pid", json_integer((json_int_t)pid));
        json_object_set_new(o, "process", coverage_json(&r->live));
    }
    if (r->profile.name)
        json_object_set_new(o, "profile", check_result_json(&r->promises, &r->profile));
    return o;
}

static int exit_code_of(const struct report *r)
{
    static const int codes[] = {
        [ANSWER_YES] = EXIT_YES, [ANSWER_NO] = EXIT_NO, [ANSWER_CANNOT_KNOW] = EXIT_CANNOT_KNOW};
    return r->profile.name ? codes[check_verdict(&r->promises)] : EXIT_YES;
}

int cmd_check(int argc, char **argv)
{
    struct strv args = {0};
    struct err e = {0};
    char *path = NULL;
    opt_parse(&command, argc, argv, &args, NULL);
    if (!args.n == !pid)
        die(EXIT_CANNOT_ASK, "give one of FILE and --pid; see 'kiln check --help'");
    int rc = pid ? choose_process(&path, &e) : choose_file(args.v[0], &path, &e);
    struct report r = {0};
    if (rc == 0)
        rc = gather(path, &r, &e);
    if (rc) {
        rc = err_report(&e);
    } else if (as_json) {
        json_t *o = report_json(&r);
        json_print(o);
        json_decref(o);
        rc = exit_code_of(&r);
    } else {
        print_text(&r);
        rc = exit_code_of(&r);
    }
    report_free(&r);
    strv_free(&args);
    free(path);
    return rc;
}
