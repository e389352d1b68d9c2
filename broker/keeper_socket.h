/* The keeper's socket in the launch's folder, and the brokers that are connected to it. */
#ifndef BROKER_KEEPER_SOCKET_H
#define BROKER_KEEPER_SOCKET_H

#include <stddef.h>

#include "broker/keeper.h"

#define KEEPER_CONNECTIONS 8 /* brokers: one, and another while it is being replaced */

struct keeper_socket {
    int listen_fd;
    int connections[KEEPER_CONNECTIONS]; /* -1: free */
};

/* Listen in the folder KEEPER_DIR, in the place of a keeper before. 0 or -errno. */
int
keeper_socket_open(struct keeper_socket *s);

/* Somebody connects, and is told how it stands; with all places taken, closed at once. */
void
keeper_socket_accept(struct keeper_socket *s, const struct keeper_state *state);

void
keeper_socket_tell_all(struct keeper_socket *s, const struct keeper_state *state);

/* The order (enum keeper_order) that came on a connection; 0: none, or it is closed and its place
 * free. What is no order of ours may be returned too. */
int
keeper_socket_read(struct keeper_socket *s, size_t connection);

#endif
