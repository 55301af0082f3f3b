// Padding of the text segment: the rules on a made-up layout, then files of every linker.
#include "common/fs.h"
#include "common/proc.h"
#include "elfcheck/pad.h"

#include <dirent.h>
#include <fcntl.h>
#include <libelf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

// Slots of 64 KiB keep the files small; the linkers' files have 2 MiB.
#define S ((uint64_t)0x10000)
#define M ((uint64_t)0x200000)
#define B ((uint64_t)0x400000) // address of offset 0

static char dir[] = "/tmp/test_pad.XXXXXX";

enum { P_R, P_TEXT, P_R2, P_RW, P_TLS, P_N };
enum { S_NULL, S_INTERP, S_TEXT, S_FINI, S_RODATA, S_DATA, S_BSS, S_COMMENT, S_STRINGS, S_N };

// R, R E, R and RW in slots of their own: 0x1234 bytes of the text are in its third slot.
struct model {
    struct pad_headers h;
    Elf64_Phdr phdrs[P_N];
    Elf64_Shdr shdrs[S_N];
    char names[80];
};

static const struct model whole = {
    .h = {.ehdr = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                   .e_type = ET_DYN,
                   .e_machine = EM_X86_64,
                   .e_version = EV_CURRENT,
                   .e_phoff = sizeof(Elf64_Ehdr),
                   .e_shoff = 6 * S + 0x400,
                   .e_ehsize = sizeof(Elf64_Ehdr),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = P_N,
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = S_N,
                   .e_shstrndx = S_STRINGS},
          .nphdrs = P_N,
          .nshdrs = S_N,
          .names_size = 80,
          .file_size = 6 * S + 0x400 + S_N * sizeof(Elf64_Shdr)},
    .phdrs = {[P_R] = {PT_LOAD, PF_R, 0, B, B, 0x500, 0x500, S},
              [P_TEXT] = {PT_LOAD, PF_R | PF_X, S, B + S, B + S, 2 * S + 0x1234, 2 * S + 0x1234, S},
              [P_R2] = {PT_LOAD, PF_R, 4 * S, B + 4 * S, B + 4 * S, 0x600, 0x600, S},
              [P_RW] = {PT_LOAD, PF_R | PF_W, 6 * S - 0x200, B + 7 * S - 0x200, B + 7 * S - 0x200,
                        0x300, 0x900, S},
              [P_TLS] = {PT_TLS, PF_R, 6 * S - 0x200, B + 7 * S - 0x200, 0, 0x10, 0x2000000, 8}},
    .shdrs = {[S_INTERP] = {1, SHT_PROGBITS, SHF_ALLOC, B + 0x480, 0x480, 0x80, 0, 0, 1, 0},
              [S_TEXT] = {9, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, B + S, S, 2 * S + 0x1000, 0,
                          0, 16, 0},
              [S_FINI] = {15, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, B + 3 * S + 0x1000,
                          3 * S + 0x1000, 0x234, 0, 0, 4, 0},
              [S_RODATA] = {21, SHT_PROGBITS, SHF_ALLOC, B + 4 * S, 4 * S, 0x600, 0, 0, 8, 0},
              [S_DATA] = {29, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, B + 7 * S - 0x200, 6 * S - 0x200,
                          0x300, 0, 0, 8, 0},
              [S_BSS] = {35, SHT_NOBITS, SHF_ALLOC | SHF_WRITE, B + 7 * S + 0x100, 3 * S + 0x2000,
                         0x600, 0, 0, 8, 0},
              [S_COMMENT] = {40, SHT_PROGBITS, 0, 0, 6 * S + 0x100, 0x30, 0, 0, 1, 0},
              [S_STRINGS] = {49, SHT_STRTAB, 0, 0, 6 * S + 0x130, 80, 0, 0, 1, 0}},
    .names = "\0.interp\0.text\0.fini\0.rodata\0.data\0.bss\0.comment\0.shstrtab",
};

static struct model *m; // this test's own

static int fresh(void **state)
{
    (void)state;
    static struct model copy;
    copy = whole;
    m = &copy;
    m->h.phdrs = m->phdrs;
    m->h.shdrs = m->shdrs;
    m->h.names = m->names;
    return 0;
}

static struct pad_plan examine(void)
{
    struct pad_plan p;
    pad_examine(&m->h, S, &p);
    return p;
}

static void expect(enum pad_state state, int code, const char *words)
{
    struct pad_plan p = examine();
    if (p.state != state || p.code != code)
        fail_msg("%s, code %d: %s", pad_state_text(p.state), p.code, p.reason);
    if (words && !strstr(p.reason, words))
        fail_msg("'%s' lacks '%s'", p.reason, words);
}

static void set_text_size(uint64_t size)
{
    m->phdrs[P_TEXT].p_filesz = m->phdrs[P_TEXT].p_memsz = size;
}

static void plain_layout_can_be_padded(void **state)
{
    (void)state;
    struct pad_plan p = examine();
    assert_int_equal(p.state, PAD_POSSIBLE);
    assert_int_equal(p.program_header, P_TEXT);
    assert_int_equal(p.linked_filesz, 2 * S + 0x1234);
    assert_int_equal(p.padded_filesz, 3 * S);
    assert_int_equal(p.linked_slots, 2);
    assert_int_equal(p.padded_slots, 3);
    m->h.ehdr.e_type = ET_EXEC;
    expect(PAD_POSSIBLE, EXIT_YES, NULL);
}

static void padded_layout_is_recognized(void **state)
{
    (void)state;
    set_text_size(3 * S);
    expect(PAD_DONE, EXIT_YES, NULL);
    struct pad_plan p = examine();
    assert_int_equal(p.linked_filesz, 2 * S + 0x1234);
    assert_int_equal(p.padded_filesz, 3 * S);
}

static void text_that_fills_its_slot_needs_none(void **state)
{
    (void)state;
    m->shdrs[S_FINI].sh_size = S - 0x1000;
    set_text_size(3 * S);
    expect(PAD_NEEDLESS, EXIT_YES, NULL);
    // The kernel maps the last small page whole.
    m->shdrs[S_FINI].sh_size -= 100;
    set_text_size(3 * S - 100);
    expect(PAD_NEEDLESS, EXIT_YES, NULL);
    assert_int_equal(examine().linked_slots, 3);
    m->shdrs[S_FINI].sh_size -= 0x1000;
    set_text_size(3 * S - 0x1064);
    expect(PAD_POSSIBLE, EXIT_YES, NULL);
}

static void alignment_and_congruence_are_needed(void **state)
{
    (void)state;
    m->phdrs[P_TEXT].p_align = 0x1000;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "p_align 0x1000");
    expect(PAD_IMPOSSIBLE, EXIT_NO, "-Wl,-z,max-page-size=2097152");
    m->phdrs[P_TEXT].p_align = S + S / 2;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "p_align");
    fresh(NULL);
    for (int i = S_TEXT; i <= S_FINI; i++)
        m->shdrs[i].sh_addr += 0x1000;
    m->phdrs[P_TEXT].p_vaddr += 0x1000;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "differ modulo 2 MiB");
    expect(PAD_IMPOSSIBLE, EXIT_NO, "-Wl,-z,separate-code");
}

static void text_must_be_a_plain_text_segment(void **state)
{
    (void)state;
    m->phdrs[P_TEXT].p_flags |= PF_W;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "writable");
    fresh(NULL);
    m->phdrs[P_TEXT].p_memsz += 8;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "p_memsz");
    fresh(NULL);
    m->phdrs[P_TEXT].p_flags = PF_R;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "no executable segment");
    fresh(NULL);
    m->h.nshdrs = 0;
    expect(PAD_CANNOT_TELL, EXIT_NO, "no section headers");
    fresh(NULL);
    m->shdrs[S_TEXT].sh_type = SHT_NOBITS;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "debug information");
    fresh(NULL);
    m->h.ehdr.e_type = ET_REL;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "neither a program nor a shared library");
}

// A size that is not the end of the last section could not be restored.
static void rounded_sizes_are_refused(void **state)
{
    (void)state;
    set_text_size(2 * S + 0x2000);
    expect(PAD_IMPOSSIBLE, EXIT_NO, "--unpad could not restore it");
    set_text_size(2 * S + 0x1100);
    expect(PAD_IMPOSSIBLE, EXIT_NO, "--unpad could not restore it");
}

static void neighbours_in_the_file_are_refused(void **state)
{
    (void)state;
    const uint64_t end = 3 * S + 0x1234;
    m->shdrs[S_COMMENT].sh_offset = end;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "section .comment lies between");
    m->shdrs[S_COMMENT].sh_offset = 4 * S - 1;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "section .comment lies between");
    m->shdrs[S_COMMENT].sh_offset = 4 * S;
    expect(PAD_POSSIBLE, EXIT_YES, NULL);
    m->h.ehdr.e_shoff = 4 * S - 64;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "the table of section headers lies between");
    fresh(NULL);
    m->h.ehdr.e_phoff = end;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "the table of program headers lies between");
    fresh(NULL);
    m->phdrs[P_RW].p_offset = 4 * S - 0x200;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "the segment of program header 3 lies between");
    fresh(NULL);
    m->phdrs[P_TLS].p_offset = end + 0x100;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "the segment of program header 4 lies between");
}

static void neighbours_in_the_address_space_are_refused(void **state)
{
    (void)state;
    // Without bytes in the file: what another segment's memory covers.
    m->phdrs[P_R].p_memsz = 3 * S + 0x2000;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "the segment of program header 0 lies between");
    fresh(NULL);
    m->shdrs[S_BSS].sh_addr = B + 3 * S + 0x3000;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "section .bss lies between");
    m->shdrs[S_BSS].sh_flags |= SHF_TLS; // .tbss covers no addresses
    expect(PAD_POSSIBLE, EXIT_YES, NULL);
    fresh(NULL);
    // It begins within the slot's last small page.
    m->phdrs[P_R2].p_vaddr = B + 4 * S - 0x10;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "the segment of program header 2 lies between");
    fresh(NULL);
    m->phdrs[P_TLS].p_vaddr = B + 3 * S + 0x2000; // nor does PT_TLS
    expect(PAD_POSSIBLE, EXIT_YES, NULL);
    m->phdrs[P_R].p_vaddr = UINT64_MAX - (2ULL << 30);
    expect(PAD_POSSIBLE, EXIT_YES, NULL);
}

static void padding_that_became_something_is_left_alone(void **state)
{
    (void)state;
    set_text_size(3 * S);
    m->shdrs[S_COMMENT].sh_offset = 3 * S + 0x2000;
    expect(PAD_CANNOT_TELL, EXIT_NO, "section .comment lies between");
}

static void slot_beyond_the_end_of_the_file_is_refused(void **state)
{
    (void)state;
    m->phdrs[P_R2] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R};
    m->h.nphdrs = P_R2 + 1;
    m->h.nshdrs = S_FINI + 1;
    m->h.ehdr.e_shoff = 0x600;
    m->h.file_size = 4 * S;
    expect(PAD_POSSIBLE, EXIT_YES, NULL);
    m->h.file_size = 4 * S - 1;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "beyond the end of the file");
}

// lld pads a text that no segment follows, so that its own padding is not taken away.
static void last_segment_is_the_linkers(void **state)
{
    (void)state;
    for (int i = P_R2; i < P_N; i++)
        m->phdrs[i].p_type = PT_NULL;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "its text is the last load segment");
    set_text_size(3 * S);
    expect(PAD_NEEDLESS, EXIT_YES, NULL);
    assert_int_equal(examine().linked_filesz, 3 * S);
    set_text_size(4 * S); // max-page-size of more than one slot
    expect(PAD_NEEDLESS, EXIT_YES, NULL);
    assert_int_equal(examine().linked_slots, 4);
}

static void padding_must_gain_a_slot(void **state)
{
    (void)state;
    m->phdrs[P_TEXT].p_offset += 0x3000;
    m->phdrs[P_TEXT].p_vaddr += 0x3000;
    m->shdrs[S_FINI].sh_type = SHT_NULL;
    m->shdrs[S_TEXT] = (Elf64_Shdr){.sh_name = 9,
                                    .sh_type = SHT_PROGBITS,
                                    .sh_flags = SHF_ALLOC,
                                    .sh_addr = B + S + 0x3000,
                                    .sh_offset = S + 0x3000,
                                    .sh_size = 0x2000};
    set_text_size(0x2000);
    expect(PAD_IMPOSSIBLE, EXIT_NO, "nothing to gain");
    m->shdrs[S_TEXT].sh_size = S;
    set_text_size(S);
    expect(PAD_POSSIBLE, EXIT_YES, NULL);
    assert_int_equal(examine().padded_slots, 1);
}

static void of_several_text_segments_that_of_text_is_padded(void **state)
{
    (void)state;
    m->phdrs[P_R2].p_flags |= PF_X;
    struct pad_plan p = examine();
    assert_int_equal(p.state, PAD_POSSIBLE);
    assert_int_equal(p.program_header, P_TEXT);
    strcpy(m->names + 9, ".hot");
    expect(PAD_IMPOSSIBLE, EXIT_NO, "2 executable segments hold sections");
    m->phdrs[P_R2].p_flags = PF_R;
    expect(PAD_POSSIBLE, EXIT_YES, NULL);
    strcpy(m->names + 21, ".text");
    m->phdrs[P_R2].p_flags |= PF_X;
    assert_int_equal(examine().program_header, P_R2);
}

static void damage_is_told(void **state)
{
    (void)state;
    m->phdrs[P_R2].p_offset = UINT64_MAX - 8;
    expect(PAD_IMPOSSIBLE, EXIT_CANNOT_ASK, "the segment of program header 2 lies outside");
    fresh(NULL);
    m->phdrs[P_TEXT].p_vaddr = UINT64_MAX - 0x1000;
    expect(PAD_IMPOSSIBLE, EXIT_CANNOT_ASK, "the segment of program header 1 lies outside");
    fresh(NULL);
    m->shdrs[S_COMMENT].sh_size = UINT64_MAX;
    expect(PAD_IMPOSSIBLE, EXIT_CANNOT_ASK, "section 7 lies outside");
}

static void hostile_names_are_not_printed(void **state)
{
    (void)state;
    m->shdrs[S_COMMENT].sh_offset = 3 * S + 0x2000;
    strcpy(m->names + 40, "\033[2J");
    expect(PAD_IMPOSSIBLE, EXIT_NO, "section 7 lies between");
    m->shdrs[S_COMMENT].sh_name = UINT32_MAX;
    expect(PAD_IMPOSSIBLE, EXIT_NO, "section 7 lies between");
}

// --- files ---

static void put(int fd, uint64_t offset, void *table, size_t size, Elf_Type type)
{
    char *buf = xcalloc(1, size);
    Elf_Data from = {.d_buf = table, .d_type = type, .d_size = size, .d_version = EV_CURRENT};
    Elf_Data to = {.d_buf = buf, .d_type = type, .d_size = size, .d_version = EV_CURRENT};
    assert_non_null(elf64_xlatetof(&to, &from, m->h.ehdr.e_ident[EI_DATA]));
    assert_int_equal(pwrite(fd, buf, size, (off_t)offset), size);
    free(buf);
}

// The model as a file; the padding is filled with lld's traps.
static void write_model(const char *path)
{
    static char traps[S - 0x1234];
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    assert_true(fd >= 0);
    elf_version(EV_CURRENT);
    memset(traps, 0xcc, sizeof traps);
    assert_int_equal(pwrite(fd, traps, sizeof traps, 3 * S + 0x1234), sizeof traps);
    put(fd, 0, &m->h.ehdr, sizeof m->h.ehdr, ELF_T_EHDR);
    put(fd, m->h.ehdr.e_phoff, m->phdrs, sizeof m->phdrs, ELF_T_PHDR);
    put(fd, m->h.ehdr.e_shoff, m->shdrs, sizeof m->shdrs, ELF_T_SHDR);
    put(fd, m->shdrs[S_STRINGS].sh_offset, m->names, sizeof m->names, ELF_T_BYTE);
    close(fd);
}

static struct str content(const char *path)
{
    struct str s = {0};
    assert_int_equal(fs_read(path, &s, NULL), 0);
    return s;
}

static void expect_content(const char *path, const struct str *want)
{
    struct str now = content(path);
    assert_int_equal(now.len, want->len);
    assert_memory_equal(now.s, want->s, want->len);
    str_free(&now);
}

static unsigned files_in(const char *path)
{
    unsigned n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static struct pad_result pad(const char *path, uint64_t huge, bool changed)
{
    struct err e = {0};
    struct pad_result r;
    if (pad_file(path, huge, &r, &e))
        fail_msg("%s", e.msg);
    assert_int_equal(r.changed, changed);
    return r;
}

static struct pad_result unpad(const char *path, uint64_t huge, bool changed)
{
    struct err e = {0};
    struct pad_result r;
    if (unpad_file(path, huge, &r, &e))
        fail_msg("%s", e.msg);
    assert_int_equal(r.changed, changed);
    return r;
}

static void expect_refused(const char *path, uint64_t huge, int code, const char *words)
{
    struct err e = {0};
    struct pad_result r;
    assert_int_equal(pad_file(path, huge, &r, &e), -1);
    assert_int_equal(e.code, code);
    assert_false(r.changed);
    if (!strstr(e.msg, words) || strchr(e.msg, '\n') || !starts_with(e.msg, path))
        fail_msg("'%s' lacks '%s'", e.msg, words);
}

// Only the 16 bytes of p_filesz and p_memsz differ; a second time does nothing; unpad restores.
static void both_byte_orders_are_padded_and_restored(void **state)
{
    (void)state;
    static const unsigned char sizes[2][16] = {
        {0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0},
        {0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0},
    };
    for (int big = 0; big < 2; big++) {
        fresh(NULL);
        m->h.ehdr.e_ident[EI_DATA] = big ? ELFDATA2MSB : ELFDATA2LSB;
        m->h.ehdr.e_machine = big ? EM_AARCH64 : EM_X86_64;
        write_model("f");
        struct str before = content("f");
        struct pad_result r = pad("f", S, true);
        assert_int_equal(r.state, PAD_DONE);
        assert_int_equal(r.old_filesz, 2 * S + 0x1234);
        assert_int_equal(r.new_filesz, 3 * S);
        assert_int_equal(r.padding, S - 0x1234);
        assert_int_equal(r.slots, 3);
        struct str after = content("f"), want = {0};
        str_addn(&want, before.s, before.len);
        memcpy(want.s + sizeof(Elf64_Ehdr) + P_TEXT * sizeof(Elf64_Phdr) + 32, sizes[big], 16);
        expect_content("f", &want);
        assert_int_equal(pad("f", S, false).state, PAD_DONE);
        expect_content("f", &after);
        r = unpad("f", S, true);
        assert_int_equal(r.new_filesz, 2 * S + 0x1234);
        assert_int_equal(r.padding, 0);
        expect_content("f", &before);
        unpad("f", S, false);
        expect_content("f", &before);
        str_free(&before);
        str_free(&after);
        str_free(&want);
    }
}

// Counts that do not fit the header.
static void escaped_counts_are_read(void **state)
{
    (void)state;
    m->h.ehdr.e_phnum = PN_XNUM;
    m->h.ehdr.e_shnum = 0;
    m->h.ehdr.e_shstrndx = SHN_XINDEX;
    m->shdrs[0].sh_info = P_N;
    m->shdrs[0].sh_size = S_N;
    m->shdrs[0].sh_link = S_STRINGS;
    write_model("f");
    pad("f", S, true);
    unpad("f", S, true);
    m->h.ehdr.e_shoff = UINT64_MAX - 8;
    int fd = open("f", O_WRONLY | O_CLOEXEC);
    put(fd, 0, &m->h.ehdr, sizeof m->h.ehdr, ELF_T_EHDR);
    close(fd);
    expect_refused("f", S, EXIT_CANNOT_ASK, "the table of section headers lies outside the file");
    m->h.ehdr.e_shoff = whole.h.ehdr.e_shoff;
    m->shdrs[0].sh_info = UINT32_MAX;
    write_model("f");
    expect_refused("f", S, EXIT_CANNOT_ASK, "make no sense");
}

static void links_and_attributes_are_kept(void **state)
{
    (void)state;
    struct stat before, after;
    char value[8] = "";
    write_model("f");
    assert_int_equal(chmod("f", 04751), 0);
    assert_int_equal(symlink("f", "s"), 0);
    bool attributes = setxattr("f", "user.kiln", "seven", 5, 0) == 0;
    assert_int_equal(stat("f", &before), 0);
    unsigned n = files_in(".");
    pad("s", S, true);
    assert_int_equal(files_in("."), n);
    assert_int_equal(lstat("s", &after), 0);
    assert_true(S_ISLNK(after.st_mode));
    assert_int_equal(lstat("f", &after), 0);
    assert_int_equal(after.st_mode, before.st_mode);
    assert_int_equal(after.st_uid, before.st_uid);
    assert_true(after.st_ino != before.st_ino);
    if (attributes) {
        assert_int_equal(getxattr("f", "user.kiln", value, sizeof value), 5);
        assert_memory_equal(value, "seven", 5);
    }
    unlink("s");
}

static void hard_links_are_refused(void **state)
{
    (void)state;
    write_model("f");
    struct str before = content("f");
    assert_int_equal(link("f", "g"), 0);
    unsigned n = files_in(".");
    expect_refused("f", S, EXIT_NO, "2 names (hard links)");
    assert_int_equal(files_in("."), n);
    expect_content("f", &before);
    unlink("g");
    pad("f", S, true);
    str_free(&before);
}

// The signal waits, is seen before the file is replaced, and then does what it always does.
static void interruption_leaves_the_file_alone(void **state)
{
    (void)state;
    sigset_t set, was;
    int sig = 0;
    write_model("f");
    struct str before = content("f");
    unsigned n = files_in(".");
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, &was);
    raise(SIGTERM);
    expect_refused("f", S, EXIT_INTERRUPTED, "interrupted");
    sigwait(&set, &sig);
    assert_int_equal(sig, SIGTERM);
    sigprocmask(SIG_SETMASK, &was, NULL);
    assert_int_equal(files_in("."), n);
    expect_content("f", &before);
    str_free(&before);
}

static void what_is_no_elf_file_is_refused(void **state)
{
    (void)state;
    assert_int_equal(fs_write_atomic("t", "#!/bin/sh\nexit 0\n", NULL), 0);
    expect_refused("t", M, EXIT_CANNOT_ASK, "t: not an ELF file");
    assert_int_equal(fs_write_atomic("t", "\177ELF", NULL), 0);
    expect_refused("t", M, EXIT_CANNOT_ASK, "t: not an ELF file");
    expect_refused("nobody", M, EXIT_CANNOT_ASK, "No such file");
    expect_refused("/", M, EXIT_CANNOT_ASK, "a directory");
    expect_refused("/dev/null", M, EXIT_CANNOT_ASK, "not a regular file");
    m->h.ehdr.e_ident[EI_CLASS] = ELFCLASS32;
    write_model("t");
    expect_refused("t", M, EXIT_NO, "a 32-bit file");
    unlink("t");
}

// Whatever the headers say: an error, or a change that unpad takes back.
static void damaged_files_are_refused_or_restored(void **state)
{
    (void)state;
    uint64_t seed = 1;
    unsigned changed = 0, refused = 0;
    write_model("f");
    struct str image = content("f");
    size_t tables[3] = {0, sizeof(Elf64_Ehdr), m->h.ehdr.e_shoff};
    size_t sizes[3] = {sizeof(Elf64_Ehdr), sizeof m->phdrs, sizeof m->shdrs};
    int fd = open("f", O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < 3000; i++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        size_t table = (seed >> 33) % 3, at = tables[table] + (seed >> 40) % sizes[table];
        char byte = (char)(seed >> 24);
        struct pad_plan p;
        struct pad_result r;
        struct err e = {0};
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
        if (pad_plan_file("f", S, &p, &e) == 0 && p.state == PAD_POSSIBLE && i % 20 == 0) {
            struct str bad = content("f");
            pad("f", S, true);
            unpad("f", S, true);
            expect_content("f", &bad);
            str_free(&bad);
            close(fd);
            fd = open("f", O_WRONLY | O_CLOEXEC);
            changed++;
        } else if (e.code || p.state != PAD_POSSIBLE) {
            refused += p.state != PAD_DONE && pad_file("f", S, &r, &e) != 0;
        }
        assert_int_equal(pwrite(fd, image.s + at, 1, (off_t)at), 1);
    }
    close(fd);
    assert_true(changed > 10 && refused > 100);
    for (size_t n = 0; n < image.len; n += n < 1000 ? 13 : 20011) {
        assert_int_equal(truncate("f", (off_t)n), 0);
        struct err e = {0};
        struct pad_result r;
        assert_int_equal(pad_file("f", S, &r, &e), -1);
        assert_int_equal(e.code, EXIT_CANNOT_ASK);
        write_model("f");
    }
    str_free(&image);
}

// --- linkers ---

static bool there(const char *tool)
{
    char *found = fs_find_program(tool);
    free(found);
    return found != NULL;
}

static void run(const char *words)
{
    struct strv argv = {0};
    struct str out = {0};
    struct err e = {0};
    strv_split(&argv, words, " ");
    if (proc_capture((const char *const *)argv.v, &out, &e))
        fail_msg("%s: %s%s", words, str_text(&out), e.msg);
    strv_free(&argv);
    str_free(&out);
}

// A program of 2.5 MiB of text that exits with 0.
static void link_program(const char *tool, const char *flags)
{
    if (!there("gcc") || !there(tool))
        skip();
    char *words = xasprintf("gcc %s -Wl,-z,max-page-size=2097152 big.c -o p", flags);
    assert_int_equal(fs_write_atomic("big.c",
                                     "__asm__(\".text\\n.skip 2621440, 0x90\\n\");\n"
                                     "int main(void) { return 0; }\n",
                                     NULL),
                     0);
    run(words);
    free(words);
}

// What the linker wrote is what unpad computes, or it would not be padded.
static void expect_padded(const char *tool, const char *flags)
{
    link_program(tool, flags);
    struct str before = content("p");
    struct pad_result r = pad("p", M, true);
    assert_int_equal(r.new_filesz % M, 0);
    assert_true(r.slots >= 2);
    run("./p");
    unpad("p", M, true);
    expect_content("p", &before);
    str_free(&before);
}

static void bfd_files_are_padded(void **state)
{
    (void)state;
    expect_padded("ld.bfd", "-fuse-ld=bfd -fPIE -pie");
    expect_padded("ld.bfd", "-fuse-ld=bfd -no-pie");
}

static void lld_files_are_padded(void **state)
{
    (void)state;
    expect_padded("ld.lld", "-fuse-ld=lld -Wl,-z,separate-code -fPIE -pie");
    // Text that no other segment follows.
    if (!there("clang"))
        skip();
    assert_int_equal(fs_write_atomic("a.s", ".globl _start\n_start: .skip 2621440, 0x90\n", NULL),
                     0);
    run("clang --target=aarch64-linux-gnu -nostdlib -static -fuse-ld=lld "
        "-Wl,-z,max-page-size=2097152 -Wl,-z,separate-code a.s -o a");
    assert_int_equal(pad("a", M, false).state, PAD_NEEDLESS);
    unpad("a", M, false);
    link_program("ld.lld", "-fuse-ld=lld");
    expect_refused("p", M, EXIT_NO, "-Wl,-z,separate-code");
}

static void mold_files_are_padded(void **state)
{
    (void)state;
    expect_padded("mold", "-fuse-ld=mold -Wl,-z,separate-code -fPIE -pie");
    link_program("mold", "-fuse-ld=mold");
    expect_refused("p", M, EXIT_NO, "-Wl,-z,separate-code");
}

// gold puts the data into the same slot of the file.
static void gold_files_are_refused(void **state)
{
    (void)state;
    link_program("ld.gold", "-fuse-ld=gold");
    expect_refused("p", M, EXIT_NO, "gold cannot");
}

static void strip_takes_the_padding_away_and_eu_strip_keeps_it(void **state)
{
    (void)state;
    link_program("ld.bfd", "-fuse-ld=bfd");
    if (!there("strip") || !there("eu-strip"))
        skip();
    struct pad_plan p;
    struct err e;
    pad("p", M, true);
    run("cp p q");
    run("strip q");
    assert_int_equal(pad_plan_file("q", M, &p, &e), 0);
    assert_int_equal(p.state, PAD_POSSIBLE);
    run("eu-strip p");
    assert_int_equal(pad_plan_file("p", M, &p, &e), 0);
    assert_int_equal(p.state, PAD_DONE);
}

static void running_programs_are_padded(void **state)
{
    (void)state;
    if (!there("gcc") || !there("ld.bfd"))
        skip();
    assert_int_equal(
        fs_write_atomic("wait.c",
                        "#include <unistd.h>\n"
                        "__asm__(\".text\\n.skip 2621440, 0x90\\n\");\n"
                        "int main(void) { return write(1, \"x\", 1) != 1 || pause(); }\n",
                        NULL),
        0);
    run("gcc -fuse-ld=bfd -Wl,-z,max-page-size=2097152 wait.c -o w");
    int ready[2];
    char c;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = proc_spawn(&(struct proc){.argv = (const char *const[]){"./w", NULL},
                                          .exec_path = "./w",
                                          .out = ready[1]},
                           NULL);
    assert_true(pid > 0);
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    pad("w", M, true);
    assert_int_equal(kill(pid, 0), 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static char *printed(const struct pad_result *r)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    pad_print("p", r, f);
    fclose(f);
    return text;
}

static void results_are_told_in_one_line(void **state)
{
    (void)state;
    struct pad_result r = {.changed = true,
                           .state = PAD_DONE,
                           .program_header = 3,
                           .old_filesz = 0x53ee31,
                           .new_filesz = 0x600000,
                           .padding = 0x600000 - 0x53ee31,
                           .slots = 3,
                           .huge = M};
    char *text = printed(&r);
    assert_string_equal(text, "p: program header 3: p_filesz 0x53ee31 -> 0x600000 (+790991 bytes "
                              "of padding); text now covers 3 whole 2 MiB slots\n");
    free(text);
    json_t *o = pad_json("p", &r);
    assert_true(json_is_true(json_object_get(o, "padded")));
    assert_true(json_is_true(json_object_get(o, "changed")));
    assert_int_equal(json_integer_value(json_object_get(o, "padding_bytes")), 790991);
    json_decref(o);
    r = (struct pad_result){.undo = true, .state = PAD_IMPOSSIBLE, .huge = M};
    text = printed(&r);
    assert_string_equal(text, "p: not padded, nothing to undo\n");
    free(text);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return chdir("/") || fs_remove_tree(dir, NULL);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, fresh)
    const struct CMUnitTest tests[] = {
        T(plain_layout_can_be_padded),
        T(padded_layout_is_recognized),
        T(text_that_fills_its_slot_needs_none),
        T(alignment_and_congruence_are_needed),
        T(text_must_be_a_plain_text_segment),
        T(rounded_sizes_are_refused),
        T(neighbours_in_the_file_are_refused),
        T(neighbours_in_the_address_space_are_refused),
        T(padding_that_became_something_is_left_alone),
        T(slot_beyond_the_end_of_the_file_is_refused),
        T(last_segment_is_the_linkers),
        T(padding_must_gain_a_slot),
        T(of_several_text_segments_that_of_text_is_padded),
        T(damage_is_told),
        T(hostile_names_are_not_printed),
        T(both_byte_orders_are_padded_and_restored),
        T(escaped_counts_are_read),
        T(links_and_attributes_are_kept),
        T(hard_links_are_refused),
        T(interruption_leaves_the_file_alone),
        T(what_is_no_elf_file_is_refused),
        T(damaged_files_are_refused_or_restored),
        T(bfd_files_are_padded),
        T(lld_files_are_padded),
        T(mold_files_are_padded),
        T(gold_files_are_refused),
        T(strip_takes_the_padding_away_and_eu_strip_keeps_it),
        T(running_programs_are_padded),
        T(results_are_told_in_one_line),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
