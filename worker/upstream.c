/* One request to a container: connect (by the broker), send, read, within its time. */
#include "worker/upstream.h"

#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/limits.h"
#include "worker/broker_as.h"
#include "worker/upstream_kept.h"
#include "worker/upstream_parse.h"
#include "worker/worker.h"

#define READ_SIZE 65536u

struct upstream {
    uint16_t token; /* in whose name */
    struct upstream *next, **link;
    const struct upstream_handler *handler;
    void *ctx;
    struct upstream_parser *parser;
    broker_ticket ticket;
    bool asking;       /* the broker's answer is due */
    bool connected;    /* io is in use */
    bool reused;       /* the connection has served before */
    bool retried;
    bool paused, in_callback, gone;
    bool in_ask, refused; /* the broker said no from within the asking */
    bool fresh;
    struct upstream_place place;
    ev_io io;
    ev_timer deadline; /* of the whole */
    ev_timer head_due; /* of the answer's head; at first, the beginning */
    unsigned head_ms;
    struct buf out;    /* the request; sent[0..at) */
    size_t at;
};

static struct upstream *upstreams;
static unsigned n_upstreams;

/* --- the end --------------------------------------------------------------------------------- */

static void
disconnect(struct upstream *u)
{
    if (u->connected) {
        ev_io_stop(worker_loop(), &u->io);
        close(u->io.fd);
    }
    u->connected = false;
}

static void
destroy(struct upstream *u)
{
    if (u->asking)
        broker_cancel(u->ticket);
    disconnect(u);
    ev_timer_stop(worker_loop(), &u->deadline);
    ev_timer_stop(worker_loop(), &u->head_due);
    upstream_parser_free(u->parser);
    if (u->out.data != NULL) /* a prompt, or a user's key: not left in the heap */
        explicit_bzero(u->out.data, u->out.cap);
    buf_done(&u->out);
    *u->link = u->next;
    if (u->next != NULL)
        u->next->link = u->link;
    n_upstreams--;
    free(u);
}

void
upstream_cancel(struct upstream *u)
{
    if (u->in_callback)
        u->gone = true; /* whoever called back frees it */
    else
        destroy(u);
}

static void
finish(struct upstream *u, int error)
{
    if (error == 0 && u->connected && upstream_parser_keeps(u->parser)) {
        ev_io_stop(worker_loop(), &u->io);
        u->connected = false;
        upstream_kept_put(&u->place, u->io.fd);
    }
    u->in_callback = true; /* a cancel from in there does nothing more */
    u->handler->done(u->ctx, error);
    destroy(u);
}

static void
on_deadline(struct ev_loop *loop, ev_timer *w, int events)
{
    finish(w->data, -ETIMEDOUT);
}

/* --- the answer --------------------------------------------------------------------------------- */

static bool
sink_head(void *ctx, int status, const char *type)
{
    struct upstream *u = ctx;

    ev_timer_stop(worker_loop(), &u->head_due);
    if (u->handler->head != NULL)
        u->handler->head(u->ctx, status, type);
    return !u->gone;
}

static bool
sink_data(void *ctx, const char *bytes, size_t len)
{
    struct upstream *u = ctx;

    u->handler->data(u->ctx, bytes, len);
    return !u->gone;
}

static void ask_connection(struct upstream *u);

/* A kept connection may have been closed just when it was used: that is no fault of the run. */
static bool
try_again(struct upstream *u)
{
    if (!u->reused || u->retried || upstream_parser_begun(u->parser))
        return false;
    disconnect(u);
    u->retried = true;
    u->at = 0;
    ask_connection(u);
    return true;
}

/* False: `u` is gone. */
static bool
take_bytes(struct upstream *u, const char *bytes, ssize_t n)
{
    int r;

    u->in_callback = true;
    r = n > 0 ? upstream_parser_feed(u->parser, bytes, (size_t)n)
              : upstream_parser_end(u->parser);
    u->in_callback = false;
    if (u->gone) {
        destroy(u);
        return false;
    }
    if (r == 0)
        return true;
    if (r != -EPIPE || !try_again(u))
        finish(u, r == 1 ? 0 : r);
    return false;
}

static void
watch(struct upstream *u)
{
    int events = (u->paused ? 0 : EV_READ) | (u->at < u->out.len ? EV_WRITE : 0);

    ev_io_stop(worker_loop(), &u->io);
    ev_io_set(&u->io, u->io.fd, events);
    if (events != 0)
        ev_io_start(worker_loop(), &u->io);
}

static bool
send_more(struct upstream *u)
{
    ssize_t n = send(u->io.fd, u->out.data + u->at, u->out.len - u->at, MSG_NOSIGNAL);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n < 0) {
        if (!try_again(u))
            finish(u, -EPIPE);
        return false;
    }
    u->at += (size_t)n;
    if (u->at == u->out.len)
        watch(u);
    return true;
}

static void
on_io(struct ev_loop *loop, ev_io *w, int events)
{
    static char bytes[READ_SIZE]; /* one loop, one read at a time */
    struct upstream *u = w->data;
    ssize_t n;

    if ((events & EV_WRITE) && !send_more(u))
        return;
    if (!(events & EV_READ))
        return;
    n = recv(u->io.fd, bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0 && !upstream_parser_begun(u->parser) && try_again(u))
        return;
    if (n < 0)
        finish(u, -EPIPE);
    else
        take_bytes(u, bytes, n);
}

void
upstream_pause(struct upstream *u)
{
    u->paused = true;
    if (u->connected)
        watch(u);
}

void
upstream_resume(struct upstream *u)
{
    u->paused = false;
    if (u->connected)
        watch(u);
}

const char *
upstream_url(const struct upstream *u)
{
    return u->place.url[0] != '\0' ? u->place.url : NULL;
}

/* --- the connection ------------------------------------------------------------------------------ */

static void
use_connection(struct upstream *u, int fd)
{
    u->connected = true;
    ev_io_init(&u->io, on_io, fd, EV_READ | EV_WRITE);
    u->io.data = u;
    watch(u);
}

static void
on_answer(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_run_connect *a = answer;
    struct upstream *u = ctx;
    int fd;

    if (u->in_ask) {
        u->refused = true;
        return;
    }
    u->asking = false;
    if (a != NULL)
        message_string_set(u->place.url, sizeof u->place.url, a->url);
    if (a == NULL || a->status == ANSWER_BUSY) {
        finish(u, -EAGAIN);
    } else if (a->status == ANSWER_TIMEOUT) {
        finish(u, -ETIMEDOUT);
    } else if (a->status != ANSWER_OK || n_fds != 1) {
        finish(u, -EHOSTUNREACH);
    } else {
        fd = fds[0];
        fds[0] = -1;
        use_connection(u, fd);
    }
}

static void
on_refused(struct ev_loop *loop, ev_timer *w, int events)
{
    finish(w->data, -EAGAIN);
}

static void
ask_connection(struct upstream *u)
{
    struct request_run_connect q = {.port = u->place.port};

    message_string_set(q.run_id, sizeof q.run_id, u->place.run_id);
    u->asking = true;
    u->reused = false;
    u->in_ask = true;
    u->ticket = broker_ask_as(u->token, MESSAGE_RUN_CONNECT, &q, on_answer, u);
    u->in_ask = false;
    if (!u->refused)
        return;
    u->asking = false; /* told from the loop, as every end is */
    ev_timer_stop(worker_loop(), &u->deadline);
    ev_timer_init(&u->deadline, on_refused, 0., 0.);
    ev_timer_start(worker_loop(), &u->deadline);
}

static void
on_begin(struct ev_loop *loop, ev_timer *w, int events)
{
    struct upstream *u = w->data;
    int fd = u->fresh ? -1 : upstream_kept_take(&u->place);

    ev_timer_init(&u->head_due, on_deadline, u->head_ms / 1000., 0.);
    if (u->head_ms != 0)
        ev_timer_start(loop, &u->head_due);
    if (fd < 0) {
        ask_connection(u);
        return;
    }
    u->reused = true;
    use_connection(u, fd);
}

static void
write_request(struct buf *out, const struct upstream_request *q)
{
    buf_add_format(out, "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n", q->method,
                   q->target);
    if (q->body != NULL)
        buf_add_format(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                       q->body_len);
    buf_add_str(out, "\r\n");
    if (q->body != NULL)
        buf_add(out, q->body, q->body_len);
}

struct upstream *
upstream_start(const struct upstream_request *q, const struct upstream_handler *handler,
               void *ctx)
{
    struct upstream *u = n_upstreams < LIMIT_UPSTREAMS ? calloc(1, sizeof *u) : NULL;

    if (u == NULL)
        return NULL;
    u->handler = handler;
    u->ctx = ctx;
    u->token = q->token;
    u->place.port = q->port;
    u->fresh = q->fresh;
    message_string_set(u->place.run_id, sizeof u->place.run_id, q->run_id);
    buf_init(&u->out, 0);
    write_request(&u->out, q);
    u->parser = upstream_parser_new((struct upstream_sink){sink_head, sink_data, u},
                                    q->max_body != 0 ? q->max_body : LIMIT_UPSTREAM_BODY,
                                    q->endless);
    if (u->parser == NULL || u->out.failed) {
        upstream_parser_free(u->parser);
        buf_done(&u->out);
        free(u);
        return NULL;
    }
    u->next = upstreams;
    u->link = &upstreams;
    if (u->next != NULL)
        u->next->link = &u->next;
    upstreams = u;
    n_upstreams++;
    ev_timer_init(&u->deadline, on_deadline, q->timeout_ms / 1000., 0.);
    ev_timer_init(&u->head_due, on_begin, 0., 0.);
    u->deadline.data = u->head_due.data = u;
    if (q->timeout_ms != 0)
        ev_timer_start(worker_loop(), &u->deadline);
    u->head_ms = q->head_ms;
    ev_timer_start(worker_loop(), &u->head_due);
    return u;
}
