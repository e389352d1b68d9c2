/* SOCK_SEQPACKET with SCM_RIGHTS: a datagram is a message, its descriptors arrive with it. */
#include "common/channel.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for a burst of answers while the other side is busy; the kernel may give less. */
#define CHANNEL_BUFFER (512 * 1024)

int
channel_pair(int ret_fds[2])
{
    int fds[2];
    int size = CHANNEL_BUFFER;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
        return -errno;
    for (int i = 0; i < 2; i++)
        (void)setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    ret_fds[0] = fds[0];
    ret_fds[1] = fds[1];
    return 0;
}

/* Collect the descriptors of all control messages: a sender may split them. */
static void
take_descriptors(struct msghdr *msg, struct channel_packet *packet, int *ret_overflow)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
        size_t n;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
            if (packet->n_fds < CHANNEL_FDS_MAX) {
                packet->fds[packet->n_fds++] = fd;
            } else {
                close(fd);
                *ret_overflow = 1;
            }
        }
    }
}

/* No byte is what the end of the channel looks like, but also an empty datagram, and a writing
 * side that was shut while its holder lives on. Nobody of ours does either. */
static bool
has_hung_up(int fd)
{
    struct pollfd p = {.fd = fd};

    return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP) != 0;
}

int
channel_receive(int fd, struct channel_packet *ret_packet)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * (CHANNEL_FDS_MAX + 1))];
    } control;
    struct iovec iov = {ret_packet->bytes, sizeof ret_packet->bytes};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    int overflow = 0;
    ssize_t n;

    ret_packet->n_fds = 0;
    ret_packet->len = 0;
    do
        n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    take_descriptors(&msg, ret_packet, &overflow);
    if ((msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || overflow) {
        channel_packet_done(ret_packet);
        return -EMSGSIZE;
    }
    if (n == 0) {
        channel_packet_done(ret_packet);
        return has_hung_up(fd) ? -EPIPE : -EBADMSG;
    }
    ret_packet->len = (size_t)n;
    return 0;
}

void
channel_packet_done(struct channel_packet *packet)
{
    for (unsigned i = 0; i < packet->n_fds; i++)
        if (packet->fds[i] >= 0)
            close(packet->fds[i]);
    packet->n_fds = 0;
}

int
channel_send(int fd, const void *message, size_t len, const int *fds, unsigned n_fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX)];
    } control;
    struct iovec iov = {(void *)message, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    if (n_fds > CHANNEL_FDS_MAX || len == 0 || len > CHANNEL_MESSAGE_MAX)
        return -EINVAL;
    if (n_fds > 0) {
        struct cmsghdr *c;

        memset(&control, 0, sizeof control);
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
    }
    do
        n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return 0;
    if (errno == ECONNRESET || errno == ENOTCONN)
        return -EPIPE;
    return errno == ENOBUFS ? -EAGAIN : -errno;
}
