/* The messages of a log that are kept for its late and slow viewers, each known by its number. */
#ifndef WORKER_LOG_RING_H
#define WORKER_LOG_RING_H

#include <stddef.h>
#include <stdint.h>

struct ws_bytes;

struct log_ring {
    struct ws_bytes **messages; /* base .. top-1 */
    size_t *sizes;              /* what each counts in `bytes` */
    uint32_t size;              /* a power of two, or 0 */
    uint64_t base, top;
    size_t bytes;
};

/* Number `top`; takes the message (NULL: -ENOMEM), of a text of `len` bytes. 0 or -ENOMEM. */
int
log_ring_add(struct log_ring *r, struct ws_bytes *message, size_t len);

/* base <= number < top. Stays the ring's. */
struct ws_bytes *
log_ring_get(const struct log_ring *r, uint64_t number);

/* Forget number `base`. */
void
log_ring_drop(struct log_ring *r);

void
log_ring_done(struct log_ring *r);

#endif
