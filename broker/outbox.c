/*
 * A worker's channel, outwards: answers and events in order, without ever waiting for it.
 * Distrusts: the worker (may never read).
 */
#include "broker/outbox.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/channel.h"
#include "common/messages.h"

/* A message that the worker's socket had no room for. */
struct outbox_message {
    STAILQ_ENTRY(outbox_message) link;
    size_t len;
    int fd; /* owned, or -1 */
    unsigned char bytes[];
};

static void
drop_first(struct outbox *o)
{
    struct outbox_message *m = STAILQ_FIRST(&o->queue);

    STAILQ_REMOVE_HEAD(&o->queue, link);
    o->n--;
    if (m->fd >= 0)
        close(m->fd);
    free(m);
}

/* 0: gone out, or gone for good. -EAGAIN: wait for room. */
static int
send_now(struct outbox *o, void *bytes, size_t len, int fd)
{
    int r = channel_send(o->fd, bytes, len, &fd, fd >= 0 ? 1 : 0);

    if (r == -ETOOMANYREFS && fd >= 0) {
        /* Too many descriptors in flight for this user: "try again" instead of a stall. What was
         * made stays named, for the worker to end. */
        ((struct answer_plain *)bytes)->status = ANSWER_BUSY;
        r = channel_send(o->fd, bytes, len, NULL, 0);
    }
    return r == -EAGAIN ? -EAGAIN : 0; /* EPIPE is seen by who reads */
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct outbox *o = arg;

    (void)fd;
    (void)what;
    while (!STAILQ_EMPTY(&o->queue)) {
        struct outbox_message *m = STAILQ_FIRST(&o->queue);

        if (send_now(o, m->bytes, m->len, m->fd) == -EAGAIN)
            return;
        drop_first(o);
    }
    event_del(o->writable);
    event_add(o->readable, NULL);
}

static int
keep(struct outbox *o, const void *bytes, size_t len, int fd)
{
    struct outbox_message *m = malloc(sizeof *m + len);

    if (m == NULL)
        return -ENOMEM;
    m->len = len;
    m->fd = fd;
    memcpy(m->bytes, bytes, len);
    STAILQ_INSERT_TAIL(&o->queue, m, link);
    if (o->n++ == 0) {
        event_del(o->readable);
        event_add(o->writable, NULL);
    }
    return 0;
}

int
outbox_send(struct outbox *o, void *bytes, size_t len, int fd)
{
    int r = 0;

    if (o->n > 0 || send_now(o, bytes, len, fd) != 0) {
        r = keep(o, bytes, len, fd);
        if (r == 0)
            return 0; /* with its descriptor */
    }
    if (fd >= 0)
        close(fd);
    return r;
}

int
outbox_init(struct outbox *o, struct event_base *base, int fd, struct event *readable)
{
    *o = (struct outbox){.fd = fd, .readable = readable};
    STAILQ_INIT(&o->queue);
    o->writable = event_new(base, fd, EV_WRITE | EV_PERSIST, on_writable, o);
    return o->writable != NULL ? 0 : -ENOMEM;
}

void
outbox_done(struct outbox *o)
{
    while (!STAILQ_EMPTY(&o->queue))
        drop_first(o);
    if (o->writable != NULL)
        event_free(o->writable);
}
