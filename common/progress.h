// Progress on standard error, with an estimate of the time left: one line that is rewritten on a
// terminal, a line now and then elsewhere.
#ifndef KILN_PROGRESS_H
#define KILN_PROGRESS_H

// Starts a task of total steps. expected_seconds is how long the whole took last time,
// or 0: used for the estimate until enough steps are done.
void progress_begin(const char *title, double total, double expected_seconds);
void progress_update(double done, const char *what); // cheap enough to call for every step
void progress_end(void);

#endif
