/*
 * What goes out on one worker's channel, in order. What the socket has no room for waits here,
 * and while something waits nothing is read from that worker.
 */
#ifndef BROKER_OUTBOX_H
#define BROKER_OUTBOX_H

#include <stddef.h>
#include <sys/queue.h>

struct event;
struct event_base;
struct outbox_message;

struct outbox {
    int fd; /* the channel */
    struct event *readable, *writable;
    unsigned n; /* messages that wait */
    STAILQ_HEAD(, outbox_message) queue;
};

/* `fd` and `readable` (the event that reads from it) stay the caller's, until outbox_done at
 * least. 0 or -ENOMEM; outbox_done may be called after either. */
int
outbox_init(struct outbox *o, struct event_base *base, int fd, struct event *readable);

/* Forget what waits. */
void
outbox_done(struct outbox *o);

/* Send or keep a message, whose bytes may be changed. `fd` goes along and is closed here in every
 * case; -1: none. It begins like struct answer_plain where there is one. A worker that is gone
 * makes it go nowhere. -ENOMEM: it is lost. */
int
outbox_send(struct outbox *o, void *bytes, size_t len, int fd);

#endif
