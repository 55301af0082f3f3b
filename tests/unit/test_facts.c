// Each fact on a small program that has it and on one that lacks it.
#include "common/fs.h"
#include "common/proc.h"
#include "elfcheck/facts.h"
#include "elfcheck/facts_private.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_facts.XXXXXX";

static const char program[] =
    "#include <stdio.h>\n#include <string.h>\n#include <assert.h>\n#include <stdlib.h>\n"
    "__thread int per_thread = 1;\n"
    "int work(const char *s) { char buf[64]; strcpy(buf, s); assert(*s); puts(buf);\n"
    "    return printf(\"%s\\n\", buf); }\n"
    "int main(int argc, char **argv) { free(malloc((size_t)argc));\n"
    "    return work(argv[0]) + per_thread == 0; }\n";

// Strings as a MySQL 8.0 server has them; VERSIONS and MORE are the test's.
static const char server[] =
    "#include <stdio.h>\n"
    "static const char *const all[] = {\"mysqld-8.0\", \"server\", VERSIONS MORE \"end\"};\n"
    "int main(int argc, char **argv) { return puts(all[argc]) + !argv; }\n";

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir) || chdir(dir))
        return -1;
    return fs_write_atomic("p.c", program, NULL) || fs_write_atomic("s.c", server, NULL);
}

static int remove_dir(void **state)
{
    (void)state;
    return chdir("/") || fs_remove_tree(dir, NULL);
}

// Skips the test when one of the programs named is missing; says which.
static void need(const char *tools)
{
    struct strv words = {0};
    strv_split(&words, tools, " ");
    bool all = true;
    for (size_t i = 0; i < words.n; i++) {
        char *found = fs_find_program(words.v[i]);
        if (!found) {
            print_message("no %s on this host\n", words.v[i]);
            all = false;
        }
        free(found);
    }
    strv_free(&words);
    if (!all)
        skip();
}

static void run(const char *command)
{
    struct str out = {0};
    struct err e = {0};
    const char *const argv[] = {"sh", "-c", command, NULL};
    if (proc_capture(argv, &out, &e))
        fail_msg("%s: %s%s", command, str_text(&out), e.msg);
    str_free(&out);
}

static struct facts facts_of(const char *path)
{
    struct elf_file file;
    struct elf_facts elf;
    struct dwarf_facts dwarf = {0};
    struct facts l;
    struct err e = {0};
    if (elf_file_open(path, &file, &e) || elf_facts_of(&file, &elf, &e))
        fail_msg("%s", e.msg);
    dwarf_facts_read(&file, &dwarf);
    facts_read(&file, &elf, &dwarf, &l);
    dwarf_facts_free(&dwarf);
    elf_facts_free(&elf);
    elf_file_close(&file);
    return l;
}

// value NULL: cannot be known. Both are the start of what is wanted; evidence may stand anywhere.
static void expect_in(const struct facts *l, const char *what, const char *name, const char *value,
                      const char *evidence)
{
    const struct fact *f = facts_find(l, name);
    if (!f)
        fail_msg("no fact %s", name);
    bool same = value ? f->value && starts_with(f->value, value) : !f->value;
    if (!same || !strstr(f->evidence, evidence))
        fail_msg("%s: %s is '%s' (%s), wanted '%s' (%s)", what, name, f->value ? f->value : "NULL",
                 f->evidence, value ? value : "NULL", evidence);
}

static const char *last; // the command that made ./p; rows that follow each other share it

static void expect(const char *command, const char *name, const char *value, const char *evidence)
{
    if (!last || strcmp(last, command) != 0)
        run(command);
    last = command;
    struct facts l = facts_of("p");
    expect_in(&l, command, name, value, evidence);
    facts_free(&l);
}

struct row {
    const char *command, *name, *value, *evidence;
};

static void expect_all(const char *tools, const struct row *rows, size_t n)
{
    need(tools);
    last = NULL;
    for (size_t i = 0; i < n; i++)
        expect(rows[i].command, rows[i].name, rows[i].value, rows[i].evidence);
}
#define EXPECT_ALL(tools, rows) expect_all(tools, rows, sizeof(rows) / sizeof *(rows))

#define GCC "gcc -fuse-ld=bfd p.c -o p "

// --- hardening ---

static void how_it_is_loaded(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {GCC "-fPIE -pie", "pie", "yes", "ET_DYN"},
        {GCC "-fno-pie -no-pie", "pie", "no", "ET_EXEC"},
        {GCC "-shared -fPIC", "pie", "yes; shared library", "ET_DYN"},
        {GCC "-fPIE -static-pie", "pie", "yes", "static"},
        {GCC "-Wl,-z,relro,-z,now", "relro", "full", "PT_GNU_RELRO and DF_BIND_NOW"},
        {GCC "-Wl,-z,relro,-z,lazy", "relro", "partial", "no DF_BIND_NOW"},
        {GCC "-Wl,-z,norelro,-z,now", "relro", "none", "no PT_GNU_RELRO"},
        {GCC "-Wl,-z,now", "bind-now", "yes", "DF_BIND_NOW"},
        {GCC "-Wl,-z,lazy", "bind-now", "no", "no DF_BIND_NOW"},
        {GCC "-static -no-pie", "bind-now", "yes", "static"},
        {GCC "-Wl,-z,noexecstack", "exec-stack", "no", "PT_GNU_STACK RW"},
        {GCC "-Wl,-z,execstack", "exec-stack", "yes", "PT_GNU_STACK RWE"},
        {GCC "", "writable-text", "no", "no load segment"},
        {"echo 'void _start(void) {}' > n.c && gcc -fuse-ld=bfd -nostdlib -static -Wl,-N n.c -o p",
         "writable-text", "yes", "RWE"},
        {GCC "", "text-relocations", "no", "no DT_TEXTREL"},
        {GCC "", "rpath", "none", "no DT_RPATH"},
        {GCC "-Wl,-rpath,/opt/x,--disable-new-dtags", "rpath", "/opt/x", "DT_RPATH"},
        {GCC "-Wl,-rpath,/opt/y,--enable-new-dtags", "rpath", "/opt/y", "DT_RUNPATH"},
        {GCC "", "relro-in-load", "yes", "PT_GNU_RELRO ends at"},
        {GCC "-Wl,-z,norelro", "relro-in-load", "yes", "no PT_GNU_RELRO"},
        {GCC "-c", "relro", NULL, "the linked file would tell"},
    };
    EXPECT_ALL("gcc ld.bfd", rows);
}

static void text_relocations(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"printf 'int x; int *f(void) { return &x; }' > t.c && "
         "gcc -fuse-ld=bfd -mcmodel=large -fno-pic -shared -Wl,-z,notext t.c -o p",
         "text-relocations", "yes", "DT_TEXTREL"}};
    EXPECT_ALL("gcc ld.bfd", rows);
}

// lld writes no PT_GNU_STACK with nognustack: threads then have executable stacks (seen in
// /proc/PID/maps), the first thread has not.
static void a_missing_stack_header(void **state)
{
    (void)state;
    static const struct row rows[] = {{"gcc -fuse-ld=lld p.c -o p -Wl,-z,nognustack", "exec-stack",
                                       "yes; of threads", "no PT_GNU_STACK"}};
    EXPECT_ALL("gcc ld.lld", rows);
}

static void stack_protector(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {GCC "-O2 -fno-stack-protector", "stack-protector", "no", "not imported"},
        {GCC "-O2 -fstack-protector-strong", "stack-protector", "yes", "__stack_chk_fail"},
        {GCC "-O2 -g -fstack-protector-strong", "stack-protector", "yes; strong",
         "in 1 of 1 units"},
        {GCC "-O2 -g -fstack-protector-all -fstack-protector", "stack-protector",
         "yes; buffers of 8", "in 1 of 1 units"},
        {GCC "-O2 -g -fstack-protector --param=ssp-buffer-size=4", "stack-protector",
         "yes; buffers of 4", "in 1 of 1 units"},
        {GCC "-O2 -g -fstack-protector-all", "stack-protector", "yes; all", "in 1 of 1 units"},
        {GCC "-O2 -g -fstack-protector-strong -fno-stack-protector", "stack-protector", "no",
         "not imported"},
        {GCC "-O2 -static", "stack-protector", NULL, "would tell"},
        {GCC "-O2 -static -g -fstack-protector-all", "stack-protector", "yes", "in all 1 units"},
        {GCC "-O2 -g -fstack-clash-protection", "stack-clash", "yes", "in all 1 units"},
        {GCC "-O2 -g -fno-stack-clash-protection", "stack-clash", "no", "in none of 1 units"},
        {GCC "-O2 -fstack-clash-protection", "stack-clash", NULL, "would tell"},
    };
    EXPECT_ALL("gcc ld.bfd", rows);
}

static void fortify(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {GCC "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2", "fortify", "yes; 2 of 2", "__printf_chk"},
        {GCC "-O2 -U_FORTIFY_SOURCE", "fortify", "no", "printf is imported"},
        {GCC "-O2 -U_FORTIFY_SOURCE -static", "fortify", NULL, "would tell"},
        {"printf '#include <string.h>\\nint main(int c, char **v) { strcat(v[0], v[1]); return c; "
         "}' > f.c && gcc -O2 -U_FORTIFY_SOURCE f.c -o p",
         "fortify", NULL, "always replaces"},
    };
    EXPECT_ALL("gcc ld.bfd", rows);
}

static void branch_protection(void **state)
{
    (void)state;
#ifdef __x86_64__
    // The start files of Debian are not marked; without them the object's own mark stands.
    static const struct row rows[] = {
        {GCC "-fcf-protection=full -nostartfiles", "branch-protection", "IBT+SHSTK", "property"},
        {GCC "-fcf-protection=branch -nostartfiles", "branch-protection", "IBT", "property"},
        {GCC "-fcf-protection=return -nostartfiles", "branch-protection", "SHSTK", "property"},
        {GCC "-fcf-protection=none -nostartfiles", "branch-protection", "none", "property"},
    };
    EXPECT_ALL("gcc ld.bfd", rows);
#else
    print_message("flags of x86-64\n");
    skip();
#endif
}

// Code for a higher level carries no mark (gcc 12): the note's "baseline" is the start files'.
static void isa_level(void **state)
{
    (void)state;
#ifdef __x86_64__
    static const struct row rows[] = {
        {GCC "-g -march=x86-64-v3", "isa-level", "x86-64-v3", "-march=x86-64-v3"},
        {GCC "-g -march=haswell", "isa-level", "x86-64-v3", "-march=haswell"},
        {GCC "-g -march=x86-64", "isa-level", "baseline", "-march=x86-64"},
        {GCC "-march=x86-64-v3", "isa-level", NULL, "would tell"},
        {GCC "-march=x86-64-v3 -mneeded", "isa-level", "x86-64-v3", "x86 ISA needed"},
        {GCC "-g -march=x86-64-v3", "march", "x86-64-v3", "DW_AT_producer"},
        {GCC "-g", "march", "x86-64", "DW_AT_producer"},
        {GCC "", "march", NULL, "would tell"},
    };
    EXPECT_ALL("gcc ld.bfd", rows);
#else
    print_message("flags of x86-64\n");
    skip();
#endif
}

// --- compilation ---

static void by_the_flags(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {GCC "-g -O3", "optimisation", "-O3", "in all 1 units"},
        {GCC "-g -O3 -O2", "optimisation", "-O2", "in all 1 units"},
        {GCC "-O3", "optimisation", NULL, "would tell"},
        {GCC "-O3 -frecord-gcc-switches", "optimisation", "-O3", ".GCC.command.line"},
        {GCC "-g -O2 -gno-record-gcc-switches", "optimisation", NULL, "do not record"},
        {GCC "-g", "compiler", "GCC ", "of all 1 units"},
        {GCC "", "compiler", "GCC ", ".comment"},
        {GCC "&& strip -R .comment p", "compiler", NULL, "would tell"},
        {GCC "-g -O2 -fno-omit-frame-pointer", "frame-pointers", "yes", "in all 1 units"},
        {GCC "-g -O2 -fomit-frame-pointer", "frame-pointers", "no", "in none of 1 units"},
        {GCC "-O2", "frame-pointers", NULL, "would tell"},
        {GCC "-g -O2", "pgo", "no", "in none of 1 units"},
        {GCC "-O2", "pgo", NULL, "would tell"},
        {GCC "-O2 -fprofile-generate", "pgo", "instrumented", "__gcov_"},
        {GCC "-O2 -fprofile-generate -s", "pgo", "instrumented", "strings"},
        {GCC "-g -O2 -fprofile-use=/nowhere -Wno-missing-profile", "pgo", "yes", "-fprofile-use"},
        {GCC "-g -O2 -ffast-math", "fast-math", "yes", "set_fast_math"},
        {GCC "-g -O2", "fast-math", "no", "in none of 1 units"},
        {GCC "-O2", "fast-math", NULL, "would tell"},
        {GCC "-g -O2 -shared -fPIC -fno-fast-math -funsafe-math-optimizations", "fast-math", "yes",
         ""},
        {GCC "-O2", "sanitizers", "none", "no call"},
        {GCC "-O2 -fsanitize=address", "sanitizers", "address", "__asan_"},
        {GCC "-O2 -fsanitize=undefined", "sanitizers", "undefined", "__ubsan_"},
        {GCC "-O2 -g -fsanitize=undefined -fsanitize-undefined-trap-on-error", "sanitizers",
         "undefined; it traps", "-fsanitize="},
        {GCC "-O2 -static -s", "sanitizers", NULL, "would tell"},
        {GCC "-O2", "bolt", "no", ".note.bolt_info"},
        {GCC "-O2 && objcopy --add-section .note.bolt_info=p.c p", "bolt", "yes", "bolt_info"},
        {GCC "-O2", "linker", "bfd", "layout"},
    };
    EXPECT_ALL("gcc ld.bfd strip objcopy", rows);
}

#ifdef __x86_64__
static void fast_math_without_symbols(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {GCC "-O2 -ffast-math -s", "fast-math", "yes", "start-up code in .init_array"},
        {GCC "-O2 -ffast-math -s -no-pie", "fast-math", "yes", "start-up code in .init_array"},
        {GCC "-O2 -s", "fast-math", NULL, "would tell"},
    };
    EXPECT_ALL("gcc ld.bfd", rows);
}
#endif

static void lto(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {GCC "-g -O2 -flto", "lto", "yes", "GNU GIMPLE"},
        {GCC "-g -O2", "lto", "no", "in none of 1 units"},
        {GCC "-O2", "lto", NULL, "would tell"},
        {GCC "-g -O2 -flto -ffat-lto-objects -c -o o.o && " GCC
             "-O2 -fno-lto o.o -x none 2>/dev/null"
             " || gcc -fuse-ld=bfd -fno-lto o.o -o p",
         "lto", "no", "in none of 1 units"},
    };
    EXPECT_ALL("gcc ld.bfd", rows);
}

static void clang_by_the_flags(void **state)
{
    (void)state;
#define CLANG "clang -fuse-ld=lld p.c -o p "
    static const struct row rows[] = {
        {CLANG "-O2 -g", "optimisation", NULL, "do not record"},
        {CLANG "-O2 -g", "compiler", "clang ", "of all 1 units"},
        {CLANG "-O2 -g -grecord-command-line", "optimisation", "-O2", "in all 1 units"},
        {CLANG "-O2 -frecord-command-line", "optimisation", "-O2", ".GCC.command.line"},
        {CLANG "-O2", "lto", NULL, "would tell"},
        {CLANG "-O2 -flto", "lto", "yes", "ld-temp.o"},
        {CLANG "-O2 -g -grecord-command-line -flto=thin", "lto", "yes", "-flto"},
        {CLANG "-O2 -g -grecord-command-line", "lto", "no", "in none of 1 units"},
        {CLANG "-O2 -fsanitize=address", "sanitizers", "address", "__asan_"},
        {CLANG "-O2", "linker", "LLD ", ".comment"},
        {CLANG "-O2 -D_FORTIFY_SOURCE=2", "fortify", "yes", "_chk"},
        {CLANG "-O2 -g -grecord-command-line -O1", "frame-pointers", "no", "in none of 1 units"},
    };
    EXPECT_ALL("clang ld.lld", rows);
}

static void clang_instrumented(void **state)
{
    (void)state;
    need("clang ld.lld");
    if (system("clang -fprofile-instr-generate p.c -o q 2>/dev/null")) {
        print_message("clang has no profile runtime on this host\n");
        skip();
    }
    expect("cp q p", "pgo", "instrumented", "__llvm_pr");
    expect("strip q -o p", "pgo", "instrumented", "__llvm_pr");
}

// Two units of three differ: shares and where the rest comes from.
static void shares_are_counted(void **state)
{
    (void)state;
    need("gcc ld.bfd");
    run("mkdir -p zlib sql && for i in 1 2; do echo \"int f$i(int x) { return x * $i; }\" > "
        "sql/f$i.c; done && echo 'int g(int x) { return x + 1; }' > zlib/g.c && "
        "echo 'int f1(int), f2(int), g(int); int main(void) { return f1(1) + f2(2) + g(3); }' > "
        "sql/m.c");
    run("for f in sql/*.c; do gcc -g -O3 -fno-omit-frame-pointer -c $f -o $f.o; done && "
        "gcc -g -O2 -fomit-frame-pointer -c zlib/g.c -o zlib/g.o && "
        "gcc -fuse-ld=bfd sql/*.o zlib/g.o -o p");
    struct facts l = facts_of("p");
    expect_in(&l, "mixed", "optimisation", "-O3 in 3 of 4 units (", "the last -O");
    expect_in(&l, "mixed", "frame-pointers", "partial; in 3 of 4 units (", "-fno-omit");
    const char *value = facts_find(&l, "optimisation")->value;
    if (!strstr(value, "% of the text); -O2 in 1"))
        fail_msg("%s", value);
    facts_free(&l);
}

static void what_is_built_in(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {GCC "-DNDEBUG", "assertions", "off", "not imported"},
#ifdef __x86_64__
        {GCC "", "assertions", "on", "1 place calls __assert_fail"},
        {GCC "-fno-plt -Wl,-z,now", "assertions", "on", "1 place calls __assert_fail"},
#endif
        {GCC "-static", "assertions", NULL, "would tell"},
        {GCC "", "allocator", "libc", "imports malloc"},
        {GCC "-static -s", "allocator", NULL, "would tell"},
        {GCC "", "libnuma", "no", "neither needed"},
        {GCC "", "tls", "4 bytes", "PT_TLS"},
        {GCC "-D__thread=", "tls", "none", "no PT_TLS"},
        {GCC "-shared -fPIC -ftls-model=initial-exec", "tls", "4 bytes; static", "DF_STATIC_TLS"},
        {GCC "", "flavour", NULL, "no string of a server"},
        {GCC "", "performance-schema", NULL, "not a server"},
    };
    EXPECT_ALL("gcc ld.bfd", rows);
}

// A library with the right name stands for the real one.
static void needed_libraries(void **state)
{
    (void)state;
#define WITH(lib)                                                                                  \
    "echo 'int x;' > l.c && gcc -shared -fPIC l.c -Wl,-soname," lib " -o libl.so && " GCC          \
    "-Wl,--no-as-needed ./libl.so"
    static const struct row rows[] = {
        {WITH("libjemalloc.so.2"), "allocator", "jemalloc", "needs libjemalloc.so.2"},
        {WITH("libtcmalloc_minimal.so.4"), "allocator", "tcmalloc", "needs libtcmalloc_minimal"},
        {WITH("libmimalloc.so.2"), "allocator", "mimalloc", "needs libmimalloc"},
        {WITH("libnuma.so.1"), "libnuma", "yes", "needs libnuma.so.1"},
        {"printf '#include <stdlib.h>\\nchar b[99]; void *malloc(size_t n) { return b + n; } int "
         "mallctl;' > j.c && gcc -fuse-ld=bfd p.c j.c -o p",
         "allocator", "jemalloc", "linked in: mallctl"},
    };
    EXPECT_ALL("gcc ld.bfd", rows);
}

static void servers(void **state)
{
    (void)state;
#define SERVER(versions, more) "gcc -s -DVERSIONS='" versions "' -DMORE='" more "' s.c -o p"
#define PFS                    "\"performance_schema_max_thread_instances\","
    static const struct row rows[] = {
        {SERVER("\"8.0.45\",", ""), "flavour", "MySQL", "mysqld-8.0"},
        {SERVER("\"8.0.45\",", ""), "server-version", "8.0.45", "series 8.0"},
        {SERVER("\"8.0.45\",\"since 8.0.13\",\"8.0.x\",", ""), "server-version", "8.0.45", "only"},
        {SERVER("\"8.0.45\",\"8.0.13\",", ""), "server-version", NULL, "8.0.13"},
        {SERVER("", ""), "server-version", NULL, "--version would tell"},
        {SERVER("\"8.0.36-28\",", "\"Percona Server (GPL), Release 28\","), "flavour",
         "Percona Server", "Release 28"},
        {SERVER("\"8.0.36-28\",", "\"Percona Server (GPL), Release 28\","), "server-version",
         "8.0.36-28", "only"},
        {SERVER("\"11.4.2-MariaDB-log\",", ""), "flavour", "MariaDB", "11.4.2-MariaDB-log"},
        {SERVER("\"11.4.2-MariaDB\",\"e.g. 10.1.1-MariaDB\",", ""), "server-version",
         "11.4.2-MariaDB", ".rodata"},
        {SERVER("\"8.0.45\",", PFS), "performance-schema", "yes", "variable"},
        {SERVER("\"8.0.45\",", "\"performance_schema\","), "performance-schema", "no", "lack"},
        {"printf '#include <stdio.h>\\nint main(void) { return puts(\"postgres (PostgreSQL) 16.4 "
         "(x)\"); }' > g.c && gcc g.c -o p",
         "flavour", "PostgreSQL", "16.4"},
    };
    EXPECT_ALL("gcc", rows);
}

// --- debug information ---

static void debug_information(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {GCC "-g", "debug-info", "inside", ".debug_info"},
        {GCC "-g -gz", "debug-info", "inside; compressed", ".debug_info"},
        {GCC "-g -gz -O2", "optimisation", "-O2", "in all 1 units"},
        {GCC "-s", "debug-info", "none", "no section"},
        {GCC "-g -Wl,--build-id && rm -f p.debug && objcopy --only-keep-debug p p.debug && "
             "objcopy -g --add-gnu-debuglink=p.debug p",
         "debug-info", "separate; found", "p.debug"},
        {"rm p.debug", "debug-info", "separate; not installed", ".gnu_debuglink p.debug, CRC"},
        {"gcc -g -O1 -Wl,--build-id p.c -o q && mv q p.debug", "debug-info",
         "separate; of another build", "p.debug"},
        {GCC "", "symbols", "full", ".symtab"},
        {GCC "-s", "symbols", "dynamic", ".dynsym"},
        {GCC "-static -s", "symbols", "none", "no symbol table"},
        {GCC "-Wl,--build-id=0x0123456789", "build-id", "0123456789", "note"},
        {GCC "-Wl,--build-id=none", "build-id", "none", "no note"},
    };
    EXPECT_ALL("gcc ld.bfd objcopy", rows);
}

// --- the parts ---

static void relro_must_lie_in_a_segment(void **state)
{
    (void)state;
    need("gcc ld.bfd");
    run(GCC "-Wl,-z,relro");
    struct str whole = {0};
    assert_int_equal(fs_read("p", &whole, NULL), 0);
    struct elf_file file;
    struct err e = {0};
    // What lld before 18 writes: a memsz rounded up to a page size that the segment lacks.
    Elf64_Ehdr h;
    memcpy(&h, whole.s, sizeof h);
    for (size_t i = 0; i < h.e_phnum; i++) {
        Elf64_Phdr p;
        char *at = whole.s + h.e_phoff + i * sizeof p;
        memcpy(&p, at, sizeof p);
        if (p.p_type == PT_GNU_RELRO)
            p.p_memsz += 2 << 20;
        memcpy(at, &p, sizeof p);
    }
    struct elf_facts elf;
    struct dwarf_facts none = {0};
    struct facts l;
    assert_int_equal(elf_file_open_image("p", whole.s, whole.len, &file, &e), 0);
    assert_int_equal(elf_facts_of(&file, &elf, &e), 0);
    facts_read(&file, &elf, &none, &l);
    expect_in(&l, "patched", "relro-in-load", "no", "does not start");
    facts_free(&l);
    elf_facts_free(&elf);
    elf_file_close(&file);
    str_free(&whole);
}

static void json_holds_all(void **state)
{
    (void)state;
    struct facts l = {0};
    fact_known(&l, "relro", "full", "%s and %s", "PT_GNU_RELRO", "DF_BIND_NOW");
    fact_known(&l, "rpath", "/opt/\xff", "DT_RPATH");
    fact_unknown(&l, "lto", "-g would tell");
    json_t *j = facts_json(&l);
    const char *value, *evidence;
    assert_int_equal(
        json_unpack(j, "{s:{s:s,s:s}}", "relro", "value", &value, "evidence", &evidence), 0);
    assert_string_equal(value, "full");
    assert_string_equal(evidence, "PT_GNU_RELRO and DF_BIND_NOW");
    assert_true(json_is_null(json_object_get(json_object_get(j, "lto"), "value")));
    assert_string_equal(json_string_value(json_object_get(json_object_get(j, "rpath"), "value")),
                        "/opt/?");
    json_decref(j);
    facts_free(&l);
    assert_null(facts_find(&l, "relro"));
}

static void folders_are_added_up(void **state)
{
    (void)state;
    struct strv l = {0};
    strv_add(&l, "zlib (13), libmariadb (9)");
    strv_add(&l, "libmariadb (5), odd name (1)");
    char *s = folders_text(&l);
    assert_string_equal(s, "libmariadb (14), zlib (13), odd name (1)");
    free(s);
    strv_free(&l);
}

static void read_damaged(const char *bytes, size_t n)
{
    struct elf_file file;
    struct elf_facts elf;
    struct dwarf_facts none = {0};
    struct facts l;
    struct err e = {0};
    if (elf_file_open_image("bad", bytes, n, &file, &e))
        return;
    if (elf_facts_of(&file, &elf, &e) == 0) {
        facts_read(&file, &elf, &none, &l);
        for (size_t i = 0; i < l.n; i++)
            assert_true(l.v[i].evidence && *l.v[i].evidence);
        facts_free(&l);
        elf_facts_free(&elf);
    }
    elf_file_close(&file);
}

// Nothing but an error or an answer may come of it; the sanitizers watch.
static void damaged_files_do_no_harm(void **state)
{
    (void)state;
    need("gcc ld.bfd");
    run(GCC "-g -O2 -ffast-math -frecord-gcc-switches -Wl,-rpath,/opt/x -fcf-protection");
    struct str whole = {0};
    assert_int_equal(fs_read("p", &whole, NULL), 0);
    for (size_t n = 0; n < whole.len; n += n < 1200 ? 7 : 331)
        read_damaged(whole.s, n);
    uint64_t seed = 1, headers = whole.len - 64 * 40;
    for (int i = 0; i < 4000; i++) {
        char was[8];
        size_t at[8];
        for (int j = 0; j < 8; j++) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            // The program headers and notes, all, and the section headers.
            at[j] = j % 3 == 0   ? (seed >> 33) % 1200
                    : j % 3 == 1 ? (seed >> 33) % whole.len
                                 : headers + (seed >> 33) % (whole.len - headers);
            was[j] = whole.s[at[j]];
            whole.s[at[j]] = (char)(seed >> 25);
        }
        read_damaged(whole.s, whole.len);
        for (int j = 7; j >= 0; j--)
            whole.s[at[j]] = was[j];
    }
    str_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_it_is_loaded),
        cmocka_unit_test(text_relocations),
        cmocka_unit_test(a_missing_stack_header),
        cmocka_unit_test(stack_protector),
        cmocka_unit_test(fortify),
        cmocka_unit_test(branch_protection),
        cmocka_unit_test(isa_level),
        cmocka_unit_test(by_the_flags),
#ifdef __x86_64__
        cmocka_unit_test(fast_math_without_symbols),
#endif
        cmocka_unit_test(lto),
        cmocka_unit_test(clang_by_the_flags),
        cmocka_unit_test(clang_instrumented),
        cmocka_unit_test(shares_are_counted),
        cmocka_unit_test(what_is_built_in),
        cmocka_unit_test(needed_libraries),
        cmocka_unit_test(servers),
        cmocka_unit_test(debug_information),
        cmocka_unit_test(relro_must_lie_in_a_segment),
        cmocka_unit_test(json_holds_all),
        cmocka_unit_test(folders_are_added_up),
        cmocka_unit_test(damaged_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
