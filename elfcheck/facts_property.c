// What .note.gnu.property says: branch protection, and the instructions that are needed.
#include "elfcheck/facts_private.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

struct properties {
    bool any, little, wide;
    uint32_t x86_features, aarch64_features, x86_isa;
};

static uint32_t word_at(const unsigned char *p, bool little)
{
    return little
               ? (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24
               : (uint32_t)p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
}

// Each property: type, size, and data padded to the class's word.
static void see_property(void *context, const char *owner, uint32_t type, struct bytes desc)
{
    struct properties *p = context;
    if (type != NT_GNU_PROPERTY_TYPE_0 || strcmp(owner, "GNU") != 0)
        return;
    p->any = true;
    for (size_t at = 0; at + 12 <= desc.n;) {
        uint32_t kind = word_at(desc.p + at, p->little), size = word_at(desc.p + at + 4, p->little);
        uint32_t value = word_at(desc.p + at + 8, p->little);
        if (kind == GNU_PROPERTY_X86_FEATURE_1_AND && size == 4)
            p->x86_features |= value;
        else if (kind == GNU_PROPERTY_AARCH64_FEATURE_1_AND && size == 4)
            p->aarch64_features |= value;
        else if (kind == GNU_PROPERTY_X86_ISA_1_NEEDED && size == 4)
            p->x86_isa |= value;
        uint64_t unit = p->wide ? 8 : 4;
        uint64_t next = at + 8 + ((uint64_t)size + unit - 1) / unit * unit;
        if (next > desc.n)
            return;
        at = (size_t)next;
    }
}

// The linker leaves a mark only where all objects had it, and the loader turns on only what is
// marked: no mark is no protection.
static void branch_protection_fact(struct reading *r, const struct properties *p)
{
    static const char name[] = "branch-protection";
    bool x86 = r->elf->machine == EM_X86_64 || r->elf->machine == EM_386;
    bool first = x86 ? p->x86_features & GNU_PROPERTY_X86_FEATURE_1_IBT
                     : p->aarch64_features & GNU_PROPERTY_AARCH64_FEATURE_1_BTI;
    bool second = x86 ? p->x86_features & GNU_PROPERTY_X86_FEATURE_1_SHSTK
                      : p->aarch64_features & GNU_PROPERTY_AARCH64_FEATURE_1_PAC;
    if (!x86 && r->elf->machine != EM_AARCH64) {
        fact_unknown(r->out, name, "%s marks none that kiln knows", r->elf->machine_name);
        return;
    }
    char *value = xasprintf("%s%s%s", first ? (x86 ? "IBT" : "BTI") : "",
                            first && second ? "+" : "", second ? (x86 ? "SHSTK" : "PAC") : "");
    if (*value)
        fact_known(r->out, name, value, ".note.gnu.property");
    else
        fact_known(r->out, name, "none", "%s",
                   p->any ? ".note.gnu.property marks none" : "no .note.gnu.property");
    free(value);
}

static const char *const isa_levels[] = {"baseline", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

// -march by level (x86-64 psABI, gcc's manual); those not here cannot be placed.
static const struct {
    const char *march;
    int level;
} marches[] = {
    {"x86-64", 0},     {"core2", 0},          {"x86-64-v2", 1},      {"nehalem", 1},
    {"westmere", 1},   {"sandybridge", 1},    {"ivybridge", 1},      {"silvermont", 1},
    {"goldmont", 1},   {"x86-64-v3", 2},      {"haswell", 2},        {"broadwell", 2},
    {"skylake", 2},    {"alderlake", 2},      {"znver1", 2},         {"znver2", 2},
    {"znver3", 2},     {"x86-64-v4", 3},      {"skylake-avx512", 3}, {"cascadelake", 3},
    {"cooperlake", 3}, {"icelake-client", 3}, {"icelake-server", 3}, {"sapphirerapids", 3},
    {"tigerlake", 3},  {"rocketlake", 3},     {"znver4", 3},         {"znver5", 3},
};

// The highest level that a unit's -march names; -1 when any does not tell.
static int march_level(const struct reading *r, const char **march)
{
    int highest = -1;
    for (size_t i = 0; i < r->units.nkinds; i++) {
        const char *producer = r->units.kinds[i].producer;
        if (producer_level(producer) < 0)
            return -1;
        char *flag = producer_flag(producer, "-march=");
        const char *name = flag ? flag : "x86-64"; // the compilers' default
        int level = -1;
        for (size_t j = 0; j < sizeof marches / sizeof *marches; j++) {
            if (!strcmp(marches[j].march, name)) {
                level = marches[j].level;
                if (level > highest)
                    *march = marches[j].march;
            }
        }
        free(flag);
        if (level < 0)
            return -1;
        highest = level > highest ? level : highest;
    }
    return highest;
}

// Compilers write the need only with -mneeded, so that "baseline" is that of the C library's
// start-up files: code for a higher level goes without a mark. A higher mark is a proof.
static void isa_level_fact(struct reading *r, const struct properties *p)
{
    static const char name[] = "isa-level";
    if (r->elf->machine != EM_X86_64) {
        fact_unknown(r->out, name, "only x86-64 has levels");
        return;
    }
    const char *march = NULL;
    int by_march = march_level(r, &march), by_note = -1;
    for (int i = 0; i < 4; i++)
        if (p->x86_isa & 1U << i)
            by_note = i;
    if (by_note > 0 && by_note >= by_march)
        fact_known(r->out, name, isa_levels[by_note], ".note.gnu.property: x86 ISA needed");
    else if (by_march >= 0)
        fact_known(r->out, name, isa_levels[by_march], "%s: -march=%s", r->units_from, march);
    else
        fact_unknown(r->out, name, "%s; -march in debug information would tell",
                     by_note == 0 ? "the note says baseline, which the start-up files alone write"
                                  : "no note of the ISA needed");
}

void property_facts(struct reading *r)
{
    struct properties p = {.little = r->file->header.e_ident[EI_DATA] == ELFDATA2LSB,
                           .wide = r->elf->is_64};
    elf_notes(r->file, see_property, &p);
    branch_protection_fact(r, &p);
    isa_level_fact(r, &p);
}
