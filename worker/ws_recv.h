/* Looking at a WebSocket's bytes before libwebsockets does. */
#ifndef WORKER_WS_RECV_H
#define WORKER_WS_RECV_H

#include <stddef.h>
#include <sys/types.h>

/* Judges what was read. How many bytes, from the front, the library may have; 0: none now;
 * -1: none ever again, as if the other side had closed. */
typedef ssize_t (*ws_recv_judge)(void *ctx, const void *bytes, size_t len);

/* From now on `judge` is asked about what is read from `fd`; NULL: no more. 0; -ENOMEM. */
int
ws_recv_watch(int fd, ws_recv_judge judge, void *ctx);

#endif
