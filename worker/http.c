/* One HTTP connection's reading side: heads, bodies, the order of exchanges, and its end. */
#include "worker/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/log.h"
#include "common/scoreboard.h"
#include "worker/access_gate.h"
#include "worker/audit.h"
#include "worker/routes.h"
#include "worker/tokens.h"
#include "worker/worker.h"

#define BUFFER_SMALL 4096u              /* a browser's head fits; pooled */
#define BUFFER_LARGE (LIMIT_HEAD + 512u) /* one byte over the limit must fit to be seen */
#define POOL_MAX 64u
#define PIPELINE_MAX 16u       /* requests of one connection before the others have a turn */
#define LINGER_MS 2000u
#define LINGER_BYTES (1024u * 1024u)

static struct ev_loop *loop_of_worker;
static struct conn *all_conns;

static struct {
    char *buffers[POOL_MAX];
    unsigned n_buffers;
    struct exchange *exchanges;
    unsigned n_exchanges;
} pool;

void
http_init(struct ev_loop *loop)
{
    loop_of_worker = loop;
}

/* --- pools ------------------------------------------------------------------------------ */

static bool
buffer_take(struct conn *c)
{
    c->in = pool.n_buffers > 0 ? pool.buffers[--pool.n_buffers] : malloc(BUFFER_SMALL);
    c->in_cap = BUFFER_SMALL;
    c->in_at = c->in_len = 0;
    return c->in != NULL;
}

static void
buffer_give(struct conn *c)
{
    if (c->in && c->in_cap == BUFFER_SMALL && pool.n_buffers < POOL_MAX)
        pool.buffers[pool.n_buffers++] = c->in;
    else
        free(c->in);
    c->in = NULL;
    c->in_at = c->in_len = c->in_cap = 0;
}

static struct exchange *
exchange_take(struct conn *c)
{
    struct exchange *x = pool.exchanges;

    if (x) {
        pool.exchanges = x->next;
        pool.n_exchanges--;
    } else if (!(x = malloc(sizeof(*x)))) {
        return NULL;
    }
    x->conn = c;
    x->head_len = 0;
    x->body = NULL;
    x->body_len = 0;
    x->body_owned = NULL;
    x->body_whole = x->answered = x->outside = x->has_csp = x->has_cache = false;
    x->let_in = false;
    x->gone = NULL;
    x->ticket = 0;
    x->token = 0;
    x->headers_len = 0;
    return x;
}

static void
exchange_give(struct exchange *x)
{
    free(x->body_owned);
    if (pool.n_exchanges >= POOL_MAX) {
        free(x);
        return;
    }
    x->next = pool.exchanges;
    pool.exchanges = x;
    pool.n_exchanges++;
}

/* --- the end of a connection ---------------------------------------------------------------- */

void
http_watch(struct conn *c, int events)
{
    if (c->events == events)
        return;
    ev_io_stop(loop_of_worker, &c->io);
    c->events = events;
    if (events == 0)
        return;
    ev_io_set(&c->io, c->io.fd, events);
    ev_io_start(loop_of_worker, &c->io);
}

/* Everything but the socket and the place under the caps. */
static void
conn_dismantle(struct conn *c)
{
    http_watch(c, 0);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    server_deadline_clear(&c->deadline);
    server_idle_remove(&c->idle);
    stream_free(c);
    answer_out_free(&c->out);
    if (c->x)
        exchange_give(c->x);
    c->x = NULL;
    buffer_give(c);
    scoreboard_add(SCORE_CONNECTIONS, -1);
    c->dead = true;
}

void
http_abort(struct conn *c)
{
    struct connection_slot *slot = c->slot;

    if (c->dead)
        return;
    if (c->x && !c->x->answered && c->x->gone) {
        void (*gone)(struct exchange *x, void *ctx) = c->x->gone;

        c->x->gone = NULL;
        gone(c->x, c->x->gone_ctx);
    }
    conn_dismantle(c);
    close(c->io.fd);
    connection_slot_release(slot);
    if (!c->in_process)
        free(c);
}

/* Say that nothing more comes from us and wait for the peer to have read it: closing with
 * unread bytes would send an RST that can overtake the answer. */
static void
linger(struct conn *c)
{
    c->state = CONN_LINGER;
    c->lingered = 0;
    if (shutdown(c->io.fd, SHUT_WR) < 0 || c->eof) {
        http_abort(c);
        return;
    }
    server_deadline_set(&c->deadline, LINGER_MS);
    http_watch(c, EV_READ);
}

static void
linger_read(struct conn *c)
{
    static char scratch[65536];
    ssize_t n = read(c->io.fd, scratch, sizeof(scratch));

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        http_abort(c);
        return;
    }
    c->lingered += n > 0 ? (size_t)n : 0;
    if (c->lingered > LINGER_BYTES)
        http_watch(c, 0); /* the deadline ends it */
}

/* --- requests -------------------------------------------------------------------------------- */

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
    http_watch(c, EV_READ);
    if (x->request.expect_continue && have == 0 &&
        send(c->io.fd, CONTINUE, sizeof(CONTINUE) - 1, MSG_NOSIGNAL) < 0)
        http_abort(c);
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
        http_abort(c);
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
        http_abort(c);
        return;
    }
    if (c->in_at == c->in_len) {
        buffer_give(c);
        server_deadline_set(&c->deadline,
                            worker_stopping() ? LIMIT_DRAIN_FRESH_MS : LIMIT_IDLE_MS);
    } else if (!c->deadline.link) {
        /* Absolute: it began with the first byte and no further byte moves it. */
        server_deadline_set(&c->deadline, LIMIT_HEAD_MS);
    }
    /* Half a head keeps no place either: at the cap the oldest goes. */
    server_idle_add(&c->idle);
    http_watch(c, EV_READ);
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
    http_abort(c);
}

/* Take one request off the buffer. False: no whole one is there. */
static bool
next_request(struct conn *c)
{
    struct request_result result;
    struct exchange *x;

    if (c->in_at == c->in_len)
        return false;
    if (!(x = exchange_take(c))) {
        give_up(c);
        return false;
    }
    result = request_parse(c->in + c->in_at, c->in_len - c->in_at, &x->request);
    if (result.verdict == REQUEST_MORE) {
        exchange_give(x);
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
conn_process(struct conn *c)
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
        http_watch(c, EV_READ | EV_WRITE); /* the next turn comes with writability */
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
    exchange_give(x);
    server_deadline_clear(&c->deadline);
    scoreboard_add(SCORE_REQUESTS, 1);
    if (c->close_after) {
        if (c->linger)
            linger(c);
        else
            http_abort(c);
        return;
    }
    c->state = CONN_HEAD;
    if (c->in_at == c->in_len)
        c->in_at = c->in_len = 0;
    if (!c->in_process)
        conn_process(c);
}

/* --- bytes in ------------------------------------------------------------------------------------ */

/* Make room behind in_len. False: there is none (the head is as long as it may be). */
static bool
room_make(struct conn *c)
{
    char *larger;

    if (!c->in)
        return buffer_take(c);
    if (c->in_len < c->in_cap)
        return true;
    if (c->state != CONN_HEAD)
        return false; /* spans of the request in hand point into it */
    if (c->in_at > 0) {
        memmove(c->in, c->in + c->in_at, c->in_len - c->in_at);
        c->in_len -= c->in_at;
        c->in_at = 0;
        return true;
    }
    if (c->in_cap >= BUFFER_LARGE || !(larger = realloc(c->in, BUFFER_LARGE)))
        return false;
    c->in = larger;
    c->in_cap = BUFFER_LARGE;
    return true;
}

/* One read for each wake: what is left wakes us again. */
static void
head_read(struct conn *c)
{
    bool was_idle = c->in_at == c->in_len;
    ssize_t n;

    if (!room_make(c)) {
        if (c->state == CONN_HEAD)
            http_abort(c);
        else
            http_watch(c, c->events & ~EV_READ);
        return;
    }
    n = read(c->io.fd, c->in + c->in_len, c->in_cap - c->in_len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        http_abort(c);
        return;
    }
    c->eof |= n == 0;
    c->in_len += (size_t)n;
    if (c->state == CONN_ANSWER) {
        /* A peer that has shut its side down may still read: finish the answer. */
        if (c->eof)
            http_watch(c, c->events & ~EV_READ);
        return;
    }
    if (was_idle)
        server_deadline_clear(&c->deadline);
    if (c->eof)
        http_abort(c);
    else
        conn_process(c);
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
            http_watch(c, EV_READ);
            conn_process(c);
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
        linger_read(c);
    else if (c->state == CONN_BODY)
        body_read(c);
    else
        head_read(c);
}

/* --- from outside ----------------------------------------------------------------------------- */

int
http_conn_new(int fd, struct connection_slot *slot)
{
    struct conn *c = calloc(1, sizeof(*c));

    if (!c)
        return -ENOMEM;
    c->slot = slot;
    c->fresh = true;
    c->next = all_conns;
    c->link = &all_conns;
    if (c->next)
        c->next->link = &c->next;
    all_conns = c;
    ev_io_init(&c->io, on_event, fd, EV_READ);
    scoreboard_add(SCORE_CONNECTIONS, 1);
    server_deadline_set(&c->deadline, LIMIT_HEAD_MS);
    server_idle_add(&c->idle);
    http_watch(c, EV_READ);
    return 0;
}

void
http_close_idle(struct idle_place *place)
{
    http_abort((struct conn *)((char *)place - offsetof(struct conn, idle)));
}

unsigned
http_close_tokens(bool (*valid)(uint16_t token))
{
    unsigned n = 0;
    struct conn *next;

    for (struct conn *c = all_conns; c; c = next) {
        next = c->next;
        if (valid(c->token))
            continue;
        http_abort(c);
        n++;
    }
    return n;
}

void
http_drain_idle(struct idle_place *place)
{
    struct conn *c = (struct conn *)((char *)place - offsetof(struct conn, idle));
    char byte;

    if (c->in_at == c->in_len && !c->fresh &&
        recv(c->io.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
        http_abort(c);
    else
        server_deadline_set(&c->deadline, LIMIT_DRAIN_FRESH_MS);
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
               (c->x = exchange_take(c))) {
        memset(&c->x->request, 0, sizeof(c->x->request));
        c->state = CONN_ANSWER;
        refuse_head(c->x, &late);
    } else {
        http_abort(c);
    }
}

void
exchange_hand_over(struct exchange *x, struct handover *ret_handover)
{
    struct conn *c = x->conn;
    size_t used = c->in_at + x->head_len;
    struct handover h = {.fd = c->io.fd, .slot = c->slot, .token = c->token};

    if (c->in_len > used) {
        h.unread_len = c->in_len - used;
        h.unread = malloc(h.unread_len);
        if (h.unread) {
            memcpy(h.unread, c->in + used, h.unread_len);
        } else {
            close(h.fd);
            h.fd = -1;
            h.unread_len = 0;
        }
    }
    x->answered = true;
    audit_answer(x, 101);
    scoreboard_add(SCORE_REQUESTS, 1);
    conn_dismantle(c);
    if (!c->in_process)
        free(c);
    *ret_handover = h;
}

/* --- what handlers see ------------------------------------------------------------------------- */

const struct request *
exchange_request(const struct exchange *x)
{
    return &x->request;
}

const char *
exchange_body(const struct exchange *x, size_t *ret_len)
{
    *ret_len = x->body_len;
    return x->body;
}

const char *
exchange_param(const struct exchange *x, unsigned index)
{
    return index < HTTP_PARAMS ? x->params[index] : "";
}

uint16_t
exchange_token(const struct exchange *x)
{
    return x->token == TOKENS_NONE ? 0 : x->token;
}

enum role
exchange_role(const struct exchange *x)
{
    return tokens_role(x->token);
}

void
exchange_on_gone(struct exchange *x, void (*gone)(struct exchange *x, void *ctx), void *ctx)
{
    x->gone = gone;
    x->gone_ctx = ctx;
}
