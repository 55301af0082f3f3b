#include "elfcheck/dwarf_facts.h"
#include "common/str.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

const char *const opt_level_names[OPT_LEVELS] = {
    [OPT_O0] = "O0",       [OPT_O1] = "O1", [OPT_O2] = "O2", [OPT_O3] = "O3",
    [OPT_OFAST] = "Ofast", [OPT_OS] = "Os", [OPT_OZ] = "Oz", [OPT_OG] = "Og"};

static enum opt_level level_of(const char *word)
{
    if (!strcmp(word, "-O"))
        return OPT_O1;
    for (int i = 0; i < OPT_LEVELS; i++)
        if (!strcmp(word + 1, opt_level_names[i]))
            return (enum opt_level)i;
    return OPT_O3; // -O4 and above mean -O3
}

// The last -O on the line wins. A producer that records flags and has none was run without: -O0.
static void add_level(struct dwarf_facts *d, const char *producer)
{
    struct strv words = {0};
    bool flags = false;
    enum opt_level level = OPT_O0;
    strv_split(&words, producer, " ");
    for (size_t i = 0; i < words.n; i++) {
        flags |= words.v[i][0] == '-';
        if (starts_with(words.v[i], "-O"))
            level = level_of(words.v[i]);
    }
    strv_free(&words);
    if (flags)
        d->by_level[level]++;
    else
        d->level_unknown++;
}

void dwarf_facts_add(struct dwarf_facts *d, const char *producer)
{
    if (producer && starts_with(producer, "GNU AS"))
        return;
    d->units++;
    add_level(d, producer ? producer : "");
    if (producer && starts_with(producer, "GNU "))
        d->gcc++;
    else if (producer && strstr(producer, "clang version"))
        d->clang++;
    else
        d->other_compiler++;
}

// clang's assembler names its producer as the compiler does; only the language tells.
static bool is_assembler(Dwarf_Die *cu)
{
    return dwarf_srclang(cu) == DW_LANG_Mips_Assembler;
}

static void read_units(Dwarf *dw, struct dwarf_facts *d)
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;
    uint8_t type;
    while (dwarf_get_units(dw, cu, &cu, NULL, &type, &die, NULL) == 0) {
        bool compiled = (type == DW_UT_compile || type == DW_UT_skeleton) &&
                        dwarf_tag(&die) != DW_TAG_partial_unit;
        if (!compiled || is_assembler(&die))
            continue;
        Dwarf_Attribute attr;
        dwarf_facts_add(d, dwarf_formstring(dwarf_attr(&die, DW_AT_producer, &attr)));
    }
}

int dwarf_facts_read(const char *path, struct dwarf_facts *d, struct err *e)
{
    *d = (struct dwarf_facts){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_sys(e, EXIT_CANNOT_ASK, "%s", path);
    Dwarf *dw = dwarf_begin(fd, DWARF_C_READ); // NULL: no debug information, or none that is whole
    if (dw)
        read_units(dw, d);
    dwarf_end(dw);
    close(fd);
    return 0;
}
