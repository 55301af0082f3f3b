// A distribution's source packages through apt, with an apt configuration of kiln's own: the
// host's files and package lists are read and never changed.
#ifndef KILN_APT_H
#define KILN_APT_H

#include "builder/source.h"

// Fetches and unpacks the newest version of a source package that the mirror still has, and fills
// *s. A package that was fetched before is used again without a network.
int apt_source(const char *package, struct source *s, struct err *e);

// Appends to *out, as deb822 deb-src stanzas, the archive entries of a sources file that belong to
// this distribution ("debian") and release ("bookworm"). Returns how many there were.
unsigned apt_convert_list(const char *text, const char *id, const char *codename, struct str *out);
unsigned apt_convert_deb822(const char *text, const char *id, const char *codename,
                            struct str *out);

#endif
