/* Who owns the other end of a connection: what the kernel knows, not what somebody says. */
#ifndef BROKER_PEER_UID_H
#define BROKER_PEER_UID_H

#include <stdint.h>

struct peer_uid;

/* Opens the kernel's socket for such questions; once, at start. NULL: not to be had. */
struct peer_uid *
peer_uid_new(void);
void
peer_uid_free(struct peer_uid *p);

/* Uid of the process account at the other end of the connected stream socket `fd`, which
 * stays the caller's. 0; -ENOTCONN: the other end was closed or never
 * was; -ENOENT: the kernel does not tell (another machine, a connection that is not whole, not
 * a stream socket). */
int
peer_uid_ask(struct peer_uid *p, int fd, uint32_t *ret_uid);

#endif
