/* The assistant's plain routes: health, sessions, messages. */
#include "worker/opencode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/exchange.h"
#include "worker/opencode_op.h"

static const char NO_SESSION[] = "Session not found";

/* --- health ---------------------------------------------------------------------------- */

static void
put_health(struct opencode_op *op, bool healthy, const char *version)
{
    const struct opencode_find *f = &op->find;
    bool running = f->running || f->place == OPENCODE_STARTING;
    struct json_writer w;
    struct buf out;

    buf_init(&out, 0);
    json_begin(&w, &out);
    json_object_open(&w);
    json_key(&w, "healthy");
    json_bool(&w, healthy);
    if (*f->model != '\0') {
        json_key(&w, "proxyModel");
        json_cstring(&w, f->model);
    }
    if (version != NULL) {
        json_key(&w, "version");
        json_cstring(&w, version);
    }
    json_key(&w, "processRunning");
    json_bool(&w, healthy || running);
    if (f->running) {
        json_key(&w, "uptime");
        json_int(&w, f->uptime_ms / 1000);
    }
    if (*f->reason != '\0') { /* why not, or why it is not the run's model */
        json_key(&w, "reason");
        json_cstring(&w, f->reason);
    }
    json_object_close(&w);
    opencode_op_answer(op, out.failed ? "{\"healthy\":false}" : out.data,
                       out.failed ? 17 : out.len);
    buf_done(&out);
}

static void
on_version(struct opencode_op *op, const struct container_answer *a)
{
    struct json_doc *doc =
        a->error == 0 && a->is_json ? json_parse(a->body, a->len, false, NULL) : NULL;
    const char *version = doc != NULL ? json_text(json_get(json_root(doc), "version")) : NULL;

    put_health(op, true, version);
    json_doc_free(doc);
}

/* Contract front-end 6.3: 200 with JSON in every state. */
static void
on_health_found(void *ctx)
{
    struct opencode_op *op = ctx;

    if (op->find.place == OPENCODE_UP)
        opencode_op_call(op, "GET", "/global/health", NULL, LIMIT_OPENCODE_PROBE_MS,
                         on_version);
    else
        put_health(op, false, NULL);
}

void
handle_opencode_health(struct exchange *x)
{
    struct opencode_op *op = opencode_op_new(x, "Failed to check the assistant");

    if (op != NULL)
        opencode_find(&op->find, exchange_token(x), exchange_param(x, 0), OPENCODE_BEGIN, on_health_found, op);
}

/* --- passing an answer on ------------------------------------------------------------------ */

static void
pass_on(struct opencode_op *op, const struct container_answer *a)
{
    opencode_op_pass_on(op, a, NO_SESSION, NULL);
}

/* GET /session/{id}<suffix>. */
static void
get_of_session(struct opencode_op *op, const char *suffix)
{
    char target[OPENCODE_ID_SIZE + 32];

    snprintf(target, sizeof target, "/session/%s%s", op->session, suffix);
    opencode_op_call(op, "GET", target, NULL, LIMIT_OPENCODE_CALL_MS, pass_on);
}

static void
get_session(struct opencode_op *op)
{
    get_of_session(op, "");
}

static void
get_messages(struct opencode_op *op)
{
    get_of_session(op, "/message");
}

/* The public server answers the messages here; no client of it asks, so the name is kept. */
void
handle_opencode_session(struct exchange *x)
{
    struct opencode_op *op = opencode_op_new(x, "Failed to get session");

    if (op != NULL && opencode_op_take_session(op))
        opencode_op_find(op, OPENCODE_READY, get_session);
}

void
handle_opencode_messages(struct exchange *x)
{
    struct opencode_op *op = opencode_op_new(x, "Failed to get messages");

    if (op != NULL && opencode_op_take_session(op))
        opencode_op_find(op, OPENCODE_READY, get_messages);
}

/* --- listing ------------------------------------------------------------------------------- */

/* Whoever looks at a run lists its sessions every few seconds: that starts nothing. */
static void
on_list_found(void *ctx)
{
    struct opencode_op *op = ctx;

    if (op->find.place == OPENCODE_REFUSED) {
        opencode_op_fail(op, 403, "The assistant is off on a hosted server", NULL);
        return;
    }
    if (op->find.place == OPENCODE_NO_RUN) {
        opencode_op_fail(op, 404, "Run not found", NULL);
        return;
    }
    if (op->find.place != OPENCODE_UP) {
        opencode_op_answer(op, "[]", 2);
        return;
    }
    /* The directory in the query filters; OpenCode's header of that name would not. */
    opencode_op_call(op, "GET", "/session", NULL, LIMIT_OPENCODE_CALL_MS, pass_on);
}

void
handle_opencode_sessions(struct exchange *x)
{
    struct opencode_op *op = opencode_op_new(x, "Failed to list sessions");
    int found;

    if (op == NULL)
        return;
    found = request_query(exchange_request(x), "directory", op->directory,
                          sizeof op->directory);
    if (found < 0 ||
        (found == 1 && *op->directory != '\0' && !opencode_directory_valid(op->directory)))
        opencode_op_fail(op, 400, "Invalid directory: expected an absolute path", NULL);
    else
        opencode_find(&op->find, exchange_token(x), exchange_param(x, 0), OPENCODE_LOOK, on_list_found, op);
}

/* --- a new session ---------------------------------------------------------------------------- */

/* The session object, with what the user should know put in front. */
static void
on_created(struct opencode_op *op, const struct container_answer *a)
{
    struct buf out;
    struct json_writer w;

    if (!opencode_op_good(op, a, "Failed to create session"))
        return;
    if (op->notice == NULL || a->len < 3 || *a->body != '{') {
        opencode_op_answer(op, a->body, a->len);
        return;
    }
    buf_init(&out, 0);
    json_begin(&w, &out);
    buf_add_str(&out, "{\"notice\":");
    json_cstring(&w, op->notice);
    buf_add_str(&out, ",");
    buf_add(&out, a->body + 1, a->len - 1);
    if (out.failed)
        opencode_op_answer(op, a->body, a->len);
    else
        opencode_op_answer(op, out.data, out.len);
    buf_done(&out);
}

static void
create(struct opencode_op *op)
{
    opencode_op_call(op, "POST", "/session", &op->body, LIMIT_OPENCODE_CALL_MS, on_created);
}

static void
on_disposed(struct opencode_op *op, const struct container_answer *a)
{
    if (a->error != 0 || a->status / 100 != 2)
        op->notice = "The new key could not be put into effect: OpenCode uses the key it "
                     "started with until it is restarted.";
    create(op);
}

/* A key counts only in an instance that is booted after it (contract opencode.md 6), and
 * ending one in use would break its answers off. */
static void
on_status(struct opencode_op *op, const struct container_answer *a)
{
    const char *at = a->body;
    bool idle = a->error == 0 && a->status / 100 == 2 && a->is_json;

    while (idle && (*at == ' ' || *at == '\n'))
        at++;
    idle = idle && at[0] == '{' && at[1] == '}';
    if (!idle) {
        op->notice = "An answer is under way, so a new key takes effect only after it, with "
                     "the next conversation.";
        create(op);
        return;
    }
    opencode_op_call(op, "POST", "/instance/dispose", NULL, LIMIT_OPENCODE_CALL_MS,
                     on_disposed);
}

static void
on_key_set(struct opencode_op *op, const struct container_answer *a)
{
    explicit_bzero(op->secret.data, op->secret.cap);
    buf_done(&op->secret);
    if (opencode_op_good(op, a, "Failed to create session"))
        opencode_op_call(op, "GET", "/session/status", NULL, LIMIT_OPENCODE_CALL_MS, on_status);
}

/* The user's key goes to OpenCode and nowhere else, and only where it is used: with the run's
 * model it is not sent at all. */
static void
on_create_found(struct opencode_op *op)
{
    if (op->secret.len > 0 && op->find.port == RUN_PORT_OPENCODE)
        opencode_op_call(op, "PUT", "/auth/anthropic", &op->secret, LIMIT_OPENCODE_CALL_MS,
                         on_key_set);
    else
        create(op);
}

static void
render_key(struct opencode_op *op, const char *key)
{
    struct json_writer w;

    /* No copy is left behind by a growing buffer. */
    buf_reserve(&op->secret, 6 * strlen(key) + 64);
    json_begin(&w, &op->secret);
    json_object_open(&w);
    json_key(&w, "type");
    json_cstring(&w, "api");
    json_key(&w, "key");
    json_cstring(&w, key);
    json_object_close(&w);
}

static bool
take_create(struct opencode_op *op, const struct json_value *root)
{
    const char *title = json_text(json_get(root, "title"));
    const char *directory = json_text(json_get(root, "workingDir"));
    const char *key = json_text(json_get(root, "apiKey"));
    struct json_writer w;

    if (directory != NULL && *directory != '\0') {
        if (!opencode_directory_valid(directory))
            return false;
        message_string_set(op->directory, sizeof op->directory, directory);
    }
    if (key != NULL && *key != '\0')
        render_key(op, key);
    json_begin(&w, &op->body);
    json_object_open(&w);
    json_key(&w, "title");
    json_cstring(&w, title != NULL && *title != '\0' ? title : "Debug Session");
    json_object_close(&w);
    return true;
}

void
handle_opencode_create(struct exchange *x)
{
    struct opencode_op *op = opencode_op_new(x, "Failed to create session");
    struct json_doc *doc;
    const char *body;
    size_t len;
    bool good;

    if (op == NULL)
        return;
    body = exchange_body(x, &len);
    doc = len > 0 ? json_parse(body, len, true, NULL) : NULL;
    if (len > 0 && (doc == NULL || json_root(doc)->type != JSON_OBJECT)) {
        json_doc_free(doc);
        opencode_op_fail(op, 400, "Invalid JSON: expected an object", NULL);
        return;
    }
    good = take_create(op, json_root(doc));
    json_doc_free(doc);
    if (good)
        opencode_op_find(op, OPENCODE_READY, on_create_found);
    else
        opencode_op_fail(op, 400, "Invalid workingDir: expected an absolute path", NULL);
}
