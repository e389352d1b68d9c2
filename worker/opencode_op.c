/* The life of one assistant request, and what OpenCode's failures are called here. */
#include "worker/opencode_op.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/utf8.h"
#include "worker/dialog_read.h"
#include "worker/exchange.h"
#include "worker/worker.h"

static const char UNAVAILABLE[] = "OpenCode SDK client unavailable"; /* contract 9.3 */

static void
op_free(struct opencode_op *op)
{
    opencode_find_cancel(&op->find);
    container_call_cancel(op->call);
    ev_timer_stop(worker_loop(), &op->timer);
    if (op->secret.data != NULL)
        explicit_bzero(op->secret.data, op->secret.cap);
    buf_done(&op->secret);
    buf_done(&op->body);
    free(op);
}

/* The turn in the container goes on; only nobody waits for it any more. */
static void
on_gone(struct exchange *x, void *ctx)
{
    op_free(ctx);
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
    struct opencode_op *op = w->data;

    op->on_timer(op);
}

struct opencode_op *
opencode_op_new(struct exchange *x, const char *failure)
{
    struct opencode_op *op = calloc(1, sizeof *op);

    if (op == NULL) {
        exchange_error(x, 503, failure, "Out of memory: try again");
        return NULL;
    }
    op->x = x;
    op->failure = failure;
    ev_timer_init(&op->timer, on_timer, 0., 0.);
    op->timer.data = op;
    buf_init(&op->body, 0);
    buf_init(&op->secret, 0);
    exchange_on_gone(x, on_gone, op);
    return op;
}

/* --- ends ---------------------------------------------------------------------------- */

void
opencode_op_fail(struct opencode_op *op, int status, const char *error, const char *hint)
{
    struct exchange *x = op->x;

    exchange_on_gone(x, NULL, NULL);
    exchange_error(x, status, error, hint);
    op_free(op);
}

void
opencode_op_answer(struct opencode_op *op, const char *json, size_t len)
{
    struct exchange *x = op->x;
    struct buf body;

    buf_init(&body, 0);
    dialog_add_clean(&body, json, len); /* it may be the container's */
    exchange_on_gone(x, NULL, NULL);
    exchange_json(x, 200, &body);
    op_free(op);
}

/* The first line of what OpenCode says, without a stack trace: for a hint. */
static void
first_line(const struct container_answer *a, char *out, size_t size)
{
    struct json_doc *doc = a->len > 0 ? json_parse(a->body, a->len, false, NULL) : NULL;
    const struct json_value *root = doc != NULL ? json_root(doc) : NULL;
    const char *text = json_text(json_get(json_get(root, "data"), "message"));
    size_t n;

    if (text == NULL)
        text = json_text(json_get(root, "message"));
    if (text == NULL)
        text = json_text(json_get(root, "name"));
    if (text == NULL)
        text = "";
    n = strcspn(text, "\r\n");
    if (n >= size)
        n = size - 1;
    memcpy(out, text, n);
    out[n - utf8_incomplete_tail(out, n)] = '\0';
    json_doc_free(doc);
}

/* No answer at all. */
static void
fail_connection(struct opencode_op *op, const struct container_answer *a)
{
    switch (a->error) {
    case -EHOSTUNREACH:
        opencode_op_fail(op, 503, UNAVAILABLE, "The assistant's server went away: try again");
        return;
    case -EAGAIN:
        opencode_op_fail(op, 503, op->failure, "Too much is under way: try again");
        return;
    case -ETIMEDOUT:
        opencode_op_fail(op, 504, op->failure, "OpenCode did not answer in time");
        return;
    case -EMSGSIZE:
        opencode_op_fail(op, 502, op->failure, "OpenCode's answer is over 16 MiB");
        return;
    case -ENOMEM:
        opencode_op_fail(op, 503, op->failure, "Out of memory: try again");
        return;
    default:
        opencode_op_fail(op, 502, op->failure, "OpenCode broke its answer off");
    }
}

bool
opencode_op_good(struct opencode_op *op, const struct container_answer *a,
                 const char *not_found)
{
    char hint[301];

    if (a->error != 0) {
        fail_connection(op, a);
        return false;
    }
    /* OpenCode answers an unknown path with a page and 200 (contract opencode.md 2). */
    if (a->status / 100 == 2 && (a->is_json || a->len == 0))
        return true;
    if (a->status / 100 == 2) {
        opencode_op_fail(op, 502, op->failure, "OpenCode lacks the call in this version, or answered what is no JSON");
        return false;
    }
    first_line(a, hint, sizeof hint);
    if (a->status == 404)
        opencode_op_fail(op, 404, not_found, NULL);
    else if (a->status == 401)
        opencode_op_fail(op, 502, op->failure, "OpenCode in the container wants a password");
    else
        opencode_op_fail(op, a->status / 100 == 4 ? 400 : 502, op->failure,
                         *hint != '\0' ? hint : NULL);
    return false;
}

void
opencode_op_pass_on(struct opencode_op *op, const struct container_answer *a,
                    const char *not_found, const char *when_empty)
{
    if (!opencode_op_good(op, a, not_found))
        return;
    if (a->len == 0 && when_empty == NULL)
        opencode_op_fail(op, 502, op->failure, "OpenCode answered nothing");
    else if (a->len == 0)
        opencode_op_answer(op, when_empty, strlen(when_empty));
    else
        opencode_op_answer(op, a->body, a->len);
}

/* --- finding ----------------------------------------------------------------------------- */

static void
on_found(void *ctx)
{
    struct opencode_op *op = ctx;
    const struct opencode_find *f = &op->find;

    switch (f->place) {
    case OPENCODE_UP:
        op->found(op);
        return;
    case OPENCODE_NO_RUN:
        opencode_op_fail(op, 404, "Run not found", NULL);
        return;
    case OPENCODE_REFUSED:
        opencode_op_fail(op, 403, "The assistant is off on a hosted server", NULL);
        return;
    case OPENCODE_DOWN:
        opencode_op_fail(op, 503, UNAVAILABLE, "The assistant is not running");
        return;
    case OPENCODE_STARTING:
    case OPENCODE_OVER:
    case OPENCODE_FAILED:
        break;
    }
    opencode_op_fail(op, 503, UNAVAILABLE, *f->reason != '\0' ? f->reason : NULL);
}

void
opencode_op_find(struct opencode_op *op, enum opencode_wish wish,
                 void (*found)(struct opencode_op *op))
{
    op->found = found;
    opencode_find(&op->find, exchange_token(op->x), exchange_param(op->x, 0), wish, on_found, op);
}

/* --- calling ------------------------------------------------------------------------------- */

static void
on_answered(void *ctx, const struct container_answer *a)
{
    struct opencode_op *op = ctx;

    op->call = NULL;
    op->answered(op, a);
}

void
opencode_op_call(struct opencode_op *op, const char *method, const char *target,
                 const struct buf *body, unsigned timeout_ms,
                 void (*answered)(struct opencode_op *op, const struct container_answer *a))
{
    struct container_request q = {
        .token = exchange_token(op->x), .run_id = exchange_param(op->x, 0), .port = op->find.port, .method = method,
        .target = target, .directory = op->directory, .timeout_ms = timeout_ms,
        .max_body = LIMIT_OPENCODE_ANSWER, .done = on_answered, .ctx = op};

    if (body != NULL) {
        q.body = body->data;
        q.body_len = body->len;
    }
    op->answered = answered;
    op->call = body == NULL || !body->failed ? container_call_start(&q) : NULL;
    if (op->call == NULL)
        opencode_op_fail(op, 503, op->failure, "Too much is under way: try again");
}

void
opencode_op_later(struct opencode_op *op, double seconds, void (*fn)(struct opencode_op *op))
{
    op->on_timer = fn;
    ev_timer_stop(worker_loop(), &op->timer);
    ev_timer_set(&op->timer, seconds, 0.);
    ev_timer_start(worker_loop(), &op->timer);
}

/* --- small things ---------------------------------------------------------------------------- */

/* Goes into a path: OpenCode answers 500 to what is none of its IDs. */
bool
opencode_id_valid(const char *id, const char *prefix)
{
    size_t len = strlen(id);

    if (len >= OPENCODE_ID_SIZE || strncmp(id, prefix, strlen(prefix)) != 0)
        return false;
    return strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

bool
opencode_op_take_session(struct opencode_op *op)
{
    const char *id = exchange_param(op->x, 1);

    if (!opencode_id_valid(id, "ses")) {
        opencode_op_fail(op, 404, "Session not found", NULL);
        return false;
    }
    message_string_set(op->session, sizeof op->session, id);
    return true;
}

void
opencode_add_encoded(struct buf *out, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++)
        if ((*at >= '0' && *at <= '9') || (*at >= 'A' && *at <= 'Z') ||
            (*at >= 'a' && *at <= 'z') || strchr("-._~/", *at) != NULL)
            buf_add(out, at, 1);
        else
            buf_add_format(out, "%%%02X", *at);
}

bool
opencode_directory_valid(const char *directory)
{
    size_t len = strlen(directory);

    if (len == 0 || len >= OPENCODE_DIRECTORY_SIZE || directory[0] != '/')
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)directory[i] < 0x20 || directory[i] == 0x7f)
            return false;
    return utf8_valid(directory, len);
}

bool
opencode_op_take_directory(struct opencode_op *op, const struct container_answer *a)
{
    struct json_doc *doc;
    const char *directory;

    if (!opencode_op_good(op, a, "Session not found"))
        return false;
    doc = json_parse(a->body, a->len, false, NULL);
    directory = doc != NULL ? json_text(json_get(json_root(doc), "directory")) : NULL;
    *op->directory = '\0';
    if (directory != NULL && opencode_directory_valid(directory))
        message_string_set(op->directory, sizeof op->directory, directory);
    json_doc_free(doc);
    return true;
}

bool
opencode_is_busy(const struct container_answer *a, const char *session)
{
    struct json_doc *doc;
    const char *type;
    bool busy;

    if (a->error != 0 || a->status / 100 != 2 || !a->is_json)
        return false; /* a version without that call: nothing to wait for */
    doc = json_parse(a->body, a->len, false, NULL);
    type = doc != NULL
               ? json_text(json_get(json_get(json_root(doc), session), "type"))
               : NULL;
    busy = type != NULL && strcmp(type, "idle") != 0;
    json_doc_free(doc);
    return busy;
}
