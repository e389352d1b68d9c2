/* WebSockets on libwebsockets: a socket's life, receiving, sending, closing, keeping alive. */
#include "worker/ws_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libwebsockets.h>

#include "common/limits.h"
#include "common/log.h"
#include "common/scoreboard.h"
#include "common/utf8.h"
#include "worker/handover.h"
#include "worker/ws_recv.h"

#define WS_READ_SIZE 1024u   /* bytes of one read: the library keeps such a buffer per socket */
#define WS_BURST (256u * 1024u) /* bytes sent for one socket before the others have a turn */
#define WS_PIECE_COST 512u   /* what sending a piece costs beside its bytes, in bytes */
#define WS_TICK_MS 1000u
#define WS_SLOTS (LIMIT_WS_PING_MS / WS_TICK_MS) /* sockets are pinged in turn, slot by slot */
#define WS_STALL_ROUNDS (LIMIT_WRITE_STALL_MS / LIMIT_WS_PING_MS)
#define WS_CLOSE_GOING_AWAY 1001
#define WS_CLOSE_PROTOCOL 1002
#define WS_CLOSE_NOT_UTF8 1007
#define WS_CLOSE_TOO_BIG 1009

static struct lws_context *ws_context;
static struct lws_vhost *ws_vhost;
static lws_sorted_usec_list_t ws_tick_timer;
static struct ws *ws_slots[WS_SLOTS];
static unsigned ws_slot_now, ws_slot_next;
static const char *ws_stopping; /* reason of the shutdown, once it began */

/* The library gives a new connection no argument: it is the one ws_adopt is at. */
static struct ws *ws_adopting;

static unsigned char ws_scratch[LWS_PRE + LIMIT_WS_FRAGMENT];

/* --- one socket's life ---------------------------------------------------------------- */

static void
slot_insert(struct ws *ws)
{
    struct ws **head = &ws_slots[ws_slot_next++ % WS_SLOTS];
    ws->next = *head;
    ws->link = head;
    if (ws->next)
        ws->next->link = &ws->next;
    *head = ws;
}

static void
slot_remove(struct ws *ws)
{
    if (!ws->link)
        return;
    *ws->link = ws->next;
    if (ws->next)
        ws->next->link = ws->link;
    ws->link = NULL;
}

void
ws_wake(struct ws *ws)
{
    if (ws->wsi && ws->opened && !ws->over)
        lws_callback_on_writable(ws->wsi);
}

static void
on_established(struct ws *ws)
{
    ws->opened = true;
    slot_insert(ws);
    scoreboard_add(SCORE_WEBSOCKETS, 1);
    ws->handler->opened(ws, ws->ctx);
    if (ws_stopping)
        ws_close(ws, WS_CLOSE_GOING_AWAY, ws_stopping);
    if (ws->close_code != 0 || ws->frames.broken)
        ws_wake(ws); /* its first bytes, which came with the handshake, were wrong */
}

void
ws_end(struct ws *ws)
{
    if (ws->over)
        return;
    ws->over = true;
    if (ws->fd >= 0)
        ws_recv_watch(ws->fd, NULL, NULL); /* soon it may be another's */
    slot_remove(ws);
    ws_queue_clear(&ws->queue);
    buf_done(&ws->message);
    if (ws->opened)
        scoreboard_add(SCORE_WEBSOCKETS, -1);
    ws->handler->closed(ws->opened ? ws : NULL, ws->ctx);
}

static void
on_destroy(struct ws *ws)
{
    ws_end(ws);
    lws_set_opaque_user_data(ws->wsi, NULL);
    connection_slot_release(ws->slot);
    free(ws);
}

/* --- receiving ------------------------------------------------------------------------- */

void
ws_fail(struct ws *ws, uint16_t code, const char *reason)
{
    ws_queue_clear(&ws->queue);
    ws_close(ws, code, reason);
}

/* The client's bytes on their way into the library. Any of them is a sign of life: the library
 * does not tell of an empty pong. Past a broken rule it gets nothing more: we close behind what
 * the good bytes were answered, and when the client has closed too the connection ends. */
ssize_t
ws_on_bytes(void *ctx, const void *bytes, size_t len)
{
    struct ws *ws = ctx;
    size_t kept = ws_frames_follow(&ws->frames, bytes, len);
    ws->idle_rounds = 0;
    ws->pong_due = false;
    if (ws->frames.broken && ws->close_code == 0)
        ws_wake(ws);
    if (kept == 0 && ws->frames.broken && ws->frames.close_seen && ws->close_sent)
        return -1;
    return (ssize_t)kept;
}

/* The library bounds frames by nothing: a message is counted here, piece by piece. */
static void
on_receive(struct ws *ws, const char *bytes, size_t len)
{
    if (ws->close_code != 0)
        return;
    bool whole = lws_is_final_fragment(ws->wsi) && lws_remaining_packet_payload(ws->wsi) == 0;
    ws->n_received += len;
    if (ws->n_received > LIMIT_WS_MESSAGE) {
        buf_done(&ws->message);
        ws_fail(ws, WS_CLOSE_TOO_BIG, "Message too large");
        return;
    }
    bool binary = lws_frame_is_binary(ws->wsi) != 0;
    if (ws->handler->received || !binary)
        buf_add(&ws->message, bytes, len);
    if (!whole)
        return;
    ws->n_received = 0;
    if (ws->message.failed)
        ws_fail(ws, WS_CLOSE_TRY_LATER, "Out of memory");
    else if (!binary && ws->message.len > 0 &&
             utf8_incomplete_tail(ws->message.data, ws->message.len) > 0)
        /* The library has checked the rest, but forgets this when the last frame is empty. */
        ws_fail(ws, WS_CLOSE_NOT_UTF8, "Text must be UTF-8");
    else if (ws->handler->received)
        ws->handler->received(ws, ws->ctx, ws->message.len ? ws->message.data : "",
                              ws->message.len, binary);
    buf_done(&ws->message);
}

/* --- sending --------------------------------------------------------------------------- */

static int
send_ping(struct ws *ws)
{
    ws->ping_due = false;
    ws->pong_due = true;
    return lws_write(ws->wsi, ws_scratch + LWS_PRE, 0, LWS_WRITE_PING) < 0 ? -EPIPE : 0;
}

/* The library writes a frame's head in front of the bytes, so shared ones are copied. */
static int
send_piece(struct ws *ws, const struct ws_piece *piece)
{
    int flags = piece->binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT;
    if (!piece->first)
        flags = LWS_WRITE_CONTINUATION;
    if (!piece->last)
        flags |= LWS_WRITE_NO_FIN;
    memcpy(ws_scratch + LWS_PRE, piece->at, piece->len);
    int sent = lws_write(ws->wsi, ws_scratch + LWS_PRE, piece->len,
                         (enum lws_write_protocol)flags);
    return sent < (int)piece->len ? -EPIPE : 0;
}

static int
send_queue(struct ws *ws)
{
    size_t burst = 0;
    struct ws_piece piece;
    while (burst < WS_BURST && !lws_partial_buffered(ws->wsi) &&
           ws_queue_peek(&ws->queue, LIMIT_WS_FRAGMENT, &piece)) {
        if (send_piece(ws, &piece) != 0)
            return -EPIPE;
        burst += piece.len + WS_PIECE_COST;
        ws_queue_taken(&ws->queue, &piece);
        ws->idle_rounds = 0;
    }
    return 0;
}

/* The only place that closes: elsewhere the library drops the connection without a close
 * frame. */
static int
on_writeable(struct ws *ws)
{
    /* The library has found something (UTF-8, a close code) and closes by itself; it would
     * still send whatever it is given (RFC 6455, 5.5.1: nothing behind a close frame). */
    if (ws->close_code == 0 && lws_get_close_length(ws->wsi) > 0) {
        ws_queue_clear(&ws->queue);
        ws->close_code = WS_CLOSE_PROTOCOL;
        ws->close_sent = true;
    }
    if (ws->close_sent)
        return 0;
    if (ws->frames.broken)
        ws_close(ws, WS_CLOSE_PROTOCOL, ws->frames.broken);
    if (ws->ping_due && send_ping(ws) != 0)
        return -1;
    if (send_queue(ws) != 0)
        return -1;
    if (ws->full_seen && ws_queued_cost(ws) < LIMIT_WS_QUEUE / 2 && ws->close_code == 0) {
        ws->full_seen = false;
        if (ws->handler->drained)
            ws->handler->drained(ws, ws->ctx);
    }
    if (ws->queue.n == 0 && !lws_partial_buffered(ws->wsi) && ws->close_code == 0 &&
        ws->handler->emptied)
        ws->handler->emptied(ws, ws->ctx);
    if (ws->queue.n > 0 || lws_partial_buffered(ws->wsi)) {
        ws_wake(ws);
        return 0;
    }
    if (ws->close_code == 0)
        return 0;
    ws->close_sent = true;
    lws_close_reason(ws->wsi, (enum lws_close_status)ws->close_code,
                     (unsigned char *)(uintptr_t)ws->close_reason,
                     strlen(ws->close_reason));
    return -1;
}

/* --- keeping alive ------------------------------------------------------------------------ */

/* A peer that is silent for a whole round after a ping, or takes nothing for the stall limit,
 * is gone; a close frame would not reach it. */
static void
check_socket(struct ws *ws)
{
    ws->idle_rounds++;
    bool stalled = ws->queue.n > 0 || ws->ping_due || ws->close_code != 0;
    if (ws->pong_due || (stalled && ws->idle_rounds > WS_STALL_ROUNDS)) {
        log_event(LOG_LEVEL_DEBUG, "ws.hangup", "kind=%s", ws->handler->name);
        lws_set_timeout(ws->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
        return;
    }
    ws->ping_due = true;
    if (ws->heartbeats && !ws->in_message && ws->queue.n == 0)
        ws_send_heartbeat(ws);
    ws_wake(ws);
}

/* Every second, because the library's libev plugin does not shorten a running timer: without
 * this its own deadlines come late. Each tick serves one slot of sockets. */
static void
on_tick(lws_sorted_usec_list_t *timer)
{
    lws_sul_schedule(ws_context, 0, timer, on_tick, WS_TICK_MS * LWS_US_PER_MS);
    ws_slot_now = (ws_slot_now + 1) % WS_SLOTS;
    struct ws *next;
    for (struct ws *ws = ws_slots[ws_slot_now]; ws; ws = next) {
        next = ws->next;
        check_socket(ws);
    }
}

/* --- the library's callback ------------------------------------------------------------------ */

static int
on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
    struct ws *ws = wsi ? lws_get_opaque_user_data(wsi) : NULL;
    /* Not a switch: the library has a hundred reasons, and more in each version. */
    if (reason == LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED) {
        if (!ws_adopting)
            return -1;
        ws_adopting->wsi = wsi;
        lws_set_opaque_user_data(wsi, ws_adopting);
        ws_adopting = NULL;
    } else if (!ws) {
        /* Nothing but our adopted connections may live in this context. */
        return reason == LWS_CALLBACK_HTTP || reason == LWS_CALLBACK_RAW_ADOPT ? -1 : 0;
    } else if (reason == LWS_CALLBACK_ESTABLISHED) {
        on_established(ws);
    } else if (reason == LWS_CALLBACK_RECEIVE) {
        on_receive(ws, in, len);
    } else if (reason == LWS_CALLBACK_SERVER_WRITEABLE) {
        return on_writeable(ws);
    } else if (reason == LWS_CALLBACK_CLOSED) {
        ws_end(ws);
    } else if (reason == LWS_CALLBACK_WSI_DESTROY) {
        on_destroy(ws);
    } else if (reason == LWS_CALLBACK_HTTP) {
        return -1;
    }
    return 0;
}

static const struct lws_protocols ws_protocols[] = {
    {.name = WS_SUBPROTOCOL,
     .callback = on_event,
     .rx_buffer_size = WS_READ_SIZE,
     .tx_packet_size = LIMIT_WS_FRAGMENT + LWS_PRE},
    {0},
};

/* --- adopting -------------------------------------------------------------------------------------- */

bool
ws_adopt(struct ws *ws, int fd, const struct buf *head)
{
    ws_adopting = ws;
    /* Closes the descriptor itself when it fails, and may have ended `ws` by the time it
     * returns: only ws_adopting tells whether it ever took it. */
    lws_adopt_socket_vhost_readbuf(ws_vhost, fd, head->data, head->len);
    if (!ws_adopting)
        return true;
    ws_adopting = NULL;
    return false;
}

/* --- all of them ------------------------------------------------------------------------------- */

void
ws_close_all(const char *reason)
{
    ws_stopping = reason;
    for (unsigned i = 0; i < WS_SLOTS; i++)
        for (struct ws *ws = ws_slots[i]; ws; ws = ws->next)
            ws_close(ws, WS_CLOSE_GOING_AWAY, reason);
}

unsigned
ws_close_tokens(bool (*valid)(uint16_t token), uint16_t code, const char *reason)
{
    unsigned n = 0;
    for (unsigned i = 0; i < WS_SLOTS; i++)
        for (struct ws *ws = ws_slots[i]; ws; ws = ws->next) {
            if (ws->close_code != 0 || valid(ws->token))
                continue;
            ws_fail(ws, code, reason);
            n++;
        }
    return n;
}

/* --- the library's context ------------------------------------------------------------------------ */

/* Its own emitter would open /etc/localtime (the sandbox kills for that) and repeats bytes of
 * the peer. */
static void
emit_log(int level, const char *line)
{
    size_t len = strlen(line);
    while (len > 0 && line[len - 1] == '\n')
        len--;
    log_event(LOG_LEVEL_ERROR, "ws.library", "text=%s", log_quote(line, len));
}

int
ws_init(struct ev_loop *loop)
{
    void *loops[1] = {loop};
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN_SERVER,
        .protocols = ws_protocols,
        .foreign_loops = loops,
        .gid = (gid_t)-1,
        .uid = (uid_t)-1,
        .max_http_header_data = 1024, /* the head that write_head makes has about 200 bytes */
        .max_http_header_pool = 4,    /* adoption reads its head at once: one would do */
        .timeout_secs = LIMIT_WS_CLOSE_MS / 1000,
        .options = LWS_SERVER_OPTION_LIBEV | LWS_SERVER_OPTION_VALIDATE_UTF8 |
                   LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME,
    };
    lws_set_log_level(LLL_ERR, emit_log);
    ws_context = lws_create_context(&info);
    ws_vhost = ws_context ? lws_get_vhost_by_name(ws_context, "default") : NULL;
    if (!ws_vhost)
        return -ENOSYS;
    /* From here on it reports every adoption as an error, and what peers do to it. */
    lws_set_log_level(0, emit_log);
    lws_sul_schedule(ws_context, 0, &ws_tick_timer, on_tick, WS_TICK_MS * LWS_US_PER_MS);
    return 0;
}
