// What to do about a build that failed, where the cause is known from its output.
#ifndef KILN_HINT_H
#define KILN_HINT_H

#include <stdbool.h>

// A sentence for a line of output, or NULL. The first line that matches wins.
const char *hint_for(const char *line);
// Whether a line tells of an error, rather than of the way there.
bool is_error_line(const char *line);

#endif
