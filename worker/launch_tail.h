/* Where the last lines of a launch's output begin. */
#ifndef WORKER_LAUNCH_TAIL_H
#define WORKER_LAUNCH_TAIL_H

#include <stdbool.h>
#include <stdint.h>

/* The offset in an output of `size` bytes, of which nothing before `cut` is kept, at which the
 * last LIMIT_LAUNCH_LINES lines begin; never further back than LIMIT_LAUNCH_TAIL bytes. */
uint64_t
launch_tail_start(int fd, uint64_t size, uint64_t cut);

#endif
