/* One child's way into the world: its descriptors gathered, its program started, its
 * lines watched. */
#ifndef MASTER_START_H
#define MASTER_START_H

#include "master/child.h"
#include "master/handover.h"
#include "master/listener.h"

/* Start the program of `c` and attach `c` to it. A worker is given `channel`, its end
 * of the line to the broker (which stays the caller's); the broker -1. 0; or -errno,
 * and then c->pid says whether something runs that has to be killed. */
int start_child(struct child *c, struct event_base *base, const struct handover *h,
                const struct listeners *l, int channel);

#endif
