/* The end of the server, in order: the workers, then the broker that they asked. */
#ifndef MASTER_STOP_H
#define MASTER_STOP_H

#include "master/children.h"
#include "master/listener.h"

/* What is stopped; all three stay the caller's. 0 or -ENOMEM. */
int stop_init(struct event_base *base, struct children *cs, struct listeners *l);

/* Begin, once: who takes longer than LIMIT_STOP_MS a step is killed. The loop ends when
 * nobody is left. */
void stop_begin(int exit_status);

bool stop_under_way(void);

/* Something ended: what is the next step? Nothing, while no stop is under way. */
void stop_continue(void);

/* Nobody is waited for any more. */
void stop_kill(void);

/* What stop_begin was given. */
int stop_exit_status(void);

#endif
