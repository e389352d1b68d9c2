/*
 * How a running server can be found and asked on its host, without a socket: a file of its own in
 * `servers/` of the state directory, write-locked for as long as it lives, so that the kernel says
 * whose it is. SIGUSR1 writes it anew; who may send that is who may look into the directory.
 */
#ifndef MASTER_STATUS_FILE_H
#define MASTER_STATUS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "master/handover.h"
#include "master/listener.h"

#define STATUS_DIR "servers"
#define STATUS_SIZE 4096u /* bytes of the file */

struct status {
    const struct settings *settings;
    const struct handover *handover;
    const struct listeners *listeners;
    uint64_t started_s;
};

/* Make, lock and fill it, and remove those of servers that ended without a word. Without it the
 * server goes on; the log says why. */
void status_file_open(const struct status *s, uint32_t uid, uint32_t gid);

/* Write what is so now. */
void status_file_write(void);

/* The server ends: remove it. */
void status_file_close(void);

#endif
