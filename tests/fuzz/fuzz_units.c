// libFuzzer's entry: what a child process that libdw may have been made to lose its mind in says.
#include "elfcheck/dwarf_facts.h"
#include "common/str.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dwarf_facts d = {0};
    char *lines = xstrndup((const char *)data, size);
    dwarf_facts_parse(&d, lines);
    size_t units = d.level_unknown, kinds = 0;
    for (int i = 0; i < OPT_LEVELS; i++)
        units += d.by_level[i];
    for (size_t i = 0; i < d.nkinds; i++)
        kinds += d.kinds[i].units;
    if (units != d.units || kinds != d.units || d.gcc + d.clang + d.other_compiler != d.units)
        abort();
    dwarf_facts_free(&d);
    free(lines);
    return 0;
}
