// What a start changed on the host and must put back. Each change is written to a journal before it
// is made; the journal is undone in reverse on a normal end, on an error, and, when its owner was
// killed, by the next start or by kiln restore.
//
// A journal is a file RUN/journal/PID-STARTTIME-N of JSON lines. The first line names its owner and
// the boot; the others are changes:
//   {"op": "process", "pid", "start"}   a child that must not outlive us
//   {"op": "mount", "path"}             a mount of ours
//   {"op": "tree", "path"}              a directory of ours
//   {"op": "pool", "pages", "need"}     huge pages added to the pool (launcher/pool.h)
//   {"undone": N}                       the Nth change was undone
#ifndef KILN_JOURNAL_H
#define KILN_JOURNAL_H

#include "common/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct journal;

int journal_open(struct journal **out, struct err *e);
// Each writes its line and returns 0, or -1 with *e filled: then the change must not be made.
int journal_process(struct journal *j, pid_t pid, struct err *e);
int journal_mount(struct journal *j, const char *path, struct err *e);
int journal_tree(struct journal *j, const char *path, struct err *e);
int journal_pool(struct journal *j, unsigned pages, unsigned need, struct err *e);

// Undoes everything, newest first, and removes the journal; frees j. Goes on after a failure; the
// journal stays for kiln restore then. 0, or -1 with the first failure in *e.
int journal_undo(struct journal *j, struct err *e);

// Undoes every journal whose owner is gone. *found counts them; *busy counts journals of owners
// that are alive. 0, or -1 with the first failure.
int journal_restore(unsigned *found, unsigned *busy, struct err *e);

// The one lock for all that several kilns share; waits. Returns a descriptor, or -1 with *e filled.
int journal_lock(struct err *e);
// Sums over the pool changes of every journal that are not undone, live owners or not.
struct pool_claims {
    unsigned count, pages, need;
};
struct pool_claims journal_pool_claims(void);

#endif
