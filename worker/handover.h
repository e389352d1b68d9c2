/*
 * How a connection leaves the HTTP side for the WebSocket side: the socket, the bytes that
 * were read past the handshake, and its place among the counted connections.
 */
#ifndef WORKER_HANDOVER_H
#define WORKER_HANDOVER_H

#include <stddef.h>
#include <stdint.h>

struct exchange;

/* One connection's place under the caps (in all and per address). */
struct connection_slot;

struct handover {
    int fd;           /* yours now: non-blocking, no watcher on it; close it yourself */
    char *unread;     /* bytes behind the handshake's head; yours, free(); NULL: none */
    size_t unread_len;
    uint16_t token;   /* that let it in (worker/tokens.h) */
    struct connection_slot *slot; /* release exactly once, after the socket is closed */
};

/* Take the connection of an unanswered upgrade. The exchange is over: it and its request
 * (and every span of it) must not be touched again, so copy key and protocols first. Never
 * fails; no memory for the unread bytes closes the socket and gives fd = -1 (the slot is
 * still yours to release). */
void
exchange_hand_over(struct exchange *x, struct handover *ret_handover);

/* The WebSocket's socket is closed: its place is free. */
void
connection_slot_release(struct connection_slot *slot);

/* Where the peer comes from, for logs: "127.0.0.1", "2001:db8::1", "unix". Lives as long as
 * the slot. */
const char *
connection_slot_address(const struct connection_slot *slot);

#endif
