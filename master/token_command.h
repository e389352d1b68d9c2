/* `ssebench-webui token add|list|revoke`: named tokens in their file, beside any server. */
#ifndef MASTER_TOKEN_COMMAND_H
#define MASTER_TOKEN_COMMAND_H

/* argv[0] is "token". Exit status: 0; 1 with a reason on stderr; 2 for a wrong call. */
int token_command(int argc, char **argv);

#endif
