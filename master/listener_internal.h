/* Shared by the sources of listening sockets; nobody else includes it. */
#ifndef MASTER_LISTENER_INTERNAL_H
#define MASTER_LISTENER_INTERNAL_H

#include <sys/socket.h>
#include <sys/un.h>

#include "master/listener.h"

/* Is this numeric address one that only this machine can reach? AF_UNIX: yes. */
bool listener_address_is_loopback(const struct sockaddr *address);

/* "127.0.0.1:3001", "[::1]:3001", "unix:/path". */
void listener_format(const struct sockaddr *address, socklen_t len,
                     char ret[LISTENER_LABEL_SIZE]);

/* The security model's refusal, when `loopback` is false and there is no token. */
int listener_check_token(const struct settings *s, const char *host, bool loopback,
                         char *error);

/* Keep `fd` (taken over): moved out of the children's fixed descriptors, labelled with
 * its own address. 0 or -errno; the descriptor is closed on failure. */
int listener_add(struct listeners *l, int fd);

/* Keep one handed-down listening socket, if it is one and the settings allow its address.
 * 0 or -EINVAL with `error`. */
int listener_take(const struct settings *s, struct listeners *l, int fd, char *error);

/* Take over what systemd handed (LISTEN_PID, LISTEN_FDS). 1: done; 0: nothing was
 * handed; -EINVAL with `error`. */
int listener_inherit(const struct settings *s, struct listeners *l, char *error);

/* Bind to the path, mode 0600, after removing a socket file that nobody listens on. 0
 * or -errno (-EADDRINUSE: somebody does; -EEXIST: a file that is no socket). */
int listener_bind_unix(int fd, const struct sockaddr_un *a, struct listeners *l);

/* Remove the socket file that listener_bind_unix made, if it still is that file. */
void listener_unlink(const struct listeners *l);

#endif
