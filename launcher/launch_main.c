#include "common/opt.h"
#include "launcher/commands.h"

int main(int argc, char **argv)
{
    static const struct verb verbs[] = {
        {"launch", cmd_launch, "start a server under stated conditions"},
        {"doctor", cmd_doctor, "what this host can do"},
        {"restore", cmd_restore, "undo what a killed run left behind"},
        {0},
    };
    return verb_main("kiln-launch",
                     "Starts servers under stated conditions, verifies them on the live "
                     "process, and undoes them.",
                     verbs, argc, argv);
}
