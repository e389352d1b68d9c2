/* What the export may still do when it begins to read what agents wrote. */
#ifndef WORKER_EXPORT_FENCE_H
#define WORKER_EXPORT_FENCE_H

#include <stdbool.h>

/* For good: read beneath `results_fd`, make, replace and remove plain files beneath `out_fd`; no
 * other path, no network, no program, no process. 0, or -errno when it cannot hold.
 * `ret_landlock`: false on a kernel without Landlock, where paths are not limited. */
int
fence_up(int results_fd, int out_fd, bool *ret_landlock);

#endif
