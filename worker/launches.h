/* This worker's copy of the broker's launches: what the routes and the socket answer from. */
#ifndef WORKER_LAUNCHES_H
#define WORKER_LAUNCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/messages.h"
#include "worker/broker_link.h"

struct json_writer;

struct launch_entry {
    struct launch_entry *next; /* in the order in which they were launched */
    struct event_launch e;     /* as last told */
    int fd;                    /* its output, or -1 */
    broker_ticket ticket;      /* the question for it */
    bool seen;                 /* told by this broker */
};

/* Hear of launches from now on. Before the loop runs. */
void
launches_init(void);

/* Ask the broker for what was not told yet: when `fn` runs, the table is as the broker had it
 * when it was asked (NULL answer: the broker is away, the table is as it was). */
broker_ticket
launches_sync(broker_answer_fn fn, void *ctx);

struct launch_entry *
launches_first(void);
struct launch_entry *
launches_find(const char *id); /* NULL: none */

/* Fetch the output's descriptor, if that is not done or under way; launch_ws_grown follows. */
void
launches_want_output(struct launch_entry *entry);

/* The status object of contract 10.5, with what this server adds. */
void
launches_render(struct json_writer *w, const struct event_launch *e);

#endif
