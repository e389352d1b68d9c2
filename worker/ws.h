/*
 * WebSockets: upgrades that policy admitted, adopted by libwebsockets behind a head of our
 * making. Handlers see whole messages; sending queues, in order, with back-pressure.
 */
#ifndef WORKER_WS_H
#define WORKER_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange;
struct ws;

/* Bytes shared by many sockets (a broadcast). Reference counted; a new one has one. */
struct ws_bytes;
struct ws_bytes *
ws_bytes_new(const void *bytes, size_t len); /* copies; NULL: no memory */
struct ws_bytes *
ws_bytes_take(char *malloced, size_t len); /* takes the memory */
struct ws_bytes *
ws_bytes_take_inside(char *malloced, size_t start, size_t len); /* [start..start+len) of it */
struct ws_bytes *
ws_bytes_part(struct ws_bytes *whole, size_t start, size_t len); /* without a copy */
const char *
ws_bytes_data(const struct ws_bytes *b, size_t *ret_len);
struct ws_bytes *
ws_bytes_ref(struct ws_bytes *b); /* one more reference; returns b */
void
ws_bytes_unref(struct ws_bytes *b); /* NULL: nothing */

struct ws_handler {
    const char *name; /* for logs and counters */
    /* The handshake is done; send from here on. `ctx` came with ws_accept. */
    void (*opened)(struct ws *ws, void *ctx);
    /* One whole message. NULL: messages are ignored. */
    void (*received)(struct ws *ws, void *ctx, const char *bytes, size_t len, bool binary);
    /* The queue fell below half of LIMIT_WS_QUEUE after ws_queue_full was seen. */
    void (*drained)(struct ws *ws, void *ctx);
    /* Everything queued is with the kernel. For sources that queue less than `drained` knows. */
    void (*emptied)(struct ws *ws, void *ctx);
    /* Gone, for whatever reason; free ctx and forget `ws`. Called exactly once for each
     * ws_accept; `ws` is NULL if the upgrade failed before `opened`. */
    void (*closed)(struct ws *ws, void *ctx);
};

/* Answer an upgrade with 101 and go on as a WebSocket; the exchange is over. Selects the
 * subprotocol `ssebench` if it was offered. Calls `opened` before it returns. */
void
ws_accept(struct exchange *x, const struct ws_handler *handler, void *ctx);

/* Queue one message; never sends or closes within the call. Ignored when the socket is
 * closing. Text that is not UTF-8 is the caller's fault. */
void
ws_send_text(struct ws *ws, const char *bytes, size_t len);
void
ws_send_binary(struct ws *ws, const void *bytes, size_t len);
void
ws_send_shared(struct ws *ws, struct ws_bytes *bytes); /* text; takes no reference of yours;
                                                          NULL (no memory) closes with 1013 */

/* The same as one part of a message: see ws_send_part. */
void
ws_send_shared_part(struct ws *ws, struct ws_bytes *bytes, bool first, bool last);

/* Queue a part of one long text message as it is produced; `first` and `last` mark its ends.
 * Nothing else may be sent on this socket between the two. */
void
ws_send_part(struct ws *ws, const char *bytes, size_t len, bool first, bool last);

/* This client asked for heartbeats: a message now, and one with every ping. From `opened` on. */
void
ws_send_heartbeats(struct ws *ws);

/* Bytes queued and not yet with the kernel. */
size_t
ws_queued(const struct ws *ws);
bool
ws_queue_full(struct ws *ws); /* at LIMIT_WS_QUEUE: pause the source until `drained` */

/* Close with a code and a constant reason (at most 123 bytes, kept by pointer) after what is
 * queued. */
void
ws_close(struct ws *ws, uint16_t code, const char *reason);

/* Close all with 1001 (shutdown) once what is queued is out, and new ones at once. */
void
ws_close_all(const char *reason);

/* Close those that a token let in which is not `valid` any more; what is queued is dropped. How
 * many. */
unsigned
ws_close_tokens(bool (*valid)(uint16_t token), uint16_t code, const char *reason);

struct ev_loop;
/* Make the library's context on `loop`; before the sandbox and after RLIMIT_NOFILE is set (the
 * library sizes its table by it). 0 or -errno. */
int
ws_init(struct ev_loop *loop);

#endif
