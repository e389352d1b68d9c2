/* Talking to a container's server: request out, http-parser over what comes back. */
#include "worker/container_http.h"

#include <errno.h>
#include <ev.h>
#include <http_parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/limits.h"
#include "worker/broker_link.h"
#include "worker/worker.h"

#define READ_SIZE 65536u

struct container_call {
    broker_ticket ticket;
    int fd;
    ev_io io;
    ev_timer deadline, later;
    struct buf out, in; /* `out`: not yet sent */
    http_parser parser;
    size_t name_len;    /* of the field's name that is coming in */
    size_t max_body;
    char type[64];      /* Content-Type */
    bool in_type, last_was_value;
    bool headed, whole, paused, inside, cancelled;
    int error;
    char why[MESSAGE_ERROR_SIZE];
    struct container_request request; /* callbacks and ctx only */
};

static unsigned n_calls;

static void
call_free(struct container_call *c)
{
    struct ev_loop *loop = worker_loop();

    ev_io_stop(loop, &c->io);
    ev_timer_stop(loop, &c->deadline);
    ev_timer_stop(loop, &c->later);
    if (c->ticket != 0)
        broker_cancel(c->ticket);
    if (c->fd >= 0)
        close(c->fd);
    if (c->out.data != NULL) /* a prompt, or a user's key: not left in the heap */
        explicit_bzero(c->out.data, c->out.cap);
    buf_done(&c->out);
    buf_done(&c->in);
    n_calls--;
    free(c);
}

static void
finish(struct container_call *c, int error)
{
    struct container_answer a = {.error = error, .why = c->why};

    if (error == 0) {
        a.status = c->parser.status_code;
        a.is_json = strncasecmp(c->type, "application/json", 16) == 0;
        a.body = c->in.len > 0 ? c->in.data : "";
        a.len = c->in.len;
    }
    ev_io_stop(worker_loop(), &c->io);
    ev_timer_stop(worker_loop(), &c->deadline);
    c->request.done(c->request.ctx, &a);
    call_free(c);
}

/* --- the parser's callbacks -------------------------------------------------------------- */

static int
on_field(http_parser *p, const char *at, size_t len)
{
    static const char name[] = "content-type";
    struct container_call *c = p->data;
    size_t have;

    if (c->last_was_value) {
        c->in_type = false;
        c->last_was_value = false;
        c->name_len = 0;
    }
    /* The name may come in pieces: name_len counts it. */
    have = c->name_len;
    c->name_len += len;
    if (have + len <= sizeof name - 1 && strncasecmp(name + have, at, len) == 0)
        c->in_type = c->name_len == sizeof name - 1;
    else
        c->in_type = false, c->name_len = sizeof name; /* never again for this field */
    if (c->in_type)
        c->type[0] = '\0';
    return 0;
}

static int
on_value(http_parser *p, const char *at, size_t len)
{
    struct container_call *c = p->data;
    size_t have = strlen(c->type);

    c->last_was_value = true;
    if (c->in_type && have + len < sizeof c->type) {
        memcpy(c->type + have, at, len);
        c->type[have + len] = '\0';
    }
    return 0;
}

static bool
streams(const struct container_call *c)
{
    return c->request.piece != NULL && c->parser.status_code / 100 == 2;
}

static int
on_head(http_parser *p)
{
    struct container_call *c = p->data;

    c->headed = true;
    if (streams(c) && c->request.begun != NULL)
        c->request.begun(c->request.ctx,
                         strncasecmp(c->type, "application/json", 16) == 0);
    return c->cancelled ? -1 : 0;
}

static int
on_body(http_parser *p, const char *at, size_t len)
{
    struct container_call *c = p->data;

    if (streams(c)) {
        c->request.piece(c->request.ctx, at, len);
        return c->cancelled ? -1 : 0;
    }
    if (c->in.len + len > c->max_body) {
        c->error = -EMSGSIZE;
        return -1;
    }
    buf_add(&c->in, at, len);
    if (c->in.failed)
        c->error = -ENOMEM;
    return c->error;
}

static int
on_whole(http_parser *p)
{
    struct container_call *c = p->data;

    c->whole = true;
    http_parser_pause(p, 1);
    return 0;
}

static const http_parser_settings callbacks = {
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_message_complete = on_whole,
};

/* --- the socket ---------------------------------------------------------------------------- */

static void
watch(struct container_call *c, int events)
{
    ev_io_stop(worker_loop(), &c->io);
    ev_io_set(&c->io, c->fd, events);
    ev_io_start(worker_loop(), &c->io);
}

/* False: it broke off. */
static bool
write_some(struct container_call *c)
{
    while (c->out.len > 0) {
        ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        explicit_bzero(c->out.data, (size_t)n);
        buf_consume(&c->out, (size_t)n);
    }
    watch(c, EV_READ);
    return true;
}

/* 1: go on later; 0: the answer is whole; -errno. */
static int
read_some(struct container_call *c)
{
    static char bytes[READ_SIZE];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    enum http_errno e;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 1 : -EPIPE;
    if (n == 0 && !c->headed)
        return -EPIPE;
    http_parser_execute(&c->parser, &callbacks, bytes, (size_t)n);
    if (c->cancelled || c->error != 0)
        return c->error;
    if (c->whole)
        return 0;
    e = HTTP_PARSER_ERRNO(&c->parser);
    if (e != HPE_OK)
        return -EPROTO;
    return n == 0 ? -EPIPE : 1;
}

static void
on_io(struct ev_loop *loop, ev_io *w, int events)
{
    struct container_call *c = w->data;
    int r = 1;

    (void)loop;
    if (events & EV_WRITE && !write_some(c))
        r = -EPIPE;
    if (r == 1 && events & EV_READ) {
        c->inside = true;
        r = read_some(c);
        c->inside = false;
        if (c->cancelled) {
            call_free(c);
            return;
        }
    }
    if (r != 1)
        finish(c, r);
}

static void
on_deadline(struct ev_loop *loop, ev_timer *w, int events)
{
    struct container_call *c = w->data;

    (void)loop;
    (void)events;
    finish(c, -ETIMEDOUT);
}

static void
on_later(struct ev_loop *loop, ev_timer *w, int events)
{
    struct container_call *c = w->data;

    (void)loop;
    (void)events;
    finish(c, c->error);
}

static void
fail_later(struct container_call *c, int error)
{
    c->error = error;
    ev_timer_start(worker_loop(), &c->later);
}

static void
on_connected(void *ctx, const void *answer_bytes, int *fds, unsigned n_fds)
{
    struct container_call *c = ctx;
    const struct answer_run_connect *a = answer_bytes;

    c->ticket = 0;
    if (a == NULL || a->status != ANSWER_OK || n_fds != 1) {
        snprintf(c->why, sizeof c->why, "%s", a != NULL ? a->error : "");
        fail_later(c, -ECONNREFUSED);
        return;
    }
    c->fd = fds[0];
    fds[0] = -1;
    watch(c, EV_WRITE | EV_READ);
}

/* --- starting -------------------------------------------------------------------------------- */

static void
add_directory(struct buf *out, const char *directory)
{
    if (directory == NULL || *directory == '\0')
        return;
    buf_add_str(out, "x-opencode-directory: ");
    for (const unsigned char *at = (const unsigned char *)directory; *at != '\0'; at++)
        if (*at <= ' ' || *at >= 0x7f || *at == '%')
            buf_add_format(out, "%%%02X", *at);
        else
            buf_add(out, at, 1);
    buf_add_str(out, "\r\n");
}

static void
render(struct container_call *c, const struct container_request *q)
{
    buf_add_format(&c->out, "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n", q->method,
                   q->target, q->piece != NULL ? "text/event-stream, application/json"
                                               : "application/json");
    add_directory(&c->out, q->directory);
    if (q->body != NULL)
        buf_add_format(&c->out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                       q->body_len);
    else if (strcmp(q->method, "GET") != 0)
        buf_add_str(&c->out, "Content-Length: 0\r\n");
    buf_add_str(&c->out, "Connection: close\r\n\r\n");
    if (q->body != NULL)
        buf_add(&c->out, q->body, q->body_len);
}

static void
prepare(struct container_call *c)
{
    c->fd = -1;
    ev_init(&c->io, on_io);
    c->io.data = c;
    ev_timer_init(&c->deadline, on_deadline, 0., 0.);
    c->deadline.data = c;
    ev_timer_init(&c->later, on_later, 0., 0.);
    c->later.data = c;
    http_parser_init(&c->parser, HTTP_RESPONSE);
    c->parser.data = c;
    buf_init(&c->out, 0);
    buf_init(&c->in, 0);
}

struct container_call *
container_call_start(const struct container_request *q)
{
    struct request_run_connect ask = {.port = q->port};
    struct container_call *c;
    broker_ticket ticket;

    if (n_calls >= LIMIT_CONTAINER_CALLS)
        return NULL;
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    n_calls++;
    prepare(c);
    c->request = *q;
    c->max_body = q->max_body;
    render(c, q);
    if (c->out.failed) {
        call_free(c);
        return NULL;
    }
    if (q->timeout_ms != 0) {
        ev_timer_set(&c->deadline, q->timeout_ms / 1000., 0.);
        ev_timer_start(worker_loop(), &c->deadline);
    }
    message_string_set(ask.run_id, sizeof ask.run_id, q->run_id);
    ticket = broker_ask(MESSAGE_RUN_CONNECT, &ask, NULL, 0, on_connected, c);
    if (c->fd < 0 && c->error == 0)
        c->ticket = ticket; /* not answered within the call */
    return c;
}

void
container_call_cancel(struct container_call *c)
{
    if (c == NULL)
        return;
    c->cancelled = true;
    if (!c->inside)
        call_free(c);
}

void
container_call_pause(struct container_call *c)
{
    if (c->fd >= 0 && c->out.len == 0)
        ev_io_stop(worker_loop(), &c->io);
    c->paused = true;
}

void
container_call_resume(struct container_call *c)
{
    if (!c->paused)
        return;
    c->paused = false;
    if (c->fd >= 0)
        ev_io_start(worker_loop(), &c->io);
}
