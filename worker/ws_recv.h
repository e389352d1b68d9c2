/* Looking at a WebSocket's bytes before libwebsockets does. */
#ifndef WORKER_WS_RECV_H
#define WORKER_WS_RECV_H

#include <stddef.h>

/* From now on `seen` is called with what is read from `fd`; NULL: no more. 0; -ENOMEM. */
int
ws_recv_watch(int fd, void (*seen)(void *ctx, const void *bytes, size_t len), void *ctx);

#endif
