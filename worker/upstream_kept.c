/* Connections between requests. They are the worker's own: the broker made them for it. */
#include "worker/upstream_kept.h"

#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/worker.h"

#define KEEP_S 20.0   /* an unused connection is closed */
#define KEPT_MAX 128u /* connections kept, of this worker */

struct kept {
    struct kept *next, **link;
    ev_io io;
    ev_timer timer;
    struct upstream_place place;
};

static struct kept *kept_list;
static unsigned n_kept;

/* The descriptor; the rest is freed. */
static int
take_kept(struct kept *k)
{
    int fd = k->io.fd;

    ev_io_stop(worker_loop(), &k->io);
    ev_timer_stop(worker_loop(), &k->timer);
    *k->link = k->next;
    if (k->next != NULL)
        k->next->link = k->link;
    n_kept--;
    free(k);
    return fd;
}

static void
on_kept_readable(struct ev_loop *loop, ev_io *w, int events)
{
    close(take_kept(w->data)); /* closed, or it says what nobody asked */
}

static void
on_kept_timer(struct ev_loop *loop, ev_timer *w, int events)
{
    close(take_kept(w->data));
}

static struct kept *
find_kept(const char *run_id, enum run_port port)
{
    for (struct kept *k = kept_list; k != NULL; k = k->next)
        if (k->place.port == port && strcmp(k->place.run_id, run_id) == 0)
            return k;
    return NULL;
}

void
upstream_kept_put(const struct upstream_place *place, int fd)
{
    struct kept *k = NULL;

    if (n_kept < KEPT_MAX && find_kept(place->run_id, place->port) == NULL)
        k = calloc(1, sizeof *k);
    if (k == NULL) {
        close(fd);
        return;
    }
    k->place = *place;
    ev_io_init(&k->io, on_kept_readable, fd, EV_READ);
    ev_timer_init(&k->timer, on_kept_timer, KEEP_S, 0.);
    k->io.data = k->timer.data = k;
    ev_io_start(worker_loop(), &k->io);
    ev_timer_start(worker_loop(), &k->timer);
    k->next = kept_list;
    k->link = &kept_list;
    if (k->next != NULL)
        k->next->link = &k->next;
    kept_list = k;
    n_kept++;
}

int
upstream_kept_take(struct upstream_place *place)
{
    struct kept *k = find_kept(place->run_id, place->port);

    if (k == NULL)
        return -1;
    *place = k->place;
    return take_kept(k);
}

void
upstream_kept_forget(const char *run_id)
{
    struct kept *next;

    for (struct kept *k = kept_list; k != NULL; k = next) {
        next = k->next;
        if (strcmp(k->place.run_id, run_id) == 0)
            close(take_kept(k));
    }
}
