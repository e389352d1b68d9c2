/* RUN_CONNECT, RUN_WATCH and TASK_FILE, against a broker in this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/endpoint_url.h"
#include "broker_fixture.h"
#include "common/limits.h"

/* --- addresses ---------------------------------------------------------------------------- */

static const struct {
    const char *url;
    int family; /* 0: refused */
    unsigned port;
} urls[] = {
    {"http://127.0.0.1:4263", AF_INET, 4263},
    {"http://172.17.0.2:1", AF_INET, 1},
    {"http://[fd00::2]:65535", AF_INET6, 65535},
    {"http://localhost:80", AF_INET, 80},
    {"http://127.0.0.1:4263/", AF_INET, 4263},
    {"https://127.0.0.1:4263", 0, 0},
    {"http://127.0.0.1", 0, 0},
    {"http://127.0.0.1:", 0, 0},
    {"http://127.0.0.1:0", 0, 0},
    {"http://127.0.0.1:080", 0, 0},
    {"http://127.0.0.1:65536", 0, 0},
    {"http://127.0.0.1:123456", 0, 0},
    {"http://127.0.0.1:80/x", 0, 0},
    {"http://127.0.0.1:80//", 0, 0},
    {"http://127.0.0.1:80 ", 0, 0},
    {"http://u@127.0.0.1:80", 0, 0},
    {"http://example.org:80", 0, 0},
    {"http://[::1]80", 0, 0},
    {"http://[::1", 0, 0},
    {"http://::1:80", 0, 0},
    {"http://127.1:80", 0, 0},
    {"http://2130706433:80", 0, 0},
    {"unix:/run/docker.sock", 0, 0},
    {"", 0, 0},
};

static void
only_plain_addresses_are_taken(void **state)
{
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct sockaddr_storage a;
        int r = endpoint_url_parse(urls[i].url, &a);

        if ((r == 0) != (urls[i].family != 0))
            fail_msg("%s: %d", urls[i].url, r);
        if (r != 0)
            continue;
        assert_int_equal(a.ss_family, urls[i].family);
        assert_int_equal(ntohs(a.ss_family == AF_INET
                                   ? ((struct sockaddr_in *)&a)->sin_port
                                   : ((struct sockaddr_in6 *)&a)->sin6_port),
                         urls[i].port);
    }
}

/* --- connections ----------------------------------------------------------------------------- */

/* The CLI prints what stands in `url`, and counts its calls. */
static const char script[] = "#!/bin/sh\n"
                             "case \"$2\" in\n"
                             "endpoint) echo \"$3 $4\" >>calls; cat url ;;\n"
                             "*) echo '{\"runs\":[]}' ;;\n"
                             "esac\n";

static int
listen_here(uint16_t *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *ret_port = ntohs(a.sin_port);
    return fd;
}

static void
put_url(struct fixture *f, uint16_t port)
{
    char text[64];

    snprintf(text, sizeof text, "http://127.0.0.1:%u\n", port);
    fixture_put(f, "url", text);
}

static enum answer_status
ask_connect(struct fixture *f, enum run_port port, int *ret_fd)
{
    struct request_run_connect q = {.port = port, .run_id = "run-1"};
    const struct answer_run_connect *a =
        fixture_ask(f, MESSAGE_RUN_CONNECT, &q, -1);

    assert_non_null(a);
    *ret_fd = f->packet.n_fds == 1 ? f->packet.fds[0] : -1;
    if (*ret_fd >= 0)
        f->packet.fds[0] = -1;
    assert_int_equal(*ret_fd >= 0, a->status == ANSWER_OK);
    return a->status;
}

static unsigned
count_calls(struct fixture *f)
{
    FILE *calls = fopen(fixture_path(f, "calls"), "r");
    unsigned n = 0;

    for (int c; calls != NULL && (c = fgetc(calls)) != EOF;)
        n += c == '\n';
    if (calls != NULL)
        fclose(calls);
    return n;
}

static void
an_address_is_remembered_until_it_fails(void **state)
{
    struct fixture *f = *state;
    uint16_t port;
    int fd, other, listener = listen_here(&port);
    char byte;

    put_url(f, port);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask_connect(f, RUN_PORT_DAEMON, &fd), ANSWER_OK);
        other = accept(listener, NULL, NULL);
        assert_int_equal(write(other, "x", 1), 1);
        close(other);
        fcntl(fd, F_SETFL, 0);
        assert_int_equal(read(fd, &byte, 1), 1);
        close(fd);
    }
    assert_int_equal(count_calls(f), 1);
    assert_int_equal(ask_connect(f, RUN_PORT_OPENCODE, &fd), ANSWER_OK);
    close(fd);
    assert_int_equal(count_calls(f), 2);
    close(listener);
    assert_int_equal(ask_connect(f, RUN_PORT_DAEMON, &fd), ANSWER_FAILED);
    listener = listen_here(&port);
    put_url(f, port);
    assert_int_equal(ask_connect(f, RUN_PORT_DAEMON, &fd), ANSWER_OK);
    assert_int_equal(count_calls(f), 3);
    close(fd);
    close(listener);
}

static void
stop_forgets_the_address(void **state)
{
    struct fixture *f = *state;
    struct request_run stop = {.run_id = "run-1"};
    uint16_t port;
    int fd, listener = listen_here(&port);
    unsigned before = count_calls(f);

    put_url(f, port);
    fixture_ask(f, MESSAGE_RUN_STOP, &stop, -1);
    assert_int_equal(ask_connect(f, RUN_PORT_DAEMON, &fd), ANSWER_OK);
    close(fd);
    assert_int_equal(count_calls(f), before + 1);
    close(listener);
}

static const char *const refused_output[] = {"", "\n", "https://127.0.0.1:1\n",
                                             "http://127.0.0.1:1/ and more\n", "rubbish"};

static void
other_output_is_no_address(void **state)
{
    struct fixture *f = *state;
    struct request_run stop = {.run_id = "run-1"};

    for (size_t i = 0; i < sizeof refused_output / sizeof refused_output[0]; i++) {
        int fd;

        fixture_ask(f, MESSAGE_RUN_STOP, &stop, -1);
        fixture_put(f, "url", refused_output[i]);
        assert_int_equal(ask_connect(f, RUN_PORT_DAEMON, &fd), ANSWER_FAILED);
    }
}

/* --- watching ---------------------------------------------------------------------------------- */

static void
expect_event(struct fixture *f, uint64_t watch)
{
    const struct event_file *e = (const struct event_file *)f->packet.bytes;

    assert_true(fixture_receive(f));
    assert_int_equal(e->head.type, MESSAGE_EVENT_FILE);
    assert_int_equal(e->head.seq, 0);
    assert_int_equal(e->watch, watch);
    usleep((LIMIT_WATCH_TELL_MS + 2) * 1000); /* so that the next change is one of its own */
}

static uint64_t
locate(struct fixture *f, uint64_t *ret_epoch)
{
    struct request_run_locate q = {
        .run_id = "run-1", .task = "task", .agent = "agent", .model = "model"};
    const struct answer_run_locate *a = fixture_ask(f, MESSAGE_RUN_LOCATE, &q, -1);

    assert_int_equal(a->status, ANSWER_OK);
    *ret_epoch = a->epoch;
    return a->ref;
}

static void
move(struct fixture *f, const char *from, const char *to)
{
    char old[256];

    snprintf(old, sizeof old, "%s", fixture_path(f, from));
    assert_int_equal(rename(old, fixture_path(f, to)), 0);
}

#define RUN "results/task/model/agent/run-1"

static void
a_dialog_is_told_of(void **state)
{
    struct fixture *f = *state;
    struct request_run_watch q = {0};
    const struct answer_run_watch *a;
    struct request_run_unwatch end = {0};
    int fd;

    fixture_put(f, RUN, NULL);
    q.ref = locate(f, &q.epoch);
    a = fixture_ask(f, MESSAGE_RUN_WATCH, &q, -1);
    assert_int_equal(a->status, ANSWER_OK);
    end.watch = a->watch;
    fixture_put(f, RUN "/archive", NULL); /* the folder appears */
    expect_event(f, end.watch);
    fixture_put(f, RUN "/archive/other", "x"); /* nobody is told */
    fd = open(fixture_path(f, RUN "/archive/dialog.jsonl"), O_WRONLY | O_CREAT | O_APPEND,
              0600);
    expect_event(f, end.watch);
    assert_int_equal(write(fd, "{}\n", 3), 3);
    expect_event(f, end.watch);
    close(fd);
    fixture_put(f, RUN "/archive/new", "x");
    move(f, RUN "/archive/new", RUN "/archive/dialog.jsonl");
    expect_event(f, end.watch);
    /* Its own folder is replaced by a link: nothing behind it is told. */
    move(f, RUN "/archive", RUN "/old");
    expect_event(f, end.watch);
    assert_int_equal(symlink("old", fixture_path(f, RUN "/archive")), 0);
    expect_event(f, end.watch);
    fixture_put(f, RUN "/old/dialog.jsonl", "{}\n");
    assert_int_equal(((const struct answer_plain *)fixture_ask(f, MESSAGE_RUN_UNWATCH, &end,
                                                               -1))->status,
                     ANSWER_OK);
    assert_int_equal(((const struct answer_plain *)fixture_ask(f, MESSAGE_RUN_UNWATCH, &end,
                                                               -1))->status,
                     ANSWER_NOT_FOUND);
}

static void
watches_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct request_run_watch q = {0};
    unsigned n = 0;

    fixture_put(f, RUN, NULL);
    q.ref = locate(f, &q.epoch);
    while (((const struct answer_run_watch *)fixture_ask(f, MESSAGE_RUN_WATCH, &q, -1))
               ->status == ANSWER_OK)
        n++;
    assert_int_equal(n, LIMIT_WATCHES_PER_WORKER);
    q.ref = 12345;
    fixture_new_worker(f, true);
    assert_int_equal(((const struct answer_run_watch *)fixture_ask(f, MESSAGE_RUN_WATCH, &q,
                                                                   -1))->status,
                     ANSWER_NOT_FOUND);
}

/* --- files of a task ------------------------------------------------------------------------------ */

static const struct {
    const char *task, *path;
    enum answer_status status;
} task_files[] = {
    {"t1", "config.yaml", ANSWER_OK},
    {"t1", "diffs/patch.diff", ANSWER_OK},
    {"t1", "diffs", ANSWER_NOT_FOUND},
    {"t1", "none", ANSWER_NOT_FOUND},
    {"t1", "link", ANSWER_NOT_FOUND},
    {"t1", "dirlink/patch.diff", ANSWER_NOT_FOUND},
    {"linked", "config.yaml", ANSWER_OK}, /* the task's own folder may be a link */
    {"t1", "../secret", ANSWER_REFUSED},
    {"t1", "diffs/../config.yaml", ANSWER_REFUSED},
    {"t1", "./config.yaml", ANSWER_REFUSED},
    {"t1", "/etc/passwd", ANSWER_REFUSED},
    {"t1", "diffs//patch.diff", ANSWER_REFUSED},
    {"t1", "diffs/", ANSWER_REFUSED},
    {"t1", "", ANSWER_REFUSED},
    {"../tasks/t1", "config.yaml", ANSWER_REFUSED},
    {"..", "config.yaml", ANSWER_REFUSED},
    {"", "config.yaml", ANSWER_REFUSED},
    {"t2", "config.yaml", ANSWER_NOT_FOUND},
    {"sselink", "config.yaml", ANSWER_NOT_FOUND},
};

static void
only_plain_files_below_sse_are_opened(void **state)
{
    struct fixture *f = *state;

    fixture_put(f, "tasks/t1/sse/config.yaml", "id: t1\n");
    fixture_put(f, "tasks/t1/sse/diffs/patch.diff", "diff\n");
    fixture_put(f, "tasks/t1/secret", "secret\n");
    fixture_put(f, "tasks/sselink/x", "x\n");
    assert_int_equal(symlink("../secret", fixture_path(f, "tasks/t1/sse/link")), 0);
    assert_int_equal(symlink("diffs", fixture_path(f, "tasks/t1/sse/dirlink")), 0);
    assert_int_equal(symlink("t1", fixture_path(f, "tasks/linked")), 0);
    assert_int_equal(symlink("../t1/sse", fixture_path(f, "tasks/sselink/sse")), 0);
    for (size_t i = 0; i < sizeof task_files / sizeof task_files[0]; i++) {
        struct request_task_file q = {0};
        const struct answer_run_file *a;

        message_string_set(q.task, sizeof q.task, task_files[i].task);
        message_string_set(q.path, sizeof q.path, task_files[i].path);
        a = fixture_ask(f, MESSAGE_TASK_FILE, &q, -1);
        if (a->status != task_files[i].status)
            fail_msg("%s %s: %u", task_files[i].task, task_files[i].path, a->status);
    }
}

static int
set_up(void **state)
{
    static struct fixture f;

    fixture_prepare(&f, script);
    snprintf(f.b.config.local_tasks, sizeof f.b.config.local_tasks, "%s/tasks", f.dir);
    fixture_start(&f, true);
    *state = &f;
    return 0;
}

static int
tear_down(void **state)
{
    fixture_stop(*state);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_plain_addresses_are_taken),
        cmocka_unit_test_setup_teardown(an_address_is_remembered_until_it_fails, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(stop_forgets_the_address, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_output_is_no_address, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dialog_is_told_of, set_up, tear_down),
        cmocka_unit_test_setup_teardown(watches_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_plain_files_below_sse_are_opened, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
