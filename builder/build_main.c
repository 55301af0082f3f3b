#include "builder/commands.h"
#include "common/opt.h"

int main(int argc, char **argv)
{
    static const struct verb verbs[] = {
        {"build", cmd_build, "build a server from source with a profile"},
        {"profiles", cmd_profiles, "the build profiles, or one of them resolved for a source"},
        {"list", cmd_list, "the builds in the store"},
        {"remove", cmd_remove, "remove a build from the store"},
        {0},
    };
    return verb_main("kiln-build", "From source and a profile to a server binary with a manifest.",
                     verbs, argc, argv);
}
