/* Becoming the export's program, which is no part of the server. */
#include "master/export.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "master/handover.h"

int
export_exec(char **argv)
{
    char program[HANDOFF_PATH], *const no_environment[] = {NULL};

    if (handover_find_program("worker/export", "ssebench-webui-export", program) != 0) {
        fprintf(stderr, "[Server] There is no ssebench-webui-export beside this program. "
                        "Build all of it (ninja -C build), or install it.\n");
        return 1;
    }
    close_range(STDERR_FILENO + 1, ~0u, 0);
    execve(program, argv, no_environment);
    fprintf(stderr, "[Server] Cannot execute %s: %s.\n", program, strerror(errno));
    return 1;
}
