/* `ssebench-webui export`: the program that writes a static site takes our place. */
#ifndef MASTER_EXPORT_H
#define MASTER_EXPORT_H

/* Execute the export's program with these arguments (argv[0] is "export") and no environment:
 * what may stand in ours, a token or a key, is nothing to it. Returns the exit status, and only
 * when it cannot be executed; it has been said why. */
int
export_exec(char **argv);

#endif
