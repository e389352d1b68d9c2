/* Listeners, caps and deadlines: which connections there are and how long they may wait. */
#ifndef WORKER_SERVER_H
#define WORKER_SERVER_H

#include <stdbool.h>
#include <stddef.h>

struct conn;
struct ev_loop;
struct worker_config;

/* Prepare n_listeners inherited listening sockets (HANDOFF_LISTENER...). Before the sandbox.
 * 0 or -errno. */
int
server_init(struct ev_loop *loop, const struct worker_config *config);

/* Begin to accept; after the sandbox. */
void
server_start(void);

/* Accept nothing new for good, close what is idle; what is being answered, or asked for at
 * this moment, goes on. */
void
server_stop(void);

/* A deadline in a wheel of half seconds: setting one costs the same for any number of
 * connections. Embedded in the connection, zeroed at first. */
struct deadline {
    struct deadline *next, **link; /* link == NULL: not set */
};

/* Call http_deadline_passed for its connection in `timeout_ms` (rounded up to half a second,
 * at most 100 s). Replaces an earlier one. */
void
server_deadline_set(struct deadline *d, unsigned timeout_ms);
void
server_deadline_clear(struct deadline *d);

/* Connections between requests, or with half a head, in the order in which they came to wait:
 * at the cap the oldest makes room for a new one. Embedded in the connection, zeroed at
 * first. */
struct idle_place {
    struct idle_place *prev, *next;
    bool listed;
};

void
server_idle_add(struct idle_place *place);
void
server_idle_remove(struct idle_place *place);

#endif
