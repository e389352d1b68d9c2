/* What the files of WebSockets share: ws.c (life, and the library), ws_accept.c, ws_send.c. */
#ifndef WORKER_WS_PARTS_H
#define WORKER_WS_PARTS_H

#include <sys/types.h>

#include "common/buf.h"
#include "worker/ws.h"
#include "worker/ws_frames.h"
#include "worker/ws_queue.h"

#define WS_SUBPROTOCOL "ssebench"
#define WS_CLOSE_TRY_LATER 1013

struct connection_slot;
struct lws;

struct ws {
    struct lws *wsi; /* the library's; valid until WSI_DESTROY */
    const struct ws_handler *handler;
    void *ctx;
    struct connection_slot *slot;
    struct ws_queue queue;
    struct ws_frames frames; /* where the client's bytes stand */
    int fd;
    struct buf message;      /* the message being received */
    size_t n_received;       /* bytes of it, kept or not */
    const char *close_reason;
    struct ws *next, **link; /* in its slot */
    uint16_t close_code;     /* 0: not closing */
    uint16_t token;          /* that let it in */
    uint8_t idle_rounds;     /* ping rounds without a sign of life */
    bool opened;
    bool over;               /* `closed` was called */
    bool full_seen;          /* ws_queue_full said yes; drained is owed */
    bool ping_due, pong_due;
    bool heartbeats; /* the client asked for them */
    bool in_message; /* the newest queued part is not the last of its message */
    bool close_sent;
};

/* --- ws.c ---------------------------------------------------------------------------------- */

/* Ask the library for a turn to send. */
void
ws_wake(struct ws *ws);

/* Close; what is queued is dropped. */
void
ws_fail(struct ws *ws, uint16_t code, const char *reason);

/* It is over: tell the handler, once. The memory stays. */
void
ws_end(struct ws *ws);

/* The client's bytes on their way into the library, as ws_recv_watch tells them. How many the
 * library gets, or -1: the connection ends. */
ssize_t
ws_on_bytes(void *ctx, const void *bytes, size_t len);

/* Hand the socket `fd` to the library behind this head. False: it never took it. */
bool
ws_adopt(struct ws *ws, int fd, const struct buf *head);

/* --- ws_send.c ------------------------------------------------------------------------------- */

/* What waits, in bytes, with what each message costs beside its own. */
size_t
ws_queued_cost(const struct ws *ws);

void
ws_send_heartbeat(struct ws *ws);

#endif
