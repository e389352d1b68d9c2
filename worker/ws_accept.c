/* From an admitted upgrade to the library: the client's head stays here. */
#include "worker/ws_parts.h"

#include <stdlib.h>
#include <unistd.h>

#include "policy/token.h"
#include "worker/exchange.h"
#include "worker/handover.h"
#include "worker/ws_recv.h"

/* What the library reads instead of the client's head: constants, a key of 24 base64
 * characters that the strict reader checked, then the bytes that followed the real head. */
static void
write_head(struct buf *out, struct span key, bool subprotocol)
{
    buf_add_str(out, "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: ");
    buf_add(out, key.at, key.len);
    if (subprotocol)
        buf_add_str(out, "\r\nSec-WebSocket-Protocol: " WS_SUBPROTOCOL);
    buf_add_str(out, "\r\n\r\n");
}

static void
adopt(struct ws *ws, struct handover *handover, struct buf *head)
{
    if (handover->unread) {
        ssize_t kept = ws_on_bytes(ws, handover->unread, handover->unread_len);
        buf_add(head, handover->unread, (size_t)kept);
    }
    free(handover->unread);
    if (handover->fd < 0) {
        /* the HTTP side had no memory for the unread bytes and closed it */
    } else if (head->failed || ws_recv_watch(handover->fd, ws_on_bytes, ws) != 0) {
        close(handover->fd);
    } else if (ws_adopt(ws, handover->fd, head)) {
        return;
    }
    ws_end(ws);
    connection_slot_release(ws->slot);
    free(ws);
}

void
ws_accept(struct exchange *x, const struct ws_handler *handler, void *ctx)
{
    const struct request *request = exchange_request(x);
    struct span offered = request->ws_protocols;
    struct handover handover;
    struct buf head;
    buf_init(&head, 0);
    write_head(&head, request->ws_key,
               offered.at && policy_subprotocol_offered(offered.at, offered.len,
                                                        WS_SUBPROTOCOL));
    struct ws *ws = calloc(1, sizeof(*ws));
    if (!ws || head.failed) {
        free(ws);
        buf_done(&head);
        exchange_error(x, 503, "Try again", NULL);
        handler->closed(NULL, ctx);
        return;
    }
    exchange_hand_over(x, &handover);
    ws->handler = handler;
    ws->ctx = ctx;
    ws->slot = handover.slot;
    ws->fd = handover.fd;
    ws->token = handover.token;
    buf_init(&ws->message, 0);
    adopt(ws, &handover, &head);
    buf_done(&head);
}
