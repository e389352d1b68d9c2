/* What handlers call: queueing messages, and closing after them. */
#include "worker/ws_parts.h"

#include <stdio.h>

#include "common/limits.h"

#define WS_ENTRY_COST 64u /* bytes of memory a queued message costs beside its own */

/* A megabyte of messages of two bytes would be many a turn's work. */
size_t
ws_queued_cost(const struct ws *ws)
{
    return ws->queue.bytes + ws->queue.n * (size_t)WS_ENTRY_COST;
}

static void
send_entry(struct ws *ws, struct ws_entry entry)
{
    if (ws->over || ws->close_code != 0) {
        ws_bytes_unref(entry.bytes);
        return;
    }
    ws->in_message = !entry.last;
    if (!entry.bytes || ws_queue_push(&ws->queue, entry) != 0)
        ws_fail(ws, WS_CLOSE_TRY_LATER, "Out of memory");
    else if (ws->queue.n == 1)
        ws_wake(ws); /* with more than one it is under way */
}

void
ws_send_text(struct ws *ws, const char *bytes, size_t len)
{
    ws_send_part(ws, bytes, len, true, true);
}

void
ws_send_part(struct ws *ws, const char *bytes, size_t len, bool first, bool last)
{
    send_entry(ws, (struct ws_entry){ws_bytes_new(bytes, len), false, first, last});
}

void
ws_send_binary(struct ws *ws, const void *bytes, size_t len)
{
    send_entry(ws, (struct ws_entry){ws_bytes_new(bytes, len), true, true, true});
}

void
ws_send_shared(struct ws *ws, struct ws_bytes *bytes)
{
    ws_send_shared_part(ws, bytes, true, true);
}

void
ws_send_shared_part(struct ws *ws, struct ws_bytes *bytes, bool first, bool last)
{
    struct ws_bytes *own = bytes ? ws_bytes_ref(bytes) : NULL;
    send_entry(ws, (struct ws_entry){own, false, first, last});
}

void
ws_send_heartbeat(struct ws *ws)
{
    char text[64];
    int len = snprintf(text, sizeof(text), "{\"type\":\"heartbeat\",\"intervalMs\":%u}",
                       LIMIT_WS_PING_MS);
    ws_send_text(ws, text, (size_t)len);
}

void
ws_send_heartbeats(struct ws *ws)
{
    ws->heartbeats = true;
    ws_send_heartbeat(ws);
}

size_t
ws_queued(const struct ws *ws)
{
    return ws->queue.bytes;
}

bool
ws_queue_full(struct ws *ws)
{
    if (ws_queued_cost(ws) < LIMIT_WS_QUEUE)
        return false;
    ws->full_seen = true;
    return true;
}

void
ws_close(struct ws *ws, uint16_t code, const char *reason)
{
    if (ws->over || ws->close_code != 0)
        return;
    ws->close_code = code;
    ws->close_reason = reason;
    ws_wake(ws);
}
