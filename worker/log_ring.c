/* A ring of messages that grows by doubling; a number's place is its low bits. */
#include "worker/log_ring.h"

#include <errno.h>
#include <stdlib.h>

#include "worker/ws.h"

#define RING_FIRST 64u
#define RING_ENTRY 96u /* bytes of memory a kept message costs beside its text */

static int
grow(struct log_ring *r)
{
    uint32_t size = r->size ? r->size * 2 : RING_FIRST;
    struct ws_bytes **messages = malloc(size * sizeof(*messages));
    size_t *sizes = malloc(size * sizeof(*sizes));
    if (!messages || !sizes) {
        free(messages);
        free(sizes);
        return -ENOMEM;
    }
    for (uint64_t i = r->base; i < r->top; i++) {
        messages[i & (size - 1)] = r->messages[i & (r->size - 1)];
        sizes[i & (size - 1)] = r->sizes[i & (r->size - 1)];
    }
    free(r->messages);
    free(r->sizes);
    r->messages = messages;
    r->sizes = sizes;
    r->size = size;
    return 0;
}

int
log_ring_add(struct log_ring *r, struct ws_bytes *message, size_t len)
{
    if (!message)
        return -ENOMEM;
    if (r->top - r->base == r->size && grow(r) != 0) {
        ws_bytes_unref(message);
        return -ENOMEM;
    }
    r->messages[r->top & (r->size - 1)] = message;
    r->sizes[r->top & (r->size - 1)] = len + RING_ENTRY;
    r->bytes += len + RING_ENTRY;
    r->top++;
    return 0;
}

struct ws_bytes *
log_ring_get(const struct log_ring *r, uint64_t number)
{
    return r->messages[number & (r->size - 1)];
}

void
log_ring_drop(struct log_ring *r)
{
    r->bytes -= r->sizes[r->base & (r->size - 1)];
    ws_bytes_unref(r->messages[r->base & (r->size - 1)]);
    r->base++;
}

void
log_ring_done(struct log_ring *r)
{
    while (r->base < r->top)
        log_ring_drop(r);
    free(r->messages);
    free(r->sizes);
    *r = (struct log_ring){0};
}
