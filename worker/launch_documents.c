/* GET /api/launch/tasks and doctor: documents of others, read here and rendered anew. */
#include <stdlib.h>
#include <string.h>

#include "common/json_read.h"
#include "common/json_write.h"
#include "worker/broker_as.h"
#include "worker/exchange.h"
#include "worker/file_slice.h"
#include "worker/launch.h"
#include "worker/launch_offer.h"

/* --- tasks ----------------------------------------------------------------------------------------- */

static void
answer_local_tasks(struct exchange *x, const struct launchables_list *list)
{
    const char *at = NULL, *fields[4];
    struct json_writer w;
    struct buf body;

    buf_init(&body, 0);
    json_begin(&w, &body);
    json_object_open(&w);
    json_key(&w, "tasks");
    json_array_open(&w);
    while (launch_offer_next(list, 't', &at, fields)) {
        json_object_open(&w);
        json_key(&w, "id");
        json_cstring(&w, fields[0]);
        json_object_close(&w);
    }
    json_array_close(&w);
    json_object_close(&w);
    exchange_json(x, 200, &body);
}

/* With an empty list, for pages that look for one in every answer. */
static void
answer_no_tasks(struct exchange *x, int status, const char *error, const char *hint)
{
    struct json_writer w;
    struct buf body;

    buf_init(&body, 0);
    json_begin(&w, &body);
    json_object_open(&w);
    json_key(&w, "error");
    json_cstring(&w, error);
    if (hint && hint[0] != '\0') {
        json_key(&w, "hint");
        json_cstring(&w, hint);
    }
    json_key(&w, "tasks");
    json_array_open(&w);
    json_array_close(&w);
    json_object_close(&w);
    exchange_json(x, status, &body);
}

static void
put_member(struct json_writer *w, const struct json_value *task, const char *key)
{
    const struct json_value *v = json_get(task, key);

    if (!v || v->type != JSON_STRING)
        return;
    json_key(w, key);
    json_string(w, v->text, v->len);
}

static void
answer_manifest(struct exchange *x, const char *bytes, size_t len)
{
    const char *reason = "It has no list of tasks";
    struct json_doc *doc = json_parse(bytes, len, false, &reason);
    const struct json_value *tasks = doc ? json_get(json_root(doc), "tasks") : NULL;
    struct json_writer w;
    struct buf body;

    if (!tasks || tasks->type != JSON_ARRAY) {
        json_doc_free(doc);
        answer_no_tasks(x, 500, "Failed to fetch tasks", reason);
        return;
    }
    buf_init(&body, 0);
    json_begin(&w, &body);
    json_object_open(&w);
    json_key(&w, "tasks");
    json_array_open(&w);
    for (const struct json_value *t = tasks->first; t; t = t->next) {
        if (!json_text(json_get(t, "id")))
            continue;
        json_object_open(&w);
        put_member(&w, t, "id");
        put_member(&w, t, "language");
        put_member(&w, t, "project");
        json_object_close(&w);
    }
    json_array_close(&w);
    json_object_close(&w);
    json_doc_free(doc);
    exchange_json(x, 200, &body);
}

static void
on_catalog(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_document *a = answer;
    struct exchange *x = launch_wait_end(ctx);
    char *bytes;
    size_t len;

    if (!x)
        return;
    if (!a) {
        launch_answer_away(x, "Failed to fetch tasks");
    } else if (a->status == ANSWER_NOT_FOUND) {
        answer_no_tasks(
            x, 503, "Task catalog not configured: set SSEBENCH_CATALOG for the webui server",
            NULL);
    } else if (a->status != ANSWER_OK || n_fds != 1) {
        answer_no_tasks(x, a->status == ANSWER_BUSY ? 503 : 500, "Failed to fetch tasks",
                        a->error);
    } else {
        bytes = file_slice_whole(fds[0], a->size, &len);
        if (bytes)
            answer_manifest(x, bytes, len);
        else
            answer_no_tasks(x, 500, "Failed to fetch tasks", "The manifest cannot be read");
        free(bytes);
    }
}

static void
answer_tasks(struct launch_wait *w, const struct launchables_list *list)
{
    struct request_plain q = {0};
    char source[16];
    struct exchange *x = w->x;
    int r;

    if (!x || !list) {
        x = launch_wait_end(w);
        if (x)
            launch_answer_away(x, "Failed to fetch tasks");
        return;
    }
    r = request_query(exchange_request(x), "source", source, sizeof(source));
    if ((r == 1 && strcmp(source, "local") == 0) || (r == 0 && !list->has_catalog)) {
        launch_wait_end(w);
        if (r == 0)
            answer_no_tasks(
                x, 503,
                "Task catalog not configured: set SSEBENCH_CATALOG for the webui server", NULL);
        else
            answer_local_tasks(x, list);
        return;
    }
    broker_ask(MESSAGE_CATALOG, &q, NULL, 0, on_catalog, w);
}

void
handle_launch_tasks(struct exchange *x)
{
    struct launch_wait *w = launch_wait_new(x, NULL);

    if (w)
        launch_wait_offer(w, answer_tasks);
}

/* --- doctor ------------------------------------------------------------------------------------------ */

static void
answer_doctor(struct exchange *x, const struct json_value *checks,
              const struct json_value *models, const char *error)
{
    struct json_writer w;
    struct buf body;

    buf_init(&body, 0);
    json_begin(&w, &body);
    json_object_open(&w);
    json_key(&w, "available");
    json_bool(&w, error == NULL);
    if (error) {
        json_key(&w, "error");
        json_cstring(&w, error);
    } else {
        json_key(&w, "report");
        json_object_open(&w);
        json_key(&w, "checks");
        json_value(&w, checks);
        json_key(&w, "models");
        json_value(&w, models);
        json_object_close(&w);
    }
    json_object_close(&w);
    exchange_json(x, 200, &body);
}

static void
answer_report(struct exchange *x, const char *bytes, size_t len)
{
    struct json_doc *doc = bytes ? json_parse(bytes, len, false, NULL) : NULL;
    const struct json_value *checks = doc ? json_get(json_root(doc), "checks") : NULL;
    const struct json_value *models = doc ? json_get(json_root(doc), "models") : NULL;

    if (checks && checks->type == JSON_ARRAY && models && models->type == JSON_OBJECT)
        answer_doctor(x, checks, models, NULL);
    else
        answer_doctor(x, NULL, NULL, "`ssebench doctor` printed no report");
    json_doc_free(doc);
}

static void
on_doctor(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_document *a = answer;
    struct exchange *x = launch_wait_end(ctx);
    char *bytes;
    size_t len = 0;

    if (!x)
        return;
    if (!a) {
        answer_doctor(x, NULL, NULL, "A part of the server is being restarted: try again");
    } else if (a->status == ANSWER_REFUSED) {
        exchange_error(x, 403, "This server does not report on its host", NULL);
    } else if (a->status != ANSWER_OK || n_fds != 1) {
        answer_doctor(x, NULL, NULL, a->error[0] != '\0' ? a->error : "It cannot be asked now");
    } else {
        bytes = file_slice_whole(fds[0], a->size, &len);
        answer_report(x, bytes, len);
        free(bytes);
    }
}

void
handle_launch_doctor(struct exchange *x)
{
    struct launch_wait *w = launch_wait_new(x, NULL);
    struct request_plain q = {0};

    if (w)
        broker_ask_as(exchange_token(x), MESSAGE_DOCTOR, &q, on_doctor, w);
}
