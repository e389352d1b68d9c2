/* What waits to be sent on one WebSocket: whole messages, in order, counted in bytes. */
#ifndef WORKER_WS_QUEUE_H
#define WORKER_WS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ws_bytes;

struct ws_entry {
    struct ws_bytes *bytes; /* one reference is the queue's */
    bool binary;
    bool first, last; /* ends of its message; both for a whole one */
};

struct ws_queue {
    struct ws_entry *entries; /* ring; NULL while idle, so that an idle socket is small */
    uint32_t size, first, n;  /* of entries: allocated, oldest, used */
    size_t bytes;             /* queued and not yet taken */
    size_t offset;            /* taken of the oldest */
};

/* The next piece to send, inside a message. */
struct ws_piece {
    const char *at;
    size_t len;
    bool binary;
    bool first, last; /* of its message */
    bool empties;     /* its entry is used up with it */
};

/* Append; takes the entry's reference (also on failure). 0 or -ENOMEM. */
int
ws_queue_push(struct ws_queue *queue, struct ws_entry entry);

/* Look at the next piece of at most `most` bytes. False: empty. */
bool
ws_queue_peek(const struct ws_queue *queue, size_t most, struct ws_piece *ret_piece);

/* The piece that ws_queue_peek showed is sent. */
void
ws_queue_taken(struct ws_queue *queue, const struct ws_piece *piece);

/* Drop everything and the memory. */
void
ws_queue_clear(struct ws_queue *queue);

#endif
