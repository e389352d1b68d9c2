/*
 * One follower for all viewers of a live run's log. A message is known by its number in the
 * log, and the same log always splits into the same messages: so a follower that was lost with
 * the broker is started anew and skips what its viewers have, and a viewer that is too slow
 * for the others gets a follower of its own.
 */
#include "worker/log_follower.h"

#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/limits.h"
#include "worker/broker_link.h"
#include "worker/log_lines.h"
#include "worker/log_ring.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define FOLLOWER_READ (64u * 1024u) /* bytes of one read, then others have a turn */
#define FOLLOWER_RETRY_S 1.0
#define FOLLOWER_RETRIES 20u
#define FOLLOWER_WORK 32000u /* lines in one turn, times viewers and 32: about a millisecond */

struct log_follower {
    struct log_follower *next, **link;
    struct log_place *places;
    char run_id[MESSAGE_ID_SIZE];
    struct log_ring ring;
    uint64_t produced;       /* messages that the present child wrote */
    struct log_lines lines;
    struct buf unread;       /* read from the pipe, and not yet made lines from unread_at on */
    size_t unread_at;
    ev_timer turn;           /* the next of them */
    ev_io readable;
    ev_timer retry;
    int fd;                  /* -1: no child, or its pipe is read to the end */
    uint64_t child;          /* 0: none */
    broker_ticket ticket;
    unsigned retries;
    bool at_end;             /* the pipe is read to the end */
    bool exited;             /* exit_status is known */
    bool over;               /* viewers get no more than what is in the ring */
    int exit_status;
};

static const char NOT_FOLLOWED[] = "The log of this run cannot be followed";

static struct log_follower *followers;
static char follower_buffer[FOLLOWER_READ];

/* --- leaving with a message ------------------------------------------------------------- */

static void
send_and_leave(struct log_place *place, struct ws_bytes *message)
{
    ws_send_shared(place->ws, message);
    ws_bytes_unref(message);
    log_follower_leave(place);
}

/* --- what is kept ------------------------------------------------------------------------- */

static void
keep_line(void *ctx, const char *text, size_t len)
{
    struct log_follower *f = ctx;
    if (f->produced++ < f->ring.top)
        return; /* a former child wrote it already */
    if (log_ring_add(&f->ring, log_message_line(text, len), len) != 0)
        f->produced--; /* no memory: a line is lost, the rest is not */
}

/* Over the bound, forget what every viewer has. */
static void
trim(struct log_follower *f)
{
    uint64_t slowest = f->ring.top;
    for (const struct log_place *p = f->places; p; p = p->next)
        slowest = p->cursor < slowest ? p->cursor : slowest;
    while (f->ring.bytes > LIMIT_LOG_SHARED && f->ring.base < slowest)
        log_ring_drop(&f->ring);
}

/* --- life ---------------------------------------------------------------------------------- */

static void
drop_child(struct log_follower *f)
{
    if (f->ticket != 0)
        broker_cancel(f->ticket);
    f->ticket = 0;
    ev_io_stop(worker_loop(), &f->readable);
    ev_timer_stop(worker_loop(), &f->retry);
    ev_timer_stop(worker_loop(), &f->turn);
    buf_done(&f->unread);
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    if (f->child != 0 && !f->exited)
        broker_ask_child_end(f->child);
    f->child = 0;
}

static void
follower_free(struct log_follower *f)
{
    drop_child(f);
    *f->link = f->next;
    if (f->next)
        f->next->link = f->link;
    log_ring_done(&f->ring);
    log_lines_done(&f->lines);
    free(f);
}

static void
place_insert(struct log_follower *f, struct log_place *place)
{
    place->follower = f;
    place->next = f->places;
    place->link = &f->places;
    if (place->next)
        place->next->link = &place->next;
    f->places = place;
}

static void
place_remove(struct log_place *place)
{
    *place->link = place->next;
    if (place->next)
        place->next->link = place->link;
    place->follower = NULL;
}

void
log_follower_leave(struct log_place *place)
{
    struct log_follower *f = place->follower;
    if (!f)
        return;
    place_remove(place);
    if (!f->places)
        follower_free(f);
}

/* Tell every viewer and end. `f` is gone afterwards. */
static void
fail_all(struct log_follower *f, const char *text)
{
    struct ws_bytes *message = log_message_error(text);
    struct log_place *next;
    for (struct log_place *p = f->places; p; p = next) {
        next = p->next;
        ws_send_shared(p->ws, message);
        place_remove(p);
    }
    ws_bytes_unref(message);
    follower_free(f);
}

/* Send one viewer what it lacks, as far as its queue has room. May end the follower. */
static void
serve_place(struct log_place *place)
{
    struct log_follower *f = place->follower;
    while (place->cursor < f->ring.top && !ws_queue_full(place->ws)) {
        ws_send_shared(place->ws, log_ring_get(&f->ring, place->cursor));
        place->cursor++;
    }
    if (f->over && place->cursor == f->ring.top)
        send_and_leave(place, log_message_end(f->exit_status));
}

static void
serve_all(struct log_follower *f)
{
    struct log_place *next;
    for (struct log_place *p = f->places; p; p = next) {
        next = p->next; /* the last one to leave takes `f` along: then next is NULL */
        serve_place(p);
    }
}

/* --- a slow viewer must not hold up the others ------------------------------------------------ */

static bool
someone_waits(const struct log_follower *f)
{
    for (const struct log_place *p = f->places; p; p = p->next)
        if (p->cursor == f->ring.top)
            return true;
    return false;
}

static void join_at_cursor(struct log_place *place, const char *run_id,
                           const struct log_follower *not_this);

static void
part_from_slow(struct log_follower *f)
{
    struct log_place *next;
    for (struct log_place *p = f->places; p; p = next) {
        next = p->next;
        if (p->cursor == f->ring.top || p->cursor != f->ring.base)
            continue;
        place_remove(p);
        join_at_cursor(p, f->run_id, f);
    }
    trim(f);
}

/* The pipe is read while there is room; the slowest viewer decides, unless others wait. */
static void
balance(struct log_follower *f)
{
    trim(f);
    for (unsigned i = 0; i < 2 && f->ring.bytes > LIMIT_LOG_SHARED && someone_waits(f); i++)
        part_from_slow(f);
    if (f->fd < 0)
        return;
    ev_io_stop(worker_loop(), &f->readable);
    ev_timer_stop(worker_loop(), &f->turn);
    if (f->ring.bytes > LIMIT_LOG_SHARED)
        return;
    if (f->unread.len > 0)
        ev_timer_start(worker_loop(), &f->turn);
    else
        ev_io_start(worker_loop(), &f->readable);
}

void
log_follower_resume(struct log_place *place)
{
    struct log_follower *f = place->follower;
    if (!f)
        return;
    serve_place(place);
    if (place->follower == f)
        balance(f);
}

/* --- the child ----------------------------------------------------------------------------------- */

/* Both are needed: bytes may be in the pipe when the status comes, and an end of file alone
 * may mean that the broker died. */
static void
finish_if_over(struct log_follower *f)
{
    if (!f->at_end || !f->exited || f->over)
        return;
    log_lines_end(&f->lines);
    f->over = true;
    serve_all(f);
}

/* As many lines of it as one turn may have; the rest waits for the next. A log of empty lines
 * has 65,536 of them in one read. */
static void
take_bytes(struct log_follower *f, const char *bytes, size_t len)
{
    unsigned n_places = 32;
    for (const struct log_place *p = f->places; p; p = p->next)
        n_places++;
    size_t used = log_lines_feed_some(&f->lines, bytes, len, FOLLOWER_WORK / n_places + 1);
    if (f->unread.len > 0) {
        f->unread_at += used;
    } else if (used < len) {
        buf_add(&f->unread, bytes + used, len - used);
        f->unread_at = 0;
    }
    if (used == len || f->unread.failed)
        buf_done(&f->unread);
    serve_all(f);
    balance(f);
}

static void
on_pipe(struct ev_loop *loop, ev_io *w, int events)
{
    struct log_follower *f = w->data;
    ssize_t n = read(f->fd, follower_buffer, sizeof(follower_buffer));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        ev_io_stop(loop, &f->readable);
        close(f->fd);
        f->fd = -1;
        f->at_end = true;
        finish_if_over(f);
        return;
    }
    take_bytes(f, follower_buffer, (size_t)n);
}

static void
on_turn(struct ev_loop *loop, ev_timer *w, int events)
{
    struct log_follower *f = w->data;
    take_bytes(f, f->unread.data + f->unread_at, f->unread.len - f->unread_at);
}

static void start_child(struct log_follower *f);

static void
on_retry(struct ev_loop *loop, ev_timer *w, int events)
{
    start_child(w->data);
}

static void
retry_later(struct log_follower *f)
{
    drop_child(f);
    f->exited = f->at_end = false;
    f->produced = 0;
    log_lines_reset(&f->lines);
    if (f->retries++ >= FOLLOWER_RETRIES) {
        fail_all(f, "The log cannot be followed now: try again");
        return;
    }
    ev_timer_set(&f->retry, FOLLOWER_RETRY_S, 0.);
    ev_timer_start(worker_loop(), &f->retry);
}

static void
on_exit_status(void *ctx, int exit_status)
{
    struct log_follower *f = ctx;
    f->exited = true;
    if (exit_status < 0) { /* the broker went away, and the child with it */
        retry_later(f);
        return;
    }
    f->exit_status = exit_status;
    finish_if_over(f);
}

static int
take_pipe(struct log_follower *f, int *fds, unsigned n_fds)
{
    if (n_fds != 1)
        return -EBADMSG;
    f->fd = fds[0];
    fds[0] = -1;
    return 0;
}

static void
on_answer(void *ctx, const void *bytes, int *fds, unsigned n_fds)
{
    struct log_follower *f = ctx;
    const struct answer_run_logs *answer = bytes;
    char text[MESSAGE_ID_SIZE + 32];
    f->ticket = 0;
    if (!answer || answer->status == ANSWER_BUSY) {
        retry_later(f);
    } else if (answer->status == ANSWER_NOT_FOUND) {
        snprintf(text, sizeof(text), "Run %s not found", f->run_id);
        fail_all(f, text);
    } else if (answer->status != ANSWER_OK) {
        fail_all(f, NOT_FOLLOWED);
    } else {
        f->child = answer->child;
        f->exited = f->at_end = false;
        if (take_pipe(f, fds, n_fds) != 0) {
            fail_all(f, NOT_FOLLOWED);
            return;
        }
        ev_io_set(&f->readable, f->fd, EV_READ);
        ev_io_start(worker_loop(), &f->readable);
        broker_on_child_end(f->child, on_exit_status, f);
    }
}

static void
start_child(struct log_follower *f)
{
    broker_ticket ticket = broker_ask_run_logs(f->run_id, false, on_answer, f);
    /* 0: on_answer was called already, and `f` may be gone. */
    if (ticket != 0)
        f->ticket = ticket;
}

/* A follower whose kept messages begin no later than what this viewer needs next. */
static struct log_follower *
find_follower(const char *run_id, uint64_t cursor, const struct log_follower *not_this)
{
    for (struct log_follower *f = followers; f; f = f->next)
        if (f != not_this && !f->over && strcmp(f->run_id, run_id) == 0 &&
            f->ring.base <= cursor && cursor <= f->ring.top)
            return f;
    return NULL;
}

static struct log_follower *
follower_new(const char *run_id, uint64_t cursor)
{
    struct log_follower *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    snprintf(f->run_id, sizeof(f->run_id), "%s", run_id);
    f->ring.base = f->ring.top = cursor;
    f->fd = -1;
    log_lines_init(&f->lines, keep_line, f);
    ev_io_init(&f->readable, on_pipe, -1, EV_READ);
    ev_timer_init(&f->retry, on_retry, 0., 0.);
    ev_timer_init(&f->turn, on_turn, 0., 0.);
    buf_init(&f->unread, 0);
    f->readable.data = f->retry.data = f->turn.data = f;
    f->next = followers;
    f->link = &followers;
    if (f->next)
        f->next->link = &f->next;
    followers = f;
    return f;
}

static void
join_at_cursor(struct log_place *place, const char *run_id,
               const struct log_follower *not_this)
{
    struct log_follower *f = find_follower(run_id, place->cursor, not_this);
    if (f) {
        place_insert(f, place);
        serve_place(place);
        return;
    }
    f = follower_new(run_id, place->cursor);
    if (!f) {
        struct ws_bytes *message = log_message_error("Out of memory");
        ws_send_shared(place->ws, message);
        ws_bytes_unref(message);
        return;
    }
    place_insert(f, place);
    start_child(f);
}

void
log_follower_join(struct log_place *place, const char *run_id)
{
    join_at_cursor(place, run_id, NULL);
}
