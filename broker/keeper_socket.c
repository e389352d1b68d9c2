/*
 * The keeper's socket: telling brokers how it stands, and hearing their orders.
 * Distrusts: nobody; who can open the folder is this account.
 */
#include "broker/keeper_socket.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/launch_record.h"

/* By way of the descriptor: a path may be longer than a socket's address. */
int
keeper_socket_open(struct keeper_socket *s)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", KEEPER_DIR, LAUNCH_SOCKET);
    unlinkat(KEEPER_DIR, LAUNCH_SOCKET, 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, KEEPER_CONNECTIONS) != 0) {
        int r = -errno;

        close(fd);
        return r;
    }
    s->listen_fd = fd;
    for (size_t i = 0; i < KEEPER_CONNECTIONS; i++)
        s->connections[i] = -1;
    return 0;
}

static void
tell(int fd, const struct keeper_state *state)
{
    send(fd, state, sizeof *state, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void
keeper_socket_tell_all(struct keeper_socket *s, const struct keeper_state *state)
{
    for (size_t i = 0; i < KEEPER_CONNECTIONS; i++)
        if (s->connections[i] >= 0)
            tell(s->connections[i], state);
}

void
keeper_socket_accept(struct keeper_socket *s, const struct keeper_state *state)
{
    int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    for (size_t i = 0; i < KEEPER_CONNECTIONS; i++) {
        if (s->connections[i] >= 0)
            continue;
        s->connections[i] = fd;
        tell(fd, state);
        return;
    }
    close(fd);
}

int
keeper_socket_read(struct keeper_socket *s, size_t connection)
{
    int *fd = &s->connections[connection];
    char order[16];
    ssize_t n = recv(*fd, order, sizeof order, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        close(*fd);
        *fd = -1;
        return 0;
    }
    return order[0];
}
