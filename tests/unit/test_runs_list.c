/* The shared listing, stop and remove, and followers, against a CLI that obeys the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/child.h"
#include "broker/dispatch.h"
#include "broker/runs_list.h"
#include "broker_fixture.h"
#include "common/limits.h"

/* Every call leaves a line in `calls`; `mode` says how the next ones go. */
static const char script[] = "#!/bin/sh\n"
                             "echo \"$*\" >> calls\n"
                             "case \"$1 $2\" in\n"
                             "'runs list')\n"
                             "  case $(cat mode) in\n"
                             "  hang) exec sleep 600 ;;\n"
                             "  fail) echo 'Cannot reach Docker' >&2; exit 1 ;;\n"
                             "  blank) ;;\n"
                             "  held) read go < gate; cat listing ;;\n"
                             "  *) cat listing ;;\n"
                             "  esac ;;\n"
                             "'runs stop'|'runs remove')\n"
                             "  case $3 in\n"
                             "  gone) echo 'No run has the ID gone' >&2; exit 3 ;;\n"
                             "  many) echo 'More than one' >&2; exit 4 ;;\n"
                             "  bad) echo 'daemon is down' >&2; exit 1 ;;\n"
                             "  esac ;;\n"
                             "'runs logs')\n"
                             "  echo out; echo err >&2\n"
                             "  case $4 in\n"
                             "  short) exit 5 ;;\n"
                             "  silent) sleep 600 & wait ;;\n"
                             "  *) echo $$ > follower; sleep 600 & wait ;;\n"
                             "  esac ;;\n"
                             "esac\n";

static struct fixture fx;

static void
set_mode(const char *mode)
{
    fixture_put(&fx, "mode", mode);
}

static const struct answer_runs_list *
list_with(uint64_t generation, bool no_wait)
{
    struct request_runs_list q = {.generation = generation, .no_wait = no_wait};
    const struct answer_runs_list *a = fixture_ask(&fx, MESSAGE_RUNS_LIST, &q, -1);

    assert_non_null(a);
    return a;
}

/* A machine under load takes longer for a call than an asker is made to wait: these two ask
 * again. One for a listing whose call began after now ... */
static const struct answer_runs_list *
fresh_list(uint64_t generation)
{
    const struct answer_runs_list *a;
    uint64_t now_ms = broker_now_ms(), listed_ms;

    do {
        a = list_with(generation, false);
        listed_ms = broker_now_ms() - a->age_ms;
        if (broker_now_ms() - now_ms > 20000)
            fail_msg("no fresh listing: %s", a->error);
    } while (a->status != ANSWER_OK || a->failing_ms > 0 || listed_ms < now_ms);
    return a;
}

/* ... and one for an answer with this reason. */
static const struct answer_runs_list *
list_with_error(uint64_t generation, const char *error)
{
    const struct answer_runs_list *a;
    uint64_t now_ms = broker_now_ms();

    do {
        a = list_with(generation, false);
        if (broker_now_ms() - now_ms > 20000)
            fail_msg("the error is still: %s", a->error);
    } while (strstr(a->error, error) == NULL || (*error == '\0' && a->failing_ms > 0));
    return a;
}

static unsigned
count_calls(const char *line)
{
    FILE *calls = fopen(fixture_path(&fx, "calls"), "r");
    char text[256];
    unsigned n = 0;

    while (calls != NULL && fgets(text, sizeof text, calls) != NULL)
        n += strncmp(text, line, strlen(line)) == 0 && text[strlen(line)] == '\n';
    if (calls != NULL)
        fclose(calls);
    return n;
}

static void
one_listing_is_begun_at_start(void **state)
{
    const struct answer_runs_list *a = list_with(0, true);
    int gate = open(fixture_path(&fx, "gate"), O_RDWR | O_CLOEXEC);
    char text[64] = "";

    (void)state;
    assert_int_equal(a->status, ANSWER_BUSY);
    assert_int_equal(a->failing_ms, 0);
    assert_int_equal(write(gate, "\n", 1), 1);
    do
        a = list_with(0, false);
    while (a->status != ANSWER_OK);
    close(gate);
    set_mode("ok");
    assert_int_equal(a->status, ANSWER_OK);
    assert_int_equal(fx.packet.n_fds, 1);
    assert_int_equal(a->size, 3);
    assert_int_equal(read(fx.packet.fds[0], text, sizeof text), 3);
    assert_string_equal(text, "{1}");
    assert_int_equal(count_calls("runs list --json"), 1);
}

static void
what_is_held_is_not_sent_again(void **state)
{
    const struct answer_runs_list *a = list_with(0, false);
    uint64_t generation = a->generation;

    (void)state;
    a = list_with(generation, false);
    assert_int_equal(a->status, ANSWER_OK);
    assert_int_equal(a->generation, generation);
    assert_int_equal(fx.packet.n_fds, 0);
    /* The same bytes from another call are the same generation. */
    runs_list_invalidate(fx.b.runs_list);
    a = fresh_list(generation);
    assert_int_equal(a->generation, generation);
    assert_int_equal(fx.packet.n_fds, 0);
    fixture_put(&fx, "listing", "{22}");
    runs_list_invalidate(fx.b.runs_list);
    a = fresh_list(generation);
    assert_int_not_equal(a->generation, generation);
    assert_int_equal(fx.packet.n_fds, 1);
    assert_int_equal(a->size, 4);
}

static void
callers_share_one_call(void **state)
{
    unsigned n_before = count_calls("runs list --json");
    struct request_runs_list q = {.head = {.type = MESSAGE_RUNS_LIST}};

    (void)state;
    runs_list_invalidate(fx.b.runs_list);
    for (uint32_t i = 1; i <= 100; i++) {
        q.head.seq = i;
        assert_int_equal(channel_send(fx.worker, &q, sizeof q, NULL, 0), 0);
    }
    for (uint32_t i = 1; i <= 100; i++) {
        assert_true(fixture_receive(&fx));
        assert_int_equal(((struct message_head *)fx.packet.bytes)->seq, i);
        assert_int_equal(fx.packet.n_fds, 1);
    }
    /* Two when the first had begun in the very millisecond of the invalidation. */
    assert_true(count_calls("runs list --json") - n_before <= 2);
}

static void
a_failure_is_no_listing(void **state)
{
    const struct answer_runs_list *a = list_with(0, false);
    uint64_t generation = a->generation;

    (void)state;
    set_mode("fail");
    runs_list_invalidate(fx.b.runs_list);
    a = list_with_error(generation, "Cannot reach Docker");
    assert_int_equal(a->status, ANSWER_OK); /* the last known runs */
    assert_int_equal(a->generation, generation);
    assert_true(a->failing_ms > 0);
    assert_string_equal(a->error, "Cannot reach Docker");
    set_mode("blank");
    runs_list_invalidate(fx.b.runs_list);
    a = list_with_error(generation, "nothing");
    assert_string_equal(a->error, "`ssebench runs list` printed nothing");
    set_mode("ok");
    runs_list_invalidate(fx.b.runs_list);
    a = list_with_error(generation, "");
    assert_int_equal(a->failing_ms, 0);
    assert_string_equal(a->error, "");
}

static void
a_hang_is_told_and_nobody_waits_twice(void **state)
{
    const struct answer_runs_list *a;
    unsigned n_before;

    (void)state;
    set_mode("hang");
    runs_list_invalidate(fx.b.runs_list);
    a = list_with(0, true); /* never waits */
    assert_int_equal(a->status, ANSWER_OK);
    n_before = count_calls("runs list --json");
    a = list_with_error(0, "`ssebench runs list` has not answered for"); /* but not for ever */
    assert_int_equal(a->status, ANSWER_OK);
    assert_true(a->failing_ms > 0);
    assert_true(a->age_ms >= a->failing_ms);
    for (int i = 0; i < 50; i++) /* would be 100 s, and fail the test, if each waited */
        a = list_with(0, false);
    assert_true(a->failing_ms > 0);
    assert_true(count_calls("runs list --json") <= n_before + 1);
}

/* --- stop and remove ------------------------------------------------------------------- */

static const struct {
    uint16_t type;
    const char *run_id;
    enum answer_status status;
    const char *call, *error;
} ops[] = {
    {MESSAGE_RUN_STOP, "a.B_c-1", ANSWER_OK, "runs stop a.B_c-1", ""},
    {MESSAGE_RUN_REMOVE, "a.B_c-1", ANSWER_OK, "runs remove a.B_c-1", ""},
    {MESSAGE_RUN_STOP, "gone", ANSWER_NOT_FOUND, "runs stop gone", "No run has the ID gone"},
    {MESSAGE_RUN_STOP, "many", ANSWER_AMBIGUOUS, "runs stop many", "More than one"},
    {MESSAGE_RUN_REMOVE, "bad", ANSWER_FAILED, "runs remove bad", "daemon is down"},
    {MESSAGE_RUN_STOP, "latest", ANSWER_REFUSED, NULL, ""},
    {MESSAGE_RUN_REMOVE, "-x", ANSWER_REFUSED, NULL, ""},
};

static void
stop_and_remove_are_one_call_each(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct request_run q = {0};
        const struct answer_run *a;

        unlink(fixture_path(&fx, "calls"));
        strcpy(q.run_id, ops[i].run_id);
        a = fixture_ask(&fx, ops[i].type, &q, -1);
        assert_non_null(a);
        assert_int_equal(a->status, ops[i].status);
        assert_string_equal(a->error, ops[i].error);
        if (ops[i].call != NULL)
            assert_int_equal(count_calls(ops[i].call), 1);
        else
            assert_int_equal(access(fixture_path(&fx, "calls"), F_OK), -1);
    }
}

/* --- followers -------------------------------------------------------------------------- */

static uint64_t
follow(const char *run_id, int *ret_fd)
{
    struct request_run q = {0};
    const struct answer_run_logs *a;

    strcpy(q.run_id, run_id);
    a = fixture_ask(&fx, MESSAGE_RUN_LOGS, &q, -1);
    assert_non_null(a);
    assert_int_equal(a->status, ANSWER_OK);
    assert_int_equal(fx.packet.n_fds, 1);
    *ret_fd = fx.packet.fds[0];
    fx.packet.fds[0] = -1;
    return a->child;
}

static bool
has_follower(void *ctx)
{
    struct stat st;

    return stat(fixture_path(&fx, "follower"), &st) == 0 && st.st_size > 1;
}

static bool
is_gone(void *ctx)
{
    return kill(*(pid_t *)ctx, 0) != 0 && errno == ESRCH;
}

static pid_t
follower_pid(void)
{
    char text[32] = "";
    int fd;

    fixture_run_until(&fx, has_follower, NULL);
    fd = open(fixture_path(&fx, "follower"), O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    unlink(fixture_path(&fx, "follower"));
    return (pid_t)atoi(text);
}

static void
a_follower_writes_to_the_worker(void **state)
{
    char text[64] = "";
    int fd;
    uint64_t child = follow("short", &fd);
    const struct event_child *e = (const struct event_child *)fx.packet.bytes;

    (void)state;
    assert_true(fixture_receive(&fx));
    assert_int_equal(e->head.type, MESSAGE_EVENT_CHILD);
    assert_int_equal(e->head.seq, 0);
    assert_int_equal(fx.packet.len, sizeof *e);
    assert_int_equal(e->child, child);
    assert_int_equal(e->exit_status, 5);
    assert_int_equal(read(fd, text, sizeof text), 8);
    assert_string_equal(text, "out\nerr\n");
    assert_int_equal(read(fd, text, sizeof text), 0);
    close(fd);
}

static void
child_end_ends_the_group(void **state)
{
    struct request_child_end q = {0};
    const struct answer_plain *a;
    int fd;
    uint64_t child = follow("endless", &fd);
    pid_t pid = follower_pid();

    (void)state;
    q.child = child + 1;
    a = fixture_ask(&fx, MESSAGE_CHILD_END, &q, -1);
    assert_int_equal(a->status, ANSWER_NOT_FOUND);
    q.child = child;
    a = fixture_ask(&fx, MESSAGE_CHILD_END, &q, -1);
    assert_int_equal(a->status, ANSWER_OK);
    fixture_run_until(&fx, is_gone, &pid);
    close(fd);
}

static void
the_workers_end_ends_its_followers(void **state)
{
    int fd;
    pid_t pid;

    (void)state;
    follow("endless", &fd);
    pid = follower_pid();
    fixture_new_worker(&fx, true);
    fixture_run_until(&fx, is_gone, &pid);
    close(fd);
}

static void
a_stranger_cannot_end_a_follower(void **state)
{
    struct request_child_end q = {0};
    const struct answer_plain *a;
    int ends[2], own = fx.worker, fd;
    pid_t pid;

    (void)state;
    q.child = follow("endless", &fd);
    pid = follower_pid();
    assert_int_equal(channel_pair(ends), 0);
    assert_int_equal(dispatch_add_worker(fx.b.dispatch, 2, ends[0]), 0);
    fx.worker = ends[1];
    {
        struct request_hello hello = {.version = MESSAGES_VERSION};

        assert_non_null(fixture_ask(&fx, MESSAGE_HELLO, &hello, -1));
    }
    a = fixture_ask(&fx, MESSAGE_CHILD_END, &q, -1);
    assert_int_equal(a->status, ANSWER_NOT_FOUND);
    assert_int_equal(kill(pid, 0), 0);
    close(fx.worker);
    fx.worker = own;
    a = fixture_ask(&fx, MESSAGE_CHILD_END, &q, -1);
    assert_int_equal(a->status, ANSWER_OK);
    fixture_run_until(&fx, is_gone, &pid);
    close(fd);
}

static void
followers_are_bounded(void **state)
{
    /* Silent: ended at any moment, they leave no half of a `follower` to the next test. */
    struct request_run q = {.run_id = "silent"};
    const struct answer_run_logs *a;
    int fds[LIMIT_FOLLOWERS_PER_WORKER];
    unsigned n = 0;

    (void)state;
    for (;;) {
        a = fixture_ask(&fx, MESSAGE_RUN_LOGS, &q, -1);
        if (a->status != ANSWER_OK)
            break;
        assert_true(n < LIMIT_FOLLOWERS_PER_WORKER);
        fds[n++] = fx.packet.fds[0];
        fx.packet.fds[0] = -1;
    }
    assert_int_equal(a->status, ANSWER_BUSY);
    assert_int_equal(n, LIMIT_FOLLOWERS_PER_WORKER);
    while (n > 0)
        close(fds[--n]);
    fixture_new_worker(&fx, true);
}

static void
note(void *ctx)
{
    *(bool *)ctx = true;
}

static bool
is_set(void *ctx)
{
    return *(bool *)ctx;
}

static void
stopping_ends_every_child(void **state)
{
    struct request_run q = {.run_id = "short"};
    const struct answer_run_logs *a;
    bool all_gone = false;
    int fd;
    pid_t pid;

    (void)state;
    follow("endless", &fd);
    pid = follower_pid();
    children_end_all(fx.b.children, note, &all_gone);
    fixture_run_until(&fx, is_set, &all_gone);
    fixture_run_until(&fx, is_gone, &pid);
    close(fd);
    a = fixture_ask(&fx, MESSAGE_RUN_LOGS, &q, -1);
    assert_int_equal(a->status, ANSWER_FAILED); /* and no other is started */
}

/* Another broker, whose CLI is not there. */
static void
a_missing_cli_is_said_at_once(void **state)
{
    static struct fixture other;
    struct fixture saved;
    const struct answer_runs_list *a;

    (void)state;
    fixture_prepare(&other, NULL);
    fixture_start(&other, true);
    saved = fx;
    fx = other;
    a = list_with(0, true);
    assert_int_equal(a->status, ANSWER_FAILED);
    assert_true(a->failing_ms > 0);
    assert_non_null(strstr(a->error, "(SSEBENCH_CLI): No such file or directory"));
    other = fx;
    fx = saved;
    fixture_stop(&other);
}

static int
setup(void **state)
{
    (void)state;
    fixture_prepare(&fx, script);
    fixture_put(&fx, "listing", "{1}");
    assert_int_equal(mkfifo(fixture_path(&fx, "gate"), 0600), 0);
    set_mode("held");
    fixture_start(&fx, true);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    fixture_stop(&fx);
    return 0;
}

int
main(void)
{
    /* In this order: the first is about the start, the last two end what is there. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_listing_is_begun_at_start),
        cmocka_unit_test(what_is_held_is_not_sent_again),
        cmocka_unit_test(callers_share_one_call),
        cmocka_unit_test(a_failure_is_no_listing),
        cmocka_unit_test(a_hang_is_told_and_nobody_waits_twice),
        cmocka_unit_test(stop_and_remove_are_one_call_each),
        cmocka_unit_test(a_follower_writes_to_the_worker),
        cmocka_unit_test(child_end_ends_the_group),
        cmocka_unit_test(the_workers_end_ends_its_followers),
        cmocka_unit_test(a_stranger_cannot_end_a_follower),
        cmocka_unit_test(followers_are_bounded),
        cmocka_unit_test(stopping_ends_every_child),
        cmocka_unit_test(a_missing_cli_is_said_at_once),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
