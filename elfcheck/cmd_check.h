#ifndef KILN_CMD_CHECK_H
#define KILN_CMD_CHECK_H

int cmd_check(int argc, char **argv); // argv[0] is the verb

#endif
