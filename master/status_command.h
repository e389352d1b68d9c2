/* `ssebench-webui status [--json]`: does a server run here, and how is it? */
#ifndef MASTER_STATUS_COMMAND_H
#define MASTER_STATUS_COMMAND_H

/* argv[0] is "status". Exit status as LSB has it: 0, a server runs; 1, one ended without saying
 * so; 3, none runs; 4, it cannot be told; 2 for a wrong call. */
int status_command(int argc, char **argv);

#endif
