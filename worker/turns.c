/* The loop's turns, timed by what runs first after a wait and last before the next. */
#include "worker/turns.h"

#include <ev.h>
#include <stdint.h>

#include "common/monotonic.h"
#include "common/scoreboard.h"

#define TURN_SLOW_US 5000u

static ev_check turns_begin;
static ev_prepare turns_end;
static uint64_t turns_begun_us, turns_longest_us;

static void
on_begin(struct ev_loop *loop, ev_check *w, int events)
{
    turns_begun_us = monotonic_us();
}

static void
on_end(struct ev_loop *loop, ev_prepare *w, int events)
{
    uint64_t us = turns_begun_us > 0 ? monotonic_us() - turns_begun_us : 0;

    if (us > TURN_SLOW_US)
        scoreboard_add(SCORE_SLOW_TURNS, 1);
    if (us <= turns_longest_us)
        return;
    turns_longest_us = us;
    scoreboard_set(SCORE_LONGEST_TURN_US, us);
}

void
turns_watch(struct ev_loop *loop)
{
    ev_check_init(&turns_begin, on_begin);
    ev_prepare_init(&turns_end, on_end);
    ev_set_priority(&turns_begin, EV_MAXPRI);
    ev_set_priority(&turns_end, EV_MINPRI);
    ev_check_start(loop, &turns_begin);
    ev_prepare_start(loop, &turns_end);
}
