/* The end of what a child says on stderr: its last line is the reason that people are told. */
#ifndef BROKER_STDERR_TAIL_H
#define BROKER_STDERR_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define STDERR_TAIL 4096u /* bytes kept, in which the last line is looked for */

struct stderr_tail {
    size_t len;
    char bytes[STDERR_TAIL];
};

/* Take at most STDERR_TAIL bytes from the pipe's non-blocking end. As read(2): bytes taken, 0
 * at the end, -1 when there is nothing now. */
ssize_t
stderr_tail_read(struct stderr_tail *t, int fd);

/* The last line that is not blank, cut to `size` with its NUL, control bytes made blanks.
 * False: there is none, and `out` is "". */
bool
stderr_tail_line(const struct stderr_tail *t, char *out, size_t size);

#endif
