/*
 * Words with the master.
 * Distrusts: nobody; the master started us and gave us our configuration.
 */
#include "broker/master_link.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "broker/assistant.h"
#include "broker/broker.h"
#include "broker/child.h"
#include "broker/dispatch.h"
#include "broker/tty.h"
#include "common/channel.h"
#include "common/control.h"
#include "common/limits.h"
#include "common/log.h"

/* Between two requests of one answer nothing is pending for a moment. */
#define DRAIN_LOOK_MS 30
#define DRAIN_QUIET 4u

static int
tell(struct broker *b, enum control_type type, uint32_t value)
{
    struct control_head head = {.type = type, .value = value};

    return channel_send(b->control_fd, &head, sizeof head, NULL, 0);
}

static void
leave(void *ctx)
{
    struct broker *b = ctx;

    event_base_loopbreak(b->base);
}

/* The keys have been given back, or their time is up. */
static void
end_children(void *ctx)
{
    struct broker *b = ctx;

    children_end_all(b->children, leave, b);
}

/* The terminals' programs have ended, inside the containers too. */
static void
end_assistants(void *ctx)
{
    struct broker *b = ctx;

    assistants_stop(b->assistants, end_children, b);
}

/* Another program takes our place: what workers wait for is answered first, terminals end, and
 * keys stay, as do the servers that use them. */
static void
on_drain(evutil_socket_t fd, short what, void *arg)
{
    static const struct timeval pause = {0, DRAIN_LOOK_MS * 1000};
    struct broker *b = arg;

    (void)fd;
    (void)what;
    if (b->drain_until_ms == 0) /* told to stop meanwhile */
        return;
    if (dispatch_n_peers(b->dispatch) == 0)
        b->drain_quiet = DRAIN_QUIET;
    else if (dispatch_n_pending(b->dispatch) == 0)
        b->drain_quiet++;
    else
        b->drain_quiet = 0;
    if (b->drain_quiet >= DRAIN_QUIET || broker_now_ms() >= b->drain_until_ms)
        ttys_stop(b->ttys, end_children, b);
    else if (event_base_once(b->base, -1, EV_TIMEOUT, on_drain, b, &pause) != 0)
        leave(b);
}

/* SIGHUP: what may change in a running broker; the rest needs a new one. */
static void
reload(struct broker *b, int fd)
{
    static struct broker_config fresh; /* large: not on the stack */
    int r = handoff_read_config(fd, &fresh, sizeof fresh);

    if (r < 0) {
        log_event(LOG_LEVEL_ERROR, "config-unreadable", "errno=%d", -r);
        return;
    }
    b->config.hosted = fresh.hosted;
    b->config.terminal = fresh.terminal;
    b->config.log_level = fresh.log_level;
    b->config.has_token = fresh.has_token;
    b->config.n_tokens = fresh.n_tokens;
    memcpy(b->config.tokens, fresh.tokens, sizeof b->config.tokens);
    dispatch_tokens_changed(b->dispatch);
    log_init("broker", b->control_fd, (enum log_level)fresh.log_level);
    r = tell(b, CONTROL_READY, 0);
    if (r < 0)
        log_event(LOG_LEVEL_ERROR, "reload-not-told", "errno=%d", -r);
}

static void
take(struct broker *b, const struct control_head *head, struct channel_packet *packet)
{
    int fd = packet->n_fds == 1 ? packet->fds[0] : -1;

    if (head->type == CONTROL_CHANNEL && fd >= 0) {
        packet->fds[0] = -1;
        if (dispatch_add_worker(b->dispatch, head->value, fd) != 0)
            log_event(LOG_LEVEL_ERROR, "worker-not-added", "worker=%u", head->value);
    } else if (head->type == CONTROL_CONFIG && fd >= 0) {
        packet->fds[0] = -1;
        reload(b, fd);
    } else if (head->type == CONTROL_STOP) {
        b->drain_until_ms = 0;
        ttys_stop(b->ttys, end_assistants, b);
    } else if (head->type == CONTROL_DRAIN && b->drain_until_ms == 0) {
        b->drain_until_ms = broker_now_ms() + LIMIT_DRAIN_ASKED_MS;
        on_drain(-1, 0, b);
    } else {
        log_event(LOG_LEVEL_ERROR, "control-unknown", "type=%u", head->type);
    }
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
    static struct channel_packet packet;
    struct broker *b = arg;
    struct control_head head;

    (void)what;
    for (;;) {
        int r = channel_receive(fd, &packet);

        if (r == -EAGAIN)
            return;
        if (r < 0) { /* the master is gone, and so is the reason to be here */
            event_base_loopbreak(b->base);
            return;
        }
        if (packet.len == sizeof head) {
            memcpy(&head, packet.bytes, sizeof head);
            take(b, &head, &packet);
        }
        channel_packet_done(&packet);
    }
}

/* One that is not taken is followed by the next. */
static void
on_alive(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)tell(arg, CONTROL_ALIVE, 0);
}

int
master_link_start(struct broker *b, uint32_t fences)
{
    static const struct timeval interval = {LIMIT_ALIVE_MS / 1000, 0};
    struct event *e =
        event_new(b->base, b->control_fd, EV_READ | EV_PERSIST, on_readable, b);
    struct event *alive = event_new(b->base, -1, EV_PERSIST, on_alive, b);
    int r;

    if (e == NULL || event_add(e, NULL) != 0 || alive == NULL ||
        event_add(alive, &interval) != 0)
        return -ENOMEM;
    r = tell(b, CONTROL_FENCES, fences);
    return r < 0 ? r : tell(b, CONTROL_READY, 0);
}

void
master_link_kill_worker(struct broker *b, uint32_t number)
{
    int r = tell(b, CONTROL_KILL, number);

    if (r < 0)
        log_event(LOG_LEVEL_ERROR, "kill-not-told", "worker=%u errno=%d", number, -r);
}
