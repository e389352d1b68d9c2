/* When a dead child is started again, and when the server gives up. Pure. */
#ifndef MASTER_RESTART_H
#define MASTER_RESTART_H

#include <stdbool.h>
#include <stdint.h>

#include "common/limits.h"

#define RESTART_LIVED_MS                                                               \
    1000u /* a child that served this long did not fail to start                       \
           */
#define RESTART_DELAY_FIRST_MS                                                         \
    100u /* before the second restart in a row, then doubling */
#define RESTART_DELAY_MAX_MS 1000u /* clients are back within 2 s of what was in the way */

/* One child's short-lived ends, newest last. All zero to begin with. */
struct restart {
    uint64_t ends_ms[LIMIT_RESTARTS];
    unsigned n_ends;
    uint32_t next_delay_ms;
};

/* The child ended at `now_ms` after `lived_ms` of service (0: it never was ready).
 * True: start it again after `ret_delay_ms`. False: LIMIT_RESTARTS such ends within
 * LIMIT_RESTARTS_MS. A child that lived for RESTART_LIVED_MS starts again at once and
 * is not counted: killing one by hand, again and again, is no reason to stop a server.
 */
bool restart_note(struct restart *r, uint64_t now_ms, uint64_t lived_ms,
                  uint32_t *ret_delay_ms);

#endif
