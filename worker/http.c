/* The HTTP side of a connection: heads and bodies in, one exchange at a time, in order. */
#include "worker/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scoreboard.h"
#include "worker/access_gate.h"
#include "worker/routes.h"
#include "worker/worker.h"

#define PIPELINE_MAX 16u /* requests of one connection before the others have a turn */

/* --- requests --------------------------------------------------------------------- */

/* Cut the base path off; a path that is not below it is marked. */
static void
base_path_strip(struct exchange *x)
{
    const char *base = worker_config()->base_path;
    size_t len = strlen(base);
    struct request *r = &x->request;

    if (len == 0)
        return;
    if (r->path_len <= len || memcmp(r->path, base, len) != 0 || r->path[len] != '/') {
        x->outside = true;
        return;
    }
    r->path_len -= len;
    memmove(r->path, r->path + len, r->path_len + 1);
}

/* The request cannot be understood: answer and close. */
static void
refuse_head(struct exchange *x, const struct request_result *result)
{
    struct conn *c = x->conn;

    scoreboard_add(SCORE_REFUSED, 1);
    access_gate_log_refusal(x, result->status, result->reason, false);
    x->request.keep_alive = false;
    x->request.content_length = 0;
    c->linger = true;
    if (result->status == 405)
        exchange_header(x, "Allow", "GET, HEAD, POST, DELETE, OPTIONS");
    if (result->status == 426) {
        exchange_header(x, "Upgrade", "websocket");
        exchange_header(x, "Sec-WebSocket-Version", "13");
    }
    exchange_error(x, result->status, result->reason, NULL);
}

/* The whole request is there. */
static void
request_run(struct exchange *x)
{
    x->conn->state = CONN_ANSWER;
    x->body_whole = true;
    server_deadline_clear(&x->conn->deadline);
    routes_dispatch(x);
}

/* Policy admitted the head: get the body. */
static void
request_admitted(struct exchange *x)
{
    static const char CONTINUE[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct conn *c = x->conn;
    const char *start = c->in + c->in_at + x->head_len;
    size_t have = c->in_len - c->in_at - x->head_len;

    if (have >= x->request.content_length) {
        x->body = start;
        x->body_len = x->request.content_length;
        request_run(x);
        return;
    }
    x->body_owned = malloc(x->request.content_length);
    if (!x->body_owned) {
        exchange_error(x, 503, "The server is out of memory: try again", NULL);
        return;
    }
    memcpy(x->body_owned, start, have);
    c->in_len -= have;
    x->body = x->body_owned;
    x->body_len = have;
    c->state = CONN_BODY;
    server_deadline_set(&c->deadline, LIMIT_BODY_MS);
    conn_watch(c, EV_READ);
    if (x->request.expect_continue && have == 0 &&
        send(c->io.fd, CONTINUE, sizeof(CONTINUE) - 1, MSG_NOSIGNAL) < 0)
        conn_abort(c);
}

static void
body_read(struct conn *c)
{
    struct exchange *x = c->x;
    size_t missing = x->request.content_length - x->body_len;
    ssize_t n = read(c->io.fd, x->body_owned + x->body_len, missing);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_abort(c);
        return;
    }
    x->body_len += (size_t)n;
    if (x->body_len == x->request.content_length)
        request_run(x);
}

/* Nothing to do until the peer sends: give back what an idle connection need not hold. */
static void
wait_for_head(struct conn *c)
{
    if (c->eof) {
        conn_abort(c);
        return;
    }
    if (c->in_at == c->in_len) {
        conn_release_buffer(c);
        server_deadline_set(&c->deadline,
                            worker_stopping() ? LIMIT_DRAIN_FRESH_MS : LIMIT_IDLE_MS);
    } else if (!c->deadline.link) {
        /* Absolute: it began with the first byte and no further byte moves it. */
        server_deadline_set(&c->deadline, LIMIT_HEAD_MS);
    }
    /* Half a head keeps no place either: at the cap the oldest goes. */
    server_idle_add(&c->idle);
    conn_watch(c, EV_READ);
}

/* No memory for so much as a request: the fewest bytes that say so. */
static void
give_up(struct conn *c)
{
    static const char ANSWER[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
                                 "Connection: close\r\nRetry-After: 1\r\n\r\n";

    if (c->out.n == 0 &&
        send(c->io.fd, ANSWER, sizeof(ANSWER) - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        c->eof = true; /* it is being closed either way */
    conn_abort(c);
}

/* Take one request off the buffer. False: no whole one is there. */
static bool
next_request(struct conn *c)
{
    struct request_result result;
    struct exchange *x;

    if (c->in_at == c->in_len)
        return false;
    if (!(x = exchange_new(c))) {
        give_up(c);
        return false;
    }
    result = request_parse(c->in + c->in_at, c->in_len - c->in_at, &x->request);
    if (result.verdict == REQUEST_MORE) {
        exchange_free(x);
        return false;
    }
    c->x = x;
    c->fresh = false;
    c->state = CONN_ANSWER;
    x->head_len = result.head_len;
    server_deadline_clear(&c->deadline);
    server_idle_remove(&c->idle);
    if (result.verdict == REQUEST_BAD) {
        x->head_len = c->in_len - c->in_at;
        refuse_head(x, &result);
        return true;
    }
    x->body_whole = c->in_len - c->in_at - x->head_len >= x->request.content_length;
    base_path_strip(x);
    access_gate_enter(x, request_admitted);
    return true;
}

/* Answer what is in the buffer, in order, a bounded number at a time. */
static void
process(struct conn *c)
{
    unsigned n = 0;

    c->in_process = true;
    while (!c->dead && c->state == CONN_HEAD && n < PIPELINE_MAX && next_request(c))
        n++;
    c->in_process = false;
    if (c->dead) {
        free(c);
        return;
    }
    if (c->state != CONN_HEAD)
        return;
    if (n == PIPELINE_MAX && c->in_at < c->in_len)
        conn_watch(c, EV_READ | EV_WRITE); /* the next turn comes with writability */
    else
        wait_for_head(c);
}

void
http_answer_done(struct conn *c)
{
    struct exchange *x = c->x;
    bool whole = x->body_whole;

    c->in_at += x->head_len;
    if (!x->body_owned && whole)
        c->in_at += x->request.content_length;
    c->x = NULL;
    exchange_free(x);
    server_deadline_clear(&c->deadline);
    scoreboard_add(SCORE_REQUESTS, 1);
    if (c->close_after) {
        if (c->linger)
            conn_linger(c);
        else
            conn_abort(c);
        return;
    }
    c->state = CONN_HEAD;
    if (c->in_at == c->in_len)
        c->in_at = c->in_len = 0;
    if (!c->in_process)
        process(c);
}

/* --- bytes in --------------------------------------------------------------------- */

/* One read for each wake: what is left wakes us again. */
static void
head_read(struct conn *c)
{
    bool was_idle = c->in_at == c->in_len;
    ssize_t n;

    if (!conn_make_room(c)) {
        if (c->state == CONN_HEAD)
            conn_abort(c);
        else
            conn_watch(c, c->events & ~EV_READ);
        return;
    }
    n = read(c->io.fd, c->in + c->in_len, c->in_cap - c->in_len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        conn_abort(c);
        return;
    }
    c->eof |= n == 0;
    c->in_len += (size_t)n;
    if (c->state == CONN_ANSWER) {
        /* A peer that has shut its side down may still read: finish the answer. */
        if (c->eof)
            conn_watch(c, c->events & ~EV_READ);
        return;
    }
    if (was_idle)
        server_deadline_clear(&c->deadline);
    if (c->eof)
        conn_abort(c);
    else
        process(c);
}

static void
on_event(struct ev_loop *loop, ev_io *io, int events)
{
    struct conn *c = (struct conn *)io;

    if (events & EV_WRITE) {
        if (c->out.n > 0) {
            answer_flush(c);
            return; /* reading has its turn when the loop comes round */
        }
        if (c->state == CONN_HEAD) {
            conn_watch(c, EV_READ);
            process(c);
            return;
        }
        if (c->stream) {
            stream_next(c);
            return;
        }
    }
    if (!(events & EV_READ))
        return;
    if (c->state == CONN_LINGER)
        conn_linger_read(c);
    else if (c->state == CONN_BODY)
        body_read(c);
    else
        head_read(c);
}

/* --- from server.c ---------------------------------------------------------------- */

int
http_conn_new(int fd, struct connection_slot *slot)
{
    return conn_new(fd, slot, on_event) ? 0 : -ENOMEM;
}

void
http_deadline_passed(struct deadline *d)
{
    struct conn *c = (struct conn *)((char *)d - offsetof(struct conn, deadline));
    struct request_result late = {.status = 408, .reason = "The request came too slowly"};

    if (c->state == CONN_BODY) {
        c->state = CONN_ANSWER;
        refuse_head(c->x, &late);
    } else if (c->state == CONN_HEAD && c->in_at < c->in_len &&
               (c->x = exchange_new(c))) {
        memset(&c->x->request, 0, sizeof(c->x->request));
        c->state = CONN_ANSWER;
        refuse_head(c->x, &late);
    } else {
        conn_abort(c);
    }
}
