/*
 * Terminals: their life from start to end, who reads them, and what happens unwatched.
 * Distrusts: workers (an attachment is good on the channel it was given out on only) and what
 * runs on the terminal (it may flood, hang, ignore signals; its bytes are moved, never read).
 */
#include "broker/tty.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/child.h"
#include "common/scoreboard.h"

static void
on_orphans(evutil_socket_t fd, short what, void *arg)
{
    struct ttys *all = arg;
    uint64_t now = broker_now_ms();
    struct tty *t, *next;

    (void)fd;
    (void)what;
    for (t = LIST_FIRST(&all->list); t != NULL; t = next) {
        next = LIST_NEXT(t, link);
        if (tty_viewers(t) == 0 &&
            now - t->unseen_ms >= all->broker->config.pty_orphan_threshold_ms)
            tty_end(t);
    }
}

/* The unsettled one may be the last that the broker's stop waits for. */
static void
check_stopped(struct ttys *all)
{
    void (*done)(void *) = all->stopped;

    if (done == NULL || !LIST_EMPTY(&all->list))
        return;
    all->stopped = NULL;
    event_del(all->stop_limit);
    done(all->stopped_ctx);
}

static void
on_stop_limit(evutil_socket_t fd, short what, void *arg)
{
    struct ttys *all = arg;
    void (*done)(void *) = all->stopped;

    (void)fd;
    (void)what;
    all->stopped = NULL;
    if (done != NULL)
        done(all->stopped_ctx);
}

struct ttys *
ttys_new(struct broker *b)
{
    struct ttys *all = calloc(1, sizeof *all);
    unsigned every_ms = b->config.pty_cleanup_interval_ms;
    struct timeval every = {every_ms / 1000, every_ms % 1000 * 1000};

    if (all == NULL)
        return NULL;
    all->broker = b;
    all->last_attachment = b->epoch; /* one of another broker names nothing here */
    LIST_INIT(&all->list);
    all->orphans = event_new(b->base, -1, EV_PERSIST, on_orphans, all);
    all->stop_limit = event_new(b->base, -1, 0, on_stop_limit, all);
    all->sweep = tty_sweep_new(all);
    if (all->orphans == NULL || all->stop_limit == NULL || all->sweep == NULL) {
        ttys_free(all);
        return NULL;
    }
    if (b->config.pty_cleanup && every_ms > 0)
        event_add(all->orphans, &every);
    return all;
}

static void
tty_free(struct tty *t)
{
    struct ttys *all = t->all;

    tty_record_end(t);
    tty_sweep_forget(t);
    LIST_REMOVE(t, link);
    scoreboard_set(SCORE_TTYS, --all->n_ttys);
    if (t->drain != NULL)
        event_free(t->drain);
    if (t->rest != NULL)
        event_free(t->rest);
    if (t->take_limit != NULL)
        event_free(t->take_limit);
    if (t->master >= 0)
        close(t->master);
    if (t->ring >= 0)
        close(t->ring);
    free(t);
}

void
ttys_free(struct ttys *all)
{
    if (all == NULL)
        return;
    while (!LIST_EMPTY(&all->list))
        tty_free(LIST_FIRST(&all->list));
    tty_sweep_free(all->sweep);
    if (all->orphans != NULL)
        event_free(all->orphans);
    if (all->stop_limit != NULL)
        event_free(all->stop_limit);
    free(all);
}

unsigned
tty_viewers(const struct tty *t)
{
    unsigned n = 0;

    for (unsigned i = 0; i < LIMIT_TTY_VIEWERS; i++)
        n += t->attachments[i].id != 0;
    return n;
}

void
tty_settle(struct tty *t)
{
    struct ttys *all = t->all;

    if (t->child != NULL || t->inside != INSIDE_GONE || tty_viewers(t) > 0)
        return;
    if (!t->ending && !t->fetched)
        return; /* who comes back shall see how it ended */
    tty_free(t);
    check_stopped(all);
}

void
tty_end(struct tty *t)
{
    t->ending = true;
    if (t->child != NULL)
        child_hang_up(t->child);
    else
        tty_settle(t);
}

static void
tell_end(struct tty *t, const struct attachment *a)
{
    struct event_tty e = {.attachment = a->id, .news = TTY_NEWS_ENDED,
                          .exit_status = t->exit_status};

    t->fetched = true;
    dispatch_tell(t->all->broker->dispatch, a->peer, MESSAGE_EVENT_TTY, &e);
}

static void
on_exit_status(void *ctx, int exit_status)
{
    struct tty *t = ctx;

    t->child = NULL;
    t->exited = true;
    t->exit_status = exit_status;
    for (unsigned i = 0; i < LIMIT_TTY_VIEWERS; i++)
        if (t->attachments[i].id != 0)
            tell_end(t, &t->attachments[i]);
    tty_inside_end(t);
}

/* --- unwatched output ---------------------------------------------------------------------- */

static void
on_rest_over(evutil_socket_t fd, short what, void *arg)
{
    struct tty *t = arg;

    (void)fd;
    (void)what;
    if (t->reader == 0 && !t->drained)
        event_add(t->drain, NULL);
}

/* At most 64 KiB each time, then a rest: a flood that nobody watches costs next to nothing. */
static void
on_output(evutil_socket_t fd, short what, void *arg)
{
    static unsigned char bytes[64u * 1024u];
    struct timeval rest = {0, LIMIT_TTY_DRAIN_MS * 1000};
    struct tty *t = arg;
    size_t len = 0;
    ssize_t n = 0;

    (void)what;
    while (len < sizeof bytes && (n = read(fd, bytes + len, sizeof bytes - len)) > 0)
        len += (size_t)n;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        t->drained = true;
    if (len > 0)
        tty_ring_append(t->ring, &t->head, bytes, len);
    event_add(t->rest, &rest);
}

/* The ring's writer is the broker again. */
static void
resume_drain(struct tty *t)
{
    t->reader = 0;
    if (tty_ring_head(t->ring, &t->head) == 0 && !t->drained)
        event_add(t->drain, NULL);
}

/* --- who looks at it ------------------------------------------------------------------------ */

struct attachment *
tty_attach(struct tty *t, uint64_t peer)
{
    for (unsigned i = 0; i < LIMIT_TTY_VIEWERS; i++) {
        struct attachment *a = &t->attachments[i];

        if (a->id != 0)
            continue;
        *a = (struct attachment){.id = ++t->all->last_attachment, .peer = peer};
        return a;
    }
    return NULL;
}

void
tty_detach(struct tty *t, struct attachment *a)
{
    if (t->taker == a->id) {
        t->taker = 0;
        event_del(t->take_limit);
    }
    if (t->reader == a->id)
        resume_drain(t);
    *a = (struct attachment){0};
    t->unseen_ms = broker_now_ms();
}

void
tty_left(struct tty *t)
{
    if (!t->taken && tty_viewers(t) == 0)
        tty_end(t);
    else
        tty_settle(t);
}

void
ttys_end_peer(struct ttys *all, uint64_t peer)
{
    struct tty *t, *next;

    for (t = LIST_FIRST(&all->list); t != NULL; t = next) {
        next = LIST_NEXT(t, link);
        for (unsigned i = 0; i < LIMIT_TTY_VIEWERS; i++)
            if (t->attachments[i].id != 0 && t->attachments[i].peer == peer)
                tty_detach(t, &t->attachments[i]);
        if (!t->ending)
            tty_left(t);
        else
            tty_settle(t);
    }
}

/* --- beginning and end ------------------------------------------------------------------------ */

static int
make_events(struct tty *t)
{
    struct event_base *base = t->all->broker->base;

    t->drain = event_new(base, t->master, EV_READ, on_output, t);
    t->rest = event_new(base, -1, 0, on_rest_over, t);
    return t->drain != NULL && t->rest != NULL ? 0 : -ENOMEM;
}

static int
make_names(struct tty *t)
{
    uint8_t tag[(TTY_TAG_SIZE - 1) / 2];

    if (getrandom(t->session, sizeof t->session, 0) != sizeof t->session ||
        getrandom(tag, sizeof tag, 0) != sizeof tag)
        return -EIO;
    for (size_t i = 0; i < sizeof tag; i++)
        snprintf(t->tag + 2 * i, 3, "%02x", tag[i]);
    return 0;
}

struct tty *
tty_new(struct ttys *all, const struct request_tty_open *q)
{
    struct tty *t = calloc(1, sizeof *t);

    if (t == NULL)
        return NULL;
    t->all = all;
    t->master = t->kept = -1;
    t->clear = true;
    t->inside = INSIDE_GONE;
    t->ending = true; /* until it runs, nobody misses it */
    LIST_INSERT_HEAD(&all->list, t, link);
    scoreboard_set(SCORE_TTYS, ++all->n_ttys);
    t->number = ++all->last_number;
    t->program = (enum tty_program)q->program;
    memcpy(t->run_id, q->run_id, sizeof t->run_id);
    t->started_ms = t->unseen_ms = broker_now_ms();
    t->ring = tty_ring_new();
    if (t->ring < 0 || make_names(t) < 0 ||
        tty_ring_resize(t->ring, &t->head, (struct tty_ring_size){q->cols, q->rows}) < 0) {
        tty_free(t);
        return NULL;
    }
    return t;
}

int
tty_start(struct tty *t, const struct request_tty_open *q, char *error)
{
    int r = t->all->broker->config.record ? tty_record_start(t, q->cols, q->rows) : 0;

    if (r < 0) { /* no shell that should be on record and is not */
        snprintf(error, MESSAGE_ERROR_SIZE, "it cannot be recorded: %s", strerror(-r));
        tty_free(t);
        return r;
    }
    tty_sweep_keep(t); /* first: a broker that is killed from here on leaves a trace */
    r = tty_spawn(t, q, on_exit_status, error);
    t->clear = r < 0;
    if (r == 0)
        r = make_events(t);
    if (r == 0) {
        t->ending = false;
        tty_inside_find(t);
        return 0;
    }
    if (t->child != NULL) {
        child_kill(t->child); /* freed when its end is told */
        snprintf(error, MESSAGE_ERROR_SIZE, "out of memory");
    } else {
        tty_free(t);
    }
    return r;
}

void
ttys_stop(struct ttys *all, void (*done)(void *ctx), void *ctx)
{
    struct timeval limit = {LIMIT_TTY_STOP_MS / 1000, LIMIT_TTY_STOP_MS % 1000 * 1000};
    struct tty *t, *next;

    all->stopped = done;
    all->stopped_ctx = ctx;
    event_add(all->stop_limit, &limit);
    for (t = LIST_FIRST(&all->list); t != NULL; t = next) {
        next = LIST_NEXT(t, link);
        for (unsigned i = 0; i < LIMIT_TTY_VIEWERS; i++)
            t->attachments[i] = (struct attachment){0};
        tty_end(t);
    }
    check_stopped(all);
}
