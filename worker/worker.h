/* What every part of a worker may know of the process it lives in. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "common/handoff.h"

struct ev_loop;

/* The configuration in force; replaced as a whole on reload, so ask each time. */
const struct worker_config *
worker_config(void);

struct ev_loop *
worker_loop(void);

/* Seconds of the monotonic clock. Never measure with ev_now(): that is the wall clock, which an
 * administrator or a time server may set by a day in either direction. */
double
worker_now_s(void);

/* True once the worker is told to finish: no new work, no keep-alive. */
bool
worker_stopping(void);

#endif
