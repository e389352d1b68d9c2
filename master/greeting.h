/* What the server says of itself: where it listens, which fences are up, and which call
 * a fence stopped. */
#ifndef MASTER_GREETING_H
#define MASTER_GREETING_H

#include <stdint.h>
#include <sys/types.h>

#include "master/listener.h"

struct child;

/* One "Listening on" line per listener and one "Fences" line, on stdout. */
void greeting_print(const struct listeners *l, const char *base_path,
                    const struct child *children, uint32_t n_children);

/* A child died of SIGSYS: log the call's name if the kernel's log is readable and has
 * it, and say what is known if not. */
void greeting_log_blocked_call(const char *child, pid_t pid);

#endif
