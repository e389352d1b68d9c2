/* From bytes of a container to a checked document in memory, bounded for all of them. */
#include "worker/daemon.h"

#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/utf8.h"
#include "worker/body_scan.h"
#include "worker/dialog_read.h"
#include "worker/upstream.h"
#include "worker/worker.h"

struct daemon_call {
    struct upstream *upstream;
    daemon_fn fn;
    void *ctx;
    int status;
    int error;
    size_t held; /* of `body`, counted in all_held */
    struct buf body;
    size_t room;        /* bytes in front of the document */
    uint64_t received;
    bool cut;           /* what is over the limit is left out */
    bool over;          /* ... and there was more */
    ev_timer timer;     /* telling it then */
    const char *member;
    struct body_scan scan;
    unsigned n_tail; /* the beginning of a character whose rest is to come */
    char tail[4];
    char url[MESSAGE_URL_SIZE]; /* after stop_reading */
};

static size_t all_held;

static void
free_call(struct daemon_call *call)
{
    all_held -= call->held;
    ev_timer_stop(worker_loop(), &call->timer);
    buf_done(&call->body);
    free(call);
}

void
daemon_cancel(struct daemon_call *call)
{
    if (!call->over)
        upstream_cancel(call->upstream);
    free_call(call);
}

static void
on_head(void *ctx, int status, const char *type)
{
    struct daemon_call *call = ctx;

    call->status = status;
    if (status != 200 && status < 400)
        call->error = -EBADMSG; /* a redirection is no answer of a daemon */
}

static void
add_clean(struct daemon_call *call, const char *bytes, size_t len)
{
    size_t before = call->body.len;

    dialog_add_clean(&call->body, bytes, len);
    if (!call->body.failed)
        body_scan_feed(&call->scan, call->body.data + before, call->body.len - before);
    all_held += call->body.len - before;
    call->held += call->body.len - before;
}

/* A character cut by the read border is put together first. */
static void
add_bytes(struct daemon_call *call, const char *bytes, size_t len)
{
    size_t hold;

    while (call->n_tail > 0 && len > 0) {
        call->tail[call->n_tail++] = *bytes++;
        len--;
        if (call->n_tail == 4 || utf8_incomplete_tail(call->tail, call->n_tail) == 0) {
            unsigned n = call->n_tail;

            call->n_tail = 0;
            add_clean(call, call->tail, n);
        }
    }
    hold = utf8_incomplete_tail(bytes, len);
    if (hold > 0) {
        memcpy(call->tail, bytes + len - hold, hold);
        call->n_tail = (unsigned)hold;
    }
    if (len > hold)
        add_clean(call, bytes, len - hold);
}

/* Enough: what is there is told from the loop, as every end is. */
static void
stop_reading(struct daemon_call *call)
{
    const char *url = upstream_url(call->upstream);

    call->over = true;
    message_string_set(call->url, sizeof call->url, url != NULL ? url : "");
    upstream_cancel(call->upstream);
    ev_timer_start(worker_loop(), &call->timer);
}

static void
on_data(void *ctx, const char *bytes, size_t len)
{
    struct daemon_call *call = ctx;
    uint64_t left = LIMIT_UPSTREAM_BODY - call->received;

    if (call->over)
        return;
    if (call->error == 0)
        add_bytes(call, bytes, len < left ? len : (size_t)left);
    if (call->body.failed || all_held > LIMIT_UPSTREAM_HELD)
        call->error = -EAGAIN;
    if (call->cut && len > left)
        stop_reading(call);
    else
        call->received += len;
}

/* Whole entries, then the ends of the array and of the object, and the mark. */
static void
close_cut(struct daemon_call *call, struct daemon_answer *a)
{
    if (call->scan.value[0].kind != '[' || !body_scan_good(&call->scan)) {
        a->error = -EMSGSIZE;
        return;
    }
    a->truncated = true;
    call->scan.value[0].end = call->scan.elements_end + 1;
    call->body.len = call->room + call->scan.elements_end;
    buf_add_str(&call->body, "],\"truncated\":true}");
    if (call->body.failed)
        a->error = -EAGAIN;
}

static void
finish(struct daemon_call *call, struct daemon_answer *a)
{
    if (a->error == 0)
        a->error = call->error;
    if (a->error == 0 && call->over)
        close_cut(call, a);
    else if (a->error == 0 && !body_scan_end(&call->scan))
        a->error = -EBADMSG;
    buf_init(&a->body, 0);
    if (a->error == 0) {
        a->body = call->body;
        a->kind = call->scan.value[0].kind;
        a->start = call->room + call->scan.value[0].start;
        a->end = call->room + call->scan.value[0].end;
        buf_init(&call->body, 0);
    }
    call->fn(call->ctx, a);
    buf_done(&a->body);
    free_call(call);
}

static void
on_done(void *ctx, int error)
{
    struct daemon_call *call = ctx;
    struct daemon_answer a = {.error = error, .status = call->status,
                              .url = upstream_url(call->upstream)};

    if (call->n_tail > 0)
        add_clean(call, call->tail, call->n_tail);
    finish(call, &a);
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
    struct daemon_call *call = w->data;
    struct daemon_answer a = {.status = call->status, .url = call->url};

    finish(call, &a);
}

static const struct upstream_handler handler = {on_head, on_data, on_done};

struct daemon_call *
daemon_get(const struct daemon_question *q, daemon_fn fn, void *ctx)
{
    static const char room[DAEMON_ROOM];
    struct upstream_request u = {.run_id = q->run_id, .port = RUN_PORT_DAEMON,
                                 .method = "GET", .target = q->target,
                                 .timeout_ms = q->timeout_ms, .endless = q->cut};
    struct daemon_call *call = calloc(1, sizeof *call);

    if (call == NULL)
        return NULL;
    call->fn = fn;
    call->ctx = ctx;
    call->cut = q->cut;
    call->room = q->room ? sizeof room : 0;
    call->member = q->member;
    ev_timer_init(&call->timer, on_timer, 0., 0.);
    call->timer.data = call;
    /* Replacing ill-formed bytes may make three of one. */
    buf_init(&call->body, 3u * (size_t)LIMIT_UPSTREAM_BODY);
    buf_add(&call->body, room, call->room);
    body_scan_begin(&call->scan, &call->member, q->member != NULL);
    call->upstream = call->body.failed ? NULL : upstream_start(&u, &handler, call);
    if (call->upstream == NULL) {
        buf_done(&call->body);
        free(call);
        return NULL;
    }
    return call;
}

int
daemon_failure(const struct daemon_answer *answer, const char **ret_error)
{
    switch (answer->error) {
    case -EHOSTUNREACH:
    case -EAGAIN:
        *ret_error = "SDK not accessible - the run may not be running";
        return 503;
    case -ETIMEDOUT:
        *ret_error = "SDK request timeout";
        return 504;
    default:
        *ret_error = "Failed to communicate with SDK daemon";
        return 500;
    }
}
