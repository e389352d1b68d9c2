/* Calls of OpenCode on top of worker/upstream.h: answers whole or in pieces, and the directory
 * that a call is about. */
#include "worker/container_http.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/buf.h"
#include "common/json_read.h"
#include "worker/json_line.h"
#include "worker/opencode_op.h"
#include "worker/upstream.h"

#define SHORT_VALUE 64u /* bytes */

struct container_call {
    struct upstream *upstream;
    void (*piece)(void *ctx, const char *bytes, size_t len);
    void (*begun)(void *ctx, bool is_json);
    void (*done)(void *ctx, const struct container_answer *answer);
    void *ctx;
    int status;
    bool is_json;
    struct json_line document; /* a whole answer, checked as it comes */
    struct buf body;           /* what is kept of the answer */
};

static bool
streams(const struct container_call *c)
{
    return c->piece != NULL && c->status / 100 == 2;
}

static void
on_head(void *ctx, int status, const char *type)
{
    struct container_call *c = ctx;

    c->status = status;
    c->is_json = strncasecmp(type, "application/json", 16) == 0;
    if (streams(c) && c->begun != NULL)
        c->begun(c->ctx, c->is_json);
}

static void
on_data(void *ctx, const char *bytes, size_t len)
{
    struct container_call *c = ctx;

    if (streams(c))
        c->piece(c->ctx, bytes, len);
    else {
        buf_add(&c->body, bytes, len);
        json_line_feed(&c->document, bytes, len);
    }
}

/* An object or an array; or one of the short values, such as true. */
static bool
is_document(const struct container_call *c)
{
    struct json_doc *doc;

    if (json_line_is_object(&c->document) || c->body.len == 0)
        return true;
    if (c->body.len > SHORT_VALUE)
        return false;
    doc = json_parse(c->body.data, c->body.len, false, NULL);
    json_doc_free(doc);
    return doc != NULL;
}

static void
call_free(struct container_call *c)
{
    buf_done(&c->body);
    free(c);
}

static void
on_done(void *ctx, int error)
{
    struct container_call *c = ctx;
    struct container_answer a = {.error = error};

    if (error == 0 && c->body.failed)
        a.error = c->body.max != 0 && !streams(c) ? -EMSGSIZE : -ENOMEM;
    if (a.error == 0) {
        a.status = c->status;
        a.is_json = c->is_json && is_document(c);
        a.len = c->body.len;
    }
    a.body = a.len > 0 ? c->body.data : "";
    c->done(c->ctx, &a);
    call_free(c);
}

static const struct upstream_handler handler = {on_head, on_data, on_done};

struct container_call *
container_call_start(const struct container_request *q)
{
    struct container_call *c = calloc(1, sizeof *c);
    struct upstream_request u = {
        .token = q->token, .run_id = q->run_id, .port = q->port, .method = q->method, .body = q->body,
        .body_len = q->body_len, .timeout_ms = q->timeout_ms, .max_body = q->max_body,
        .endless = q->piece != NULL, .fresh = strcmp(q->method, "GET") != 0};
    struct buf target;

    if (c == NULL)
        return NULL;
    c->piece = q->piece;
    c->begun = q->begun;
    c->done = q->done;
    c->ctx = q->ctx;
    json_line_begin_any(&c->document);
    buf_init(&c->body, q->max_body);
    buf_init(&target, 0);
    buf_add_str(&target, q->target);
    if (q->directory != NULL && *q->directory != '\0') {
        buf_add_str(&target, strchr(q->target, '?') != NULL ? "&directory=" : "?directory=");
        opencode_add_encoded(&target, q->directory);
    }
    u.target = target.data;
    c->upstream = target.failed ? NULL : upstream_start(&u, &handler, c);
    buf_done(&target);
    if (c->upstream == NULL) {
        call_free(c);
        return NULL;
    }
    return c;
}

void
container_call_cancel(struct container_call *c)
{
    if (c == NULL)
        return;
    upstream_cancel(c->upstream);
    call_free(c);
}

void
container_call_pause(struct container_call *c)
{
    upstream_pause(c->upstream);
}

void
container_call_resume(struct container_call *c)
{
    upstream_resume(c->upstream);
}
