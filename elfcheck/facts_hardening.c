// What protects the running program: by its segments, dynamic section, imports and notes.
#include "elfcheck/facts_private.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 }; // bytes; no machine that is read here has smaller ones

// Functions of glibc 2.36 with a checked variant __NAME_chk (glibc/debug/Versions).
#define CHECKED(function)                                                                          \
    {                                                                                              \
#function, "__" #function "_chk"                                                           \
    }
static const struct {
    const char *plain, *checked;
} fortifiable[] = {
    CHECKED(asprintf),        CHECKED(confstr),    CHECKED(dprintf),
    CHECKED(explicit_bzero),  CHECKED(fgets),      CHECKED(fgets_unlocked),
    CHECKED(fgetws),          CHECKED(fprintf),    CHECKED(fread),
    CHECKED(fread_unlocked),  CHECKED(fwprintf),   CHECKED(getcwd),
    CHECKED(getdomainname),   CHECKED(getgroups),  CHECKED(gethostname),
    CHECKED(getlogin_r),      CHECKED(gets),       CHECKED(getwd),
    CHECKED(longjmp),         CHECKED(mbsnrtowcs), CHECKED(mbsrtowcs),
    CHECKED(mbstowcs),        CHECKED(memcpy),     CHECKED(memmove),
    CHECKED(mempcpy),         CHECKED(memset),     CHECKED(obstack_printf),
    CHECKED(obstack_vprintf), CHECKED(poll),       CHECKED(ppoll),
    CHECKED(pread),           CHECKED(pread64),    CHECKED(printf),
    CHECKED(ptsname_r),       CHECKED(read),       CHECKED(readlink),
    CHECKED(readlinkat),      CHECKED(realpath),   CHECKED(recv),
    CHECKED(recvfrom),        CHECKED(snprintf),   CHECKED(sprintf),
    CHECKED(stpcpy),          CHECKED(stpncpy),    CHECKED(strcat),
    CHECKED(strcpy),          CHECKED(strlcat),    CHECKED(strlcpy),
    CHECKED(strncat),         CHECKED(strncpy),    CHECKED(swprintf),
    CHECKED(syslog),          CHECKED(ttyname_r),  CHECKED(vasprintf),
    CHECKED(vdprintf),        CHECKED(vfprintf),   CHECKED(vfwprintf),
    CHECKED(vprintf),         CHECKED(vsnprintf),  CHECKED(vsprintf),
    CHECKED(vswprintf),       CHECKED(vsyslog),    CHECKED(vwprintf),
    CHECKED(wcpcpy),          CHECKED(wcpncpy),    CHECKED(wcrtomb),
    CHECKED(wcscat),          CHECKED(wcscpy),     CHECKED(wcsncat),
    CHECKED(wcsncpy),         CHECKED(wcsnrtombs), CHECKED(wcsrtombs),
    CHECKED(wcstombs),        CHECKED(wctomb),     CHECKED(wmemcpy),
    CHECKED(wmemmove),        CHECKED(wmempcpy),   CHECKED(wmemset),
    CHECKED(wprintf),
};
#undef CHECKED
enum { FORTIFIABLE = sizeof fortifiable / sizeof *fortifiable };

// From level 2 on these are checked whatever the size of their buffer; clang leaves those with
// "..." alone in C++.
static const char *const always_checked[] = {"vsnprintf", "vsprintf", "vfprintf", "vprintf",
                                             "snprintf",  "sprintf",  "fprintf",  "printf"};
enum { ALWAYS_CLANG = 4, ALWAYS_GCC = 8 };

void hardening_names(struct names *n)
{
    for (size_t i = 0; i < FORTIFIABLE; i++) {
        names_want(n, fortifiable[i].plain);
        names_want(n, fortifiable[i].checked);
    }
    names_want(n, "__stack_chk_fail");
}

// --- segments and dynamic section ---

static void pie_fact(struct reading *r)
{
    if (r->elf->pie)
        fact_known(r->out, "pie", "yes", "ET_DYN%s%s", r->elf->is_static ? ", static" : "",
                   r->elf->interp ? ", an interpreter" : "");
    else if (r->elf->type == ET_DYN)
        fact_known(r->out, "pie", "yes; shared library", "ET_DYN");
    else
        fact_known(r->out, "pie", "no", "ET_EXEC");
}

// Where it says that all is bound at the start, or NULL.
static const char *bind_now(const struct elf_file *f)
{
    uint64_t v = 0;
    if (elf_dynamic(f, DT_FLAGS, &v) && (v & DF_BIND_NOW))
        return "DF_BIND_NOW";
    if (elf_dynamic(f, DT_FLAGS_1, &v) && (v & DF_1_NOW))
        return "DF_1_NOW";
    return elf_dynamic(f, DT_BIND_NOW, &v) ? "DT_BIND_NOW" : NULL;
}

static const GElf_Phdr *header_of(const struct elf_file *f, uint32_t type)
{
    for (size_t i = 0; i < f->nphdrs; i++)
        if (f->phdrs[i].p_type == type)
            return &f->phdrs[i];
    return NULL;
}

// A static program binds nothing, but slots of its .got.plt may stay writable.
static bool got_outside_relro(const struct elf_file *f, const GElf_Phdr *relro)
{
    size_t i = elf_section(f, ".got.plt");
    return i && f->shdrs[i].sh_addr + f->shdrs[i].sh_size > relro->p_vaddr + relro->p_memsz;
}

static void relro_facts(struct reading *r)
{
    const char *now = bind_now(r->file);
    const GElf_Phdr *relro = header_of(r->file, PT_GNU_RELRO);
    bool dynamic = header_of(r->file, PT_DYNAMIC) != NULL;
    if (!relro)
        fact_known(r->out, "relro", "none", "no PT_GNU_RELRO");
    else if (now)
        fact_known(r->out, "relro", "full", "PT_GNU_RELRO and %s", now);
    else if (dynamic || r->file->nshdrs < 2 || got_outside_relro(r->file, relro))
        fact_known(r->out, "relro", "partial", "PT_GNU_RELRO, %s",
                   dynamic ? "no DF_BIND_NOW" : "static, .got.plt lies behind it");
    else
        fact_known(r->out, "relro", "full", "PT_GNU_RELRO, static");
    if (now || !dynamic)
        fact_known(r->out, "bind-now", "yes", "%s", now ? now : "static: nothing is bound");
    else
        fact_known(r->out, "bind-now", "no", "no DF_BIND_NOW, DF_1_NOW or DT_BIND_NOW");
}

static uint64_t page_down(uint64_t v)
{
    return v & ~(uint64_t)(PAGE - 1);
}

// glibc protects whole pages from the start of PT_GNU_RELRO, rounded down, to its end, rounded down
// (elf/dl-reloc.c, _dl_protect_relro); mprotect fails, and the program with it, where a page is not
// mapped. A segment is mapped up to the end of its last page.
static void relro_in_load_fact(struct reading *r)
{
    static const char name[] = "relro-in-load";
    const GElf_Phdr *relro = header_of(r->file, PT_GNU_RELRO);
    if (!relro || !relro->p_memsz) {
        fact_known(r->out, name, "yes", "no PT_GNU_RELRO");
        return;
    }
    uint64_t from = page_down(relro->p_vaddr), to = page_down(relro->p_vaddr + relro->p_memsz);
    for (size_t i = 0; i < r->elf->nloads; i++) {
        const struct segment *l = &r->elf->loads[i];
        uint64_t end = page_down(l->vaddr + l->memsz + PAGE - 1);
        if (page_down(l->vaddr) <= from && from < end && from <= to && to <= end) {
            fact_known(r->out, name, "yes", "PT_GNU_RELRO ends at %#llx, its segment at %#llx",
                       (unsigned long long)to, (unsigned long long)end);
            return;
        }
    }
    fact_known(r->out, name, "no",
               "PT_GNU_RELRO %#llx to %#llx is not in one segment: it does not start (lld before "
               "18 with -z common-page-size)",
               (unsigned long long)from, (unsigned long long)to);
}

// Without PT_GNU_STACK the kernel (arch/x86/include/asm/elf.h, since 5.8) leaves the stack of a
// 64-bit program without execute; glibc's threads have stacks that are executable all the same
// (DEFAULT_STACK_PERMS), as does a 32-bit program altogether.
static void exec_stack_fact(struct reading *r)
{
    static const char name[] = "exec-stack";
    const GElf_Phdr *stack = header_of(r->file, PT_GNU_STACK);
    if (stack)
        fact_known(r->out, name, stack->p_flags & PF_X ? "yes" : "no", "PT_GNU_STACK %s",
                   stack->p_flags & PF_X ? "RWE" : "RW");
    else if (r->elf->is_64 && (r->elf->machine == EM_X86_64 || r->elf->machine == EM_AARCH64))
        fact_known(r->out, name, "yes; of threads", "no PT_GNU_STACK");
    else if (r->elf->machine == EM_386)
        fact_known(r->out, name, "yes", "no PT_GNU_STACK");
    else
        fact_unknown(r->out, name, "no PT_GNU_STACK; the kernel's default for %s would tell",
                     r->elf->machine_name);
}

static void writable_text_fact(struct reading *r)
{
    for (size_t i = 0; i < r->elf->nloads; i++) {
        const struct segment *l = &r->elf->loads[i];
        if ((l->flags & PF_W) && (l->flags & PF_X)) {
            fact_known(r->out, "writable-text", "yes", "program header %u is RWE", l->index);
            return;
        }
    }
    fact_known(r->out, "writable-text", "no", "no load segment is W and E");
}

static void rpath_fact(struct reading *r)
{
    static const struct {
        int64_t tag;
        const char *name;
    } tags[] = {{DT_RPATH, "DT_RPATH"}, {DT_RUNPATH, "DT_RUNPATH"}};
    uint64_t offset = 0, table = 0;
    for (size_t i = 0; i < 2; i++) {
        if (!elf_dynamic(r->file, tags[i].tag, &offset))
            continue;
        uint64_t at =
            elf_dynamic(r->file, DT_STRTAB, &table) ? elf_offset_of(r->file, table) : UINT64_MAX;
        const char *s = at < r->file->image.n && offset < r->file->image.n
                            ? elf_string(r->file, at + offset)
                            : NULL;
        if (s)
            fact_known(r->out, "rpath", s, "%s", tags[i].name);
        else
            fact_unknown(r->out, "rpath", "%s points outside the file", tags[i].name);
        return;
    }
    fact_known(r->out, "rpath", "none", "no DT_RPATH or DT_RUNPATH");
}

// --- stack ---

static const char *last_of(const char *producer, const char *flag)
{
    const char *last = NULL;
    for (const char *p = producer; (p = strstr(p, flag)); p++)
        last = p;
    return last;
}

static int is_stack_protected(const struct reading *r, const char *producer)
{
    (void)r;
    const char *on = last_of(producer, "-fstack-protector");
    return on && on > last_of(producer, "-fno-stack-protector");
}

static const char *protector_strength(const struct reading *r)
{
    const char *strength = NULL;
    for (size_t i = 0; i < r->units.nkinds; i++) {
        const char *producer = r->units.kinds[i].producer;
        if (!is_stack_protected(r, producer))
            continue;
        const char *flag = last_of(producer, "-fstack-protector") + strlen("-fstack-protector");
        const char *one = starts_with(flag, "-strong") ? "strong"
                          : starts_with(flag, "-all")  ? "all"
                                                       : "buffers of 8 bytes and more";
        if (strstr(producer, "ssp-buffer-size=4") && one[0] == 'b')
            one = "buffers of 4 bytes and more";
        if (strength && strcmp(strength, one) != 0)
            return "of several strengths";
        strength = one;
    }
    return strength;
}

static void stack_protector_fact(struct reading *r)
{
    static const char name[] = "stack-protector", call[] = "__stack_chk_fail";
    struct share s = units_share(r, is_stack_protected);
    unsigned seen = names_seen(&r->names, call);
    strv_free(&s.no_folders);
    if (!is_dynamic(r)) {
        // A static program has libc's own protection in it.
        units_fact(r, name, is_stack_protected, "-fstack-protector");
    } else if (!seen) {
        fact_known(r->out, name, "no", "%s is not imported%s", call,
                   s.yes ? ": no function had anything to protect" : "");
    } else {
        const char *strength = protector_strength(r);
        char *value = xasprintf("yes%s%s", strength ? "; " : "", strength ? strength : "");
        if (s.yes)
            fact_known(r->out, name, value, "%s, and -fstack-protector in %zu of %zu %s", call,
                       s.yes, s.yes + s.no + s.unknown, r->units_word);
        else
            fact_known(r->out, name, value, "%s", call);
        free(value);
    }
}

static int probes_stack(const struct reading *r, const char *producer)
{
    (void)r;
    return producer_switch(producer, "stack-clash-protection") == 1;
}

// --- fortify ---

static int names_fortify(const struct reading *r, const char *producer)
{
    (void)r;
    return last_of(producer, "_FORTIFY_SOURCE=") != NULL;
}

// The first of the functions that level 2 would have replaced, or NULL.
static const char *plain_though_always_checked(const struct reading *r)
{
    size_t n = r->elf->comment_clang || r->units.clang ? ALWAYS_CLANG : ALWAYS_GCC;
    for (size_t i = 0; i < n; i++)
        if (names_seen(&r->names, always_checked[i]) & SEEN_IMPORTED)
            return always_checked[i];
    return NULL;
}

static void fortify_fact(struct reading *r)
{
    static const char name[] = "fortify";
    size_t checked = 0, all = 0;
    struct strv first = {0};
    for (size_t i = 0; i < FORTIFIABLE; i++) {
        bool chk = names_seen(&r->names, fortifiable[i].checked) & SEEN_IMPORTED;
        bool plain = names_seen(&r->names, fortifiable[i].plain) & SEEN_IMPORTED;
        checked += chk;
        all += chk || plain;
        if (chk && first.n < 3)
            strv_add(&first, fortifiable[i].checked);
    }
    struct share s = units_share(r, names_fortify);
    const char *plain = plain_though_always_checked(r);
    char *names = strv_join(&first, ", ");
    char *value = xasprintf("yes; %zu of %zu fortifiable functions", checked, all);
    if (is_dynamic(r) && checked)
        fact_known(r->out, name, value, "imports %s%s", names, checked > first.n ? ", ..." : "");
    else if (is_dynamic(r) && plain && !s.yes)
        fact_known(r->out, name, "no", "%s is imported, and no checked function", plain);
    else
        fact_unknown(r->out, name,
                     is_dynamic(r) ? "no import that -D_FORTIFY_SOURCE=2 always replaces; the "
                                     "build's flags would tell"
                                   : "libc is not a shared library; the build's flags would tell");
    free(value);
    free(names);
    strv_free(&first);
    strv_free(&s.no_folders);
}

// ---

static void unlinked_facts(struct reading *r)
{
    static const char *const names[] = {
        "pie",          "relro",         "bind-now",          "stack-protector",
        "fortify",      "stack-clash",   "branch-protection", "isa-level",
        "exec-stack",   "writable-text", "text-relocations",  "rpath",
        "relro-in-load"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fact_unknown(r->out, names[i],
                     "no program and no shared library; the linked file would tell");
}

void hardening_facts(struct reading *r)
{
    if (!is_loadable(r)) {
        unlinked_facts(r);
        return;
    }
    pie_fact(r);
    relro_facts(r);
    stack_protector_fact(r);
    fortify_fact(r);
    units_fact(r, "stack-clash", probes_stack, "-fstack-clash-protection");
    property_facts(r);
    exec_stack_fact(r);
    writable_text_fact(r);
    fact_known(r->out, "text-relocations", r->elf->textrel ? "yes" : "no", "%s",
               r->elf->textrel ? "DT_TEXTREL" : "no DT_TEXTREL");
    rpath_fact(r);
    relro_in_load_fact(r);
}
