/* What the server says of itself: where it listens, which fences are up, and which call
 * a fence stopped. */
#ifndef MASTER_GREETING_H
#define MASTER_GREETING_H

#include <stdint.h>

#include "master/listener.h"

struct child;

/* One "Listening on" line per listener and one "Fences" line, on stdout. */
void greeting_print(const struct listeners *l, const char *base_path,
                    const struct child *children, uint32_t n_children);

#endif
