#include "common/opt.h"
#include "common/err.h"
#include "launcher/commands.h"
#include "launcher/journal.h"

#include <stdio.h>

int cmd_restore(int argc, char **argv)
{
    static const struct opt opts[] = {{0}};
    static const struct command cmd = {
        .name = "kiln restore",
        .synopsis = "",
        .about = "Undoes what a killed run left behind: servers, mounts, huge pages, directories.\n"
                 "Runs whose kiln is alive are not touched.",
        .opts = opts,
    };
    struct strv args = {0};
    opt_parse(&cmd, argc, argv, &args, NULL);
    unsigned found, busy;
    struct err e = {0};
    int rc = journal_restore(&found, &busy, &e);
    if (rc)
        return err_report(&e);
    if (found)
        printf("%u killed run%s undone\n", found, found == 1 ? "" : "s");
    else
        printf("nothing to restore\n");
    if (busy)
        printf("%u run%s in progress, not touched\n", busy, busy == 1 ? "" : "s");
    return EXIT_YES;
}
