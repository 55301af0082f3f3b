// The program of the matrix. It touches every page of what bulk.S holds, so that every slot of its
// text is mapped, says "ready" and stays until its standard input ends. That it prints by stdout is
// on purpose: without -fPIC that is a copy relocation, which libhugetlbfs must carry over.
#include <stdio.h>

extern const unsigned char bulk_text[], bulk_text_end[], bulk_rodata[], bulk_rodata_end[];
extern unsigned char bulk_data[], bulk_data_end[], bulk_bss[], bulk_bss_end[];

static unsigned read_pages(const volatile unsigned char *p, const volatile unsigned char *end)
{
    unsigned sum = 0;
    for (; p < end; p += 4096)
        sum += *p;
    return sum;
}

static void write_pages(volatile unsigned char *p, const volatile unsigned char *end)
{
    for (; p < end; p += 4096)
        ++*p;
}

int main(void)
{
    unsigned sum = read_pages(bulk_text, bulk_text_end) + read_pages(bulk_rodata, bulk_rodata_end);
    write_pages(bulk_data, bulk_data_end);
    write_pages(bulk_bss, bulk_bss_end);
    fprintf(stdout, "ready %u\n", sum);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
