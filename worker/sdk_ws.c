/*
 * A run's data as a WebSocket (contract 10.6): a run that is over is sent from its files once,
 * then the socket stays open. A run that goes on has a feed until it is over.
 */
#include "worker/sdk_ws.h"

#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "common/scoreboard.h"
#include "worker/dialog_read.h"
#include "worker/exchange.h"
#include "worker/feed.h"
#include "worker/run_source.h"
#include "worker/sdk_documents.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define VIEWER_RETRY_S 1.0
#define VIEWER_RETRIES 20u

struct sdk_viewer {
    struct ws *ws;
    struct run_source source;
    struct sdk_document document; /* fill is NULL: none is open */
    ev_timer timer;  /* the next slice, look or retry: what `on_timer` says */
    void (*on_timer)(struct sdk_viewer *v);
    unsigned step;   /* of sdk_steps */
    unsigned retries;
    double since;    /* the client has the dialog up to here */
    bool told_ready;
    bool heartbeat;  /* the client asked for it */
    struct feed_place place;
    bool in_message; /* the message at hand has begun */
    char run_id[MESSAGE_ID_SIZE];
};

static int
open_dialog(struct sdk_viewer *v, int fd, uint64_t size)
{
    return sdk_document_dialog(fd, size, v->since, &v->document);
}

/* What is sent of a finished run, in this order. */
static const struct {
    enum run_file file;
    int (*open)(int fd, uint64_t size, struct sdk_document *ret_document);
    int (*open_for)(struct sdk_viewer *v, int fd, uint64_t size);
} sdk_steps[] = {
    {RUN_FILE_SUMMARY, sdk_document_project, NULL},
    {RUN_FILE_FINAL_PATCH, sdk_document_files, NULL},
    {RUN_FILE_FINAL_PATCH, sdk_document_diff, NULL},
    {RUN_FILE_DIALOG, NULL, open_dialog},
    {RUN_FILE_RESULT, sdk_document_result, NULL},
};
#define N_STEPS (sizeof(sdk_steps) / sizeof(sdk_steps[0]))

static void find_run(struct sdk_viewer *v);
static void next_step(struct sdk_viewer *v);

static void
later(struct sdk_viewer *v, double seconds, void (*fn)(struct sdk_viewer *v))
{
    v->on_timer = fn;
    ev_timer_stop(worker_loop(), &v->timer);
    ev_timer_set(&v->timer, seconds, 0.);
    ev_timer_start(worker_loop(), &v->timer);
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
    struct sdk_viewer *v = w->data;
    v->on_timer(v);
}

static void
tell_status(struct sdk_viewer *v, const char *status, const char *error)
{
    struct buf out;
    struct json_writer w;
    buf_init(&out, 0);
    json_begin(&w, &out);
    json_object_open(&w);
    json_key(&w, "type");
    json_cstring(&w, "status");
    json_key(&w, "status");
    json_cstring(&w, status);
    if (error) {
        json_key(&w, "error");
        json_cstring(&w, error);
    }
    json_object_close(&w);
    if (!out.failed)
        ws_send_text(v->ws, out.data, out.len);
    buf_done(&out);
}

static void
retry_or_give_up(struct sdk_viewer *v)
{
    if (v->retries++ < VIEWER_RETRIES)
        later(v, VIEWER_RETRY_S, find_run);
    else
        tell_status(v, "error", "The run cannot be read now: try again");
}

/* --- documents ----------------------------------------------------------------------------- */

static void
close_document(struct sdk_viewer *v)
{
    if (v->document.fill)
        v->document.done(v->document.ctx);
    v->document = (struct sdk_document){0};
}

static void
finish_step(struct sdk_viewer *v)
{
    close_document(v);
    v->step++;
    v->retries = 0;
    next_step(v);
}

/* One slice, then the others have a turn. A full queue: on_drained goes on. */
static void
send_slice(struct sdk_viewer *v)
{
    struct buf out;
    bool ends = false;
    if (!v->document.fill || ws_queue_full(v->ws))
        return;
    buf_init(&out, 0);
    int more = v->document.fill(v->document.ctx, &out, &ends);
    if (out.failed || (more < 0 && v->in_message)) {
        /* Half a message cannot be taken back. */
        buf_done(&out);
        ws_close(v->ws, 1011, "The run's files cannot be read");
        return;
    }
    if (out.len > 0 || (ends && v->in_message)) {
        ws_send_part(v->ws, out.len ? out.data : "", out.len, !v->in_message, ends);
        v->in_message = !ends;
    }
    buf_done(&out);
    if (more == 1)
        later(v, 0., send_slice);
    else
        finish_step(v);
}

static void
on_file(void *ctx)
{
    struct sdk_viewer *v = ctx;
    struct run_source *s = &v->source;
    if (s->status == ANSWER_BUSY || s->status == ANSWER_TIMEOUT) {
        retry_or_give_up(v);
        return;
    }
    if (s->status != ANSWER_OK) {
        finish_step(v); /* missing: there is nothing to tell */
        return;
    }
    int fd = s->fd;
    s->fd = -1;
    int err = sdk_steps[v->step].open_for
                  ? sdk_steps[v->step].open_for(v, fd, s->size)
                  : sdk_steps[v->step].open(fd, s->size, &v->document);
    if (err != 0) {
        ws_close(v->ws, 1013, "Out of memory");
        return;
    }
    send_slice(v);
}

static void
next_step(struct sdk_viewer *v)
{
    if (v->step < N_STEPS)
        run_source_open(&v->source, sdk_steps[v->step].file, on_file, v);
}

/* --- where the run is ------------------------------------------------------------------------ */

/* What the feed did not tell any more, the files add. */
static void
on_over(void *ctx)
{
    struct sdk_viewer *v = ctx;
    feed_leave(&v->place);
    v->since = v->place.last_seq;
    v->told_ready = v->place.told_ready;
    later(v, 0., find_run);
}

static void
watch_live(struct sdk_viewer *v)
{
    v->place.ws = v->ws;
    v->place.last_seq = v->since;
    v->place.told_ready = v->told_ready;
    v->place.over = on_over;
    v->place.ctx = v;
    feed_join(&v->place, v->run_id);
}

static void
on_found(void *ctx)
{
    struct sdk_viewer *v = ctx;
    switch (v->source.place) {
    case PLACE_UNKNOWN:
        if (!v->told_ready)
            tell_status(v, "error", "Run not found");
        break;
    case PLACE_DAEMON:
        watch_live(v);
        break;
    case PLACE_NOTHING:
        if (!v->told_ready)
            tell_status(v, "error", "The run is over and left nothing to show");
        break;
    case PLACE_TRY_AGAIN:
        retry_or_give_up(v);
        break;
    case PLACE_FILES:
        if (!v->told_ready)
            tell_status(v, "ready", NULL);
        v->told_ready = true;
        next_step(v);
        break;
    }
}

static void
find_run(struct sdk_viewer *v)
{
    run_source_done(&v->source);
    run_source_find(&v->source, v->run_id, false, on_found, v);
}

/* --- the socket -------------------------------------------------------------------------------- */

static void
on_opened(struct ws *ws, void *ctx)
{
    struct sdk_viewer *v = ctx;
    v->ws = ws;
    scoreboard_add(SCORE_FEED_VIEWERS, 1);
    if (v->heartbeat)
        ws_send_heartbeats(ws);
    find_run(v);
}

static void
on_drained(struct ws *ws, void *ctx)
{
    struct sdk_viewer *v = ctx;
    feed_resume(&v->place);
    send_slice(v);
}

static void
on_closed(struct ws *ws, void *ctx)
{
    struct sdk_viewer *v = ctx;
    if (v->ws)
        scoreboard_add(SCORE_FEED_VIEWERS, -1);
    ev_timer_stop(worker_loop(), &v->timer);
    feed_leave(&v->place);
    run_source_done(&v->source);
    close_document(v);
    free(v);
}

static const struct ws_handler sdk_handler = {
    .name = "sdk",
    .opened = on_opened,
    .drained = on_drained,
    .closed = on_closed,
};

/* `since` of the request; absent: -1, before the first entry, as for agent/dialog. */
static int
read_since(struct exchange *x, double *ret_since)
{
    char text[32];
    int found = request_query(exchange_request(x), "since", text, sizeof(text));
    *ret_since = -1;
    if (found == 0)
        return 0;
    return found == 1 && dialog_since_parse(text, ret_since) ? 0 : -EBADMSG;
}

void
handle_sdk_ws(struct exchange *x)
{
    double since;
    char flag[4];
    if (read_since(x, &since) != 0) {
        exchange_error(x, 400, "Invalid since: expected a sequence number", NULL);
        return;
    }
    struct sdk_viewer *v = calloc(1, sizeof(*v));
    if (!v) {
        exchange_error(x, 503, "Try again", NULL);
        return;
    }
    v->since = since;
    v->heartbeat = request_query(exchange_request(x), "heartbeat", flag, sizeof(flag)) == 1 &&
                   strcmp(flag, "1") == 0;
    v->source.fd = -1;
    message_string_set(v->run_id, sizeof(v->run_id), exchange_param(x, 0));
    ev_timer_init(&v->timer, on_timer, 0., 0.);
    v->timer.data = v;
    ws_accept(x, &sdk_handler, v);
}

/* How many watch, in all workers; and what this one knows of its own feeds. */
void
handle_sdk_connections(struct exchange *x)
{
    struct buf body;
    buf_init(&body, 0);
    buf_add_format(&body, "{\"totalConnections\":%llu,\"connections\":",
                   (unsigned long long)scoreboard_sum(SCORE_FEED_VIEWERS));
    feed_report(&body);
    buf_add_str(&body, "}");
    exchange_json(x, 200, &body);
}
