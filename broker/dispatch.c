/*
 * Reading requests and finding their handlers; nothing here decides about a run.
 * Distrusts: every worker. One that breaks the vocabulary loses its channel and, through the
 * master, its life; the broker never dies of what it reads.
 */
#include "broker/dispatch.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/launches.h"
#include "broker/logs.h"
#include "broker/master_link.h"
#include "broker/outbox.h"
#include "broker/proofs.h"
#include "broker/tty.h"
#include "broker/watch.h"
#include "common/limits.h"
#include "common/log.h"
#include "policy/role.h"

#define PACKETS_PER_WAKE 16u /* so that one worker cannot starve the others */

enum {
    ONCE = 1u << 0,         /* a second one is out of turn */
    BEFORE_HELLO = 1u << 1, /* allowed (and only then) before the versions are compared */
};

static int
handle_hello(struct broker *b, const struct ask *ask, const void *request,
             struct channel_packet *packet);
static int
handle_token_show(struct broker *b, const struct ask *ask, const void *request,
                  struct channel_packet *packet);

/* The whole surface that a worker can reach, and what each message amounts to: whose role does
 * not allow that is refused before the handler sees it. Lengths and descriptor counts stand in
 * common/messages.c; a type without a row here ends the worker that sends it. */
static const struct {
    unsigned flags;
    dispatch_handler handle;
    enum deed deed;
} handlers[MESSAGE_TYPES] = {
    [MESSAGE_HELLO] = {ONCE | BEFORE_HELLO, handle_hello, DEED_VIEW},
    [MESSAGE_RUNS_LIST] = {0, handle_runs_list, DEED_VIEW},
    [MESSAGE_RESULTS_SCAN] = {0, handle_results_scan, DEED_VIEW},
    [MESSAGE_RUN_LOCATE] = {0, handle_run_locate, DEED_VIEW},
    [MESSAGE_RUN_FILE] = {0, handle_run_file, DEED_VIEW},
    [MESSAGE_RUN_STOP] = {0, handle_run_stop, DEED_OPERATE},
    [MESSAGE_RUN_REMOVE] = {0, handle_run_remove, DEED_OPERATE},
    [MESSAGE_RUN_LOGS] = {0, handle_run_logs, DEED_VIEW},
    [MESSAGE_CHILD_END] = {0, handle_child_end, DEED_VIEW},
    [MESSAGE_PEER_UID] = {0, handle_peer_uid, DEED_VIEW},
    [MESSAGE_ASSISTANT_START] = {0, handle_assistant_start, DEED_ASSISTANT},
    [MESSAGE_LAUNCHABLES] = {0, handle_launchables, DEED_VIEW},
    [MESSAGE_CATALOG] = {0, handle_catalog, DEED_VIEW},
    [MESSAGE_DOCTOR] = {0, handle_doctor, DEED_DOCTOR},
    [MESSAGE_LAUNCH] = {0, handle_launch, DEED_OPERATE},
    [MESSAGE_LAUNCH_CANCEL] = {0, handle_launch_cancel, DEED_OPERATE},
    [MESSAGE_LAUNCH_CLEAR] = {0, handle_launch_clear, DEED_OPERATE},
    [MESSAGE_LAUNCH_WATCH] = {0, handle_launch_watch, DEED_VIEW},
    [MESSAGE_LAUNCH_OUTPUT] = {0, handle_launch_output, DEED_VIEW},
    /* the daemon; others: broker/connect.c */
    [MESSAGE_RUN_CONNECT] = {0, handle_run_connect, DEED_VIEW},
    [MESSAGE_RUN_WATCH] = {0, handle_run_watch, DEED_VIEW},
    [MESSAGE_RUN_UNWATCH] = {0, handle_run_unwatch, DEED_VIEW},
    [MESSAGE_TASK_FILE] = {0, handle_task_file, DEED_VIEW},
    [MESSAGE_TTY_OPEN] = {0, handle_tty_open, DEED_TERMINAL},
    [MESSAGE_TTY_JOIN] = {0, handle_tty_join, DEED_TERMINAL},
    [MESSAGE_TTY_TAKE] = {0, handle_tty_take, DEED_TERMINAL},
    [MESSAGE_TTY_LEAVE] = {0, handle_tty_leave, DEED_VIEW},
    [MESSAGE_TTY_LIST] = {0, handle_tty_list, DEED_VIEW},
    [MESSAGE_TTY_END] = {0, handle_tty_end, DEED_TERMINAL},
    [MESSAGE_TOKEN_SHOW] = {0, handle_token_show, DEED_VIEW},
};

struct peer {
    struct dispatch *dispatch;
    uint64_t id;
    uint32_t number;
    int fd;
    struct event *readable;
    struct outbox out;
    struct proofs proofs;     /* in whose name it may speak */
    bool seen[MESSAGE_TYPES]; /* for ONCE; [MESSAGE_HELLO]: the versions were compared */
    unsigned n_pending;       /* requests without an answer yet */
};

struct dispatch {
    struct broker *broker;
    uint64_t last_id;
    struct peer *peers[LIMIT_WORKERS + 1]; /* by worker number */
};

struct dispatch *
dispatch_new(struct broker *b)
{
    struct dispatch *d = calloc(1, sizeof *d);

    if (d != NULL)
        d->broker = b;
    return d;
}

/* What it had started ends with it: nobody else knows of it (design R5). */
static void
peer_close(struct peer *peer)
{
    struct dispatch *d = peer->dispatch;

    d->peers[peer->number] = NULL;
    if (d->broker->logs != NULL)
        logs_end_peer(d->broker->logs, peer->id);
    if (d->broker->ttys != NULL)
        ttys_end_peer(d->broker->ttys, peer->id);
    if (d->broker->launches != NULL)
        launches_end_peer(d->broker->launches, peer->id);
    if (d->broker->watches != NULL)
        watches_end_peer(d->broker->watches, peer->id);
    outbox_done(&peer->out);
    if (peer->readable != NULL)
        event_free(peer->readable);
    close(peer->fd);
    free(peer);
}

void
dispatch_free(struct dispatch *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i <= LIMIT_WORKERS; i++)
        if (d->peers[i] != NULL)
            peer_close(d->peers[i]);
    free(d);
}

/* Design R3: a malformed or untimely message means the worker is no longer ours. */
static void
peer_fault(struct peer *peer, const char *message, int error)
{
    struct broker *b = peer->dispatch->broker;
    uint32_t number = peer->number;

    log_event(LOG_LEVEL_WARNING, "worker-malformed", "worker=%u message=%s reason=%s",
              number, message,
              error == -EPROTO     ? "untimely"
              : error == -EMSGSIZE ? "too-long"
                                   : "malformed");
    peer_close(peer);
    master_link_kill_worker(b, number);
}

static struct peer *
peer_by_id(struct dispatch *d, uint64_t id)
{
    for (size_t i = 0; i <= LIMIT_WORKERS; i++)
        if (d->peers[i] != NULL && d->peers[i]->id == id)
            return d->peers[i];
    return NULL;
}

/* Is the message what its row in the table says, at this point of the conversation? */
static int
check_packet(struct peer *peer, const struct channel_packet *packet,
             struct message_head *ret_head, const char **ret_name)
{
    const struct message_shape *shape;
    struct message_head head;
    unsigned flags;

    if (packet->len < sizeof head)
        return -EBADMSG;
    memcpy(&head, packet->bytes, sizeof head);
    shape = message_shape(head.type);
    if (shape == NULL || handlers[head.type].handle == NULL)
        return -EBADMSG;
    *ret_name = shape->name;
    flags = handlers[head.type].flags;
    if (packet->len != shape->request_len || packet->n_fds != shape->request_fds ||
        head.seq == 0 || ((flags & BEFORE_HELLO) && head.as != 0))
        return -EBADMSG;
    if (!peer->seen[MESSAGE_HELLO] && !(flags & BEFORE_HELLO))
        return -EPROTO;
    if (peer->seen[head.type] && (flags & ONCE))
        return -EPROTO;
    *ret_head = head;
    return 0;
}

/* --- in whose name ------------------------------------------------------------------------- */

const char *
dispatch_token_name(const struct broker *b, uint16_t as)
{
    const struct handoff_token *token =
        handoff_token_by_number(b->config.tokens, b->config.n_tokens, as);

    return token != NULL ? token->name : "";
}

static int
handle_token_show(struct broker *b, const struct ask *ask, const void *request,
                  struct channel_packet *packet)
{
    struct peer *peer = peer_by_id(b->dispatch, ask->peer);
    int r = proofs_show(&peer->proofs, &b->config, request);

    (void)packet;
    if (r == -EBADMSG)
        return r;
    dispatch_answer_status(b->dispatch, ask, r == 0 ? ANSWER_OK : ANSWER_REFUSED);
    return 0;
}

void
dispatch_tokens_changed(struct dispatch *d)
{
    for (size_t i = 0; i <= LIMIT_WORKERS; i++)
        if (d->peers[i] != NULL)
            proofs_prune(&d->peers[i]->proofs, &d->broker->config);
}

/* Design R3: the worker has decided already; a worker that lies gets the same answer here. */
static bool
is_refused(const struct peer *peer, const struct ask *ask, uint16_t as)
{
    if (policy_role_allows((enum role)ask->role, handlers[ask->type].deed))
        return false;
    log_event(LOG_LEVEL_WARNING, "role-refused", "worker=%u message=%s token=%u role=%s",
              peer->number, message_shape(ask->type)->name, as,
              policy_role_name((enum role)ask->role));
    return true;
}

static int
take_packet(struct peer *peer, struct channel_packet *packet, const char **ret_name)
{
    struct dispatch *d = peer->dispatch;
    struct message_head head;
    struct ask ask;
    int r = check_packet(peer, packet, &head, ret_name);

    if (r < 0)
        return r;
    peer->seen[head.type] = true;
    peer->n_pending++;
    ask = (struct ask){.peer = peer->id, .seq = head.seq, .type = head.type,
                       .role = (uint8_t)proofs_role(&peer->proofs, &d->broker->config, head.as),
                       .as = head.as};
    if (peer->n_pending > LIMIT_BROKER_PENDING) {
        dispatch_answer_status(d, &ask, ANSWER_BUSY);
        return 0;
    }
    if (is_refused(peer, &ask, head.as)) {
        dispatch_answer_status(d, &ask, ANSWER_REFUSED);
        return 0;
    }
    return handlers[head.type].handle(d->broker, &ask, packet->bytes, packet);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
    static struct channel_packet packet; /* one loop, one packet at a time */
    struct peer *peer = arg;

    (void)fd;
    (void)what;
    /* While answers wait for room nothing more is read: the worker's own back-pressure. */
    for (unsigned i = 0; i < PACKETS_PER_WAKE && peer->out.n == 0; i++) {
        const char *name = "?";
        int r = channel_receive(peer->fd, &packet);

        if (r == -EAGAIN)
            return;
        if (r == -EPIPE) {
            log_event(LOG_LEVEL_INFO, "worker-gone", "worker=%u", peer->number);
            peer_close(peer);
            return;
        }
        if (r == 0) {
            r = take_packet(peer, &packet, &name);
            channel_packet_done(&packet);
        }
        if (r < 0) {
            peer_fault(peer, name, r);
            return;
        }
    }
}

static int
handle_hello(struct broker *b, const struct ask *ask, const void *request,
             struct channel_packet *packet)
{
    const struct request_hello *q = request;
    struct answer_hello a = {.version = MESSAGES_VERSION, .epoch = b->epoch};

    (void)packet;
    /* Both come from one build; another version is another program. */
    if (q->version != MESSAGES_VERSION || q->reserved != 0)
        return -EBADMSG;
    dispatch_answer(b->dispatch, ask, &a, -1);
    return 0;
}

/* Takes `fd`. What waits is bounded by what may be pending plus one event per follower. */
static void
send_to(struct peer *peer, void *bytes, size_t len, int fd)
{
    if (outbox_send(&peer->out, bytes, len, fd) == 0)
        return;
    /* It would wait for good: another one in its place asks again. */
    log_event(LOG_LEVEL_ERROR, "answer-lost", "worker=%u reason=memory", peer->number);
    master_link_kill_worker(peer->dispatch->broker, peer->number);
}

void
dispatch_answer(struct dispatch *d, const struct ask *ask, void *answer, int fd)
{
    struct peer *peer = peer_by_id(d, ask->peer);

    if (peer == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    peer->n_pending--;
    *(struct message_head *)answer = (struct message_head){.type = ask->type, .seq = ask->seq};
    send_to(peer, answer, message_shape(ask->type)->answer_len, fd);
}

void
dispatch_answer_status(struct dispatch *d, const struct ask *ask, enum answer_status status)
{
    _Alignas(8) unsigned char bytes[CHANNEL_MESSAGE_MAX] = {0};
    struct answer_plain *a = (struct answer_plain *)bytes;

    a->status = status; /* every answer begins like answer_plain */
    dispatch_answer(d, ask, bytes, -1);
}

void
dispatch_tell(struct dispatch *d, uint64_t peer_id, uint16_t type, void *event)
{
    struct peer *peer = peer_by_id(d, peer_id);

    if (peer == NULL)
        return;
    *(struct message_head *)event = (struct message_head){.type = type};
    send_to(peer, event, message_shape(type)->event_len, -1);
}

bool
dispatch_is_behind(struct dispatch *d, uint64_t peer_id)
{
    struct peer *peer = peer_by_id(d, peer_id);

    return peer != NULL && peer->out.n > 0;
}

unsigned
dispatch_n_peers(const struct dispatch *d)
{
    unsigned n = 0;

    for (size_t i = 0; i <= LIMIT_WORKERS; i++)
        n += d->peers[i] != NULL;
    return n;
}

unsigned
dispatch_n_pending(const struct dispatch *d)
{
    unsigned n = 0;

    for (size_t i = 0; i <= LIMIT_WORKERS; i++)
        if (d->peers[i] != NULL)
            n += d->peers[i]->n_pending + d->peers[i]->out.n;
    return n;
}

int
dispatch_add_worker(struct dispatch *d, uint32_t number, int fd)
{
    struct event_base *base = d->broker->base;
    struct peer *peer;

    if (number < 1 || number > LIMIT_WORKERS) {
        close(fd);
        return -EINVAL;
    }
    if (d->peers[number] != NULL)
        peer_close(d->peers[number]);
    peer = calloc(1, sizeof *peer);
    if (peer == NULL) {
        close(fd);
        return -ENOMEM;
    }
    *peer = (struct peer){.dispatch = d, .id = ++d->last_id, .number = number, .fd = fd};
    d->peers[number] = peer;
    peer->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, peer);
    if (outbox_init(&peer->out, base, fd, peer->readable) != 0 || peer->readable == NULL ||
        event_add(peer->readable, NULL) != 0) {
        peer_close(peer);
        return -ENOMEM;
    }
    return 0;
}
