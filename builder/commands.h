// The verbs of kiln-build.
#ifndef KILN_BUILDER_COMMANDS_H
#define KILN_BUILDER_COMMANDS_H

int cmd_build(int argc, char **argv);
int cmd_profiles(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_remove(int argc, char **argv);

#endif
