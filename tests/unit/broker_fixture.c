/* A whole broker in the test's process. */
#include "broker_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/dispatch.h"
#include "common/control.h"
#include "common/log.h"

#define GIVE_UP_MS 20000u

const char *
fixture_path(struct fixture *f, const char *path)
{
    static char full[4096];

    snprintf(full, sizeof full, "%s/%s", f->dir, path);
    return full;
}

void
fixture_put(struct fixture *f, const char *path, const char *text)
{
    char full[4096];
    int fd;

    snprintf(full, sizeof full, "%s/%s", f->dir, path);
    for (char *slash = strchr(full + strlen(f->dir) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    if (text == NULL) {
        assert_int_equal(mkdir(full, 0755), 0);
        return;
    }
    /* Never through a link: what it points to is no business of a test. */
    fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0755);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

void
fixture_prepare(struct fixture *f, const char *script)
{
    memset(f, 0, sizeof *f);
    signal(SIGPIPE, SIG_IGN);
    strcpy(f->dir, "/tmp/test-broker-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    if (script != NULL)
        fixture_put(f, "cli", script);
    snprintf(f->b.config.cli, sizeof f->b.config.cli, "%s/cli", f->dir);
    snprintf(f->b.config.checkout, sizeof f->b.config.checkout, "%s", f->dir);
    snprintf(f->b.config.roots, sizeof f->b.config.roots, "%s/results", f->dir);
}

static int
add_worker(struct fixture *f)
{
    int ends[2];

    assert_int_equal(channel_pair(ends), 0);
    assert_int_equal(dispatch_add_worker(f->b.dispatch, 1, ends[0]), 0);
    return ends[1];
}

static void
greet_broker(struct fixture *f)
{
    struct request_hello hello = {.version = MESSAGES_VERSION};
    const struct answer_hello *a = fixture_ask(f, MESSAGE_HELLO, &hello, -1);

    assert_non_null(a);
    assert_int_equal(a->status, ANSWER_OK);
}

void
fixture_start(struct fixture *f, bool greet)
{
    int ends[2];

    assert_int_equal(channel_pair(ends), 0);
    f->b.control_fd = ends[0];
    f->master = ends[1];
    log_init("broker", ends[0], LOG_LEVEL_DEBUG);
    f->b.base = event_base_new();
    assert_non_null(f->b.base);
    event_base_priority_init(f->b.base, BROKER_PRIORITIES);
    assert_int_equal(broker_init(&f->b), 0);
    f->worker = add_worker(f);
    if (greet)
        greet_broker(f);
}

void
fixture_new_worker(struct fixture *f, bool greet)
{
    close(f->worker);
    f->worker = add_worker(f);
    if (greet)
        greet_broker(f);
}

void
fixture_stop(struct fixture *f)
{
    char command[128];

    channel_packet_done(&f->packet);
    broker_done(&f->b);
    event_base_free(f->b.base);
    close(f->worker);
    close(f->master);
    close(f->b.control_fd);
    log_init("test", -1, LOG_LEVEL_ERROR);
    snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
    assert_int_equal(system(command), 0);
}

void
fixture_run_until(struct fixture *f, bool (*done)(void *ctx), void *ctx)
{
    uint64_t end_ms = broker_now_ms() + GIVE_UP_MS;
    struct timeval tick = {0, 5000};

    while (!done(ctx)) {
        event_base_loopexit(f->b.base, &tick); /* bounds a loop without events */
        event_base_loop(f->b.base, EVLOOP_ONCE);
        if (broker_now_ms() > end_ms)
            fail_msg("the broker did not get there");
    }
}

static bool
is_readable(void *ctx)
{
    struct fixture *f = ctx;
    struct pollfd p = {f->worker, POLLIN, 0};

    return poll(&p, 1, 0) == 1;
}

bool
fixture_receive(struct fixture *f)
{
    int r;

    channel_packet_done(&f->packet);
    fixture_run_until(f, is_readable, f);
    r = channel_receive(f->worker, &f->packet);
    if (r != 0)
        assert_int_equal(r, -EPIPE);
    return r == 0;
}

const void *
fixture_ask(struct fixture *f, uint16_t type, void *request, int fd)
{
    const struct message_shape *shape = message_shape(type);
    const struct message_head *head = (const struct message_head *)f->packet.bytes;

    *(struct message_head *)request = (struct message_head){.type = type, .seq = ++f->seq};
    assert_int_equal(
        channel_send(f->worker, request, shape->request_len, &fd, fd >= 0 ? 1 : 0), 0);
    do
        if (!fixture_receive(f))
            return NULL;
    while (head->seq != f->seq);
    assert_int_equal(head->type, type);
    assert_int_equal(f->packet.len, shape->answer_len);
    assert_true(f->packet.n_fds <= shape->answer_fds_max);
    return f->packet.bytes;
}

uint32_t
fixture_killed(struct fixture *f)
{
    static struct channel_packet packet;
    struct control_head head;

    while (channel_receive(f->master, &packet) == 0) {
        memcpy(&head, packet.bytes, sizeof head);
        channel_packet_done(&packet);
        if (head.type == CONTROL_KILL)
            return head.value;
    }
    return 0;
}
