// Where its debug information is, and how it can be found again.
#include "elfcheck/facts_private.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char debug_root[] = "/usr/lib/debug";

// --- .gnu_debuglink ---

// A file name, padding to 4 bytes, and a CRC-32 of the file. A name with a slash is none.
static const char *debug_link(const struct elf_file *f, uint32_t *crc)
{
    struct bytes b = elf_section_bytes(f, elf_section(f, ".gnu_debuglink"));
    const unsigned char *end = b.n ? memchr(b.p, 0, b.n) : NULL;
    if (!end || end == b.p || memchr(b.p, '/', (size_t)(end - b.p)))
        return NULL;
    size_t at = ((size_t)(end - b.p) + 4) & ~(size_t)3;
    *crc = 0;
    if (at + 4 <= b.n)
        for (int i = 0; i < 4; i++)
            *crc |=
                (uint32_t)b.p[at + (size_t)(f->header.e_ident[EI_DATA] == ELFDATA2LSB ? i : 3 - i)]
                << 8 * i;
    return (const char *)b.p;
}

// Where gdb looks (Separate Debug Files in its manual): by build-id, then beside the program.
static void usual_places(const struct reading *r, const char *link, struct strv *places)
{
    const char *id = r->elf->build_id;
    if (id && strlen(id) > 2)
        strv_addf(places, "%s/.build-id/%.2s/%s.debug", debug_root, id, id + 2);
    char *real = link ? realpath(r->file->path, NULL) : NULL;
    char *slash = real ? strrchr(real, '/') : NULL;
    if (slash) {
        *slash = 0;
        strv_addf(places, "%s/%s", real, link);
        strv_addf(places, "%s/.debug/%s", real, link);
        strv_addf(places, "%s%s/%s", debug_root, real, link);
    }
    free(real);
}

static void see_build_id(void *context, const char *owner, uint32_t type, struct bytes desc)
{
    struct str *id = context;
    if (id->len || type != NT_GNU_BUILD_ID || strcmp(owner, "GNU") != 0)
        return;
    for (size_t i = 0; i < desc.n; i++)
        str_addf(id, "%02x", desc.p[i]);
}

enum match { NO_FILE, OTHER_BUILD, SAME_BUILD, NO_BUILD_ID };

static enum match compare_build_id(const char *path, const char *build_id)
{
    struct elf_file f;
    struct err e = {0};
    struct str id = {0};
    if (access(path, R_OK) || elf_file_open(path, &f, &e))
        return NO_FILE;
    elf_notes(&f, see_build_id, &id);
    enum match m = !build_id || !id.len     ? NO_BUILD_ID
                   : strcmp(id.s, build_id) ? OTHER_BUILD
                                            : SAME_BUILD;
    elf_file_close(&f);
    str_free(&id);
    return m;
}

static void add_alt_link(const struct reading *r, struct str *value)
{
    struct bytes b = elf_section_bytes(r->file, elf_section(r->file, ".gnu_debugaltlink"));
    if (b.n && memchr(b.p, 0, b.n))
        str_addf(value, "; shared parts in %s (dwz)", (const char *)b.p);
}

// --- the facts ---

static void inside_fact(struct reading *r)
{
    struct str value = {0};
    size_t old = elf_section(r->file, ".zdebug_info");
    size_t index = old ? old : elf_section(r->file, ".debug_info");
    const GElf_Shdr *h = &r->file->shdrs[index];
    bool compressed = old || h->sh_flags & SHF_COMPRESSED;
    bool split = elf_section(r->file, ".debug_addr") && elf_section(r->file, ".debug_gnu_pubnames");
    str_addf(&value, "inside%s%s", compressed ? "; compressed" : "",
             split ? "; most of it in .dwo files" : "");
    add_alt_link(r, &value);
    fact_known(r->out, "debug-info", value.s, "section %s, %.1f MB", r->file->names[index],
               (double)h->sh_size / 1e6);
    str_free(&value);
}

static void separate_fact(struct reading *r)
{
    static const char *const words[] = {[NO_FILE] = "not installed",
                                        [OTHER_BUILD] = "of another build",
                                        [SAME_BUILD] = "found",
                                        [NO_BUILD_ID] = "found, no build-id to compare"};
    uint32_t crc = 0;
    const char *link = debug_link(r->file, &crc);
    struct strv places = {0};
    usual_places(r, link, &places);
    enum match best = NO_FILE;
    const char *where = NULL;
    for (size_t i = 0; i < places.n && best != SAME_BUILD; i++) {
        enum match m = compare_build_id(places.v[i], r->elf->build_id);
        if (m != NO_FILE && (best == NO_FILE || m == SAME_BUILD)) {
            best = m;
            where = places.v[i];
        }
    }
    char *value = xasprintf("separate; %s", words[best]);
    if (link)
        fact_known(r->out, "debug-info", value, ".gnu_debuglink %s, CRC %08x%s%s", link, crc,
                   where ? ", " : "", where ? where : "");
    else if (best != NO_FILE)
        fact_known(r->out, "debug-info", value, "%s", where);
    else if (r->file->nshdrs > 1)
        fact_known(r->out, "debug-info", "none", "no section .debug_info or .gnu_debuglink%s",
                   elf_section(r->file, ".gnu_debugdata") ? "; .gnu_debugdata holds symbols" : "");
    else
        fact_unknown(r->out, "debug-info", "no section headers");
    free(value);
    strv_free(&places);
}

static void symbols_fact(struct reading *r)
{
    if (r->names.symtab)
        fact_known(r->out, "symbols", "full", ".symtab, %zu symbols", r->names.symtab);
    else if (r->names.dynsym)
        fact_known(r->out, "symbols", "dynamic", ".dynsym, %zu symbols, no .symtab%s",
                   r->names.dynsym,
                   elf_section(r->file, ".gnu_debugdata") ? "; more in .gnu_debugdata" : "");
    else if (r->file->nshdrs > 1)
        fact_known(r->out, "symbols", "none", "no symbol table");
    else
        fact_unknown(r->out, "symbols", "no section headers");
}

void debug_facts(struct reading *r)
{
    if (r->elf->has_debug_info)
        inside_fact(r);
    else
        separate_fact(r);
    if (r->elf->build_id)
        fact_known(r->out, "build-id", r->elf->build_id, ".note.gnu.build-id");
    else
        fact_known(r->out, "build-id", "none", "no note of it");
    symbols_fact(r);
}
