/* A launch's output on its way from the FIFO to the file. */
#ifndef BROKER_KEEPER_OUTPUT_H
#define BROKER_KEEPER_OUTPUT_H

#include <stdint.h>

struct keeper_output {
    int pipe_fd, file_fd;
    uint64_t size, cut; /* of the file; nothing is kept before `cut` */
    int error;          /* errno: output waits in memory */
    uint64_t lost;      /* bytes dropped from there, ever */
    uint64_t lost_here; /* not marked in the file yet */
    char *held;
    uint32_t n_held;
    int eof; /* nobody writes any more */
};

/* Open the folder's output and FIFO. 0 or -errno. */
int
keeper_output_open(struct keeper_output *o, int dir_fd);

/* Move what is in the FIFO to the file, a bounded amount. 1: there may be more now. */
int
keeper_output_drain(struct keeper_output *o);

/* Move what is in the FIFO now, hardly more, however fast others go on writing; sets `eof` where
 * nobody does. */
void
keeper_output_take_present(struct keeper_output *o);

/* Try again to write what waits. */
void
keeper_output_retry(struct keeper_output *o);

#endif
