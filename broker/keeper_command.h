/* Starting the command that a keeper keeps. */
#ifndef BROKER_KEEPER_COMMAND_H
#define BROKER_KEEPER_COMMAND_H

#include <sys/types.h>

/* Execute these words (ending with NULL) as our child, leader of a session of its own, with
 * nothing of ours but the FIFO in KEEPER_DIR as its output. 0 or -errno, also of the exec: then
 * nothing runs. */
int
keeper_command_start(char **words, pid_t *ret_pid);

#endif
