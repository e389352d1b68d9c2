/* The kernel's word on who is at the other end, over every kind of local connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/peer_uid.h"

#define OTHER_UID 4242u

struct pair {
    int client, server;
};

/* Listen on `listen_on`, connect to `connect_to`; the client's socket belongs to whoever
 * calls. false: this machine has no such address family. */
static bool
connect_pair(const char *listen_on, const char *connect_to, struct pair *ret)
{
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6};
    struct sockaddr_in a4 = {.sin_family = AF_INET};
    bool v6 = strchr(listen_on, ':') != NULL;
    int off = 0, l = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = v6 ? sizeof a6 : sizeof a4;
    struct sockaddr *a = v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4;
    in_port_t port;

    if (l < 0)
        return false;
    setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    inet_pton(v6 ? AF_INET6 : AF_INET, listen_on,
              v6 ? (void *)&a6.sin6_addr : (void *)&a4.sin_addr);
    if (bind(l, a, len) != 0 || listen(l, 1) != 0) {
        close(l);
        return false;
    }
    getsockname(l, a, &len);
    port = v6 ? a6.sin6_port : a4.sin_port;
    v6 = strchr(connect_to, ':') != NULL;
    ret->client = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
    a4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
    inet_pton(v6 ? AF_INET6 : AF_INET, connect_to,
              v6 ? (void *)&a6.sin6_addr : (void *)&a4.sin_addr);
    assert_int_equal(connect(ret->client, v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4,
                             v6 ? sizeof a6 : sizeof a4),
                     0);
    ret->server = accept4(l, NULL, NULL, SOCK_CLOEXEC);
    assert_true(ret->server >= 0);
    close(l);
    return true;
}

static void
pair_close(struct pair *p)
{
    close(p->client);
    close(p->server);
}

static const struct {
    const char *listen_on, *connect_to;
} tcp[] = {
    {"127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "127.8.9.10"}, {"::1", "::1"},
    {"::", "::1"},              {"::", "127.0.0.1"},       {"::", "::ffff:127.0.0.1"},
};

static void
our_own_connection_is_ours(void **state)
{
    for (size_t i = 0; i < sizeof tcp / sizeof tcp[0]; i++) {
        struct pair p;
        uint32_t uid = 12345;

        if (!connect_pair(tcp[i].listen_on, tcp[i].connect_to, &p)) {
            print_message("no %s here\n", tcp[i].listen_on);
            continue;
        }
        if (peer_uid_ask(*state, p.server, &uid) != 0 || uid != geteuid())
            fail_msg("%s to %s: uid %u", tcp[i].connect_to, tcp[i].listen_on, uid);
        pair_close(&p);
    }
}

/* As root: the peer is another account. */
static void
another_account_is_told_apart(void **state)
{
    struct pair p;
    uint32_t uid = 0;

    if (geteuid() != 0)
        skip();
    /* The socket's owner is who makes it. */
    assert_int_equal(seteuid(OTHER_UID), 0);
    assert_true(connect_pair("127.0.0.1", "127.0.0.1", &p));
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(peer_uid_ask(*state, p.server, &uid), 0);
    assert_int_equal(uid, OTHER_UID);
    pair_close(&p);
}

/* A peer that is gone has uid 0 in the kernel's answer: that must not be root. */
static void
a_closed_peer_is_unknown(void **state)
{
    struct pair p;
    uint32_t uid = 12345;

    assert_true(connect_pair("127.0.0.1", "127.0.0.1", &p));
    close(p.client);
    assert_int_equal(peer_uid_ask(*state, p.server, &uid), -ENOTCONN);
    assert_int_equal(uid, 12345);
    close(p.server);
}

static void
a_reset_peer_is_unknown(void **state)
{
    struct linger now = {1, 0};
    struct pair p;
    uint32_t uid = 12345;

    assert_true(connect_pair("127.0.0.1", "127.0.0.1", &p));
    setsockopt(p.client, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(p.client);
    assert_int_equal(peer_uid_ask(*state, p.server, &uid), -ENOTCONN);
    close(p.server);
}

static void
a_unix_peer_is_known(void **state)
{
    int fds[2];
    uint32_t uid = 12345;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(peer_uid_ask(*state, fds[0], &uid), 0);
    assert_int_equal(uid, geteuid());
    close(fds[0]);
    close(fds[1]);
}

static void
what_is_no_connection_is_unknown(void **state)
{
    int fds[] = {
        open("/dev/null", O_RDONLY | O_CLOEXEC),
        socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
        socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
        socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
    };

    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        uint32_t uid = 12345;

        int r = peer_uid_ask(*state, fds[i], &uid);

        if ((r != -ENOENT && r != -ENOTCONN) || uid != 12345)
            fail_msg("descriptor %zu", i);
        close(fds[i]);
    }
}

static void
many_questions_have_their_own_answers(void **state)
{
    struct pair p, gone;
    uint32_t uid;

    assert_true(connect_pair("127.0.0.1", "127.0.0.1", &p));
    assert_true(connect_pair("127.0.0.1", "127.0.0.1", &gone));
    close(gone.client);
    for (int i = 0; i < 1000; i++) {
        uid = 12345;
        assert_int_equal(peer_uid_ask(*state, p.server, &uid), 0);
        assert_int_equal(uid, geteuid());
        assert_int_equal(peer_uid_ask(*state, gone.server, &uid), -ENOTCONN);
    }
    pair_close(&p);
    close(gone.server);
}

static int
setup(void **state)
{
    *state = peer_uid_new();
    return *state == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
    peer_uid_free(*state);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_own_connection_is_ours),
        cmocka_unit_test(another_account_is_told_apart),
        cmocka_unit_test(a_closed_peer_is_unknown),
        cmocka_unit_test(a_reset_peer_is_unknown),
        cmocka_unit_test(a_unix_peer_is_known),
        cmocka_unit_test(what_is_no_connection_is_unknown),
        cmocka_unit_test(many_questions_have_their_own_answers),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
