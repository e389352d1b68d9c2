/*
 * How long the worker's loop is away from its clients: the time from one wait to the next. Work
 * that may be long is done in slices, and this tells where it was not.
 */
#ifndef WORKER_TURNS_H
#define WORKER_TURNS_H

struct ev_loop;

/* Count turns over 5 ms and keep the longest, on the scoreboard. */
void
turns_watch(struct ev_loop *loop);

#endif
