#include "elfcheck/check.h"

#include <string.h>

static bool is_library_mode(const char *mode)
{
    return starts_with(mode, "hugetlbfs:");
}

static void predict_version(const struct check *c, const char *mode, unsigned limit, bool preload,
                            struct prediction *p)
{
    const char *letters = mode + strlen("hugetlbfs:");
    struct hugetlbfs_use use = {.letters = strcmp(letters, "marked") ? letters : NULL,
                                .segment_limit = limit,
                                .preload = preload};
    predict_hugetlbfs(&c->elf, &c->pages, &use, p);
}

static void predict_versions(const struct check *c, struct mode_answer *m)
{
    m->by_version = true;
    predict_version(c, m->mode, 3, true, &m->old_preload);
    predict_version(c, m->mode, 3, false, &m->old_linked);
    predict_version(c, m->mode, 4, true, &m->new_preload);
    predict_version(c, m->mode, 4, false, &m->new_linked);
}

// Of a machine whose pages are not known nothing can be said.
static void unknown_machine(const struct check *c, struct prediction *p)
{
    *p = (struct prediction){.answer = ANSWER_CANNOT_KNOW, .text_bytes = elf_text_bytes(&c->elf)};
    snprintf(p->reason, sizeof p->reason, "the page sizes of %s are not known here",
             c->elf.machine_name);
}

static void predict_all(struct check *c)
{
    for (size_t i = 0; predict_modes[i]; i++) {
        struct mode_answer *m = &c->modes[c->nmodes++];
        m->mode = predict_modes[i];
        if (!c->pages_known) {
            unknown_machine(c, &m->now);
            continue;
        }
        predict_mode(m->mode, &c->elf, &c->pages, c->segment_limit, &m->now);
        if (is_library_mode(m->mode))
            predict_versions(c, m);
    }
}

static int choose_pages(const struct check_wish *w, struct check *c, struct err *e)
{
    char size[16];
    c->pages_known = page_sizes_of(c->elf.machine, w->huge, &c->pages);
    if (!c->pages_known && w->huge && page_sizes_of(c->elf.machine, 0, &c->pages))
        return err_set(e, EXIT_CANNOT_ASK, "%s: %s has no pages of %s", c->file.path,
                       c->elf.machine_name, page_size_text(w->huge, size));
    return 0;
}

static void gather_rest(struct check *c, struct dwarf_reading *debug, bool ask_host)
{
    c->whole = true;
    struct reading *names = facts_start(&c->file, &c->elf);
    dwarf_facts_end(debug, &c->dwarf);
    facts_finish(names, &c->dwarf, &c->facts);
    const struct fact *isa = facts_find(&c->facts, "isa-level");
    if (ask_host)
        host_fit_read(&c->file, &c->elf, isa ? isa->value : NULL, &c->host);
}

// The headers are 64-bit ones in this machine's byte order already.
static void examine_padding(struct check *c)
{
    struct bytes names = {0};
    for (size_t i = 1; i < c->file.nshdrs && !names.n; i++)
        if (!strcmp(c->file.names[i], ".shstrtab"))
            names = elf_section_bytes(&c->file, i);
    struct pad_headers h = {.ehdr = c->file.header,
                            .phdrs = c->file.phdrs,
                            .nphdrs = c->file.nphdrs,
                            .shdrs = c->file.shdrs,
                            .nshdrs = c->file.nshdrs,
                            .names = names.n && !names.p[names.n - 1] ? (char *)names.p : NULL,
                            .names_size = names.n,
                            .file_size = c->file.image.n};
    pad_examine(&h, c->pages.huge, &c->padding);
}

static void ask_library(const struct check_wish *w, struct check *c)
{
    if (host_fit_machine(&c->file) == ANSWER_NO) {
        err_set(&c->no_limit, EXIT_CANNOT_KNOW,
                "the one that will run with it is on another machine");
        return;
    }
    if (w->layout_only)
        c->segment_limit = libhugetlbfs_stated_limit();
    if (!c->segment_limit)
        c->segment_limit = libhugetlbfs_segment_limit(&c->no_limit);
}

static int gather(const struct check_wish *w, bool ask_host, struct check *c, struct err *e)
{
    struct dwarf_reading debug = {0};
    if (elf_facts_of(&c->file, &c->elf, e) || choose_pages(w, c, e))
        return -1;
    if (!w->layout_only && ask_host)
        dwarf_facts_start(&c->file, &debug);
    if (c->pages_known)
        examine_padding(c);
    if (!w->layout_only)
        gather_rest(c, &debug, ask_host);
    if (ask_host)
        ask_library(w, c);
    predict_all(c);
    return 0;
}

int check_gather(const char *path, const struct check_wish *w, struct check *c, struct err *e)
{
    *c = (struct check){0};
    if (!w->layout_only)
        libhugetlbfs_probe_start();
    if (elf_file_open(path, &c->file, e))
        return -1;
    int rc = gather(w, true, c, e);
    if (rc)
        check_free(c);
    return rc;
}

int check_gather_image(const char *name, const void *image, size_t size, struct check *c,
                       struct err *e)
{
    struct check_wish w = {0};
    *c = (struct check){0};
    if (elf_file_open_image(name, image, size, &c->file, e))
        return -1;
    int rc = gather(&w, false, c, e);
    if (rc)
        check_free(c);
    return rc;
}

void check_free(struct check *c)
{
    host_fit_free(&c->host);
    facts_free(&c->facts);
    dwarf_facts_free(&c->dwarf);
    elf_facts_free(&c->elf);
    elf_file_close(&c->file);
    *c = (struct check){0};
}

const struct mode_answer *check_mode(const struct check *c, const char *mode)
{
    for (size_t i = 0; i < c->nmodes; i++)
        if (!strcmp(c->modes[i].mode, mode))
            return &c->modes[i];
    return NULL;
}

uint64_t check_file_growth(const struct check *c)
{
    uint64_t growth = 0;
    for (size_t i = 0; i + 1 < c->elf.nloads; i++) {
        uint64_t end = c->elf.loads[i].offset + c->elf.loads[i].filesz;
        if (c->elf.loads[i + 1].offset > end)
            growth += c->elf.loads[i + 1].offset - end;
    }
    return growth;
}
