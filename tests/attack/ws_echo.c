/* The worker's WebSocket side (worker/ws.c and what it stands on) with a handler that echoes, and
 * nothing else: what conformance suites want to talk to. `ws_echo`: prints its port on 127.0.0.1
 * and serves until its standard input ends. */
#include <errno.h>
#include <ev.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/log.h"
#include "worker/exchange.h"
#include "worker/handover.h"
#include "worker/request.h"
#include "worker/ws.h"

/* One connection whose head is still coming; the worker's HTTP side in small. */
struct exchange {
    ev_io io;
    struct request request;
    char in[LIMIT_HEAD];
    size_t len, head_len;
};

const struct request *
exchange_request(const struct exchange *x)
{
    return &x->request;
}

void
exchange_error(struct exchange *x, int status, const char *error, const char *hint)
{
    (void)status, (void)error, (void)hint;
    close(x->io.fd);
    free(x);
}

void
exchange_hand_over(struct exchange *x, struct handover *ret_handover)
{
    size_t left = x->len - x->head_len;

    *ret_handover = (struct handover){.fd = x->io.fd, .unread_len = left};
    if (left > 0) {
        ret_handover->unread = malloc(left);
        memcpy(ret_handover->unread, x->in + x->head_len, left);
    }
    free(x);
}

void
connection_slot_release(struct connection_slot *slot)
{
    (void)slot; /* nobody is counted here */
}

static void
on_opened(struct ws *ws, void *ctx)
{
    (void)ws, (void)ctx;
}

static void
on_message(struct ws *ws, void *ctx, const char *bytes, size_t len, bool binary)
{
    (void)ctx;
    if (binary)
        ws_send_binary(ws, bytes, len);
    else
        ws_send_text(ws, bytes, len);
}

static void
on_closed(struct ws *ws, void *ctx)
{
    (void)ws, (void)ctx;
}

static const struct ws_handler echo = {
    .name = "echo", .opened = on_opened, .received = on_message, .closed = on_closed,
};

static void
on_bytes(struct ev_loop *loop, ev_io *io, int events)
{
    struct exchange *x = io->data;
    ssize_t n = recvfrom(io->fd, x->in + x->len, sizeof x->in - x->len, 0, NULL, NULL);
    struct request_result result = {.verdict = REQUEST_BAD};

    (void)events;
    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0) {
        x->len += (size_t)n;
        result = request_parse(x->in, x->len, &x->request);
    }
    if (result.verdict == REQUEST_MORE && x->len < sizeof x->in)
        return;
    ev_io_stop(loop, io);
    x->head_len = result.head_len;
    if (result.verdict == REQUEST_WHOLE && x->request.upgrade)
        ws_accept(x, &echo, NULL);
    else
        exchange_error(x, 400, "", NULL);
}

static void
on_connection(struct ev_loop *loop, ev_io *io, int events)
{
    int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct exchange *x = fd >= 0 ? calloc(1, sizeof *x) : NULL;

    (void)events;
    if (x == NULL)
        return;
    ev_io_init(&x->io, on_bytes, fd, EV_READ);
    x->io.data = x;
    ev_io_start(loop, &x->io);
}

static void
on_end(struct ev_loop *loop, ev_io *io, int events)
{
    char byte;

    (void)events;
    if (read(io->fd, &byte, 1) <= 0)
        ev_break(loop, EVBREAK_ALL);
}

int
main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ev_io listener, end;

    signal(SIGPIPE, SIG_IGN);
    log_init("echo", -1, LOG_LEVEL_ERROR);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 512) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0 || ws_init(loop) != 0)
        return 1;
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    ev_io_init(&listener, on_connection, fd, EV_READ);
    ev_io_start(loop, &listener);
    ev_io_init(&end, on_end, STDIN_FILENO, EV_READ);
    ev_io_start(loop, &end);
    ev_run(loop, 0);
    return 0;
}
