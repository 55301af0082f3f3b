#include "elfcheck/host_fit.h"
#include "common/fs.h"
#include "common/proc.h"
#include "elfcheck/host_fit_private.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_host_fit.XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir) || chdir(dir))
        return -1;
    return fs_write_atomic("p.c", "int main(void) { return 0; }\n", NULL) ||
           fs_write_atomic("user.c", "int a(void);\nint main(void) { return a(); }\n", NULL) ||
           fs_write_atomic("a.c", "int a(void) { return 0; }\n", NULL) ||
           fs_write_atomic("ab.c", "int b(void);\nint a(void) { return b(); }\n", NULL) ||
           fs_write_atomic("b.c", "int b(void) { return 0; }\n", NULL);
}

static int remove_dir(void **state)
{
    (void)state;
    return chdir("/") || fs_remove_tree(dir, NULL);
}

// The test is skipped when there is no gcc.
static void gcc(const char *flags)
{
    char *found = fs_find_program("gcc");
    struct strv argv = {0};
    struct str out = {0};
    struct err e = {0};
    if (!found)
        skip();
    free(found);
    strv_add(&argv, "gcc");
    strv_split(&argv, flags, " ");
    if (proc_capture((const char *const *)argv.v, &out, &e))
        fail_msg("gcc %s: %s%s", flags, str_text(&out), e.msg);
    strv_free(&argv);
    str_free(&out);
}

static struct host_fit fit_of(const char *path, const char *level)
{
    struct err e = {0};
    struct elf_file file;
    struct elf_facts f;
    struct host_fit fit;
    if (elf_file_open(path, &file, &e) || elf_facts_of(&file, &f, &e))
        fail_msg("%s", e.msg);
    assert_int_equal(host_fit_read(&file, &f, level, &fit), 0);
    elf_facts_free(&f);
    elf_file_close(&file);
    return fit;
}

// The condition has this answer, and its evidence holds the text.
static void expect(const char *path, const char *level, const char *name, enum answer answer,
                   const char *text)
{
    struct host_fit fit = fit_of(path, level);
    const struct host_condition *c = host_fit_find(&fit, name);
    if (!c || c->answer != answer || !strstr(c->evidence, text))
        fail_msg("%s of %s (%s): '%s: %s', wanted '%s: %s'", name, path, level ? level : "NULL",
                 c ? answer_word(c->answer) : "", c ? c->evidence : "no such condition",
                 answer_word(answer), text);
    host_fit_free(&fit);
}

// --- instruction set ---

#define V1 "cmov cx8 fpu fxsr mmx syscall sse sse2"
#define V2 V1 " cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
#define V3 V2 " avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
#define V4 V3 " avx512f avx512bw avx512cd avx512dq avx512vl"

static void cpu(const char *flags)
{
    char *text = xasprintf("processor\t: 0\nvmx flags\t: a\nflags\t\t: %s\nbugs\t\t:\n", flags);
    fs_mkdirs("root/proc", 0700, NULL);
    fs_write_atomic("root/proc/cpuinfo", text, NULL);
    setenv("KILN_SYSROOT", "root", 1);
    free(text);
}

static int real_cpu(void **state)
{
    (void)state;
    return unsetenv("KILN_SYSROOT");
}

static void level_given_by_the_caller(void **state)
{
    (void)state;
    gcc("p.c -o p");
    cpu(V2);
    expect("p", "baseline", "isa-level", ANSWER_YES, "this CPU has x86-64-v2");
    expect("p", "x86-64-v2", "isa-level", ANSWER_YES, "compiled for x86-64-v2");
    expect("p", "x86-64-v3", "isa-level", ANSWER_NO,
           "has x86-64-v2 and lacks avx avx2 bmi1 bmi2 f16c fma abm movbe xsave");
    expect("p", "haswell", "isa-level", ANSWER_NO, "needs haswell (-march)");
    expect("p", "native", "isa-level", ANSWER_CANNOT_KNOW, "'native'");
    expect("p", NULL, "isa-level", ANSWER_CANNOT_KNOW, "not recorded");
    cpu(V4);
    expect("p", "skylake-avx512", "isa-level", ANSWER_NO, "lacks pclmulqdq aes");
    cpu(V4 " aes pclmulqdq");
    expect("p", "skylake-avx512", "isa-level", ANSWER_YES, "x86-64-v4");
    expect("p", "cascadelake", "isa-level", ANSWER_NO, "lacks avx512_vnni");
}

// "avx2" is not "avx", and a flag in the middle of a word is none.
static void flags_are_whole_words(void **state)
{
    (void)state;
    gcc("p.c -o p");
    cpu("cmov cx8 fpu fxsr mmx syscall sse2 xsse ssex");
    expect("p", "x86-64", "isa-level", ANSWER_NO, "not even x86-64-v1 and lacks sse");
    cpu("");
    expect("p", "x86-64", "isa-level", ANSWER_NO, "lacks cmov");
    unlink("root/proc/cpuinfo");
    expect("p", "x86-64", "isa-level", ANSWER_CANNOT_KNOW, "/proc/cpuinfo");
}

static void level_recorded_in_the_file(void **state)
{
    (void)state;
    gcc("p.c -o v3 -fuse-ld=bfd -Wl,-z,x86-64-v3");
    cpu(V3);
    expect("v3", NULL, "isa-level", ANSWER_YES, "needs x86-64-v3 (.note.gnu.property)");
    expect("v3", "x86-64", "isa-level", ANSWER_YES, "its note needs x86-64-v3");
    expect("v3", "ev6", "isa-level", ANSWER_CANNOT_KNOW, "'ev6'");
    cpu(V2 " avx avx2 bmi1 bmi2 f16c fma movbe xsave");
    expect("v3", NULL, "isa-level", ANSWER_NO,
           "needs x86-64-v3 (.note.gnu.property); this CPU has "
           "x86-64-v2 and lacks abm");
    expect("v3", "x86-64", "isa-level", ANSWER_NO, "lacks abm");
    expect("v3", "ev6", "isa-level", ANSWER_NO, "lacks abm");
}

// --- machine and interpreter ---

static struct str image_of(const char *path)
{
    struct str image = {0};
    if (fs_read(path, &image, NULL))
        fail_msg("%s", path);
    return image;
}

static int fit_image(const struct str *image, struct host_fit *fit)
{
    struct err e = {0};
    struct elf_file file;
    struct elf_facts f;
    int rc = 1;
    *fit = (struct host_fit){0};
    if (elf_file_open_image("image", image->s, image->len, &file, &e))
        return rc;
    if (elf_facts_of(&file, &f, &e) == 0) {
        rc = host_fit_read(&file, &f, "x86-64", fit);
        elf_facts_free(&f);
    }
    elf_file_close(&file);
    return rc;
}

static void another_machine(void **state)
{
    (void)state;
    gcc("p.c -o p");
    struct str image = image_of("p");
    struct host_fit fit;
    ((Elf64_Ehdr *)image.s)->e_machine = EM_S390;
    assert_int_equal(fit_image(&image, &fit), 0);
    assert_int_equal(host_fit_find(&fit, "machine")->answer, ANSWER_NO);
    assert_int_equal(host_fit_find(&fit, "libraries")->answer, ANSWER_CANNOT_KNOW);
    assert_int_equal(host_fit_find(&fit, "isa-level")->answer, ANSWER_CANNOT_KNOW);
    assert_int_equal(host_fit_find(&fit, "interpreter")->answer, ANSWER_NO);
    assert_int_equal(host_fit_verdict(&fit), ANSWER_NO);
    host_fit_free(&fit);
    ((Elf64_Ehdr *)image.s)->e_machine = EM_X86_64;
    ((Elf64_Ehdr *)image.s)->e_type = ET_REL;
    assert_int_equal(fit_image(&image, &fit), -ENOEXEC);
    str_free(&image);
}

static void own_machine(void **state)
{
    (void)state;
    gcc("p.c -o p");
    cpu(V1);
    struct host_fit fit = fit_of("p", "x86-64");
    assert_int_equal(fit.n, 4);
    for (size_t i = 0; i < fit.n; i++)
        if (fit.v[i].answer != ANSWER_YES)
            fail_msg("%s: %s", fit.v[i].name, fit.v[i].evidence);
    assert_int_equal(host_fit_verdict(&fit), ANSWER_YES);
    json_t *o = host_fit_json(&fit);
    assert_string_equal(json_string_value(json_object_get(o, "answer")), "yes");
    json_t *libraries = json_object_get(json_object_get(o, "conditions"), "libraries");
    assert_string_equal(json_string_value(json_object_get(libraries, "answer")), "yes");
    json_decref(o);
    host_fit_free(&fit);
}

static void verdict_is_the_worst(void **state)
{
    (void)state;
    struct host_condition v[] = {
        {"a", ANSWER_YES, NULL}, {"b", ANSWER_NO, NULL}, {"c", ANSWER_CANNOT_KNOW, NULL}};
    const struct host_fit fit = {v, 3};
    assert_int_equal(host_fit_verdict(&fit), ANSWER_NO);
    v[1].answer = ANSWER_YES;
    assert_int_equal(host_fit_verdict(&fit), ANSWER_CANNOT_KNOW);
    v[2].answer = ANSWER_NO;
    assert_int_equal(host_fit_verdict(&fit), ANSWER_NO);
    v[0].answer = ANSWER_CANNOT_KNOW;
    assert_int_equal(host_fit_verdict(&fit), ANSWER_NO);
}

static void interpreter_is_there_and_fits(void **state)
{
    (void)state;
    gcc("p.c -o none -Wl,--dynamic-linker=/nowhere/ld-linux.so");
    expect("none", NULL, "interpreter", ANSWER_NO, "/nowhere/ld-linux.so: No such file");
    gcc("p.c -o relative -Wl,--dynamic-linker=ld.so");
    expect("relative", NULL, "interpreter", ANSWER_CANNOT_KNOW, "working directory");
    char *flags = xasprintf("p.c -o odd -Wl,--dynamic-linker=%s/loader", dir);
    gcc(flags);
    free(flags);
    assert_int_equal(mkfifo("loader", 0600), 0);
    expect("odd", NULL, "interpreter", ANSWER_NO, "not a regular file");
    unlink("loader");
    fs_write_atomic("loader", "not ELF", NULL);
    expect("odd", NULL, "interpreter", ANSWER_NO, "not an ELF file");
    expect("odd", NULL, "libraries", ANSWER_CANNOT_KNOW, "not glibc's loader");
    gcc("p.c -o static -static");
    expect("static", NULL, "interpreter", ANSWER_YES, "none");
    expect("static", NULL, "libraries", ANSWER_YES, "none");
}

// --- libraries ---

static void runpath_and_origin(void **state)
{
    (void)state;
    fs_mkdirs("bin", 0700, NULL);
    fs_mkdirs("lib", 0700, NULL);
    gcc("-shared -fPIC a.c -o lib/liba_kiln.so.7 -Wl,-soname,liba_kiln.so.7");
    gcc("user.c lib/liba_kiln.so.7 -o bin/origin -Wl,--enable-new-dtags,-rpath,/no:$ORIGIN/../lib");
    gcc("user.c lib/liba_kiln.so.7 -o bin/brace -Wl,--disable-new-dtags,-rpath,${ORIGIN}/../lib");
    gcc("user.c lib/liba_kiln.so.7 -o bin/bare");
    gcc("user.c lib/liba_kiln.so.7 -o bin/relative -Wl,-rpath,lib");
    expect("bin/origin", NULL, "libraries", ANSWER_YES, "3 libraries");
    expect("bin/brace", NULL, "libraries", ANSWER_YES, "3 libraries");
    expect("bin/bare", NULL, "libraries", ANSWER_NO,
           "liba_kiln.so.7: not found; 'apt-file search'");
    expect("bin/relative", NULL, "libraries", ANSWER_NO, "liba_kiln.so.7: not found");
    // A link to the program: the kernel and so $ORIGIN go by its target.
    assert_int_equal(symlink("bin/origin", "link"), 0);
    expect("link", NULL, "libraries", ANSWER_YES, "3 libraries");
    // A pipe of the name is not waited for.
    unlink("lib/liba_kiln.so.7");
    assert_int_equal(mkfifo("lib/liba_kiln.so.7", 0600), 0);
    expect("bin/origin", NULL, "libraries", ANSWER_NO, "not a regular file");
}

// What a library needs is looked for in the RPATH of the program, but not in its RUNPATH.
static void only_rpath_is_inherited(void **state)
{
    (void)state;
    gcc("-shared -fPIC b.c -o libb_kiln.so");
    gcc("-shared -fPIC ab.c libb_kiln.so -o liba_kiln.so");
    gcc("user.c liba_kiln.so -o by-rpath -Wl,--disable-new-dtags,-rpath,$ORIGIN "
        "-Wl,-rpath-link,.");
    gcc("user.c liba_kiln.so -o by-runpath -Wl,--enable-new-dtags,-rpath,$ORIGIN "
        "-Wl,-rpath-link,.");
    expect("by-rpath", NULL, "libraries", ANSWER_YES, "4 libraries");
    expect("by-runpath", NULL, "libraries", ANSWER_NO,
           "libb_kiln.so (for liba_kiln.so): not found");
    gcc("-shared -fPIC ab.c libb_kiln.so -o liba_kiln.so -Wl,--enable-new-dtags,-rpath,/nowhere");
    expect("by-rpath", NULL, "libraries", ANSWER_NO, "libb_kiln.so (for liba_kiln.so)");
}

static void a_cycle_ends(void **state)
{
    (void)state;
    gcc("-shared -fPIC a.c -o libcycle_a.so");
    gcc("-shared -fPIC b.c libcycle_a.so -o libcycle_b.so -Wl,--no-as-needed,-rpath,$ORIGIN");
    gcc("-shared -fPIC ab.c libcycle_b.so -o libcycle_a.so -Wl,-rpath,$ORIGIN");
    gcc("user.c libcycle_a.so -o cycle -Wl,-rpath,$ORIGIN");
    expect("cycle", NULL, "libraries", ANSWER_YES, "4 libraries");
}

static void set_header(const char *path, uint16_t machine, uint16_t type)
{
    struct str image = image_of(path);
    ((Elf64_Ehdr *)image.s)->e_machine = machine;
    ((Elf64_Ehdr *)image.s)->e_type = type;
    FILE *out = fopen(path, "w");
    fwrite(image.s, image.len, 1, out);
    fclose(out);
    str_free(&image);
}

static void library_that_does_not_fit(void **state)
{
    (void)state;
    static const char why[] = "libforeign.so: not a library of this machine and class";
    gcc("-shared -fPIC a.c -o libforeign.so");
    gcc("user.c libforeign.so -o foreign -Wl,-rpath,$ORIGIN");
    expect("foreign", NULL, "libraries", ANSWER_YES, "3 libraries");
    set_header("libforeign.so", EM_S390, ET_DYN);
    expect("foreign", NULL, "libraries", ANSWER_NO, why);
    set_header("libforeign.so", EM_X86_64, ET_EXEC);
    expect("foreign", NULL, "libraries", ANSWER_NO, why);
}

// JSON holds UTF-8 only, and a terminal obeys what it is sent.
static void names_are_printable(void **state)
{
    (void)state;
    fs_mkdirs("odd\377\033", 0700, NULL);
    gcc("-shared -fPIC a.c -o libodd_kiln.so");
    gcc("user.c libodd_kiln.so -o odd -Wl,-rpath,$ORIGIN/odd\377\033");
    assert_int_equal(mkfifo("odd\377\033/libodd_kiln.so", 0600), 0);
    expect("odd", NULL, "libraries", ANSWER_NO, "?/libodd_kiln.so: not a regular file");
}

static void versioned(const char *name, const char *script)
{
    char *flags = xasprintf("-shared -fPIC v.c -o %s -Wl,-soname,libv_kiln.so,--version-script,%s",
                            name, script);
    gcc(flags);
    free(flags);
}

static void symbol_versions(void **state)
{
    (void)state;
    fs_write_atomic("v.c", "int a(void) { return 0; }\nint old(void) { return 0; }\n", NULL);
    fs_write_atomic("new.map", "KILN_1.2 { old; };\nKILN_1.9 { };\nKILN_1.11 { a; } KILN_1.2;\n",
                    NULL);
    fs_write_atomic("old.map", "KILN_1.10 { old; };\nKILN_1.9 { a; };\n", NULL);
    fs_write_atomic("other.map", "OTHER_3 { old; a; };\n", NULL);
    versioned("libv_kiln.so", "new.map");
    gcc("user.c libv_kiln.so -o versions -Wl,-rpath,$ORIGIN");
    expect("versions", NULL, "libraries", ANSWER_YES, "symbol versions");
    versioned("libv_kiln.so", "old.map");
    expect("versions", NULL, "libraries", ANSWER_NO,
           "needs KILN_1.11 of libv_kiln.so, which has up to KILN_1.10");
    versioned("libv_kiln.so", "other.map");
    expect("versions", NULL, "libraries", ANSWER_NO, "which has no such version");
    gcc("-shared -fPIC v.c -o libv_kiln.so");
    expect("versions", NULL, "libraries", ANSWER_YES, "libraries"); // the loader warns only
}

// Marks the file's first need of a version of its first library as weak, as newer linkers do.
static void mark_weak(const char *path)
{
    struct err e = {0};
    struct elf_file f;
    if (elf_file_open(path, &f, &e))
        fail_msg("%s", e.msg);
    struct bytes b = elf_section_bytes(&f, elf_section(&f, ".gnu.version_r"));
    assert_true(b.n > sizeof(Elf64_Verneed) + sizeof(Elf64_Vernaux));
    long at = (long)(b.p - f.image.p + ((const Elf64_Verneed *)b.p)->vn_aux);
    elf_file_close(&f);
    FILE *file = fopen(path, "r+");
    fseek(file, at + (long)offsetof(Elf64_Vernaux, vna_flags), SEEK_SET);
    const Elf64_Half weak = VER_FLG_WEAK;
    fwrite(&weak, sizeof weak, 1, file);
    fclose(file);
}

static void weak_need_of_a_version(void **state)
{
    (void)state;
    versioned("libv_kiln.so", "new.map");
    gcc("user.c libv_kiln.so -o weak -Wl,-rpath,$ORIGIN");
    versioned("libv_kiln.so", "old.map");
    expect("weak", NULL, "libraries", ANSWER_NO, "needs KILN_1.11");
    mark_weak("weak");
    expect("weak", NULL, "libraries", ANSWER_YES, "libraries");
}

static void libhugetlbfs_when_needed(void **state)
{
    (void)state;
    gcc("-shared -fPIC a.c -o libhugetlbfs.so.99 -Wl,-soname,libhugetlbfs.so.99");
    gcc("user.c libhugetlbfs.so.99 -o huge -Wl,-rpath,$ORIGIN");
    expect("huge", NULL, "libhugetlbfs", ANSWER_YES, "/libhugetlbfs.so.99");
    unlink("libhugetlbfs.so.99");
    expect("huge", NULL, "libhugetlbfs", ANSWER_NO, "libhugetlbfs0");
    expect("huge", NULL, "libraries", ANSWER_NO, "libhugetlbfs.so.99: not found");
}

// As ldd would answer, which runs the loader.
static void system_server(void **state)
{
    (void)state;
    if (access("/usr/sbin/mariadbd", R_OK))
        skip();
    const char *const argv[] = {
        "sh", "-c", "ldd /usr/sbin/mariadbd | grep -c -e '=> /' -e '^.*/ld-linux'", NULL};
    struct str out = {0};
    if (proc_capture(argv, &out, NULL))
        skip();
    char *wanted = xasprintf("%d libraries", atoi(out.s));
    expect("/usr/sbin/mariadbd", NULL, "libraries", ANSWER_YES, wanted);
    free(wanted);
    str_free(&out);
}

// --- bounds ---

// Each of 40 missing libraries would be looked for in 700 folders.
static void work_is_bounded(void **state)
{
    (void)state;
    struct strv words = {0};
    strv_add(&words, "user.c -o many -Wl,--no-as-needed");
    for (int i = 0; i < 40; i++) {
        char *flags = xasprintf("-shared -fPIC a.c -o libmany%d.so", i);
        gcc(flags);
        free(flags);
        strv_addf(&words, "libmany%d.so", i);
    }
    strv_add(&words, "-Wl,-rpath,/x");
    for (int i = 0; i < 700; i++)
        strv_addf(&words, "-Wl,-rpath,/%d", i);
    char *flags = strv_join(&words, " ");
    gcc(flags);
    for (int i = 0; i < 40; i++) {
        char *name = xasprintf("libmany%d.so", i);
        unlink(name);
        free(name);
    }
    struct host_fit fit = fit_of("many", NULL);
    const char *evidence = host_fit_find(&fit, "libraries")->evidence;
    assert_non_null(strstr(evidence, "libmany0.so: not found"));
    assert_null(strstr(evidence, "more")); // it has stopped before the eighth
    host_fit_free(&fit);
    free(flags);
    strv_free(&words);
}

// Whatever bytes are changed, an answer comes and the sanitizers are content.
static void damaged_files_are_harmless(void **state)
{
    (void)state;
    gcc("-shared -fPIC a.c -o libd_kiln.so");
    gcc("user.c libd_kiln.so -o damaged -Wl,-rpath,$ORIGIN");
    struct str whole = image_of("damaged"), image = {0};
    size_t looked_at = 0;
    srand(1);
    for (int i = 0; i < 1500; i++) {
        str_reset(&image);
        str_addn(&image, whole.s, whole.len);
        for (int j = 0; j < 12; j++) {
            size_t at = (size_t)rand() % (j < 3 ? 0x1000 : image.len);
            if (at >= EI_NIDENT)
                image.s[at] = (char)(rand() % 4 ? rand() : 0xff);
        }
        struct host_fit fit;
        looked_at += fit_image(&image, &fit) == 0;
        json_t *o = host_fit_json(&fit);
        assert_non_null(o);
        json_decref(o);
        host_fit_free(&fit);
    }
    assert_true(looked_at > 100);
    str_free(&whole);
    str_free(&image);
}

// --- ld.so.cache ---

struct cache_image {
    char magic[20];
    uint32_t n, strings;
    uint8_t flags, pad[3];
    uint32_t extension, unused[3];
    struct {
        int32_t flags;
        uint32_t key, value, os;
        uint64_t hwcap;
    } entries[3];
    char text[64];
};

static struct cache_image cache(void)
{
    struct cache_image c = {.magic = "glibc-ld.so.cache1.", .n = 3, .flags = 2};
    uint32_t text = offsetof(struct cache_image, text);
    c.magic[19] = '1';
    memcpy(c.text, "libx.so\0/32/libx.so\0/64/libx.so\0liby.so\0relative", 49);
    c.entries[0].key = c.entries[1].key = text;
    c.entries[0].value = text + 8;
    c.entries[1].value = text + 20;
    c.entries[2].key = text + 32;
    c.entries[2].value = text + 40;
    return c;
}

static void cache_is_read(void **state)
{
    (void)state;
    struct cache_image c = cache();
    struct ld_cache l;
    uint32_t at = 0;
    assert_true(ld_cache_parse((struct bytes){(void *)&c, sizeof c}, &l));
    assert_string_equal(ld_cache_find(&l, "libx.so", &at), "/32/libx.so");
    assert_string_equal(ld_cache_find(&l, "libx.so", &at), "/64/libx.so");
    assert_null(ld_cache_find(&l, "libx.so", &at));
    at = 0;
    assert_null(ld_cache_find(&l, "liby.so", &at)); // not absolute
    at = 0;
    assert_null(ld_cache_find(&l, "lib", &at));
}

// ldconfig of glibc before 2.32 writes the older format first.
static void cache_behind_an_older_one(void **state)
{
    (void)state;
    struct {
        char magic[12];
        uint32_t n;
        char entries[3 * 12], pad[4];
        struct cache_image c;
    } old = {.magic = "ld.so-1.7.0", .n = 3, .c = cache()};
    struct ld_cache l;
    uint32_t at = 0;
    assert_true(ld_cache_parse((struct bytes){(void *)&old, sizeof old}, &l));
    assert_string_equal(ld_cache_find(&l, "libx.so", &at), "/32/libx.so");
    old.n = UINT32_MAX;
    assert_false(ld_cache_parse((struct bytes){(void *)&old, sizeof old}, &l));
}

static void damaged_cache_is_refused(void **state)
{
    (void)state;
    struct cache_image c = cache();
    struct ld_cache l;
    uint32_t at = 0;
    for (size_t n = 0; n < offsetof(struct cache_image, text); n++)
        assert_false(ld_cache_parse((struct bytes){(void *)&c, n}, &l));
    c.flags = 3; // big endian
    assert_false(ld_cache_parse((struct bytes){(void *)&c, sizeof c}, &l));
    c = cache();
    c.n = UINT32_MAX;
    assert_false(ld_cache_parse((struct bytes){(void *)&c, sizeof c}, &l));
    c = cache();
    c.entries[0].key = UINT32_MAX;
    c.entries[1].value = sizeof c;
    memset(c.text + 49, 'x', sizeof c.text - 49); // and no NUL at the end
    c.entries[2].key = sizeof c - 4;
    assert_true(ld_cache_parse((struct bytes){(void *)&c, sizeof c}, &l));
    assert_null(ld_cache_find(&l, "libx.so", &at));
    assert_null(ld_cache_find(&l, "xxxx", &at));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(level_given_by_the_caller, real_cpu),
        cmocka_unit_test_teardown(flags_are_whole_words, real_cpu),
        cmocka_unit_test_teardown(level_recorded_in_the_file, real_cpu),
        cmocka_unit_test(another_machine),
        cmocka_unit_test_teardown(own_machine, real_cpu),
        cmocka_unit_test(verdict_is_the_worst),
        cmocka_unit_test(interpreter_is_there_and_fits),
        cmocka_unit_test(runpath_and_origin),
        cmocka_unit_test(only_rpath_is_inherited),
        cmocka_unit_test(a_cycle_ends),
        cmocka_unit_test(library_that_does_not_fit),
        cmocka_unit_test(names_are_printable),
        cmocka_unit_test(symbol_versions),
        cmocka_unit_test(weak_need_of_a_version),
        cmocka_unit_test(libhugetlbfs_when_needed),
        cmocka_unit_test(system_server),
        cmocka_unit_test(work_is_bounded),
        cmocka_unit_test(damaged_files_are_harmless),
        cmocka_unit_test(cache_is_read),
        cmocka_unit_test(cache_behind_an_older_one),
        cmocka_unit_test(damaged_cache_is_refused),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
