/*
 * OpenCode's events as a WebSocket (contract 9.4, 10.6): one stream for each viewer, its own
 * events and nobody else's. When the stream breaks, it is taken up again and the present state
 * is told, so that nobody sits before a question that was asked meanwhile.
 */
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "common/utf8.h"
#include "worker/container_http.h"
#include "worker/exchange.h"
#include "worker/opencode.h"
#include "worker/opencode_find.h"
#include "worker/opencode_op.h"
#include "worker/opencode_stream.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define RETRY_FIRST_S 1.
#define RETRY_MOST_S 10.
#define HEARTBEAT_S 15.

static const char NOT_CONNECTED[] =
    "Failed to connect to OpenCode event stream - OpenCode may not be running";

struct event_viewer {
    struct ws *ws;
    struct opencode_find find;
    struct container_call *stream, *call; /* the events; one question beside them */
    void (*answered)(struct event_viewer *v, const struct container_answer *a,
                     const struct json_value *root); /* that question's */
    struct opencode_stream lines;
    struct opencode_filter filter;
    ev_timer retry, heartbeat;
    double retry_s;
    bool wants_heartbeat, told_down;
    uint16_t token; /* in whose name */
    char run_id[MESSAGE_ID_SIZE];
    char directory[OPENCODE_DIRECTORY_SIZE]; /* asked for, or the session's */
};

/* --- frames ------------------------------------------------------------------------------ */

static void
send_buf(struct event_viewer *v, struct buf *out)
{
    if (!out->failed)
        ws_send_text(v->ws, out->data, out->len);
    buf_done(out);
    if (v->stream != NULL && ws_queue_full(v->ws))
        container_call_pause(v->stream);
}

/* {"type":type,"data":{name:text}} */
static void
tell(struct event_viewer *v, const char *type, const char *name, const char *text)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, 0);
    json_begin(&w, &out);
    json_object_open(&w);
    json_key(&w, "type");
    json_cstring(&w, type);
    json_key(&w, "data");
    json_object_open(&w);
    json_key(&w, name);
    json_cstring(&w, text);
    json_object_close(&w);
    json_object_close(&w);
    send_buf(v, &out);
}

/* {"type":type,"data":<the event as it came>} */
static void
relay(struct event_viewer *v, const char *type, const char *event, size_t len)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, 0);
    json_begin(&w, &out);
    json_object_open(&w);
    json_key(&w, "type");
    json_cstring(&w, type);
    json_key(&w, "data");
    json_raw(&w, event, len);
    json_object_close(&w);
    send_buf(v, &out);
}

/* An event of ours in OpenCode's shape: the state when the stream began. With `session`, the
 * value is its status; else it is all of the properties. */
static void
tell_state(struct event_viewer *v, const char *type, const char *session,
           const struct json_value *value)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, 0);
    json_begin(&w, &out);
    json_object_open(&w);
    json_key(&w, "type");
    json_cstring(&w, type);
    json_key(&w, "properties");
    if (session != NULL) {
        json_object_open(&w);
        json_key(&w, "sessionID");
        json_cstring(&w, session);
        json_key(&w, "status");
        if (value != NULL)
            json_value(&w, value);
        else
            json_raw(&w, "{\"type\":\"idle\"}", 15);
        json_object_close(&w);
    } else {
        json_value(&w, value);
    }
    json_object_close(&w);
    if (!out.failed)
        relay(v, type, out.data, out.len);
    buf_done(&out);
}

/* --- ups and downs ------------------------------------------------------------------------- */

static void begin(struct event_viewer *v);

static void
let_go(struct event_viewer *v)
{
    opencode_find_cancel(&v->find);
    container_call_cancel(v->stream);
    container_call_cancel(v->call);
    v->stream = v->call = NULL;
    opencode_stream_done(&v->lines);
    opencode_stream_init(&v->lines);
}

static void
retry_later(struct event_viewer *v)
{
    if (!v->told_down)
        tell(v, "error", "error", NOT_CONNECTED);
    v->told_down = true;
    let_go(v);
    ev_timer_stop(worker_loop(), &v->retry);
    ev_timer_set(&v->retry, v->retry_s, 0.);
    ev_timer_start(worker_loop(), &v->retry);
    v->retry_s = v->retry_s * 2 < RETRY_MOST_S ? v->retry_s * 2 : RETRY_MOST_S;
}

static void
on_retry(struct ev_loop *loop, ev_timer *w, int events)
{
    begin(w->data);
}

/* `root`: of its JSON, NULL when it is none or no success. */
static void
on_answer(void *ctx, const struct container_answer *a)
{
    struct event_viewer *v = ctx;
    struct json_doc *doc = a->error == 0 && a->status / 100 == 2 && a->is_json
                               ? json_parse(a->body, a->len, false, NULL)
                               : NULL;

    v->call = NULL;
    v->answered(v, a, json_root(doc));
    json_doc_free(doc);
}

/* A question beside the stream. When it cannot be asked, the attempt is over. */
static void
ask(struct event_viewer *v, const char *target,
    void (*answered)(struct event_viewer *v, const struct container_answer *a,
                     const struct json_value *root))
{
    const struct container_request q = {
        .token = v->token, .run_id = v->run_id, .port = v->find.port, .method = "GET", .target = target,
        .directory = v->directory, .timeout_ms = LIMIT_OPENCODE_CALL_MS,
        .max_body = LIMIT_OPENCODE_ANSWER, .done = on_answer, .ctx = v};

    v->answered = answered;
    v->call = container_call_start(&q);
    if (v->call == NULL)
        retry_later(v);
}

/* --- the state when it begins ---------------------------------------------------------------- */

static const struct json_value *
first_of(const struct json_value *root, enum json_type type)
{
    return root != NULL && root->type == type ? root->first : NULL;
}

static void
on_permissions(struct event_viewer *v, const struct container_answer *a,
               const struct json_value *root)
{
    for (const struct json_value *m = first_of(root, JSON_ARRAY); m != NULL; m = m->next) {
        const char *session = json_text(json_get(m, "sessionID"));

        if (session != NULL &&
            (*v->filter.session == '\0' || opencode_filter_has(&v->filter, session)))
            tell_state(v, "permission.asked", NULL, m);
    }
}

/* Only of those at work: a request outlives its turn's abort in OpenCode's list. */
static void
on_status(struct event_viewer *v, const struct container_answer *a,
          const struct json_value *root)
{
    const struct json_value *first = first_of(root, JSON_OBJECT), *own;

    if (root == NULL || root->type != JSON_OBJECT)
        return;
    if (*v->filter.session != '\0') {
        own = json_get(root, v->filter.session);
        tell_state(v, "session.status", v->filter.session, own);
        first = own;
    } else {
        for (const struct json_value *m = first; m != NULL; m = m->next)
            tell_state(v, "session.status", m->key, m);
    }
    if (first != NULL)
        ask(v, "/permission", on_permissions);
}

static void
on_children(struct event_viewer *v, const struct container_answer *a,
            const struct json_value *root)
{
    for (const struct json_value *m = first_of(root, JSON_ARRAY); m != NULL; m = m->next) {
        const char *id = json_text(json_get(m, "id"));

        if (id != NULL)
            opencode_filter_add_child(&v->filter, id);
    }
    ask(v, "/session/status", on_status);
}

/* --- the stream -------------------------------------------------------------------------------- */

static bool
on_event(void *ctx, const char *data, size_t len)
{
    struct event_viewer *v = ctx;
    struct json_doc *doc;
    const char *type;

    if (data == NULL) {
        tell(v, "error", "error", "An event of more than 16 MiB was left out");
        return true;
    }
    doc = utf8_valid(data, len) ? json_parse(data, len, false, NULL) : NULL;
    type = doc != NULL ? json_text(json_get(json_root(doc), "type")) : NULL;
    if (type != NULL && opencode_filter_passes(&v->filter, json_root(doc)))
        relay(v, type, data, len);
    json_doc_free(doc);
    return true;
}

static void
on_piece(void *ctx, const char *bytes, size_t len)
{
    struct event_viewer *v = ctx;

    opencode_stream_feed(&v->lines, bytes, len, on_event, v);
}

/* The stream is there, so nothing that happens from now on is missed: ask how things stand. */
static void
on_begun(void *ctx, bool is_json)
{
    struct event_viewer *v = ctx;
    char target[OPENCODE_ID_SIZE + 32];

    if (is_json)
        return; /* no stream: its end will tell */
    v->told_down = false;
    v->retry_s = RETRY_FIRST_S;
    tell(v, "connection", "status", "connected");
    if (*v->filter.session == '\0') {
        ask(v, "/session/status", on_status);
        return;
    }
    snprintf(target, sizeof target, "/session/%s/children", v->filter.session);
    ask(v, target, on_children);
}

static void
on_stream_end(void *ctx, const struct container_answer *a)
{
    struct event_viewer *v = ctx;

    v->stream = NULL;
    retry_later(v);
}

static void
open_stream(struct event_viewer *v)
{
    const struct container_request q = {
        .token = v->token, .run_id = v->run_id, .port = v->find.port, .method = "GET", .target = "/event",
        .directory = v->directory, .max_body = LIMIT_OPENCODE_ANSWER, .piece = on_piece,
        .begun = on_begun, .done = on_stream_end, .ctx = v};

    v->stream = container_call_start(&q);
    if (v->stream == NULL)
        retry_later(v);
}

/* Events are told in the directory of their session and nowhere else. */
static void
on_session(struct event_viewer *v, const struct container_answer *a,
           const struct json_value *root)
{
    const char *directory = json_text(json_get(root, "directory"));

    if (directory != NULL && opencode_directory_valid(directory))
        message_string_set(v->directory, sizeof v->directory, directory);
    if (a->error == 0)
        open_stream(v);
    else
        retry_later(v);
}

static void
on_found(void *ctx)
{
    struct event_viewer *v = ctx;
    char target[OPENCODE_ID_SIZE + 32];

    if (v->find.place != OPENCODE_UP) {
        retry_later(v);
    } else if (*v->filter.session == '\0') {
        open_stream(v);
    } else {
        snprintf(target, sizeof target, "/session/%s", v->filter.session);
        ask(v, target, on_session);
    }
}

static void
begin(struct event_viewer *v)
{
    let_go(v);
    opencode_find(&v->find, v->token, v->run_id, OPENCODE_LOOK, on_found, v);
}

/* --- the socket ---------------------------------------------------------------------------------- */

static void
on_heartbeat(struct ev_loop *loop, ev_timer *w, int events)
{
    static const char text[] = "{\"type\":\"heartbeat\",\"intervalMs\":15000}";
    struct event_viewer *v = w->data;

    ws_send_text(v->ws, text, sizeof text - 1);
}

static void
on_opened(struct ws *ws, void *ctx)
{
    struct event_viewer *v = ctx;

    v->ws = ws;
    if (v->wants_heartbeat) {
        on_heartbeat(worker_loop(), &v->heartbeat, 0);
        ev_timer_start(worker_loop(), &v->heartbeat);
    }
    begin(v);
}

static void
on_drained(struct ws *ws, void *ctx)
{
    struct event_viewer *v = ctx;

    if (v->stream != NULL)
        container_call_resume(v->stream);
}

/* The viewer's leaving ends its stream upstream too. */
static void
on_closed(struct ws *ws, void *ctx)
{
    struct event_viewer *v = ctx;

    ev_timer_stop(worker_loop(), &v->retry);
    ev_timer_stop(worker_loop(), &v->heartbeat);
    let_go(v);
    opencode_stream_done(&v->lines);
    free(v);
}

static const struct ws_handler events_handler = {
    .name = "assistant",
    .opened = on_opened,
    .drained = on_drained,
    .closed = on_closed,
};

static const char *
take_query(struct event_viewer *v, const struct request *q)
{
    char flag[8];

    if (request_query(q, "sessionId", v->filter.session, sizeof v->filter.session) < 0 ||
        (*v->filter.session != '\0' && !opencode_id_valid(v->filter.session, "ses")))
        return "Invalid sessionId";
    if (request_query(q, "directory", v->directory, sizeof v->directory) < 0 ||
        (*v->directory != '\0' && !opencode_directory_valid(v->directory)))
        return "Invalid directory: expected an absolute path";
    v->wants_heartbeat = request_query(q, "heartbeat", flag, sizeof flag) == 1 &&
                         strcmp(flag, "1") == 0;
    return NULL;
}

void
handle_opencode_events_ws(struct exchange *x)
{
    struct event_viewer *v = calloc(1, sizeof *v);
    const char *fault;

    if (v == NULL) {
        exchange_error(x, 503, "Try again", NULL);
        return;
    }
    fault = take_query(v, exchange_request(x));
    if (fault != NULL) {
        free(v);
        exchange_error(x, 400, fault, NULL);
        return;
    }
    message_string_set(v->run_id, sizeof v->run_id, exchange_param(x, 0));
    v->token = exchange_token(x);
    opencode_stream_init(&v->lines);
    v->retry_s = RETRY_FIRST_S;
    ev_timer_init(&v->retry, on_retry, 0., 0.);
    v->retry.data = v;
    ev_timer_init(&v->heartbeat, on_heartbeat, HEARTBEAT_S, HEARTBEAT_S);
    v->heartbeat.data = v;
    ws_accept(x, &events_handler, v);
}
