// Text, read-only data, data and bss of stated sizes, in bytes: TEXT, RODATA, DATA, BSS.
    .macro bulk name, size, fill
    .globl \name, \name\()_end
    .type \name, @object
    .hidden \name, \name\()_end
\name:
    .fill \size / 8, 8, \fill
\name\()_end:
    .size \name, . - \name
    .endm

    .text
    bulk bulk_text, TEXT, 0x9090909090909090
    ret
    .section .rodata
    bulk bulk_rodata, RODATA, 1
    .data
    bulk bulk_data, DATA, 1
    .bss
    bulk bulk_bss, BSS, 0
    .section .note.GNU-stack, "", @progbits
