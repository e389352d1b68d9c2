/* A queue of the ends that found no room; it is looked at with every answer, which makes some. */
#include "worker/broker_ends.h"

#include <ev.h>
#include <stddef.h>
#include <string.h>

#include "common/limits.h"
#include "common/log.h"
#include "common/messages.h"
#include "worker/broker_link.h"

#define RETRY_S 0.1 /* no answer may be due that would wake us */

/* All that the broker holds for one worker at once. */
#define ENDS_MAX \
    (LIMIT_FOLLOWERS_PER_WORKER + LIMIT_WATCHES_PER_WORKER + LIMIT_TTYS * LIMIT_TTY_VIEWERS)

/* What the answers leave behind, and what ends it. The other messages leave nothing, or what is
 * meant to outlive its asker (a launch, an assistant). */
static const struct {
    uint16_t end;
    size_t id_at; /* in the answer */
} left_behind[MESSAGE_TYPES] = {
    [MESSAGE_RUN_LOGS] = {MESSAGE_CHILD_END, offsetof(struct answer_run_logs, child)},
    [MESSAGE_RUN_WATCH] = {MESSAGE_RUN_UNWATCH, offsetof(struct answer_run_watch, watch)},
    [MESSAGE_TTY_OPEN] = {MESSAGE_TTY_LEAVE, offsetof(struct answer_tty, attachment)},
    [MESSAGE_TTY_JOIN] = {MESSAGE_TTY_LEAVE, offsetof(struct answer_tty, attachment)},
};

struct end {
    uint64_t id;
    uint16_t type;
};

static struct {
    struct ev_loop *loop;
    ev_timer retry; /* runs while something waits */
    struct end waiting[ENDS_MAX]; /* a ring */
    size_t first, n;
} ends;

static bool
send_end(struct end e)
{
    union {
        struct message_head head;
        struct request_child_end child;
        struct request_run_unwatch watch;
        struct request_tty_ref tty;
    } q = {0};

    if (e.type == MESSAGE_CHILD_END)
        q.child.child = e.id;
    else if (e.type == MESSAGE_RUN_UNWATCH)
        q.watch.watch = e.id;
    else
        q.tty.attachment = e.id;
    return broker_ask(e.type, &q, NULL, 0, NULL, NULL) != 0;
}

static void
send_waiting(void)
{
    while (ends.n > 0 && send_end(ends.waiting[ends.first])) {
        ends.first = (ends.first + 1) % ENDS_MAX;
        ends.n--;
    }
    if (ends.n == 0)
        ev_timer_stop(ends.loop, &ends.retry);
}

static void
on_retry(struct ev_loop *loop, ev_timer *w, int events)
{
    send_waiting();
}

void
broker_ends_init(struct ev_loop *loop)
{
    ends.loop = loop;
    ev_timer_init(&ends.retry, on_retry, RETRY_S, RETRY_S);
}

void
broker_end(uint16_t type, uint64_t id)
{
    struct end e = {id, type};

    if (!broker_link_up() || (ends.n == 0 && send_end(e)))
        return;
    if (ends.n == ENDS_MAX) {
        log_event(LOG_LEVEL_ERROR, "end-not-told", "message=%s", message_shape(type)->name);
        return;
    }
    ends.waiting[(ends.first + ends.n++) % ENDS_MAX] = e;
    ev_timer_start(ends.loop, &ends.retry);
}

void
broker_ends_answered(uint16_t type, const void *answer, bool unwanted)
{
    const struct answer_plain *a = answer; /* every answer begins like it */
    uint64_t id;

    if (ends.n > 0)
        send_waiting();
    if (left_behind[type].end == 0 || (a->status == ANSWER_OK && !unwanted))
        return;
    memcpy(&id, (const char *)answer + left_behind[type].id_at, sizeof id);
    if (id != 0)
        broker_end(left_behind[type].end, id);
}

void
broker_ends_forget(void)
{
    ends.n = 0;
    ev_timer_stop(ends.loop, &ends.retry);
}
