/* Opening below a directory without following anything out of it: for the broker and the
 * export, each linked with it alone; a worker opens nothing. */
#ifndef COMMON_OPEN_BENEATH_H
#define COMMON_OPEN_BENEATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Open `path` (relative) below `root_fd`: no link at any step, nothing above, no magic links;
 * mounts below may be entered. CLOEXEC is added. Descriptor or -errno (-ELOOP: a link). */
int
open_beneath(int root_fd, const char *path, int flags);

/* Open a regular file of at most `max_size` bytes for reading. Never blocks, never opens a
 * device or a FIFO, not even one that is swapped in meanwhile. Descriptor, or -ENOENT
 * (missing, a link on the way, not a regular file), -EFBIG, another -errno. */
int
open_beneath_file(int root_fd, const char *path, size_t max_size, struct stat *ret_stat);

/* Does this failure mean "there is no such file here" (and not "try again")? */
bool
open_beneath_is_missing(int error);

#endif
