/*
 * PEER_UID: a local TCP connection's owner by sock_diag(7), a Unix one's by SO_PEERCRED.
 * Distrusts: the worker; it hands over a socket and the kernel is asked about that very one.
 * Four numbers would not do: ports are used again.
 */
#include "broker/peer_uid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/dispatch.h"

struct peer_uid {
    int fd; /* NETLINK_SOCK_DIAG */
    uint32_t seq;
};

struct diag_request {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

struct peer_uid *
peer_uid_new(void)
{
    struct peer_uid *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    if (p->fd < 0) {
        free(p);
        return NULL;
    }
    return p;
}

void
peer_uid_free(struct peer_uid *p)
{
    if (p == NULL)
        return;
    close(p->fd);
    free(p);
}

/* One end of a TCP connection, IPv4 where it is one in disguise (::ffff:a.b.c.d). */
struct endpoint {
    int family;
    uint32_t address[4]; /* network order, as the kernel wants them */
    uint16_t port;
};

static bool
endpoint_of(const struct sockaddr_storage *ss, struct endpoint *ret)
{
    struct endpoint e = {0};

    if (ss->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)ss;

        e.family = AF_INET;
        e.address[0] = in->sin_addr.s_addr;
        e.port = in->sin_port;
    } else if (ss->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;

        e.port = in6->sin6_port;
        if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
            e.family = AF_INET;
            memcpy(&e.address[0], &in6->sin6_addr.s6_addr[12], 4);
        } else {
            e.family = AF_INET6;
            memcpy(e.address, &in6->sin6_addr, 16);
        }
    } else {
        return false;
    }
    *ret = e;
    return true;
}

/* Connected, or has said all it will say and waits for the answer. */
static bool
has_an_owner(unsigned state)
{
    return state == TCP_ESTABLISHED || state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2;
}

/* The kernel's answer lies in the socket when sendto returns: nothing to wait for. */
static int
read_answer(struct peer_uid *p, uint32_t *ret_uid)
{
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } reply;
    ssize_t n = recv(p->fd, &reply, sizeof reply, 0);
    const struct inet_diag_msg *msg;

    if (n < 0)
        return -errno;
    if (!NLMSG_OK(&reply.head, (size_t)n) || reply.head.nlmsg_seq != p->seq)
        return -EAGAIN;
    if (reply.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        reply.head.nlmsg_len < NLMSG_LENGTH(sizeof *msg))
        return -ENOENT;
    msg = NLMSG_DATA(&reply.head);
    /* A socket without inode belongs to nobody any more and reports uid 0, which is root's;
     * a listener is found where the connection is not. */
    if (!has_an_owner(msg->idiag_state) || msg->idiag_inode == 0)
        return -ENOENT;
    *ret_uid = msg->idiag_uid;
    return 0;
}

/* Ask about the socket whose own end is `own`: for us that is the peer's. */
static int
ask_kernel(struct peer_uid *p, const struct endpoint *own, const struct endpoint *other,
           uint32_t *ret_uid)
{
    struct diag_request q = {
        .head = {.nlmsg_len = sizeof q, .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = ++p->seq},
        .body = {.sdiag_family = (uint8_t)own->family, .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = ~0u},
    };
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    int r = -EAGAIN;

    q.body.id.idiag_sport = own->port;
    q.body.id.idiag_dport = other->port;
    memcpy(q.body.id.idiag_src, own->address, sizeof own->address);
    memcpy(q.body.id.idiag_dst, other->address, sizeof other->address);
    q.body.id.idiag_cookie[0] = q.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (sendto(p->fd, &q, sizeof q, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0)
        return -errno;
    for (int i = 0; i < 4 && r == -EAGAIN; i++) /* an answer to an older question: skip it */
        r = read_answer(p, ret_uid);
    return r;
}

static bool
stands(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT);
}

/* Its owner let go of it: nobody is there any more to be asked about, or refused. */
static bool
hung_up(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           info.tcpi_state != TCP_ESTABLISHED;
}

static int
ask_tcp(struct peer_uid *p, int fd, uint32_t *ret_uid)
{
    struct sockaddr_storage ours, theirs;
    socklen_t ours_len = sizeof ours, theirs_len = sizeof theirs;
    struct endpoint own, other;
    uint32_t uid;

    if (getsockname(fd, (struct sockaddr *)&ours, &ours_len) != 0)
        return -ENOENT;
    if (getpeername(fd, (struct sockaddr *)&theirs, &theirs_len) != 0)
        return errno == ENOTCONN ? -ENOTCONN : -ENOENT; /* reset */
    if (!endpoint_of(&ours, &own) || !endpoint_of(&theirs, &other))
        return -ENOENT;
    if (ask_kernel(p, &other, &own, &uid) != 0)
        return hung_up(fd) ? -ENOTCONN : -ENOENT;
    /* Our end after the peer's: while ours stands, its numbers cannot be somebody else's. */
    if (!stands(fd))
        return -ENOENT;
    *ret_uid = uid;
    return 0;
}

int
peer_uid_ask(struct peer_uid *p, int fd, uint32_t *ret_uid)
{
    int domain, type;
    socklen_t len = sizeof domain, type_len = sizeof type;
    struct ucred cred;
    socklen_t cred_len = sizeof cred;

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) != 0 || type != SOCK_STREAM)
        return -ENOENT;
    if (domain == AF_INET || domain == AF_INET6)
        return ask_tcp(p, fd, ret_uid);
    if (domain != AF_UNIX)
        return -ENOENT;
    /* -1: a socket that never had a peer. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) != 0 ||
        cred.uid == (uid_t)-1)
        return -ENOENT;
    *ret_uid = cred.uid;
    return 0;
}

int
handle_peer_uid(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet)
{
    struct answer_peer_uid a = {.status = ANSWER_NOT_FOUND};
    int r = b->peer_uid != NULL ? peer_uid_ask(b->peer_uid, packet->fds[0], &a.uid) : -ENOENT;

    (void)request;
    if (r == 0)
        a.status = ANSWER_OK;
    else if (r == -ENOTCONN)
        a.status = ANSWER_FAILED;
    dispatch_answer(b->dispatch, ask, &a, -1);
    return 0;
}
