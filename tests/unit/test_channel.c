/* The channel: whole messages, counted descriptors, nothing left open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/channel.h"
#include "common/handoff.h"
#include "common/messages.h"

static unsigned
open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static void
test_message_with_descriptors(void **state)
{
    struct channel_packet packet;
    int pair[2], fds[2];
    unsigned before = open_descriptors();

    assert_int_equal(channel_pair(pair), 0);
    fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    fds[1] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_int_equal(channel_receive(pair[1], &packet), -EAGAIN);
    assert_int_equal(channel_send(pair[0], "hello", 5, fds, 2), 0);
    assert_int_equal(channel_receive(pair[1], &packet), 0);
    assert_int_equal(packet.len, 5);
    assert_memory_equal(packet.bytes, "hello", 5);
    assert_int_equal(packet.n_fds, 2);
    assert_int_equal(fcntl(packet.fds[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    channel_packet_done(&packet);
    close(fds[0]);
    close(fds[1]);
    close(pair[0]);
    assert_int_equal(channel_receive(pair[1], &packet), -EPIPE);
    close(pair[1]);
    assert_int_equal(open_descriptors(), before);
}

/* A sender of ours cannot exceed the bound, so the raw call plays the taken-over worker. */
static void
test_too_many_descriptors_are_closed(void **state)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * 12)];
    } control;
    struct iovec iov = {"x", 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c;
    struct channel_packet packet;
    int pair[2], fds[12];
    unsigned before = open_descriptors();

    assert_int_equal(channel_pair(pair), 0);
    memset(&control, 0, sizeof control);
    for (int i = 0; i < 12; i++)
        fds[i] = STDERR_FILENO;
    c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(c), fds, sizeof fds);
    assert_int_equal(sendmsg(pair[0], &msg, 0), 1);
    assert_int_equal(channel_receive(pair[1], &packet), -EMSGSIZE);
    assert_int_equal(packet.n_fds, 0);
    close(pair[0]);
    close(pair[1]);
    assert_int_equal(open_descriptors(), before);
}

static void
test_long_message_is_refused(void **state)
{
    static char bytes[CHANNEL_MESSAGE_MAX + 1];
    struct channel_packet packet;
    int pair[2];

    assert_int_equal(channel_pair(pair), 0);
    assert_int_equal(channel_send(pair[0], bytes, sizeof bytes, NULL, 0), -EINVAL);
    assert_int_equal(send(pair[0], bytes, sizeof bytes, 0), sizeof bytes);
    assert_int_equal(channel_receive(pair[1], &packet), -EMSGSIZE);
    close(pair[0]);
    close(pair[1]);
}

/* No byte: an empty datagram, and an end while the other side lives, are malformed; only one
 * that is gone is gone. */
static void
test_nothing_is_no_message(void **state)
{
    struct channel_packet packet;
    int pair[2];

    assert_int_equal(channel_pair(pair), 0);
    assert_int_equal(send(pair[0], "", 0, 0), 0);
    assert_int_equal(channel_send(pair[0], "hello", 5, NULL, 0), 0);
    assert_int_equal(channel_receive(pair[1], &packet), -EBADMSG);
    assert_int_equal(channel_receive(pair[1], &packet), 0);
    assert_int_equal(packet.len, 5);
    assert_int_equal(shutdown(pair[0], SHUT_WR), 0);
    assert_int_equal(channel_receive(pair[1], &packet), -EBADMSG);
    close(pair[0]);
    assert_int_equal(channel_receive(pair[1], &packet), -EPIPE);
    close(pair[1]);
}

static void
test_every_message_fits(void **state)
{
    for (uint16_t type = 0; type < 200; type++) {
        const struct message_shape *shape = message_shape(type);

        if (shape == NULL)
            continue;
        assert_true(shape->request_len <= CHANNEL_MESSAGE_MAX);
        assert_true(shape->answer_len <= CHANNEL_MESSAGE_MAX);
        assert_true(shape->event_len <= CHANNEL_MESSAGE_MAX);
        assert_true(shape->request_fds <= CHANNEL_FDS_MAX);
        assert_true(shape->answer_fds_max <= CHANNEL_FDS_MAX);
        /* no padding that the compiler adds: it would carry the sender's memory across */
        assert_int_equal(shape->request_len % 4, 0);
    }
    assert_null(message_shape(0));
    assert_null(message_shape(MESSAGE_TYPES));
    assert_null(message_shape(UINT16_MAX));
}

static void
test_fixed_strings(void **state)
{
    char a[8];

    message_string_set(a, sizeof a, "abc");
    assert_true(message_string_valid(a, sizeof a));
    a[6] = 'x'; /* something after the end */
    assert_false(message_string_valid(a, sizeof a));
    memset(a, 'x', sizeof a);
    assert_false(message_string_valid(a, sizeof a));
    message_string_set(a, sizeof a, "longer than eight");
    assert_string_equal(a, "longer ");
}

static void
test_sealed_configuration(void **state)
{
    struct worker_config *in = test_calloc(1, sizeof *in), *out = test_calloc(1, sizeof *out);
    int fd;

    in->version = HANDOFF_VERSION;
    in->number = 7;
    fd = handoff_seal("test", in, sizeof *in);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(handoff_read_config(dup(fd), out, sizeof *out), 0);
    assert_memory_equal(in, out, sizeof *in);
    assert_int_equal(handoff_read_config(dup(fd), out, sizeof *out - 4), -EBADMSG);
    assert_int_equal(handoff_read_config(fd, out, sizeof *out + 4), -EBADMSG);
    in->version++;
    fd = handoff_seal("test", in, sizeof *in);
    assert_int_equal(handoff_read_config(fd, out, sizeof *out), -EBADMSG);
    assert_int_equal(handoff_read_config(open("/dev/null", O_RDONLY), out, sizeof *out),
                     -EBADMSG);
    test_free(in);
    test_free(out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message_with_descriptors),
        cmocka_unit_test(test_too_many_descriptors_are_closed),
        cmocka_unit_test(test_long_message_is_refused),
        cmocka_unit_test(test_nothing_is_no_message),
        cmocka_unit_test(test_every_message_fits),
        cmocka_unit_test(test_fixed_strings),
        cmocka_unit_test(test_sealed_configuration),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
