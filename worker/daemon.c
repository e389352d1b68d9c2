/* From bytes of a container to a checked document in memory, bounded for all of them. */
#include "worker/daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/utf8.h"
#include "worker/body_scan.h"
#include "worker/dialog_read.h"
#include "worker/upstream.h"

struct daemon_call {
    struct upstream *upstream;
    daemon_fn fn;
    void *ctx;
    int status;
    int error;
    size_t held; /* of `body`, counted in all_held */
    struct buf body;
    struct body_scan scan;
    unsigned n_tail; /* the beginning of a character whose rest is to come */
    char tail[4];
};

static size_t all_held;

static void
free_call(struct daemon_call *call)
{
    all_held -= call->held;
    buf_done(&call->body);
    free(call);
}

void
daemon_cancel(struct daemon_call *call)
{
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

static void
on_data(void *ctx, const char *bytes, size_t len)
{
    struct daemon_call *call = ctx;
    size_t hold;

    if (call->error != 0)
        return;
    /* A character cut by the read border: put together first. */
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
    if (call->body.failed || all_held > LIMIT_UPSTREAM_HELD)
        call->error = -EAGAIN;
}

static void
on_done(void *ctx, int error)
{
    struct daemon_call *call = ctx;
    struct daemon_answer a = {.error = error, .status = call->status,
                              .url = upstream_url(call->upstream)};

    if (call->n_tail > 0)
        add_clean(call, call->tail, call->n_tail);
    if (a.error == 0)
        a.error = call->error;
    if (a.error == 0 && !body_scan_end(&call->scan))
        a.error = -EBADMSG;
    if (a.error == 0) {
        a.body = call->body;
        a.kind = call->scan.kind;
        a.start = call->scan.start;
        a.end = call->scan.end;
        buf_init(&call->body, 0);
    } else {
        buf_init(&a.body, 0);
    }
    call->fn(call->ctx, &a);
    buf_done(&a.body);
    free_call(call);
}

static const struct upstream_handler handler = {on_head, on_data, on_done};

struct daemon_call *
daemon_get(const char *run_id, const char *target, const char *member, unsigned timeout_ms,
           daemon_fn fn, void *ctx)
{
    struct upstream_request q = {.run_id = run_id, .port = RUN_PORT_DAEMON, .method = "GET",
                                 .target = target, .timeout_ms = timeout_ms};
    struct daemon_call *call = calloc(1, sizeof *call);

    if (call == NULL)
        return NULL;
    call->fn = fn;
    call->ctx = ctx;
    /* Replacing ill-formed bytes may make three of one. */
    buf_init(&call->body, 3u * (size_t)LIMIT_UPSTREAM_BODY);
    body_scan_begin(&call->scan, member);
    call->upstream = upstream_start(&q, &handler, call);
    if (call->upstream == NULL) {
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
