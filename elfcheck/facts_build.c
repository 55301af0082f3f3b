// How it was compiled: by the flags of its units, and by what the flags leave in the file.
#include "elfcheck/facts_private.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_INIT = 1 << 12, // functions of .init_array that are looked at
    MAX_RELOCATIONS = 1 << 22,
    START_UP_CODE = 48 // bytes of a function: crtfastmath's is 23 long
};

static const char *const sanitizers[][3] = {
    // name, prefix of its calls, library
    {"address", "__asan_", "libasan"}, {"undefined", "__ubsan_", "libubsan"},
    {"thread", "__tsan_", "libtsan"},  {"memory", "__msan_", "libmsan"},
    {"leak", "__lsan_", "liblsan"},    {"hwaddress", "__hwasan_", "libhwasan"},
};
enum { SANITIZERS = sizeof sanitizers / sizeof *sanitizers };

void build_names(struct names *n)
{
    for (size_t i = 0; i < SANITIZERS; i++)
        names_want_prefix(n, sanitizers[i][1]);
    names_want_prefix(n, "__gcov_");
    names_want_prefix(n, "__llvm_profile_");
    names_want(n, "set_fast_math");
}

// --- compiler and linker ---

// "GCC 12.2.0" of "GNU C++17 12.2.0 -O2", "clang 14.0.6" of "Debian clang version 14.0.6 ...",
// "rustc 1.63.0" of "clang LLVM (rustc version 1.63.0)".
static char *compiler_of(const char *producer)
{
    static const char *const marks[][2] = {{"rustc version ", "rustc"},
                                           {"clang version ", "clang"}};
    for (size_t i = 0; i < 2; i++) {
        const char *at = strstr(producer, marks[i][0]);
        if (at) {
            at += strlen(marks[i][0]);
            return xasprintf("%s %.*s", marks[i][1], (int)strcspn(at, " )"), at);
        }
    }
    struct strv words = {0};
    strv_split(&words, producer, " ");
    size_t i = 1;
    while (i < words.n && strspn(words.v[i], "0123456789") == 0)
        i++;
    char *name =
        starts_with(producer, "GNU ") && i < words.n ? xasprintf("GCC %s", words.v[i]) : NULL;
    strv_free(&words);
    return name;
}

static void compiler_fact(struct reading *r)
{
    struct tally t = {0};
    bool named = false;
    for (size_t i = 0; i < r->units.nkinds; i++) {
        const char *producer = r->units.kinds[i].producer;
        char *name = compiler_of(producer);
        named |= name != NULL;
        tally_add(&t, name ? name : "another compiler", &r->units.kinds[i]);
        free(name);
    }
    char *text = tally_text(&t, r->units_word);
    if (named && t.n == 1)
        fact_known(r->out, "compiler", t.v[0].label, "%s of all %zu %s", r->units_from, t.units,
                   r->units_word);
    else if (named)
        fact_known(r->out, "compiler", text, "%s", r->units_from);
    else if (r->elf->compiler)
        fact_known(r->out, "compiler", r->elf->compiler, "%s",
                   r->elf->compiler_evidence ? r->elf->compiler_evidence : ".comment");
    else
        fact_unknown(r->out, "compiler", "no .comment and no debug information, which would tell");
    free(text);
    tally_free(&t);
}

static void linker_fact(struct reading *r)
{
    if (r->elf->linker)
        fact_known(r->out, "linker", r->elf->linker, "%s",
                   r->elf->linker_evidence ? r->elf->linker_evidence : "its marks");
    else
        fact_unknown(r->out, "linker", "no linker signed it; the build's log would tell");
}

// --- what is said in so many units ---

typedef char *label_fn(const struct reading *r, const char *producer); // malloc'ed; NULL: not known

static void tally_fact(struct reading *r, const char *name, label_fn *fn, const char *evidence)
{
    struct tally t = {0};
    bool known = false;
    for (size_t i = 0; i < r->units.nkinds; i++) {
        const char *producer = r->units.kinds[i].producer;
        char *label = producer_level(producer) >= 0 ? fn(r, producer) : NULL;
        known |= label != NULL;
        tally_add(&t, label ? label : "not recorded", &r->units.kinds[i]);
        free(label);
    }
    char *text = tally_text(&t, r->units_word);
    if (known && t.n == 1)
        fact_known(r->out, name, t.v[0].label, "%s: %s, in all %zu %s", r->units_from, evidence,
                   t.units, r->units_word);
    else if (known)
        fact_known(r->out, name, text, "%s: %s", r->units_from, evidence);
    else
        flags_unknown(r, name);
    free(text);
    tally_free(&t);
}

static char *level_label(const struct reading *r, const char *producer)
{
    (void)r;
    int level = producer_level(producer);
    return level >= 0 ? xasprintf("-%s", opt_level_names[level]) : NULL;
}

// Without a flag it is the compiler's default, which is the machine's base line for clang; gcc
// writes its own into the producer on x86-64.
static char *march_label(const struct reading *r, const char *producer)
{
    static const char *const flags[] = {"-march=", "-mcpu="};
    for (size_t i = 0; i < 2; i++) {
        char *value = producer_flag(producer, flags[i]);
        if (value)
            return value;
    }
    bool clang = !starts_with(producer, "GNU ");
    if (r->elf->machine == EM_X86_64 && clang)
        return xstrdup("x86-64");
    return r->elf->machine == EM_AARCH64 ? xstrdup("armv8-a") : NULL;
}

// Without a flag gcc and clang omit it on x86 from -O1 on, and keep it on AArch64
// (gcc/common/config/aarch64/aarch64-common.cc, clang/lib/Driver/ToolChains/CommonArgs.cpp).
static int has_frame_pointers(const struct reading *r, const char *producer)
{
    int omits = producer_switch(producer, "omit-frame-pointer");
    if (omits >= 0)
        return !omits;
    if (r->elf->machine == EM_AARCH64)
        return 1;
    if (r->elf->machine != EM_X86_64 && r->elf->machine != EM_386)
        return -1;
    return producer_level(producer) == OPT_O0;
}

// --- optimisation of the whole program, and by profile ---

// gcc's producer of the code that came out of it says GIMPLE; its -flto alone can be a fat object
// that was linked the ordinary way.
static int is_lto(const struct reading *r, const char *producer)
{
    (void)r;
    if (starts_with(producer, "GNU GIMPLE"))
        return 1;
    if (starts_with(producer, "GNU "))
        return 0;
    char *flag = producer_flag(producer, "-flto");
    free(flag);
    return flag && producer_switch(producer, "lto") != 0;
}

static const char *gnu_lto_section(const struct elf_file *f)
{
    for (size_t i = 1; i < f->nshdrs; i++)
        if (starts_with(f->names[i], ".gnu.lto_"))
            return f->names[i];
    return NULL;
}

// After gcc's LTO the units as written have no code any more: one of the program's is enough.
static void lto_fact(struct reading *r)
{
    const char *section = gnu_lto_section(r->file);
    struct share s = units_share(r, is_lto);
    size_t gimple = 0;
    for (size_t i = 0; i < r->units.nkinds; i++)
        if (starts_with(r->units.kinds[i].producer, "GNU GIMPLE"))
            gimple += r->units.kinds[i].units;
    if (gimple)
        fact_known(r->out, "lto", "yes", "%s: GNU GIMPLE in %zu %s", r->units_from, gimple,
                   r->units_word);
    else if (s.yes)
        units_fact(r, "lto", is_lto, "-flto");
    else if (r->names.lto_symbol)
        fact_known(r->out, "lto", "yes", "symbol %s", r->names.lto_symbol);
    else if (section && r->elf->type == ET_REL)
        fact_known(r->out, "lto", "yes", "section %s", section);
    else
        units_fact(r, "lto", is_lto, "-flto or GNU GIMPLE");
    strv_free(&s.no_folders);
}

static int uses_profile(const struct reading *r, const char *producer)
{
    (void)r;
    static const char *const flags[] = {"-fprofile-use", "-fprofile-instr-use", "-fauto-profile",
                                        "-fprofile-sample-use"};
    for (size_t i = 0; i < 4; i++) {
        char *flag = producer_flag(producer, flags[i]);
        free(flag);
        if (flag)
            return 1;
    }
    return 0;
}

static void pgo_fact(struct reading *r)
{
    const char *call = names_prefix(&r->names, "__gcov_");
    call = call ? call : names_prefix(&r->names, "__llvm_profile_");
    if (call)
        fact_known(r->out, "pgo", "instrumented", "symbol %s", call);
    else if (elf_section(r->file, "__llvm_prf_cnts"))
        fact_known(r->out, "pgo", "instrumented", "section __llvm_prf_cnts");
    else if (r->texts[TEXT_LIBGCOV])
        fact_known(r->out, "pgo", "instrumented", "libgcov's strings in .rodata");
    else
        units_fact(r, "pgo", uses_profile, "-fprofile-use");
}

static void bolt_fact(struct reading *r)
{
    if (r->elf->bolt)
        fact_known(r->out, "bolt", "yes", "%s%s",
                   elf_section(r->file, ".note.bolt_info") ? ".note.bolt_info" : ".bolt.org.text",
                   r->elf->bolt_hugify ? ", start-up code that asks for huge pages" : "");
    else if (r->file->nshdrs > 1)
        fact_known(r->out, "bolt", "no", "no section .note.bolt_info or .bolt.org.*");
    else
        fact_unknown(r->out, "bolt", "no section headers; the file before eu-strip would tell");
}

// --- fast math ---

// orl $0x8040,MEM or or $0x8040,%eax, and then ldmxcsr MEM (0f ae /2): flush to zero, denormals are
// zero. gcc/config/i386/crtfastmath.c.
static bool flushes_denormals(struct bytes b)
{
    static const unsigned char bits[] = {0x40, 0x80, 0x00, 0x00};
    const unsigned char * or = b.n ? memmem(b.p, b.n, bits, sizeof bits) : NULL;
    for (const unsigned char *p = or ; p && p + 3 <= b.p + b.n; p++)
        if (p[0] == 0x0f && p[1] == 0xae && (p[2] >> 3 & 7) == 2 && p[2] < 0xc0)
            return true;
    return false;
}

static bool function_flushes(const struct elf_file *f, uint64_t vaddr)
{
    uint64_t offset = elf_offset_of(f, vaddr);
    if (!vaddr || offset >= f->image.n)
        return false;
    uint64_t room = f->image.n - offset;
    return flushes_denormals(elf_bytes(f, offset, room < START_UP_CODE ? room : START_UP_CODE));
}

// The functions of .init_array that relative relocations (Elf64_Rela, or packed ones, which leave
// the value in place) or the file itself put there.
static bool start_up_flushes(const struct elf_file *f, uint64_t from, uint64_t size)
{
    struct bytes in_place = elf_bytes(f, elf_offset_of(f, from), size);
    for (size_t i = 0; i + 8 <= in_place.n && i / 8 < MAX_INIT; i += 8) {
        uint64_t function;
        memcpy(&function, in_place.p + i, sizeof function);
        if (function_flushes(f, function))
            return true;
    }
    uint64_t rela = 0, rela_size = 0;
    if (!elf_dynamic(f, DT_RELA, &rela) || !elf_dynamic(f, DT_RELASZ, &rela_size))
        return false;
    struct bytes b = elf_bytes(f, elf_offset_of(f, rela), rela_size);
    size_t looks = 0, hits = 0;
    for (size_t i = 0; i + 24 <= b.n && looks < MAX_RELOCATIONS && hits < MAX_INIT; looks++) {
        Elf64_Rela one;
        memcpy(&one, b.p + i, sizeof one);
        i += sizeof one;
        if (one.r_offset - from >= size)
            continue;
        hits++;
        if (function_flushes(f, (uint64_t)one.r_addend))
            return true;
    }
    return false;
}

static int is_fast_math(const struct reading *r, const char *producer)
{
    (void)r;
    int fast = producer_switch(producer, "fast-math");
    int unsafe = producer_switch(producer, "unsafe-math-optimizations");
    return fast == 1 || unsafe == 1 || (producer_level(producer) == OPT_OFAST && fast != 0);
}

static void fast_math_fact(struct reading *r)
{
    static const char name[] = "fast-math";
    uint64_t from = 0, size = 0;
    bool x86_64 = r->elf->machine == EM_X86_64 && r->elf->is_64;
    size_t array = elf_section(r->file, ".init_array");
    if (array) {
        from = r->file->shdrs[array].sh_addr;
        size = r->file->shdrs[array].sh_size;
    } else if (elf_dynamic(r->file, DT_INIT_ARRAY, &from)) {
        elf_dynamic(r->file, DT_INIT_ARRAYSZ, &size);
    }
    if (names_seen(&r->names, "set_fast_math") & SEEN_DEFINED)
        fact_known(r->out, name, "yes", "start-up code flushes denormals: set_fast_math");
    else if (x86_64 && size && start_up_flushes(r->file, from, size))
        fact_known(r->out, name, "yes",
                   "start-up code in .init_array flushes denormals (MXCSR |= 0x8040)");
    else
        units_fact(r, name, is_fast_math, "-ffast-math, -Ofast or -funsafe-math-optimizations");
}

// --- sanitizers ---

static int is_sanitized(const struct reading *r, const char *producer)
{
    (void)r;
    char *flag = producer_flag(producer, "-fsanitize=");
    free(flag);
    return flag != NULL;
}

static void sanitizers_fact(struct reading *r)
{
    struct str found = {0}, evidence = {0};
    for (size_t i = 0; i < SANITIZERS; i++) {
        const char *call = names_prefix(&r->names, sanitizers[i][1]);
        const char *seen = call ? call : needed_library(r, sanitizers[i][2]);
        if (seen) {
            str_addf(&found, "%s%s", found.len ? "+" : "", sanitizers[i][0]);
            str_addf(&evidence, "%s%s", evidence.len ? ", " : "", seen);
        }
    }
    struct share s = units_share(r, is_sanitized);
    if (found.len)
        fact_known(r->out, "sanitizers", found.s, "%s", evidence.s);
    else if (s.yes)
        fact_known(r->out, "sanitizers", "undefined; it traps", "%s: -fsanitize= in %zu %s",
                   r->units_from, s.yes, r->units_word);
    else if (is_dynamic(r) || (r->names.symtab && r->names.complete))
        fact_known(r->out, "sanitizers", "none",
                   "no call of a sanitizer among its symbols; one that only traps leaves none");
    else
        fact_unknown(r->out, "sanitizers", "no symbols; a symbol table would tell");
    strv_free(&s.no_folders);
    str_free(&found);
    str_free(&evidence);
}

void build_facts(struct reading *r)
{
    compiler_fact(r);
    linker_fact(r);
    tally_fact(r, "optimisation", level_label, "the last -O");
    tally_fact(r, "march", march_label, "-march or -mcpu");
    units_fact(r, "frame-pointers", has_frame_pointers,
               "frame pointers kept (-fno-omit-frame-pointer, or by default)");
    lto_fact(r);
    pgo_fact(r);
    bolt_fact(r);
    fast_math_fact(r);
    sanitizers_fact(r);
}
