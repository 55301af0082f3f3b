// The programs that a build needs: is each there, which package has it, which version is it.
#ifndef KILN_TOOLS_H
#define KILN_TOOLS_H

#include "builder/source.h"

struct tools {
    char *toolchain_file; // toolchains/NAME.cmake
    char *cc, *cxx;       // as the toolchain file names them
    char *compiler;       // first line of --version
    char *linker;
    struct version compiler_version;
};

// Reads a toolchain file and looks for its compilers. 0, or -1 with *e filled; look = false: the
// compilers may be missing.
int tools_find(const char *toolchain, bool look, struct tools *t, struct err *e);
// cmake, ninja, ccache and the linker ("bfd", "gold", "lld", "mold"), whose version is filled in.
int tools_check(struct tools *t, const char *linker, struct err *e);
void tools_free(struct tools *t);

#endif
