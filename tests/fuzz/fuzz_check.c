// libFuzzer's entry: a file from anywhere goes through the whole check, with its rules and output.
// Debug information is read in a child process, as the program does, for one input of
// KILN_FUZZ_CHILD (0: none), since a child costs more than all the rest.
#include "common/fs.h"
#include "elfcheck/check_print.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static void print_all(const struct check *c)
{
    struct rule_results rules = {0}, advice = {0};
    struct err e = {0};
    rules_require(
        c,
        "relro=full,optimisation=-O2,compiler=gcc,linker=bfd,text-alignment=2M,needed=libc,"
        "text-coverage=90,padded=yes,isa-level=x86-64-v2,host,modes=hugetlbfs:R",
        &rules, &e);
    rules_advice(c, &advice);
    struct check_output o = {.c = c, .rules = &rules, .advice = &advice, .colour = true};
    json_t *j = check_json(&o);
    if (!j)
        abort(); // every answer must be printable
    char *text = json_dumps(j, 0);
    if (!text)
        abort();
    free(text);
    json_decref(j);
    check_print_text(&o);
    check_print_junit(&o);
    rules_free(&rules);
    rules_free(&advice);
}

static uint64_t one_of(void)
{
    static uint64_t n;
    const char *s = getenv("KILN_FUZZ_CHILD");
    if (!n)
        n = s ? strtoull(s, NULL, 10) + 1 : 1;
    return n - 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint64_t seen;
    static FILE *quiet;
    struct check c;
    struct err e;
    if (!quiet && !(quiet = freopen("/dev/null", "w", stdout)))
        abort();
    if (check_gather_image("input", data, size, &c, &e))
        return 0;
    if (one_of() && seen++ % one_of() == 0) {
        dwarf_facts_free(&c.dwarf);
        dwarf_facts_read(&c.file, &c.dwarf);
    }
    print_all(&c);
    check_free(&c);
    return 0;
}
