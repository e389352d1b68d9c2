/* When a dead child is started again, and when the server gives up. Pure. */
#include "master/restart.h"

#include <string.h>

static void
forget_old(struct restart *r, uint64_t now_ms)
{
    unsigned old = 0;

    while (old < r->n_ends && now_ms - r->ends_ms[old] > LIMIT_RESTARTS_MS)
        old++;
    r->n_ends -= old;
    memmove(r->ends_ms, r->ends_ms + old, r->n_ends * sizeof(r->ends_ms[0]));
}

bool
restart_note(struct restart *r, uint64_t now_ms, uint64_t lived_ms,
             uint32_t *ret_delay_ms)
{
    if (lived_ms >= RESTART_LIVED_MS) {
        r->next_delay_ms = 0;
        *ret_delay_ms = 0;
        return true;
    }
    forget_old(r, now_ms);
    r->ends_ms[r->n_ends++] = now_ms;
    if (r->n_ends == LIMIT_RESTARTS)
        return false;
    *ret_delay_ms = r->next_delay_ms;
    r->next_delay_ms =
        r->next_delay_ms == 0 ? RESTART_DELAY_FIRST_MS : r->next_delay_ms * 2;
    if (r->next_delay_ms > RESTART_DELAY_MAX_MS)
        r->next_delay_ms = RESTART_DELAY_MAX_MS;
    return true;
}
