/* An answer whose descriptor cannot be sent says "try again", and what was made stays named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/outbox.h"
#include "common/channel.h"
#include "common/messages.h"

#define NOBODY 65534
#define CHILD 77u

static const struct answer_run_logs ok = {
    .head = {.type = MESSAGE_RUN_LOGS, .seq = 5}, .status = ANSWER_OK, .child = CHILD};

/* As an account with few descriptors (root has no bound), into a channel nobody reads. */
static int
send_until_too_many(void)
{
    static struct channel_packet packet;
    struct rlimit few = {32, 32};
    struct answer_run_logs a;
    struct event_base *base = event_base_new();
    struct outbox out;
    int fds[2], busy = 0;

    if (channel_pair(fds) != 0 || outbox_init(&out, base, fds[0], NULL) != 0)
        return 10;
    if (setrlimit(RLIMIT_NOFILE, &few) != 0 || (geteuid() == 0 && setuid(NOBODY) != 0))
        return 11;
    for (unsigned i = 0; i < 40; i++) {
        a = ok;
        if (outbox_send(&out, &a, sizeof a, dup(fds[0])) != 0)
            return 12;
    }
    while (channel_receive(fds[1], &packet) == 0) {
        memcpy(&a, packet.bytes, sizeof a);
        if (packet.len != sizeof a || a.head.seq != ok.head.seq || a.child != CHILD)
            return 13;
        if ((a.status == ANSWER_OK) != (packet.n_fds == 1) ||
            (a.status != ANSWER_OK && a.status != ANSWER_BUSY))
            return 14;
        busy += a.status == ANSWER_BUSY;
        channel_packet_done(&packet);
    }
    return busy > 0 ? 0 : 15;
}

static void
test_too_many_in_flight(void **state)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(send_until_too_many());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_too_many_in_flight)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
