/*
 * TTY_OPEN, TTY_JOIN, TTY_TAKE, TTY_LEAVE, TTY_LIST, TTY_END.
 * Distrusts: the worker. The switches, every field and every number are checked here again; a
 * worker that never saw a session's id cannot guess it.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/child.h"
#include "broker/dispatch.h"
#include "broker/tty.h"
#include "common/handoff.h"
#include "policy/run_id.h"

static bool
switched_on(const struct broker *b)
{
    return b->config.terminal && !b->config.hosted;
}

/* A directory the daemon named: absolute, so no option, and printable. */
static bool
workdir_valid(const char *dir)
{
    if (dir[0] != '\0' && dir[0] != '/')
        return false;
    for (; *dir != '\0'; dir++)
        if ((unsigned char)*dir < 0x20 || *dir == 0x7f)
            return false;
    return true;
}

static bool
size_valid(unsigned size)
{
    return size >= 1 && size <= LIMIT_TTY_SIZE;
}

/* Another open file on the same memory: a position of its own, and no writing for viewers. */
static int
reopen_ring(const struct tty *t, int flags)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", t->ring);
    return open(path, flags | O_CLOEXEC);
}

static struct tty *
find_attachment(struct ttys *all, const struct ask *ask, uint64_t id,
                struct attachment **ret_attachment)
{
    struct tty *t;

    LIST_FOREACH(t, &all->list, link)
        for (unsigned i = 0; i < LIMIT_TTY_VIEWERS; i++)
            if (id != 0 && t->attachments[i].id == id &&
                t->attachments[i].peer == ask->peer) {
                *ret_attachment = &t->attachments[i];
                return t;
            }
    return NULL;
}

static bool
room_for(const struct ttys *all, const char *run_id)
{
    const struct tty *t;
    unsigned n = 0;

    LIST_FOREACH(t, &all->list, link)
        n += strcmp(t->run_id, run_id) == 0;
    return n < LIMIT_TTYS_PER_RUN && all->n_ttys < LIMIT_TTYS;
}

/* Fill in the answer of a join: the ring's descriptor, or -1 with the answer's status. */
static int
join(struct tty *t, const struct ask *ask, struct answer_tty *a)
{
    struct attachment *attachment = tty_attach(t, ask->peer);
    int fd = attachment != NULL ? reopen_ring(t, O_RDWR) : -1;

    if (fd < 0) {
        if (attachment != NULL)
            tty_detach(t, attachment);
        a->status = ANSWER_BUSY;
        message_string_set(a->error, sizeof a->error, "too many viewers of this terminal");
        return -1;
    }
    a->attachment = attachment->id;
    memcpy(a->session, t->session, sizeof a->session);
    return fd;
}

/* Safe: not when switched off; see make_arguments for the words. */
static int
act_tty_open(struct broker *b, const struct ask *ask, const struct request_tty_open *q,
             struct answer_tty *a)
{
    struct tty *t;
    int fd;

    if (!room_for(b->ttys, q->run_id)) {
        a->status = ANSWER_BUSY;
        message_string_set(a->error, sizeof a->error, "too many terminals are open");
        return -1;
    }
    t = tty_new(b->ttys, q);
    a->status = ANSWER_FAILED;
    if (t == NULL) {
        message_string_set(a->error, sizeof a->error, "out of memory or descriptors");
        return -1;
    }
    if (tty_start(t, q, a->error) < 0)
        return -1;
    message_string_set(t->owner, sizeof t->owner, dispatch_token_name(b, ask->as));
    memset(a->error, 0, sizeof a->error);
    a->status = ANSWER_OK;
    fd = join(t, ask, a);
    if (fd < 0)
        tty_end(t); /* nobody has it */
    return fd;
}

int
handle_tty_open(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet)
{
    const struct request_tty_open *q = request;
    static const uint8_t zero[sizeof q->reserved];
    struct answer_tty a = {.status = ANSWER_REFUSED};
    int fd = -1;

    (void)packet;
    if (!message_string_valid(q->run_id, sizeof q->run_id) ||
        !message_string_valid(q->workdir, sizeof q->workdir) ||
        !message_string_valid(q->message, sizeof q->message) ||
        memcmp(q->reserved, zero, sizeof zero) != 0 || q->passes_env > 1 ||
        q->program < TTY_SHELL || q->program >= TTY_PROGRAMS || !size_valid(q->cols) || !size_valid(q->rows))
        return -EBADMSG;
    if (switched_on(b) && policy_run_id_valid(q->run_id, strlen(q->run_id)) &&
        workdir_valid(q->workdir) && q->message[0] != '-' &&
        (q->program == TTY_OPENCODE || q->message[0] == '\0'))
        fd = act_tty_open(b, ask, q, &a);
    dispatch_answer(b->dispatch, ask, &a, fd);
    return 0;
}

/* Compared in constant time: a session's id is a secret of who opened it. With another name's
 * token, even of the same role, it opens nothing. */
static bool
session_is(const struct tty *t, const struct ask *ask,
           const uint8_t session[MESSAGE_TTY_SESSION])
{
    uint8_t differs = 0;

    for (size_t i = 0; i < sizeof t->session; i++)
        differs |= (uint8_t)(t->session[i] ^ session[i]);
    return differs == 0 &&
           strcmp(t->owner, dispatch_token_name(t->all->broker, ask->as)) == 0;
}

int
handle_tty_join(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet)
{
    const struct request_tty_join *q = request;
    static const uint8_t zero[sizeof q->reserved];
    struct answer_tty a = {.status = ANSWER_REFUSED};
    struct tty *t;
    int fd = -1;

    (void)packet;
    if (!message_string_valid(q->run_id, sizeof q->run_id) ||
        memcmp(q->reserved, zero, sizeof zero) != 0)
        return -EBADMSG;
    if (switched_on(b)) {
        a.status = ANSWER_NOT_FOUND;
        LIST_FOREACH(t, &b->ttys->list, link) {
            if (!session_is(t, ask, q->session) || strcmp(t->run_id, q->run_id) != 0 ||
                t->ending)
                continue;
            a.status = ANSWER_OK;
            fd = join(t, ask, &a);
            break;
        }
    }
    dispatch_answer(b->dispatch, ask, &a, fd);
    return 0;
}

/* --- taking and leaving ------------------------------------------------------------------- */

static void
refuse_taker(struct tty *t, enum answer_status status)
{
    t->taker = 0;
    event_del(t->take_limit);
    dispatch_answer_status(t->all->broker->dispatch, &t->take_ask, status);
}

static void
on_take_limit(evutil_socket_t fd, short what, void *arg)
{
    struct tty *t = arg;

    (void)fd;
    (void)what;
    if (t->taker != 0)
        refuse_taker(t, ANSWER_BUSY);
}

static void
give(struct tty *t, uint64_t attachment, const struct ask *ask)
{
    struct answer_tty a = {.status = ANSWER_OK, .attachment = attachment};
    struct event_tty e = {.attachment = attachment, .news = TTY_NEWS_ENDED,
                          .exit_status = t->exit_status};
    int fd = fcntl(t->master, F_DUPFD_CLOEXEC, 0);

    if (fd < 0) {
        a.status = ANSWER_BUSY;
    } else {
        event_del(t->drain);
        event_del(t->rest);
        t->reader = attachment;
        t->taken = true;
        memcpy(a.session, t->session, sizeof a.session);
    }
    dispatch_answer(t->all->broker->dispatch, ask, &a, fd);
    if (fd < 0 || t->child != NULL)
        return;
    t->fetched = true; /* it ended while nobody looked */
    dispatch_tell(t->all->broker->dispatch, ask->peer, MESSAGE_EVENT_TTY, &e);
}

/* Two may not read one terminal: each would get half. The reader leaves first. */
static int
wait_for_reader(struct tty *t, uint64_t attachment, const struct ask *ask)
{
    struct timeval limit = {LIMIT_TTY_TAKE_MS / 1000, LIMIT_TTY_TAKE_MS % 1000 * 1000};
    struct event_tty e = {.attachment = t->reader, .news = TTY_NEWS_TAKEN};

    if (t->take_limit == NULL)
        t->take_limit = event_new(t->all->broker->base, -1, 0, on_take_limit, t);
    if (t->take_limit == NULL)
        return -ENOMEM;
    if (t->taker != 0)
        refuse_taker(t, ANSWER_BUSY); /* the newest one wins */
    t->taker = attachment;
    t->take_ask = *ask;
    event_add(t->take_limit, &limit);
    for (unsigned i = 0; i < LIMIT_TTY_VIEWERS; i++)
        if (t->attachments[i].id == t->reader)
            dispatch_tell(t->all->broker->dispatch, t->attachments[i].peer,
                          MESSAGE_EVENT_TTY, &e);
    return 0;
}

int
handle_tty_take(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet)
{
    const struct request_tty_ref *q = request;
    struct attachment *a;
    struct tty *t = find_attachment(b->ttys, ask, q->attachment, &a);

    (void)packet;
    if (!switched_on(b) || t == NULL)
        dispatch_answer_status(b->dispatch, ask,
                               t == NULL ? ANSWER_NOT_FOUND : ANSWER_REFUSED);
    else if (t->reader == 0)
        give(t, a->id, ask);
    else if (t->reader == a->id || wait_for_reader(t, a->id, ask) < 0)
        dispatch_answer_status(b->dispatch, ask, ANSWER_BUSY);
    return 0;
}

int
handle_tty_leave(struct broker *b, const struct ask *ask, const void *request,
                 struct channel_packet *packet)
{
    const struct request_tty_ref *q = request;
    struct attachment *a;
    struct tty *t = find_attachment(b->ttys, ask, q->attachment, &a);
    bool was_taken;
    uint64_t taker;

    (void)packet;
    dispatch_answer_status(b->dispatch, ask, t != NULL ? ANSWER_OK : ANSWER_NOT_FOUND);
    if (t == NULL)
        return 0;
    if (t->taker == a->id)
        refuse_taker(t, ANSWER_BUSY);
    was_taken = t->reader == a->id && t->taker != 0;
    taker = t->taker;
    tty_detach(t, a);
    if (was_taken) {
        t->taker = 0;
        event_del(t->take_limit);
        give(t, taker, &t->take_ask);
    }
    tty_left(t);
    return 0;
}

/* --- looking after them --------------------------------------------------------------------- */

static void
describe(const struct tty *t, struct tty_record *r)
{
    uint64_t now = broker_now_ms();

    *r = (struct tty_record){
        .number = t->number,
        .pid = t->child != NULL ? (uint32_t)child_pid(t->child) : 0,
        .program = t->program,
        .n_viewers = tty_viewers(t),
        .uptime_ms = now - t->started_ms,
        .unseen_ms = tty_viewers(t) > 0 ? 0 : now - t->unseen_ms,
        .ended = t->child == NULL,
    };
    memcpy(r->run_id, t->run_id, sizeof r->run_id);
}

int
handle_tty_list(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet)
{
    static struct tty_record records[LIMIT_TTYS];
    struct answer_tty_list a = {.status = ANSWER_OK, .leftovers = b->ttys->leftovers};
    struct tty *t;
    size_t n = 0;
    int fd = -1;

    (void)packet;
    (void)request;
    LIST_FOREACH(t, &b->ttys->list, link)
        if (n < LIMIT_TTYS)
            describe(t, &records[n++]);
    a.size = n * sizeof records[0];
    if (n > 0)
        fd = handoff_seal("ttys", records, (size_t)a.size);
    if (n > 0 && fd < 0) {
        a.status = ANSWER_BUSY;
        a.size = 0;
    }
    dispatch_answer(b->dispatch, ask, &a, fd < 0 ? -1 : fd);
    return 0;
}

int
handle_tty_end(struct broker *b, const struct ask *ask, const void *request,
               struct channel_packet *packet)
{
    const struct request_tty_end *q = request;
    static const uint8_t zero[sizeof q->session];
    enum answer_status status = switched_on(b) ? ANSWER_NOT_FOUND : ANSWER_REFUSED;
    struct tty *t;

    (void)packet;
    if (q->reserved != 0 || (q->number != 0) != (memcmp(q->session, zero, sizeof zero) == 0))
        return -EBADMSG;
    LIST_FOREACH(t, &b->ttys->list, link) {
        bool meant = q->number != 0 ? t->number == q->number : session_is(t, ask, q->session);

        if (status == ANSWER_REFUSED || !meant || t->ending)
            continue;
        status = ANSWER_OK;
        tty_end(t); /* may be gone now */
        break;
    }
    dispatch_answer_status(b->dispatch, ask, status);
    return 0;
}
