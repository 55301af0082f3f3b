#include "common/sys.h"
#include "elfcheck/host_fit_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined __x86_64__
#include <cpuid.h>
#endif

enum { LEVELS = 4, MAX_EXTRAS = 12, MAX_CPUINFO_LINES = 64 };

// What each level adds, by the names of /proc/cpuinfo (x86-64 psABI, table 3.1). Named otherwise
// there: CX8 cx8, SCE syscall, OSFXSR (the kernel's, with fxsr), SSE3 pni, LZCNT abm, OSXSAVE (the
// kernel's, with xsave).
static const struct {
    const char *name, *flags;
} levels[LEVELS] = {
    {"x86-64-v1", "cmov cx8 fpu fxsr mmx syscall sse sse2"},
    {"x86-64-v2", "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"},
    {"x86-64-v3", "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"},
    {"x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"},
};

#define ICELAKE                                                                                    \
    "avx512_vnni avx512vbmi avx512ifma avx512_vbmi2 gfni vaes vpclmulqdq avx512_bitalg "           \
    "avx512_vpopcntdq sha_ni aes pclmulqdq"

// -march by level, and the instructions beyond it that code compiled for it may hold (gcc's manual,
// "x86 Options"). What no compiler writes of itself and programs ask the CPU for first (rdrand,
// rdseed, adx, fsgsbase, clwb, pku) is left out.
static const struct {
    const char *march;
    int level;
    const char *flags;
} marches[] = {
    {"baseline", 1, ""},
    {"x86-64", 1, ""},
    {"x86-64-baseline", 1, ""},
    {"x86-64-v1", 1, ""},
    {"x86-64-v2", 2, ""},
    {"x86-64-v3", 3, ""},
    {"x86-64-v4", 4, ""},
    {"core2", 1, "cx16 lahf_lm pni ssse3"},
    {"nehalem", 2, ""},
    {"westmere", 2, "pclmulqdq"},
    {"sandybridge", 2, "avx xsave pclmulqdq"},
    {"ivybridge", 2, "avx xsave pclmulqdq f16c"},
    {"silvermont", 2, "movbe pclmulqdq"},
    {"goldmont", 2, "movbe pclmulqdq aes sha_ni"},
    {"haswell", 3, "pclmulqdq"},
    {"broadwell", 3, "pclmulqdq"},
    {"skylake", 3, "pclmulqdq aes"},
    {"alderlake", 3, "pclmulqdq aes sha_ni gfni vaes vpclmulqdq"},
    {"skylake-avx512", 4, "pclmulqdq aes"},
    {"cascadelake", 4, "pclmulqdq aes avx512_vnni"},
    {"cooperlake", 4, "pclmulqdq aes avx512_vnni avx512_bf16"},
    {"icelake-client", 4, ICELAKE},
    {"icelake-server", 4, ICELAKE},
    {"rocketlake", 4, ICELAKE},
    {"tigerlake", 4, ICELAKE " avx512_vp2intersect"},
    {"sapphirerapids", 4, ICELAKE " avx512_bf16 avx512_fp16 avx_vnni"},
    {"znver1", 3, "pclmulqdq aes sha_ni"},
    {"znver2", 3, "pclmulqdq aes sha_ni"},
    {"znver3", 3, "pclmulqdq aes sha_ni vaes vpclmulqdq"},
    {"znver4", 4, ICELAKE " avx512_bf16"},
    {"znver5", 4, ICELAKE " avx512_bf16 avx_vnni avx512_vp2intersect"},
};

// --- what the CPU has ---

// The first processor's flags: " fpu vme ... ", empty when they cannot be read. Not by sys_read,
// since the file is long and slow on a large host.
static char *cpu_flags(void)
{
    char *path = sys_path("/proc/cpuinfo"), *line = NULL, *flags = NULL;
    FILE *in = fopen(path, "re");
    size_t cap = 0;
    for (int i = 0; in && !flags && i < MAX_CPUINFO_LINES && getline(&line, &cap, in) > 0; i++)
        if (starts_with(line, "flags\t") && strchr(line, ':'))
            flags = xasprintf("%s ", strchr(line, ':') + 1);
    if (in)
        fclose(in);
    free(line);
    free(path);
    for (char *c = flags; c && *c; c++)
        *c = *c == '\n' || *c == '\t' ? ' ' : *c;
    return flags ? flags : xstrdup("");
}

// The kernel of some guests lists no abm where CPUID has LZCNT, and it is CPUID that the CPU and
// the C library go by. It needs no help of the kernel, unlike AVX. A recorded host has no CPUID.
static bool cpuid_has(const char *flag)
{
#if defined __x86_64__
    unsigned a, b, c, d;
    if (!strcmp(flag, "abm") && !getenv("KILN_SYSROOT") && __get_cpuid(0x80000001, &a, &b, &c, &d))
        return c & 1U << 5;
#endif
    (void)flag;
    return false;
}

static bool cpu_has(const char *flags, const char *flag)
{
    char *word = xasprintf(" %s ", flag);
    bool has = strstr(flags, word) || cpuid_has(flag);
    free(word);
    return has;
}

static void add_missing(const char *cpu, const char *wanted, struct strv *missing)
{
    struct strv words = {0};
    strv_split(&words, wanted, " ");
    for (size_t i = 0; i < words.n; i++)
        if (!cpu_has(cpu, words.v[i]) && !strv_has(missing, words.v[i]))
            strv_add(missing, words.v[i]);
    strv_free(&words);
}

static void missing_for_level(const char *cpu, int level, struct strv *missing)
{
    for (int i = 0; i < level; i++)
        add_missing(cpu, levels[i].flags, missing);
}

// The highest level of which nothing is missing, 0: not even the first.
static int cpu_level(const char *cpu)
{
    int level = 0;
    for (struct strv missing = {0}; level < LEVELS; level++) {
        missing_for_level(cpu, level + 1, &missing);
        bool all = !missing.n;
        strv_free(&missing);
        if (!all)
            break;
    }
    return level;
}

// --- what the file needs ---

enum { NOTE_TYPE = 5, PROPERTY_ISA_NEEDED = 0xc0008002 }; // NT_GNU_PROPERTY_TYPE_0; see elf.h

struct isa_note {
    uint32_t needed; // bit 0: v1, ... bit 3: v4
    uint64_t align;  // of properties: 8 or 4 by class
};

// Properties: type and size, 4 bytes each, then the data, padded. x86 is little endian.
static void read_property(void *context, const char *owner, uint32_t type, struct bytes desc)
{
    struct isa_note *note = context;
    if (strcmp(owner, "GNU") || type != NOTE_TYPE)
        return;
    for (uint64_t at = 0; at + 8 <= desc.n;) {
        uint32_t head[2], value;
        memcpy(head, desc.p + at, sizeof head);
        at += sizeof head;
        if (head[0] == (uint32_t)PROPERTY_ISA_NEEDED && head[1] == sizeof value &&
            desc.n - at >= sizeof value) {
            memcpy(&value, desc.p + at, sizeof value);
            note->needed |= value;
        }
        at += (head[1] + note->align - 1) / note->align * note->align;
    }
}

static int note_level(const struct elf_file *file)
{
    struct isa_note note = {.align = file->header.e_ident[EI_CLASS] == ELFCLASS64 ? 8 : 4};
    elf_notes(file, read_property, &note);
    for (int level = LEVELS; level > 0; level--)
        if (note.needed & 1U << (level - 1))
            return level;
    return 0;
}

static int find_march(const char *name)
{
    for (size_t i = 0; name && i < sizeof marches / sizeof *marches; i++)
        if (!strcmp(marches[i].march, name))
            return (int)i;
    return -1;
}

// The need that is not met is a no, whatever else is unknown. A note of level 1 is no proof that
// nothing more is needed: it comes from the C library's start-up files.
static struct fit judge(const char *cpu, int by_note, const char *march, int row)
{
    static const char note[] = ".note.gnu.property";
    struct strv missing = {0};
    int has = cpu_level(cpu);
    const char *host = has ? levels[has - 1].name : "not even x86-64-v1";
    const char *need = by_note ? levels[by_note - 1].name : "";
    missing_for_level(cpu, by_note, &missing);
    const char *by = missing.n ? note : "-march";
    if (row >= 0) {
        missing_for_level(cpu, marches[row].level, &missing);
        add_missing(cpu, marches[row].flags, &missing);
    }
    char *lacks = strv_join(&missing, " ");
    struct fit fit;
    if (missing.n)
        fit = fit_say(ANSWER_NO, "needs %s (%s); this CPU has %s and lacks %s",
                      by == note ? need : march, by, host, lacks);
    else if (row >= 0)
        fit = fit_say(ANSWER_YES, "compiled for %s%s%s; this CPU has %s", march,
                      by_note ? ", its note needs " : "", need, host);
    else if (march)
        fit = fit_say(ANSWER_CANNOT_KNOW,
                      "compiled for '%s', which kiln does not know; this CPU "
                      "has %s",
                      march, host);
    else if (by_note > 1)
        fit = fit_say(ANSWER_YES, "needs %s (%s); this CPU has %s", need, note, host);
    else
        fit = fit_say(ANSWER_CANNOT_KNOW,
                      "what it was compiled for is not recorded (-march in debug information, or "
                      "-mneeded, would tell); this CPU has %s",
                      host);
    free(lacks);
    strv_free(&missing);
    return fit;
}

struct fit fit_isa(const struct elf_file *file, const char *isa_level)
{
    if (file->header.e_machine != EM_X86_64)
        return fit_say(ANSWER_CANNOT_KNOW, "only x86-64 has levels");
    char *cpu = cpu_flags();
    struct fit fit = *cpu ? judge(cpu, note_level(file), isa_level, find_march(isa_level))
                          : fit_say(ANSWER_CANNOT_KNOW, "/proc/cpuinfo names no flags");
    free(cpu);
    return fit;
}
