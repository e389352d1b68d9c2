/* One end of a SOCK_SEQPACKET channel: whole messages with descriptors, nothing else. */
#ifndef COMMON_CHANNEL_H
#define COMMON_CHANNEL_H

#include <stddef.h>
#include <sys/types.h>

#define CHANNEL_MESSAGE_MAX 4096u /* bytes; every message of the vocabulary fits */
#define CHANNEL_FDS_MAX 4u        /* descriptors in one message */

/* A message as it arrived. Descriptors in fds[0..n_fds) belong to the caller, who closes
 * or takes (sets to -1) every one of them: channel_packet_done closes the rest. */
struct channel_packet {
    size_t len;
    unsigned n_fds;
    int fds[CHANNEL_FDS_MAX];
    _Alignas(8) unsigned char bytes[CHANNEL_MESSAGE_MAX];
};

/* A connected pair, CLOEXEC and non-blocking, with room for bursts. 0 or -errno. */
int
channel_pair(int ret_fds[2]);

/* Receive one message without waiting. Returns 0; -EAGAIN when there is none; -EPIPE when
 * the other side is gone; -EBADMSG for an empty message, or an end without one who is gone;
 * -EMSGSIZE for a message or descriptor list over the bounds (all
 * its descriptors are closed); another -errno when the socket failed. */
int
channel_receive(int fd, struct channel_packet *ret_packet);

/* Close every descriptor of the packet that was not taken (set to -1). */
void
channel_packet_done(struct channel_packet *packet);

/* Send one message without waiting; the descriptors stay the caller's. 0; -EAGAIN when the
 * other side does not read; -EPIPE when it is gone; another -errno. */
int
channel_send(int fd, const void *message, size_t len, const int *fds, unsigned n_fds);

#endif
