/* What the broker holds for a worker is ended when nobody takes it, and no end is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <ev.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "worker/broker_ends.h"
#include "worker/broker_link.h"

static int broker = -1; /* its end of the channel */
static struct channel_packet packet;

static void
turn(void)
{
    ev_run(EV_DEFAULT, EVRUN_NOWAIT);
}

/* The next request, or NULL: there is none. */
static const struct message_head *
next_request(void)
{
    channel_packet_done(&packet);
    if (channel_receive(broker, &packet) != 0)
        return NULL;
    return (const struct message_head *)packet.bytes;
}

/* Wait for it: the worker's retry may be due first. */
static const struct message_head *
await_request(void)
{
    const struct message_head *q = next_request();

    for (unsigned i = 0; q == NULL && i < 2000; i++) {
        ev_run(EV_DEFAULT, EVRUN_NOWAIT);
        poll(NULL, 0, 10);
        q = next_request();
    }
    assert_non_null(q);
    return q;
}

static void
answer(const struct message_head *q, enum answer_status status, uint64_t id)
{
    union {
        struct answer_plain plain;
        struct answer_run_logs logs;
        struct answer_run_watch watch;
        struct answer_tty tty;
    } a = {0};
    bool tty = q->type == MESSAGE_TTY_OPEN || q->type == MESSAGE_TTY_JOIN;

    if (q->type == MESSAGE_RUN_LOGS)
        a.logs.child = id;
    else if (q->type == MESSAGE_RUN_WATCH)
        a.watch.watch = id;
    else if (tty)
        a.tty.attachment = id;
    a.plain.head = (struct message_head){.type = q->type, .seq = q->seq};
    a.plain.status = status;
    assert_int_equal(channel_send(broker, &a, message_shape(q->type)->answer_len, NULL, 0), 0);
    turn();
}

static uint64_t
named(const struct message_head *q)
{
    uint64_t id;

    memcpy(&id, q + 1, sizeof id); /* the one member of these requests */
    return id;
}

static void
begin(int ret_worker[1])
{
    int fds[2];

    assert_int_equal(channel_pair(fds), 0);
    if (broker >= 0)
        close(broker);
    ret_worker[0] = fds[0];
    broker = fds[1];
}

static int
set_up(void **state)
{
    static bool linked;
    int fd;

    begin(&fd);
    if (linked)
        broker_link_replace(fd);
    else
        broker_link_init(EV_DEFAULT, fd);
    linked = true;
    assert_int_equal(await_request()->type, MESSAGE_HELLO);
    return 0;
}

static unsigned n_told;

static void
on_answer(void *ctx, const void *bytes, int *fds, unsigned n_fds)
{
    n_told++;
}

static broker_ticket
ask(uint16_t type)
{
    unsigned char q[CHANNEL_MESSAGE_MAX] = {0};

    return broker_ask(type, q, NULL, 0, on_answer, NULL);
}

static const struct {
    const char *label;
    uint16_t type;
    bool cancelled;
    enum answer_status status;
    uint64_t id;
    uint16_t end; /* 0: none */
} cases[] = {
    {"a follower nobody waits for", MESSAGE_RUN_LOGS, true, ANSWER_OK, 7, MESSAGE_CHILD_END},
    {"a watch", MESSAGE_RUN_WATCH, true, ANSWER_OK, 8, MESSAGE_RUN_UNWATCH},
    {"a new terminal", MESSAGE_TTY_OPEN, true, ANSWER_OK, 9, MESSAGE_TTY_LEAVE},
    {"a terminal", MESSAGE_TTY_JOIN, true, ANSWER_OK, 10, MESSAGE_TTY_LEAVE},
    {"its pipe could not be sent", MESSAGE_RUN_LOGS, false, ANSWER_BUSY, 11,
     MESSAGE_CHILD_END},
    {"its ring could not be sent", MESSAGE_TTY_OPEN, false, ANSWER_BUSY, 12,
     MESSAGE_TTY_LEAVE},
    {"someone has it", MESSAGE_RUN_LOGS, false, ANSWER_OK, 13, 0},
    {"none was made", MESSAGE_RUN_LOGS, true, ANSWER_BUSY, 0, 0},
    {"nothing is left behind", MESSAGE_LAUNCH_WATCH, true, ANSWER_OK, 0, 0},
};

static void
test_what_nobody_takes(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        broker_ticket ticket = ask(cases[i].type);
        const struct message_head *q = await_request();

        print_message("%s\n", cases[i].label);
        assert_int_equal(q->type, cases[i].type);
        if (cases[i].cancelled)
            broker_cancel(ticket);
        n_told = 0;
        answer(q, cases[i].status, cases[i].id);
        assert_int_equal(n_told, !cases[i].cancelled);
        q = next_request();
        if (cases[i].end == 0) {
            assert_null(q);
            continue;
        }
        assert_non_null(q);
        assert_int_equal(q->type, cases[i].end);
        assert_int_equal(named(q), cases[i].id);
        answer(q, ANSWER_OK, 0);
    }
}

/* The table is full of questions: the ends go out, in their order, with the first answers. */
static void
test_a_full_table(void **state)
{
    struct message_head heads[LIMIT_BROKER_PENDING];
    size_t n = 0;

    while (ask(MESSAGE_LAUNCH_WATCH) != 0)
        heads[n++] = *await_request();
    broker_end(MESSAGE_CHILD_END, 1);
    broker_end(MESSAGE_RUN_UNWATCH, 2);
    broker_end(MESSAGE_TTY_LEAVE, 3);
    assert_null(next_request());
    for (unsigned i = 0; i < 3; i++) {
        static const uint16_t types[] = {MESSAGE_CHILD_END, MESSAGE_RUN_UNWATCH,
                                         MESSAGE_TTY_LEAVE};
        const struct message_head *q;

        answer(&heads[i], ANSWER_OK, 0);
        q = next_request();
        assert_non_null(q);
        assert_int_equal(q->type, types[i]);
        assert_int_equal(named(q), i + 1);
    }
}

/* The broker reads nothing for a while: every end comes when it does, though nothing else
 * is answered. */
static void
test_a_full_channel(void **state)
{
    const uint64_t n_ends = LIMIT_BROKER_PENDING + LIMIT_FOLLOWERS_PER_WORKER;

    for (uint64_t id = 1; id <= n_ends; id++)
        broker_end(MESSAGE_CHILD_END, id);
    for (uint64_t id = 1; id <= n_ends; id++) {
        const struct message_head *q = await_request();

        assert_int_equal(q->type, MESSAGE_CHILD_END);
        assert_int_equal(named(q), id);
        answer(q, ANSWER_OK, 0);
    }
    assert_null(next_request());
}

/* Another broker holds nothing: what waited is told to nobody. */
static void
test_another_broker(void **state)
{
    while (ask(MESSAGE_LAUNCH_WATCH) != 0)
        await_request();
    broker_end(MESSAGE_CHILD_END, 1);
    set_up(state);
    poll(NULL, 0, 150); /* longer than the retry */
    turn();
    assert_null(next_request());
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_what_nobody_takes, set_up),
        cmocka_unit_test_setup(test_a_full_table, set_up),
        cmocka_unit_test_setup(test_a_full_channel, set_up),
        cmocka_unit_test_setup(test_another_broker, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
