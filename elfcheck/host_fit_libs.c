// The libraries a program would be loaded with, found as glibc's loader finds them (ld.so(8);
// elf/dl-load.c, elf/dl-version.c), and the symbol versions that each needs of the others. The
// program may be hostile: all work has a bound, and beyond it the answer is cannot-know.
#include "elfcheck/host_fit_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_OBJECTS = 512, // a server has some 60
    MAX_NEEDS = 8192,
    MAX_PROBES = 4096,      // files looked for
    MAX_STEPS = 4 << 20,    // version records looked at
    MAX_NAMED = 8,          // faults printed
    MAX_PRINTED_NAME = 200, // bytes
};

// A program or library that is loaded. [0] is the program; its file is the caller's.
struct object {
    struct elf_file file;
    struct strv names; // by which it was asked for, and its SONAME
    size_t loader;     // the object that needed it first
    dev_t device;
    ino_t inode;
};

struct search {
    struct object v[MAX_OBJECTS];
    size_t n;
    struct ld_cache cache;
    unsigned needs, probes, steps;
    size_t versions;     // that were needed and looked for
    bool exhausted;      // a bound was hit
    struct strv faults;  // what is missing, in words
    struct strv missing; // names not found
    char *remark;        // a file of the right name that does not do
};

// --- dynamic strings ---

static const char *dynamic_string(const struct elf_file *f, uint64_t offset)
{
    uint64_t table;
    if (!elf_dynamic(f, DT_STRTAB, &table))
        return NULL;
    uint64_t at = elf_offset_of(f, table);
    return at == UINT64_MAX || offset > UINT64_MAX - at ? NULL : elf_string(f, at + offset);
}

static const char *dynamic_text(const struct elf_file *f, int64_t tag)
{
    uint64_t offset;
    return elf_dynamic(f, tag, &offset) ? dynamic_string(f, offset) : NULL;
}

static char *short_name(const char *s)
{
    return printable(s, strnlen(s, MAX_PRINTED_NAME));
}

// --- files ---

bool fit_same_machine(const struct elf_file *a, const struct elf_file *b)
{
    return a->header.e_machine == b->header.e_machine &&
           a->header.e_ident[EI_CLASS] == b->header.e_ident[EI_CLASS] &&
           a->header.e_ident[EI_DATA] == b->header.e_ident[EI_DATA];
}

int fit_open(const char *path, struct elf_file *f, struct stat *st, struct err *e)
{
    if (strlen(path) >= PATH_MAX)
        return err_set(e, EXIT_CANNOT_ASK, "%.64s...: %s", path, strerror(ENAMETOOLONG));
    if (stat(path, st))
        return err_sys(e, EXIT_CANNOT_ASK, "%s", path);
    if (!S_ISREG(st->st_mode))
        return err_set(e, EXIT_CANNOT_ASK, "%s: not a regular file", path);
    return elf_file_open(path, f, e);
}

static void remark(struct search *s, char *text)
{
    free(s->remark);
    s->remark = text;
}

static void add_object(struct search *s, const struct elf_file *f, const struct stat *st,
                       const char *name, size_t loader)
{
    const char *soname = dynamic_text(f, DT_SONAME);
    struct object *o = &s->v[s->n++];
    *o = (struct object){.file = *f, .loader = loader, .device = st->st_dev, .inode = st->st_ino};
    strv_add(&o->names, name);
    if (soname)
        strv_add(&o->names, soname);
}

// Whether this file is loaded under another name already.
static bool is_loaded(struct search *s, const struct stat *st, const char *name)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->v[i].device == st->st_dev && s->v[i].inode == st->st_ino) {
            strv_add(&s->v[i].names, name);
            return true;
        }
    }
    return false;
}

// Loads path for object loader, when it is there and fits.
static bool try_path(struct search *s, const char *path, const char *name, size_t loader)
{
    struct elf_file f;
    struct stat st;
    struct err e = {0};
    if (s->probes++ >= MAX_PROBES || s->n >= MAX_OBJECTS) {
        s->exhausted = true;
        return false;
    }
    if (strlen(path) >= PATH_MAX || (stat(path, &st) && errno == ENOENT))
        return false;
    if (fit_open(path, &f, &st, &e)) {
        remark(s, xstrdup(e.msg));
        return false;
    }
    bool fits = fit_same_machine(&f, &s->v[0].file) && f.header.e_type == ET_DYN;
    if (!fits)
        remark(s, xasprintf("%s: not a library of this machine and class", path));
    if (fits && !is_loaded(s, &st, name))
        add_object(s, &f, &st, name, loader);
    else
        elf_file_close(&f);
    return fits;
}

// --- where the loader looks ---

static const struct {
    uint16_t machine;
    const char *multiarch, *lib; // Debian's folder; $LIB elsewhere
} places[] = {
    {EM_X86_64, "x86_64-linux-gnu", "lib64"}, {EM_AARCH64, "aarch64-linux-gnu", "lib64"},
    {EM_386, "i386-linux-gnu", "lib"},        {EM_PPC64, "powerpc64le-linux-gnu", "lib64"},
    {EM_S390, "s390x-linux-gnu", "lib64"},    {EM_RISCV, "riscv64-linux-gnu", "lib64"},
    {EM_ARM, "arm-linux-gnueabihf", "lib"},
};

static const char *multiarch_of(const struct elf_file *f, const char **lib)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i].machine == f->header.e_machine) {
            *lib = places[i].lib;
            return places[i].multiarch;
        }
    }
    *lib = "lib";
    return "none";
}

// The folder an object was loaded from; the kernel resolves links of the program only.
static char *origin_of(const struct search *s, size_t i)
{
    char *path = i ? xstrdup(s->v[i].file.path) : realpath(s->v[i].file.path, NULL);
    char *slash = path ? strrchr(path, '/') : NULL;
    if (slash)
        *slash = 0;
    return path;
}

// $LIB: "lib/x86_64-linux-gnu" on Debian, "lib64" on others.
static char *lib_token(const struct elf_file *f)
{
    const char *lib;
    char *path = xasprintf("/lib/%s", multiarch_of(f, &lib));
    char *out = access(path, F_OK) ? xstrdup(lib) : xstrdup(path + 1);
    free(path);
    return out;
}

static char *token_value(const struct search *s, size_t i, const char *token, size_t n)
{
    if (n == 6 && !strncmp(token, "ORIGIN", n))
        return origin_of(s, i);
    return n == 3 && !strncmp(token, "LIB", n) ? lib_token(&s->v[i].file) : NULL;
}

// Replaces $ORIGIN and $LIB, with or without braces. NULL for $PLATFORM, which the CPU decides, for
// what is too long, and for a relative path, which the working directory decides.
static char *expand(const struct search *s, size_t i, const char *text)
{
    struct str out = {0};
    bool ok = true;
    while (ok && *text) {
        size_t plain = strcspn(text, "$");
        str_addn(&out, text, plain);
        text += plain;
        if (!*text)
            break;
        bool brace = *++text == '{';
        text += brace;
        size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        char *value = token_value(s, i, text, n);
        ok = value && (!brace || text[n] == '}') && out.len < PATH_MAX;
        str_add(&out, value ? value : "");
        text += n + (ok && brace);
        free(value);
    }
    if (ok && out.len < PATH_MAX && *str_text(&out) == '/')
        return out.s;
    str_free(&out);
    return NULL;
}

static bool try_folder(struct search *s, const char *folder, const char *name, size_t loader)
{
    char *path = xasprintf("%s/%s", folder, name);
    bool found = try_path(s, path, name, loader);
    free(path);
    return found;
}

// The folders that object i lists under DT_RPATH or DT_RUNPATH.
static bool try_list(struct search *s, size_t i, int64_t tag, const char *name, size_t loader)
{
    const char *list = dynamic_text(&s->v[i].file, tag);
    struct strv folders = {0};
    bool found = false;
    if (list)
        strv_split(&folders, list, ":");
    for (size_t j = 0; j < folders.n && !found && !s->exhausted; j++) {
        char *folder = expand(s, i, folders.v[j]);
        found = folder && try_folder(s, folder, name, loader);
        free(folder);
    }
    strv_free(&folders);
    return found;
}

// The RPATHs of the object that needs it, of its loader, and so on to the program; an object with a
// RUNPATH has no RPATH.
static bool try_rpaths(struct search *s, const char *name, size_t loader)
{
    uint64_t runpath;
    for (size_t i = loader;; i = s->v[i].loader) {
        if (!elf_dynamic(&s->v[i].file, DT_RUNPATH, &runpath) &&
            try_list(s, i, DT_RPATH, name, loader))
            return true;
        if (i == 0 || s->exhausted)
            return false;
    }
}

static bool try_cache(struct search *s, const char *name, size_t loader)
{
    uint32_t at = 0;
    for (const char *path; !s->exhausted && (path = ld_cache_find(&s->cache, name, &at));)
        if (try_path(s, path, name, loader))
            return true;
    return false;
}

// Not the same list on each distribution; a library of another machine in one of these is passed.
static bool try_defaults(struct search *s, const char *name, size_t loader)
{
    static const char *const folders[] = {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};
    const char *lib, *multiarch = multiarch_of(&s->v[0].file, &lib);
    char first[64], second[64];
    snprintf(first, sizeof first, "/lib/%s", multiarch);
    snprintf(second, sizeof second, "/usr/lib/%s", multiarch);
    bool found = try_folder(s, first, name, loader) || try_folder(s, second, name, loader);
    for (size_t i = 0; i < sizeof folders / sizeof *folders && !found; i++)
        found = try_folder(s, folders[i], name, loader);
    return found;
}

static bool load(struct search *s, const char *name, size_t loader)
{
    uint64_t runpath, flags = 0;
    const struct elf_file *f = &s->v[loader].file;
    if (strchr(name, '/')) {
        char *path = expand(s, loader, name);
        bool found = path && try_path(s, path, name, loader);
        free(path);
        return found;
    }
    bool no_default = elf_dynamic(f, DT_FLAGS_1, &flags) && flags & DF_1_NODEFLIB;
    bool has_runpath = elf_dynamic(f, DT_RUNPATH, &runpath);
    return (!has_runpath && try_rpaths(s, name, loader)) ||
           (has_runpath && try_list(s, loader, DT_RUNPATH, name, loader)) ||
           (!no_default && (try_cache(s, name, loader) || try_defaults(s, name, loader)));
}

// --- the graph ---

static struct object *find_object(struct search *s, const char *name)
{
    for (size_t i = 1; i < s->n; i++)
        if (strv_has(&s->v[i].names, name))
            return &s->v[i];
    return NULL;
}

static void need(struct search *s, const char *name, size_t loader)
{
    if (!*name || find_object(s, name) || strv_has(&s->missing, name))
        return;
    remark(s, NULL);
    if (load(s, name, loader) || s->exhausted)
        return;
    char *shown = short_name(name), *by = short_name(s->v[loader].names.v[0]);
    strv_add(&s->missing, name);
    strv_addf(&s->faults, "%s%s%s%s: not found%s%s%s", shown, loader ? " (for " : "",
              loader ? by : "", loader ? ")" : "", s->remark ? " (" : "",
              s->remark ? s->remark : "", s->remark ? ")" : "");
    free(shown);
    free(by);
}

// Breadth first, as the loader does; an object that is loaded is not loaded again, so that a cycle
// ends.
static void load_all(struct search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        for (size_t j = 0; j < s->v[i].file.ndynamic && !s->exhausted; j++) {
            const GElf_Dyn *d = &s->v[i].file.dynamic[j];
            if (d->d_tag != DT_NEEDED)
                continue;
            const char *name = dynamic_string(&s->v[i].file, d->d_un.d_val);
            s->exhausted = ++s->needs > MAX_NEEDS;
            if (name)
                need(s, name, i);
        }
    }
}

// --- symbol versions ---

// A record of the file in host order, which all loaded objects have: false at the table's end, when
// it lies outside, or when the work is more than its bound.
static bool record(struct search *s, const struct elf_file *f, uint64_t at, void *out, size_t size)
{
    struct bytes b = elf_bytes(f, at, size);
    s->exhausted |= ++s->steps > MAX_STEPS;
    if (!b.n || s->exhausted)
        return false;
    memcpy(out, b.p, size);
    return true;
}

static uint64_t table_of(const struct elf_file *f, int64_t tag)
{
    uint64_t address;
    return elf_dynamic(f, tag, &address) ? elf_offset_of(f, address) : UINT64_MAX;
}

// The length of "GLIBC_" in "GLIBC_2.36".
static size_t family(const char *version)
{
    const char *end = strrchr(version, '_');
    return end ? (size_t)(end - version) + 1 : 0;
}

static bool same_family(const char *a, const char *b)
{
    return family(a) == family(b) && !strncmp(a, b, family(a));
}

// Whether the library defines the version, by hash and name; *best becomes the highest one that it
// defines of this family, or NULL.
static bool defines(struct search *s, const struct elf_file *lib, const char *version,
                    uint32_t hash, const char **best)
{
    Elf64_Verdef def;
    *best = NULL;
    for (uint64_t at = table_of(lib, DT_VERDEF); record(s, lib, at, &def, sizeof def);
         at += def.vd_next) {
        Elf64_Verdaux aux;
        const char *name = record(s, lib, at + def.vd_aux, &aux, sizeof aux)
                               ? dynamic_string(lib, aux.vda_name)
                               : NULL;
        if (name && def.vd_hash == hash && !strcmp(name, version))
            return true;
        if (name && same_family(name, version) && (!*best || strverscmp(name, *best) > 0))
            *best = name;
        if (!def.vd_next)
            break;
    }
    return false;
}

static int by_version_down(const void *a, const void *b)
{
    return strverscmp(*(char *const *)b, *(char *const *)a);
}

// Of each family that lacks versions, the highest.
static void lacking_fault(struct search *s, const struct object *by, const struct object *lib,
                          struct strv *lacking)
{
    if (lacking->n)
        qsort(lacking->v, lacking->n, sizeof *lacking->v, by_version_down);
    for (size_t i = 0; i < lacking->n; i++) {
        const char *best;
        if (i && same_family(lacking->v[i], lacking->v[i - 1]))
            continue;
        defines(s, &lib->file, lacking->v[i], 0, &best);
        char *who = short_name(by->names.v[0]), *what = short_name(lacking->v[i]);
        char *of = short_name(lib->names.v[0]), *has = short_name(best ? best : "no such version");
        strv_addf(&s->faults, "%s%sneeds %s of %s, which has %s%s (%s)", by == s->v ? "" : who,
                  by == s->v ? "" : " ", what, of, best ? "up to " : "", has, lib->file.path);
        free(who);
        free(what);
        free(of);
        free(has);
    }
}

// The versions that an object needs of one library. A weak need is no more than a warning to the
// loader, as is a library without versions.
static void check_library(struct search *s, const struct object *by, const struct object *lib,
                          uint64_t at, unsigned count)
{
    struct strv lacking = {0};
    Elf64_Vernaux aux;
    for (; count && record(s, &by->file, at, &aux, sizeof aux); count--, at += aux.vna_next) {
        const char *best, *version = dynamic_string(&by->file, aux.vna_name);
        s->versions++;
        if (version && !(aux.vna_flags & VER_FLG_WEAK) && !strv_has(&lacking, version) &&
            !defines(s, &lib->file, version, aux.vna_hash, &best))
            strv_add(&lacking, version);
        if (!aux.vna_next)
            break;
    }
    if (!s->exhausted)
        lacking_fault(s, by, lib, &lacking);
    strv_free(&lacking);
}

static void check_versions(struct search *s, const struct object *o)
{
    Elf64_Verneed n;
    for (uint64_t at = table_of(&o->file, DT_VERNEED); record(s, &o->file, at, &n, sizeof n);
         at += n.vn_next) {
        const char *name = dynamic_string(&o->file, n.vn_file);
        const struct object *lib = name ? find_object(s, name) : NULL;
        if (lib && table_of(&lib->file, DT_VERDEF) != UINT64_MAX)
            check_library(s, o, lib, at + n.vn_aux, n.vn_cnt);
        if (!n.vn_next)
            break;
    }
}

// --- the whole ---

static struct search *start(const struct elf_file *file, const struct elf_facts *f)
{
    struct search *s = xcalloc(1, sizeof *s);
    struct stat st = {0};
    ld_cache_open(&s->cache);
    stat(file->path, &st);
    add_object(s, file, &st, file->path, 0);
    // The loader is there before everything else, whatever the libraries call it.
    if (f->interp && *f->interp == '/')
        try_path(s, f->interp, f->interp, 0);
    return s;
}

static void end(struct search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        strv_free(&s->v[i].names);
        if (i)
            elf_file_close(&s->v[i].file);
    }
    ld_cache_close(&s->cache);
    strv_free(&s->faults);
    strv_free(&s->missing);
    free(s->remark);
    free(s);
}

static struct fit fault_fit(const struct search *s)
{
    struct str text = {0};
    for (size_t i = 0; i < s->faults.n && i < MAX_NAMED; i++)
        str_addf(&text, "%s%s", i ? "; " : "", s->faults.v[i]);
    if (s->faults.n > MAX_NAMED)
        str_addf(&text, "; and %zu more", s->faults.n - MAX_NAMED);
    if (s->missing.n)
        str_add(&text, "; 'apt-file search' names a library's package, or set RUNPATH to where it "
                       "lies");
    return (struct fit){ANSWER_NO, text.s};
}

static struct fit libraries_fit(const struct search *s)
{
    if (s->faults.n)
        return fault_fit(s);
    if (s->exhausted)
        return fit_say(ANSWER_CANNOT_KNOW, "too many libraries, places or versions to look at all");
    return fit_say(ANSWER_YES, "%zu libraries and the %zu symbol versions they need of each other",
                   s->n - 1, s->versions);
}

static struct fit libhugetlbfs_fit(const struct search *s)
{
    static const char name[] = "libhugetlbfs.so";
    for (size_t i = 1; i < s->n; i++)
        if (starts_with(s->v[i].names.v[0], name))
            return fit_say(ANSWER_YES, "%s", s->v[i].file.path);
    return fit_say(ANSWER_NO, "the file needs it and it is not installed: apt install "
                              "libhugetlbfs0");
}

// musl's and others' loaders search by other rules.
static bool is_glibc(const char *interp)
{
    const char *slash = strrchr(interp, '/'), *name = slash ? slash + 1 : interp;
    return starts_with(name, "ld-linux") || starts_with(name, "ld64.so") ||
           starts_with(name, "ld.so");
}

struct fit fit_libraries(const struct elf_file *file, const struct elf_facts *f,
                         struct fit *libhugetlbfs)
{
    if (!f->needed.n)
        return fit_say(ANSWER_YES, "it needs none");
    if (f->interp && !is_glibc(f->interp))
        return fit_say(ANSWER_CANNOT_KNOW, "%s is not glibc's loader, and searches by other rules",
                       f->interp);
    struct search *s = start(file, f);
    load_all(s);
    for (size_t i = 0; i < s->n && !s->exhausted; i++)
        check_versions(s, &s->v[i]);
    struct fit fit = libraries_fit(s);
    *libhugetlbfs = libhugetlbfs_fit(s);
    end(s);
    return fit;
}
