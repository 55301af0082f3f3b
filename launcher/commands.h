// The verbs of kiln-launch.
#ifndef KILN_LAUNCH_COMMANDS_H
#define KILN_LAUNCH_COMMANDS_H

int cmd_launch(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_restore(int argc, char **argv);

#endif
