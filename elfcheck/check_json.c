#include "common/json.h"
#include "elfcheck/check_print.h"

#include <stdio.h>
#include <string.h>

static void set_text(json_t *o, const char *key, const char *s)
{
    json_object_set_new(o, key, json_printable(s));
}

static void set_bytes(json_t *o, const char *key, uint64_t n)
{
    json_object_set_new(o, key, json_integer((json_int_t)n));
}

static json_t *segment_json(const struct check *c, const struct segment *s)
{
    char flags[8];
    segment_flags(s, flags);
    json_t *o = json_object();
    json_object_set_new(o, "program_header", json_integer((json_int_t)s->index));
    json_object_set_new(o, "flags", json_string(flags));
    set_bytes(o, "offset", s->offset);
    set_bytes(o, "vaddr", s->vaddr);
    set_bytes(o, "filesz", s->filesz);
    set_bytes(o, "memsz", s->memsz);
    set_bytes(o, "align", s->align);
    set_bytes(o, "section_bytes", segment_section_bytes(s));
    json_object_set_new(o, "text", json_boolean(segment_is_text(s)));
    if (!c->pages_known)
        return o;
    struct slot_fit fit = segment_fit(s, &c->pages);
    json_object_set_new(o, "congruent", json_boolean(segment_congruent(s, c->pages.huge)));
    set_bytes(o, "slots", segment_slots(s, &c->pages));
    set_bytes(o, "head", fit.head);
    set_bytes(o, "tail", fit.tail);
    return o;
}

static json_t *segments_json(const struct check *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->elf.nloads; i++)
        json_array_append_new(list, segment_json(c, &c->elf.loads[i]));
    return list;
}

static json_t *answer_json(const struct prediction *p)
{
    return json_pack("{ss ss}", "answer", answer_word(p->answer), "reason", p->reason);
}

static json_t *versions_json(const struct mode_answer *m)
{
    return json_pack("{s{so so} s{so so}}", "2.23", "preload", answer_json(&m->old_preload),
                     "linked", answer_json(&m->old_linked), "2.24", "preload",
                     answer_json(&m->new_preload), "linked", answer_json(&m->new_linked));
}

static json_t *modes_json(const struct check *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->nmodes; i++) {
        const struct prediction *p = &c->modes[i].now;
        json_t *o = answer_json(p);
        json_object_set_new(o, "mode", json_string(c->modes[i].mode));
        set_bytes(o, "text_bytes", p->text_bytes);
        set_bytes(o, "text_huge_bytes", p->text_huge_bytes);
        json_object_set_new(o, "text_huge_percent",
                            json_real(percent_of(p->text_huge_bytes, p->text_bytes)));
        set_bytes(o, "smaps_huge_bytes", p->smaps_huge_bytes);
        set_bytes(o, "data_huge_bytes", p->data_huge_bytes);
        set_bytes(o, "pages", p->pages);
        if (c->modes[i].by_version)
            json_object_set_new(o, "by_version", versions_json(&c->modes[i]));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *needed_json(const struct elf_facts *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->needed.n; i++)
        json_array_append_new(list, json_string(f->needed.v[i]));
    return list;
}

static json_t *padding_json(const struct pad_plan *p)
{
    return json_pack("{ss ss sI sI sI sI sI}", "state", pad_state_text(p->state), "reason",
                     p->reason, "filesz", (json_int_t)p->filesz, "linked_filesz",
                     (json_int_t)p->linked_filesz, "padded_filesz", (json_int_t)p->padded_filesz,
                     "linked_slots", (json_int_t)p->linked_slots, "padded_slots",
                     (json_int_t)p->padded_slots);
}

static json_t *kinds_json(const struct dwarf_facts *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->nkinds; i++) {
        const struct unit_kind *k = &d->kinds[i];
        json_array_append_new(list, json_pack("{ss sI sI ss}", "producer", k->producer, "units",
                                              (json_int_t)k->units, "text_bytes",
                                              (json_int_t)k->text_bytes, "folders", k->folders));
    }
    return list;
}

static json_t *units_json(const struct dwarf_facts *d)
{
    json_t *levels = json_object();
    for (int i = 0; i < OPT_LEVELS; i++)
        if (d->by_level[i])
            json_object_set_new(levels, opt_level_names[i],
                                json_pack("{sI sI}", "units", (json_int_t)d->by_level[i],
                                          "text_bytes", (json_int_t)d->text_by_level[i]));
    json_t *o = json_pack("{sI sI so sI s{sI sI sI} so}", "units", (json_int_t)d->units,
                          "text_bytes", (json_int_t)d->text_bytes, "levels", levels, "not_recorded",
                          (json_int_t)d->level_unknown, "compilers", "gcc", (json_int_t)d->gcc,
                          "clang", (json_int_t)d->clang, "other", (json_int_t)d->other_compiler,
                          "kinds", kinds_json(d));
    if (d->problem)
        json_object_set_new(o, "problem", json_string(d->problem));
    return o;
}

static void put_layout(json_t *o, const struct check *c)
{
    const struct elf_facts *f = &c->elf;
    set_text(o, "file", f->path);
    set_bytes(o, "file_bytes", c->file.image.n);
    set_text(o, "type", elf_type_name(f));
    set_text(o, "machine", f->machine_name);
    json_object_set_new(o, "bits", json_integer(f->is_64 ? 64 : 32));
    json_object_set_new(o, "pie", json_boolean(f->pie));
    json_object_set_new(o, "static", json_boolean(f->is_static));
    json_object_set_new(o, "stripped", json_boolean(f->stripped));
    set_text(o, "build_id", f->build_id);
    set_text(o, "interpreter", f->interp);
    set_text(o, "compiler", f->compiler);
    set_text(o, "linker", f->linker);
    json_object_set_new(o, "needed", needed_json(f));
    set_bytes(o, "text_bytes", elf_text_bytes(f));
    set_bytes(o, "alignment_cost_bytes", check_file_growth(c));
    json_object_set_new(o, "segments", segments_json(c));
    if (c->pages_known) {
        set_bytes(o, "page_size", c->pages.huge);
        json_object_set_new(o, "padding", padding_json(&c->padding));
    }
    json_object_set_new(
        o, "libhugetlbfs",
        json_pack("{ss? si}", "path", libhugetlbfs_path(), "segment_limit", (int)c->segment_limit));
    json_object_set_new(o, "modes", modes_json(c));
}

json_t *check_json(const struct check_output *o)
{
    json_t *j = json_new("kiln.check/1");
    put_layout(j, o->c);
    if (o->c->whole) {
        json_object_set_new(j, "facts", facts_json(&o->c->facts));
        json_object_set_new(j, "units", units_json(&o->c->dwarf));
        json_object_set_new(j, "host", host_fit_json(&o->c->host));
    }
    if (o->live)
        json_object_set_new(j, "process", live_json(o->live));
    if (o->advice)
        json_object_set_new(j, "advice", rules_json(o->advice));
    if (o->rules)
        json_object_set_new(j, "rules",
                            json_pack("{ss ss? so}", "verdict", rule_word(rules_verdict(o->rules)),
                                      "profile", o->profile, "results", rules_json(o->rules)));
    return j;
}
