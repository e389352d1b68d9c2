/*
 * Ending what the broker holds for this worker: a follower, a watch, a hold on a terminal. The
 * broker forgets none of them by itself while the worker lives, so an end is never lost: it is
 * sent now or, while there is no room, as soon as there is.
 */
#ifndef WORKER_BROKER_ENDS_H
#define WORKER_BROKER_ENDS_H

#include <stdbool.h>
#include <stdint.h>

struct ev_loop;
void
broker_ends_init(struct ev_loop *loop);

/* `type`: MESSAGE_CHILD_END, MESSAGE_RUN_UNWATCH or MESSAGE_TTY_LEAVE; `id`: what its request
 * names. Nothing is heard of it. */
void
broker_end(uint16_t type, uint64_t id);

/* For broker_link.c: this checked answer to a request of `type` came. What it names and
 * nobody takes is ended: the asker is gone (`unwanted`), or the answer is not OK. */
void
broker_ends_answered(uint16_t type, const void *answer, bool unwanted);

/* For broker_link.c: the broker went, and all that it held. */
void
broker_ends_forget(void);

#endif
