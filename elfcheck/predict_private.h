// What the files of predictions share.
#ifndef KILN_PREDICT_PRIVATE_H
#define KILN_PREDICT_PRIVATE_H

#include "elfcheck/predict.h"

uint64_t round_down(uint64_t x, uint64_t page);
uint64_t round_up(uint64_t x, uint64_t page);
// The program may be loaded anywhere, or only at its own addresses.
bool loads_anywhere(const struct elf_facts *f);
// The load biases that the kernel may choose, modulo the huge page: first, first + step, ...
struct bases {
    uint64_t first, step, count;
};
// The base of a PIE is a multiple of the largest p_align (kernel 5.10 and later) and of a page, for
// the page of its first segment (fs/binfmt_elf.c). A program at a fixed address has one: 0.
struct bases base_choices(const struct elf_facts *f, const struct page_sizes *pages);
void predict_say(struct prediction *p, enum answer a, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
// What no way to huge pages can do without. True when p has its answer.
bool predict_is_hopeless(const struct elf_facts *f, const struct page_sizes *pages,
                         struct prediction *p);

void predict_pagecache(const struct elf_facts *f, const struct page_sizes *pages,
                       struct prediction *p);
void predict_tmpfs(const struct elf_facts *f, const struct page_sizes *pages, struct prediction *p);
void predict_remap(const struct elf_facts *f, const struct page_sizes *pages, struct prediction *p);
void predict_bolt_hugify(const struct elf_facts *f, const struct page_sizes *pages,
                         struct prediction *p);

#endif
