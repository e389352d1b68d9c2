/* The assistant's conversation: a prompt and its answer, and answers to what it asks. */
#include <stdio.h>
#include <string.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/exchange.h"
#include "worker/opencode.h"
#include "worker/opencode_op.h"

#define QUEUE_LOOK_S 0.5 /* between two looks whether the answer before is done */

static struct json_doc *
read_body(struct opencode_op *op)
{
    size_t len;
    const char *body = exchange_body(op->x, &len);
    struct json_doc *doc = json_parse(body, len, true, NULL);

    if (doc != NULL && json_root(doc)->type == JSON_OBJECT)
        return doc;
    json_doc_free(doc);
    opencode_op_fail(op, 400, "Invalid JSON: expected an object", NULL);
    return NULL;
}

/* --- a prompt ----------------------------------------------------------------------------- */

/* The turn is over. A provider's failure is inside of it (info.error), as the public server
 * has it: clients look there. */
static void
on_turn(struct opencode_op *op, const struct container_answer *a)
{
    opencode_op_pass_on(op, a, "Session not found", "{\"status\":\"sent\"}");
}

/* OpenCode would run a second prompt within the first one's turn and answer both with the
 * same message: it waits here instead. Nothing limits that but the client's leaving. */
static void look_at_status(struct opencode_op *op);

static void
on_status(struct opencode_op *op, const struct container_answer *a)
{
    char target[OPENCODE_ID_SIZE + 32];

    if (opencode_is_busy(a, op->session)) {
        opencode_op_later(op, QUEUE_LOOK_S, look_at_status);
        return;
    }
    snprintf(target, sizeof target, "/session/%s/message", op->session);
    opencode_op_call(op, "POST", target, &op->body, 0, on_turn);
}

static void
look_at_status(struct opencode_op *op)
{
    opencode_op_call(op, "GET", "/session/status", NULL, LIMIT_OPENCODE_CALL_MS, on_status);
}

static void
on_session(struct opencode_op *op, const struct container_answer *a)
{
    if (opencode_op_take_directory(op, a))
        look_at_status(op);
}

/* The model goes with every prompt: a wrong one of an earlier prompt would stick. */
static void
close_prompt(struct opencode_op *op)
{
    struct json_writer w;

    json_begin(&w, &op->body);
    if (*op->find.model != '\0') {
        buf_add_str(&op->body, ",\"model\":{\"providerID\":\"ssebench\",\"modelID\":");
        json_cstring(&w, op->find.model);
        buf_add_str(&op->body, "}");
    }
    buf_add_str(&op->body, "}");
}

static void
on_prompt_found(struct opencode_op *op)
{
    char target[OPENCODE_ID_SIZE + 32];

    close_prompt(op);
    snprintf(target, sizeof target, "/session/%s", op->session);
    opencode_op_call(op, "GET", target, NULL, LIMIT_OPENCODE_CALL_MS, on_session);
}

void
handle_opencode_prompt(struct exchange *x)
{
    struct opencode_op *op = opencode_op_new(x, "Failed to send message");
    const struct json_value *message;
    struct json_doc *doc;
    struct json_writer w;
    bool good;

    if (op == NULL || !opencode_op_take_session(op) || (doc = read_body(op)) == NULL)
        return;
    message = json_get(json_root(doc), "message");
    good = message != NULL && message->type == JSON_STRING && message->len > 0;
    if (good) {
        json_begin(&w, &op->body);
        buf_add_str(&op->body, "{\"parts\":[{\"type\":\"text\",\"text\":");
        json_string(&w, message->text, message->len);
        buf_add_str(&op->body, "}]");
    }
    json_doc_free(doc);
    if (good)
        opencode_op_find(op, OPENCODE_READY, on_prompt_found);
    else
        opencode_op_fail(op, 400, "Missing required field: message", NULL);
}

/* --- a permission ------------------------------------------------------------------------------ */

static void
on_replied(struct opencode_op *op, const struct container_answer *a)
{
    opencode_op_pass_on(op, a,
                        "This request is no longer open: it was answered, or its turn ended",
                        "{\"success\":true}");
}

/* This route follows the session's directory by itself. */
static void
on_permission_found(struct opencode_op *op)
{
    char target[2 * OPENCODE_ID_SIZE + 32];

    buf_add_format(&op->body, "{\"response\":\"%s\"}", op->reply);
    snprintf(target, sizeof target, "/session/%s/permissions/%s", op->session, op->permission);
    opencode_op_call(op, "POST", target, &op->body, LIMIT_OPENCODE_CALL_MS, on_replied);
}

/* {"allow": bool}, as the public client says it, or OpenCode's own word. */
static const char *
reply_of(const struct json_value *root)
{
    static const char *const words[] = {"once", "always", "reject"};
    const struct json_value *allow = json_get(root, "allow");
    const char *word = json_text(json_get(root, "response"));

    if (word == NULL)
        word = json_text(json_get(root, "reply"));
    for (size_t i = 0; word != NULL && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i]) == 0)
            return words[i];
    if (word != NULL || allow == NULL || allow->type != JSON_BOOL)
        return NULL;
    return allow->boolean ? "once" : "reject";
}

void
handle_opencode_permission(struct exchange *x)
{
    struct opencode_op *op = opencode_op_new(x, "Failed to reply to permission");
    const char *id = exchange_param(x, 2);
    struct json_doc *doc;

    if (op == NULL || !opencode_op_take_session(op) || (doc = read_body(op)) == NULL)
        return;
    op->reply = reply_of(json_root(doc));
    json_doc_free(doc);
    if (op->reply == NULL) {
        opencode_op_fail(op, 400, "Missing required field: allow",
                         "true or false; or response: once, always or reject");
    } else if (!opencode_id_valid(id, "per")) {
        opencode_op_fail(op, 404, "Permission request not found", NULL);
    } else {
        message_string_set(op->permission, sizeof op->permission, id);
        opencode_op_find(op, OPENCODE_LOOK, on_permission_found);
    }
}
