/* A run's log as a WebSocket: whoever views it gets every line, then `end`, and stays. */
#include "worker/logs_ws.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/messages.h"
#include "common/scoreboard.h"
#include "worker/exchange.h"
#include "worker/kept_logs.h"
#include "worker/log_follower.h"
#include "worker/runs.h"
#include "worker/runs_results.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define VIEWER_RETRY_S 1.0
#define VIEWER_RETRIES 20u

struct log_viewer {
    struct log_place place; /* live runs */
    struct kept_logs *kept; /* finished ones */
    struct runs_wait wait;
    ev_timer retry;
    unsigned retries;
    bool heartbeat; /* the client asked for it */
    struct ws *ws;
    char run_id[MESSAGE_ID_SIZE];
};

static void
tell_error(struct log_viewer *v, const char *text)
{
    struct ws_bytes *message = log_message_error(text);
    ws_send_shared(v->ws, message);
    ws_bytes_unref(message);
}

static void
try_later(void *ctx)
{
    struct log_viewer *v = ctx;
    if (v->retries++ >= VIEWER_RETRIES) {
        tell_error(v, "The log cannot be read now: try again");
        return;
    }
    ev_timer_set(&v->retry, VIEWER_RETRY_S, 0.);
    ev_timer_start(worker_loop(), &v->retry);
}

static void
begin(void *ctx)
{
    struct log_viewer *v = ctx;
    struct run_row row;
    char text[MESSAGE_ID_SIZE + 32];
    if (!runs_find(v->run_id, &row) && !runs_listing().scanned) {
        try_later(v); /* the finished runs are still being counted */
    } else if (!runs_find(v->run_id, &row)) {
        snprintf(text, sizeof(text), "Run %s not found", v->run_id);
        tell_error(v, text);
    } else if (row.live) {
        log_follower_join(&v->place, v->run_id);
    } else {
        v->kept = kept_logs_new(v->ws, try_later, v);
        if (v->kept)
            kept_logs_start(v->kept, runs_epoch(), row.done->ref);
        else
            tell_error(v, "Out of memory");
    }
}

static void
begin_when_current(struct log_viewer *v)
{
    runs_wait(&v->wait, LIMIT_LIST_WAIT_MS, begin, v);
}

static void
on_retry(struct ev_loop *loop, ev_timer *w, int events)
{
    struct log_viewer *v = w->data;
    kept_logs_free(v->kept);
    v->kept = NULL;
    begin_when_current(v);
}

static void
on_opened(struct ws *ws, void *ctx)
{
    struct log_viewer *v = ctx;
    v->ws = v->place.ws = ws;
    scoreboard_add(SCORE_LOG_VIEWERS, 1);
    if (v->heartbeat)
        ws_send_heartbeats(ws);
    begin_when_current(v);
}

static void
on_drained(struct ws *ws, void *ctx)
{
    struct log_viewer *v = ctx;
    log_follower_resume(&v->place);
    if (v->kept)
        kept_logs_resume(v->kept);
}

static void
on_closed(struct ws *ws, void *ctx)
{
    struct log_viewer *v = ctx;
    if (v->ws)
        scoreboard_add(SCORE_LOG_VIEWERS, -1);
    runs_wait_cancel(&v->wait);
    ev_timer_stop(worker_loop(), &v->retry);
    log_follower_leave(&v->place);
    kept_logs_free(v->kept);
    free(v);
}

static const struct ws_handler logs_handler = {
    .name = "logs",
    .opened = on_opened,
    .drained = on_drained,
    .closed = on_closed,
};

void
handle_logs_ws(struct exchange *x)
{
    char flag[4];
    struct log_viewer *v = calloc(1, sizeof(*v));
    if (!v) {
        exchange_error(x, 503, "Try again", NULL);
        return;
    }
    snprintf(v->run_id, sizeof(v->run_id), "%s", exchange_param(x, 0));
    v->heartbeat = request_query(exchange_request(x), "heartbeat", flag, sizeof(flag)) == 1 &&
                   strcmp(flag, "1") == 0;
    ev_timer_init(&v->retry, on_retry, 0., 0.);
    v->retry.data = v;
    ws_accept(x, &logs_handler, v);
}
