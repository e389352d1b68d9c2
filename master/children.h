/* The broker and the workers of this server: who they are, and the lines between them. */
#ifndef MASTER_CHILDREN_H
#define MASTER_CHILDREN_H

#include <event2/event.h>

#include "common/limits.h"
#include "master/child.h"

struct children {
    uint32_t n;                           /* the broker and the workers */
    struct child item[1 + LIMIT_WORKERS]; /* [0]: the broker */
};

/* One broker and `n_workers`, none of which runs yet; `on_restart` gets its struct child when
 * a timer of child.on_restart is over. 0 or -ENOMEM. */
int children_init(struct children *cs, struct event_base *base, uint32_t n_workers,
                  event_callback_fn on_restart);

struct child *children_broker(struct children *cs);

/* The one that runs as `pid`, or NULL. */
struct child *children_find(struct children *cs, pid_t pid);

bool children_any_worker_alive(const struct children *cs);

void children_tell_workers(struct children *cs, enum control_type type);
void children_kill_workers(struct children *cs);
void children_kill(struct children *cs);

/* A new channel between the broker and this worker: one end to each by CONTROL_CHANNEL.
 * With `ret_worker_end`, the worker is about to be started and finds its end (the
 * caller's) at HANDOFF_CHANNEL. 0 or -errno. */
int children_link(struct children *cs, struct child *worker, int *ret_worker_end);

/* A new broker knows nobody: every worker gets a new line. */
void children_link_all(struct children *cs);

#endif
