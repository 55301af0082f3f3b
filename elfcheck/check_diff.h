// What differs between two files, for compiler comparisons.
#ifndef KILN_CHECK_DIFF_H
#define KILN_CHECK_DIFF_H

#include "elfcheck/check.h"

// Prints facts, answers of modes and sizes of sections that differ, as text or JSON
// (kiln.check-diff/1); returns how many facts and modes differ.
size_t check_diff(const struct check *a, const struct check *b, bool as_json);

#endif
