// text=remap: code moved to anonymous huge pages by kiln's own preload library (remap/).
#include "launcher/text_modes.h"

#include "common/fs.h"

#include <stdlib.h>

#define LIBRARY "libkiln-remap.so"

int text_remap_able(const struct launch *l, const struct text_plan *p, struct err *e)
{
    (void)l, (void)p;
    char *path = xasprintf("%s/" LIBRARY, store_bin_dir());
    int rc = fs_exists(path)
                 ? 0
                 : err_set(e, EXIT_NOT_HERE, "%s is not in %s", LIBRARY, store_bin_dir());
    free(path);
    return rc;
}

// The server's user may not reach the programs' directory, so it gets a copy among its own files.
int text_remap(struct launch *l, struct knob_state *s, struct err *e)
{
    const struct text_plan *plan = s->plan;
    char *from = xasprintf("%s/" LIBRARY, store_bin_dir());
    char *path = xasprintf("%s/" LIBRARY, l->in.place);
    int rc = fs_copy_file(from, path, 0755, e);
    text_keep_library_out(l);
    strv_add(&l->env, "KILN_REMAP=thp");
    strv_add(&l->preload, path);
    text_seen(s, json_pack("{sssI}", "library", from, "predicted_bytes",
                           (json_int_t)plan->prediction.text_huge_bytes));
    free(from);
    free(path);
    return rc;
}
