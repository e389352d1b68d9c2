/* The worker's side of the boundary: numbered requests out, checked answers in. */
#include "worker/broker_link.h"

#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/log.h"
#include "worker/broker_as.h"
#include "worker/broker_ends.h"

struct pending {
    uint32_t seq; /* 0: the slot is free */
    uint16_t type;
    broker_answer_fn fn; /* NULL: cancelled, close and end what comes */
    void *ctx;
};

struct watched_child {
    struct watched_child *next;
    uint64_t child;
    void (*fn)(void *ctx, int exit_status);
    void *ctx;
};

static struct {
    struct ev_loop *loop;
    ev_io readable;
    int fd; /* -1: the broker is away */
    uint32_t next_seq;
    struct pending pending[LIMIT_BROKER_PENDING];
    struct watched_child *children;
    void (*on_event[MESSAGE_TYPES])(const void *event);
    void (*on_up[BROKER_UP_LISTENERS])(void);
} link_state = {.fd = -1};

/* A slot is found by its number, so an answer needs no search. */
static struct pending *
slot_of(uint32_t seq)
{
    return &link_state.pending[seq % LIMIT_BROKER_PENDING];
}

/* The broker is gone: everyone who waits hears "try again", followers are over. */
static void
lose_broker(const char *why)
{
    struct watched_child *c;

    if (link_state.fd < 0)
        return;
    log_event(LOG_LEVEL_WARNING, "broker-away", "reason=%s", why);
    ev_io_stop(link_state.loop, &link_state.readable);
    close(link_state.fd);
    link_state.fd = -1;
    broker_ends_forget();
    for (size_t i = 0; i < LIMIT_BROKER_PENDING; i++) {
        struct pending p = link_state.pending[i];

        link_state.pending[i] = (struct pending){0};
        if (p.seq != 0 && p.fn != NULL)
            p.fn(p.ctx, NULL, NULL, 0);
    }
    /* One by one off the list: who is told may no longer want to hear of another. */
    while ((c = link_state.children) != NULL) {
        link_state.children = c->next;
        c->fn(c->ctx, -1);
        free(c);
    }
}

static void
take_child_event(const struct event_child *event)
{
    for (struct watched_child **at = &link_state.children; *at != NULL;
         at = &(*at)->next) {
        struct watched_child *c = *at;

        if (c->child != event->child)
            continue;
        *at = c->next;
        c->fn(c->ctx, event->exit_status);
        free(c);
        return;
    }
}

static void
take_answer(const struct message_head *head, struct channel_packet *packet)
{
    struct pending *slot = slot_of(head->seq);
    struct pending p = *slot;

    if (p.seq != head->seq || p.type != head->type)
        return; /* its descriptors are closed by the caller */
    *slot = (struct pending){0};
    broker_ends_answered(p.type, packet->bytes, p.fn == NULL);
    if (p.fn != NULL)
        p.fn(p.ctx, packet->bytes, packet->fds, packet->n_fds);
}

/* The broker is trusted, yet an answer of another shape means two versions talk. */
static int
take_packet(struct channel_packet *packet)
{
    struct message_head head;
    const struct message_shape *shape;

    if (packet->len < sizeof head)
        return -EBADMSG;
    memcpy(&head, packet->bytes, sizeof head);
    shape = message_shape(head.type);
    if (shape == NULL)
        return -EBADMSG;
    if (head.seq == 0) {
        if (shape->event_len != packet->len || packet->n_fds != 0)
            return -EBADMSG;
        if (head.type == MESSAGE_EVENT_CHILD)
            take_child_event((const struct event_child *)packet->bytes);
        else if (link_state.on_event[head.type] != NULL)
            link_state.on_event[head.type](packet->bytes);
        return 0;
    }
    if (shape->answer_len != packet->len || packet->n_fds > shape->answer_fds_max)
        return -EBADMSG;
    take_answer(&head, packet);
    return 0;
}

static void
on_readable(struct ev_loop *loop, ev_io *w, int events)
{
    static struct channel_packet packet; /* one loop, one packet at a time */

    for (unsigned i = 0; i < 64 && link_state.fd >= 0; i++) {
        int fd = link_state.fd;
        int r = channel_receive(fd, &packet);

        if (r == -EAGAIN)
            return;
        if (r == 0) {
            r = take_packet(&packet);
            channel_packet_done(&packet);
        }
        if (r != 0 && fd == link_state.fd)
            lose_broker(r == -EPIPE ? "gone" : "answer of another shape");
    }
}

/* Find a free number; when the table is full the caller hears "busy". */
static uint32_t
take_seq(void)
{
    for (unsigned i = 0; i < LIMIT_BROKER_PENDING; i++) {
        uint32_t seq = ++link_state.next_seq;

        if (seq != 0 && slot_of(seq)->seq == 0)
            return seq;
    }
    return 0;
}

broker_ticket
broker_ask(uint16_t type, void *request, const int *fds, unsigned n_fds,
           broker_answer_fn fn, void *ctx)
{
    const struct message_shape *shape = message_shape(type);
    struct message_head *head = request;
    uint32_t seq = link_state.fd >= 0 ? take_seq() : 0;

    if (seq == 0) {
        if (fn != NULL)
            fn(ctx, NULL, NULL, 0);
        return 0;
    }
    *head = (struct message_head){.type = type, .as = head->as, .seq = seq};
    *slot_of(seq) = (struct pending){seq, type, fn, ctx};
    if (channel_send(link_state.fd, request, shape->request_len, fds, n_fds) == 0)
        return seq;
    *slot_of(seq) = (struct pending){0};
    if (fn != NULL)
        fn(ctx, NULL, NULL, 0);
    return 0;
}

static void
on_hello(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_hello *hello = answer;

    if (hello == NULL)
        return;
    if (hello->version != MESSAGES_VERSION) {
        lose_broker("another version");
        return;
    }
    for (size_t i = 0; i < BROKER_UP_LISTENERS; i++)
        if (link_state.on_up[i] != NULL)
            link_state.on_up[i]();
}

void
broker_on_event(uint16_t type, void (*fn)(const void *event))
{
    link_state.on_event[type] = fn;
}

void
broker_on_up(void (*fn)(void))
{
    for (size_t i = 0; i < BROKER_UP_LISTENERS; i++) {
        if (link_state.on_up[i] != NULL)
            continue;
        link_state.on_up[i] = fn;
        return;
    }
}

static void
use_channel(int fd)
{
    struct request_hello hello = {.version = MESSAGES_VERSION};

    link_state.fd = fd;
    ev_io_init(&link_state.readable, on_readable, fd, EV_READ);
    ev_io_start(link_state.loop, &link_state.readable);
    broker_as_new_channel();
    broker_ask(MESSAGE_HELLO, &hello, NULL, 0, on_hello, NULL);
}

void
broker_link_init(struct ev_loop *loop, int channel_fd)
{
    link_state.loop = loop;
    broker_ends_init(loop);
    use_channel(channel_fd);
}

void
broker_link_replace(int channel_fd)
{
    lose_broker("replaced");
    use_channel(channel_fd);
}

bool
broker_link_up(void)
{
    return link_state.fd >= 0;
}

void
broker_cancel(broker_ticket ticket)
{
    struct pending *slot = slot_of(ticket);

    if (ticket != 0 && slot->seq == ticket)
        slot->fn = NULL;
}

broker_ticket
broker_ask_runs_list(uint64_t generation, bool no_wait, broker_answer_fn fn, void *ctx)
{
    struct request_runs_list q = {.generation = generation, .no_wait = no_wait};

    return broker_ask(MESSAGE_RUNS_LIST, &q, NULL, 0, fn, ctx);
}

broker_ticket
broker_ask_results_scan(uint64_t epoch, uint64_t generation, broker_answer_fn fn, void *ctx)
{
    struct request_results_scan q = {.epoch = epoch, .generation = generation};

    return broker_ask(MESSAGE_RESULTS_SCAN, &q, NULL, 0, fn, ctx);
}

broker_ticket
broker_ask_run_locate(const char *task, const char *model, const char *agent,
                      const char *run_id, broker_answer_fn fn, void *ctx)
{
    struct request_run_locate q = {0};

    message_string_set(q.task, sizeof q.task, task);
    message_string_set(q.model, sizeof q.model, model);
    message_string_set(q.agent, sizeof q.agent, agent);
    message_string_set(q.run_id, sizeof q.run_id, run_id);
    return broker_ask(MESSAGE_RUN_LOCATE, &q, NULL, 0, fn, ctx);
}

broker_ticket
broker_ask_run_file(uint64_t epoch, uint64_t ref, enum run_file file, broker_answer_fn fn,
                    void *ctx)
{
    struct request_run_file q = {.epoch = epoch, .ref = ref, .file = file};

    return broker_ask(MESSAGE_RUN_FILE, &q, NULL, 0, fn, ctx);
}

static broker_ticket
ask_run(uint16_t token, uint16_t type, const char *run_id, broker_answer_fn fn, void *ctx)
{
    struct request_run q = {0};

    message_string_set(q.run_id, sizeof q.run_id, run_id);
    return broker_ask_as(token, type, &q, fn, ctx);
}

broker_ticket
broker_ask_run_stop(uint16_t token, const char *run_id, broker_answer_fn fn, void *ctx)
{
    return ask_run(token, MESSAGE_RUN_STOP, run_id, fn, ctx);
}

broker_ticket
broker_ask_run_remove(uint16_t token, const char *run_id, broker_answer_fn fn, void *ctx)
{
    return ask_run(token, MESSAGE_RUN_REMOVE, run_id, fn, ctx);
}

broker_ticket
broker_ask_run_logs(const char *run_id, bool once, broker_answer_fn fn, void *ctx)
{
    struct request_run_logs q = {.once = once};

    message_string_set(q.run_id, sizeof q.run_id, run_id);
    return broker_ask(MESSAGE_RUN_LOGS, &q, NULL, 0, fn, ctx);
}

broker_ticket
broker_ask_peer_uid(int connection_fd, broker_answer_fn fn, void *ctx)
{
    struct request_peer_uid q = {0};

    return broker_ask(MESSAGE_PEER_UID, &q, &connection_fd, 1, fn, ctx);
}

void
broker_ask_child_end(uint64_t child)
{
    for (struct watched_child **at = &link_state.children; *at != NULL;
         at = &(*at)->next) {
        struct watched_child *c = *at;

        if (c->child != child)
            continue;
        *at = c->next;
        free(c);
        break;
    }
    broker_end(MESSAGE_CHILD_END, child);
}

void
broker_on_child_end(uint64_t child, void (*fn)(void *ctx, int exit_status), void *ctx)
{
    struct watched_child *c = calloc(1, sizeof *c);

    if (c == NULL) {
        broker_ask_child_end(child);
        fn(ctx, -1);
        return;
    }
    *c = (struct watched_child){link_state.children, child, fn, ctx};
    link_state.children = c;
}
