/*
 * Ending a turn, or a whole session. OpenCode's own abort leaves an open permission request
 * behind for ever, and a session deleted at work goes on working (contract opencode.md 5): so
 * what is open is rejected first, and a session is deleted when it is idle.
 */
#include <stdio.h>
#include <string.h>

#include "common/limits.h"
#include "worker/exchange.h"
#include "worker/iso_time.h"
#include "worker/opencode.h"
#include "worker/opencode_op.h"

#define IDLE_LOOK_S 0.2
#define IDLE_WAIT_MS 5000 /* then it is deleted as it is */

static void
on_deleted(struct opencode_op *op, const struct container_answer *a)
{
    opencode_op_pass_on(op, a, "Session not found", "true");
}

static void
delete_it(struct opencode_op *op)
{
    char target[OPENCODE_ID_SIZE + 32];

    snprintf(target, sizeof target, "/session/%s", op->session);
    opencode_op_call(op, "DELETE", target, NULL, LIMIT_OPENCODE_CALL_MS, on_deleted);
}

static void look_whether_idle(struct opencode_op *op);

static void
on_idle_status(struct opencode_op *op, const struct container_answer *a)
{
    if (opencode_is_busy(a, op->session) && iso_time_steady_ms() < op->deadline_ms)
        opencode_op_later(op, IDLE_LOOK_S, look_whether_idle);
    else
        delete_it(op);
}

static void
look_whether_idle(struct opencode_op *op)
{
    opencode_op_call(op, "GET", "/session/status", NULL, LIMIT_OPENCODE_CALL_MS,
                     on_idle_status);
}

static void
on_aborted(struct opencode_op *op, const struct container_answer *a)
{
    if (!opencode_op_good(op, a, "Session not found"))
        return;
    if (!op->deletes) {
        opencode_op_answer(op, "{\"aborted\":true}", 16);
        return;
    }
    op->deadline_ms = iso_time_steady_ms() + IDLE_WAIT_MS;
    look_whether_idle(op);
}

static void
abort_it(struct opencode_op *op)
{
    char target[OPENCODE_ID_SIZE + 32];

    snprintf(target, sizeof target, "/session/%s/abort", op->session);
    opencode_op_call(op, "POST", target, NULL, LIMIT_OPENCODE_CALL_MS, on_aborted);
}

static void reject_next(struct opencode_op *op);

static void
on_rejected(struct opencode_op *op, const struct container_answer *a)
{
    reject_next(op); /* 404: rejecting one before has rejected this one too */
}

static void
reject_next(struct opencode_op *op)
{
    char target[OPENCODE_ID_SIZE + 32];

    if (op->n_pending == 0) {
        abort_it(op);
        return;
    }
    buf_reset(&op->body);
    buf_add_str(&op->body, "{\"reply\":\"reject\"}");
    snprintf(target, sizeof target, "/permission/%s/reply", op->pending[--op->n_pending]);
    opencode_op_call(op, "POST", target, &op->body, LIMIT_OPENCODE_CALL_MS, on_rejected);
}

static void
on_pending(struct opencode_op *op, const struct container_answer *a)
{
    struct json_doc *doc =
        a->error == 0 && a->is_json ? json_parse(a->body, a->len, false, NULL) : NULL;
    const struct json_value *root = json_root(doc), *v = NULL;

    if (root != NULL && root->type == JSON_ARRAY)
        v = root->first;
    for (; v != NULL && op->n_pending < OPENCODE_PENDING; v = v->next) {
        const char *session = json_text(json_get(v, "sessionID"));
        const char *id = json_text(json_get(v, "id"));

        if (session != NULL && strcmp(session, op->session) == 0 && id != NULL &&
            opencode_id_valid(id, "per"))
            message_string_set(op->pending[op->n_pending++], OPENCODE_ID_SIZE, id);
    }
    json_doc_free(doc);
    reject_next(op);
}

static void
on_session(struct opencode_op *op, const struct container_answer *a)
{
    if (opencode_op_take_directory(op, a))
        opencode_op_call(op, "GET", "/permission", NULL, LIMIT_OPENCODE_CALL_MS, on_pending);
}

static void
on_end_found(struct opencode_op *op)
{
    char target[OPENCODE_ID_SIZE + 32];

    snprintf(target, sizeof target, "/session/%s", op->session);
    opencode_op_call(op, "GET", target, NULL, LIMIT_OPENCODE_CALL_MS, on_session);
}

void
handle_opencode_abort(struct exchange *x)
{
    struct opencode_op *op = opencode_op_new(x, "Failed to stop the answer");

    if (op != NULL && opencode_op_take_session(op))
        opencode_op_find(op, OPENCODE_LOOK, on_end_found);
}

void
handle_opencode_delete(struct exchange *x)
{
    struct opencode_op *op = opencode_op_new(x, "Failed to delete session");

    if (op == NULL || !opencode_op_take_session(op))
        return;
    op->deletes = true;
    opencode_op_find(op, OPENCODE_READY, on_end_found);
}
