/* What waits to be sent on one WebSocket, and the shared bytes it is made of. */
#include "worker/ws_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker/ws.h"

#define QUEUE_FIRST 4u /* entries of a queue's first allocation; a power of two */

struct ws_bytes {
    unsigned references;
    size_t len;
    const char *data;
    char *owned;            /* NULL: inline, or a part of `whole` */
    struct ws_bytes *whole; /* one reference to it */
    char inline_data[];
};

struct ws_bytes *
ws_bytes_new(const void *bytes, size_t len)
{
    struct ws_bytes *b = malloc(sizeof(*b) + len);
    if (!b)
        return NULL;
    *b = (struct ws_bytes){.references = 1, .len = len, .data = b->inline_data};
    if (len > 0)
        memcpy(b->inline_data, bytes, len);
    return b;
}

struct ws_bytes *
ws_bytes_take_inside(char *malloced, size_t start, size_t len)
{
    struct ws_bytes *b = malloced ? malloc(sizeof(*b)) : NULL;
    if (!b) {
        free(malloced);
        return NULL;
    }
    *b = (struct ws_bytes){
        .references = 1, .len = len, .data = malloced + start, .owned = malloced};
    return b;
}

struct ws_bytes *
ws_bytes_take(char *malloced, size_t len)
{
    return ws_bytes_take_inside(malloced, 0, len);
}

struct ws_bytes *
ws_bytes_part(struct ws_bytes *whole, size_t start, size_t len)
{
    struct ws_bytes *b = malloc(sizeof(*b));
    if (!b)
        return NULL;
    *b = (struct ws_bytes){
        .references = 1, .len = len, .data = whole->data + start, .whole = ws_bytes_ref(whole)};
    return b;
}

struct ws_bytes *
ws_bytes_ref(struct ws_bytes *b)
{
    b->references++;
    return b;
}

const char *
ws_bytes_data(const struct ws_bytes *b, size_t *ret_len)
{
    *ret_len = b->len;
    return b->data;
}

void
ws_bytes_unref(struct ws_bytes *b)
{
    if (!b || --b->references > 0)
        return;
    ws_bytes_unref(b->whole);
    free(b->owned);
    free(b);
}

static int
grow(struct ws_queue *queue)
{
    uint32_t size = queue->size ? queue->size * 2 : QUEUE_FIRST;
    struct ws_entry *entries = malloc(size * sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    for (uint32_t i = 0; i < queue->n; i++)
        entries[i] = queue->entries[(queue->first + i) & (queue->size - 1)];
    free(queue->entries);
    queue->entries = entries;
    queue->size = size;
    queue->first = 0;
    return 0;
}

int
ws_queue_push(struct ws_queue *queue, struct ws_entry entry)
{
    if (queue->n == queue->size && grow(queue) != 0) {
        ws_bytes_unref(entry.bytes);
        return -ENOMEM;
    }
    queue->entries[(queue->first + queue->n) & (queue->size - 1)] = entry;
    queue->n++;
    queue->bytes += entry.bytes->len;
    return 0;
}

bool
ws_queue_peek(const struct ws_queue *queue, size_t most, struct ws_piece *ret_piece)
{
    if (queue->n == 0)
        return false;
    const struct ws_entry *entry = &queue->entries[queue->first];
    size_t left = entry->bytes->len - queue->offset;
    *ret_piece = (struct ws_piece){
        .at = entry->bytes->data + queue->offset,
        .len = left < most ? left : most,
        .binary = entry->binary,
        .first = entry->first && queue->offset == 0,
        .last = entry->last && left <= most,
        .empties = left <= most,
    };
    return true;
}

void
ws_queue_taken(struct ws_queue *queue, const struct ws_piece *piece)
{
    queue->bytes -= piece->len;
    queue->offset += piece->len;
    if (!piece->empties)
        return;
    ws_bytes_unref(queue->entries[queue->first].bytes);
    queue->first = (queue->first + 1) & (queue->size - 1);
    queue->offset = 0;
    if (--queue->n == 0)
        ws_queue_clear(queue);
}

void
ws_queue_clear(struct ws_queue *queue)
{
    for (uint32_t i = 0; i < queue->n; i++)
        ws_bytes_unref(queue->entries[(queue->first + i) & (queue->size - 1)].bytes);
    free(queue->entries);
    *queue = (struct ws_queue){0};
}
