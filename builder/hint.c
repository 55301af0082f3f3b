#include "builder/hint.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *text, *hint;
} causes[] = {
    {"No space left on device", "the disk is full; give the store room (KILN_HOME=DIR chooses "
                                "another place), then run the same command again"},
    {"libfmt", "libfmt is fetched from the network unless the host has it: install libfmt-dev and "
               "pass WITH_LIBFMT=system (the feature set minimal does); a failed check is not "
               "kept, the next run configures afresh"},
    {"HAVE_SYSTEM_LIBFMT", "install libfmt-dev"},
    {"-DDOWNLOAD_BOOST=1", "this MySQL wants Boost's headers: take its source with Boost inside "
                           "(mysql-boost-VERSION.tar.gz)"},
    {"Failed to clone", "the source tree wants to fetch a part from the network; install the "
                        "system's library or switch the part off in [cmake]"},
    {"Could not resolve host", "the build wants the network; install the system's library or "
                               "switch the part off in [cmake]"},
    {"Bison (found version", "the bison that is installed is too old for this source; install a "
                             "newer one (Debian: apt-get install bison)"},
    {"bison: not found", "install bison (Debian: apt-get install bison)"},
    {"Could NOT find BISON", "install bison (Debian: apt-get install bison)"},
    {"No bison found", "install bison (Debian: apt-get install bison)"},
    {"Curses library not found", "install libncurses-dev"},
    {"CURSES_LIBRARY", "install libncurses-dev"},
    {"Could NOT find Curses", "install libncurses-dev"},
    {"ncurses", "install libncurses-dev"},
    {"Cannot find appropriate system libraries for SSL", "install libssl-dev"},
    {"Could NOT find OpenSSL", "install libssl-dev"},
    {"openssl/ssl.h", "install libssl-dev"},
    {"system pcre is not found", "install libpcre2-dev"},
    {"pcre2.h", "install libpcre2-dev"},
    {"NUMA library missing", "install libnuma-dev"},
    {"numa.h", "install libnuma-dev"},
    {"libaio.h", "install libaio-dev"},
    {"aio is required", "install libaio-dev"},
    {"libtirpc", "install libtirpc-dev"},
    {"rpcgen", "install rpcsvc-proto"},
    {"libudev", "install libudev-dev"},
    {"cannot find -lhugetlbfs", "install libhugetlbfs-dev"},
    {"unable to find library -lhugetlbfs", "install libhugetlbfs-dev"},
    {"zlib.h", "install zlib1g-dev"},
    {"Killed signal terminated program", "the compiler was killed, most likely for want of "
                                         "memory; fewer jobs need less (--jobs 1)"},
    {"virtual memory exhausted", "there is too little memory; fewer jobs need less (--jobs 1)"},
    {"internal compiler error: Killed", "the compiler was killed, most likely for want of memory; "
                                        "fewer jobs need less (--jobs 1)"},
    {"invalid linker name in argument", "this compiler does not know the profile's linker"},
};

const char *hint_for(const char *line)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (strstr(line, causes[i].text))
            return causes[i].hint;
    return NULL;
}

bool is_error_line(const char *line)
{
    static const char *const marks[] = {
        "CMake Error", "error:",        "Error:",         "fatal:",       "undefined reference",
        "FAILED:",     "No space left", "cannot find -l", "ninja: error", "Killed"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(line, marks[i]))
            return true;
    return false;
}
