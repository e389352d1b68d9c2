/* The broker and the workers of the program before this one: they finish, nothing more. */
#ifndef MASTER_DRAIN_H
#define MASTER_DRAIN_H

#include "master/child.h"
#include "master/takeover.h"

struct event_base;

/* Watch them and tell them to finish; those that take too long are killed. `broker_gone` is
 * called once, when their broker has ended, also from inside. 0 or -errno. */
int drain_begin(struct event_base *base, const struct takeover *t, void (*broker_gone)(void));

/* One of them ended? Then it is taken note of. */
bool drain_take_end(pid_t pid, int status);

/* Are there any left? */
bool drain_under_way(void);

/* A token was revoked: the workers end at once, whatever they are at. */
void drain_cut(void);

/* The server stops: no time for them either. */
void drain_stop(void);
void drain_kill(void);

#endif
