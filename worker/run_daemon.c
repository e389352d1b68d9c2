/* One request of a client, one of the daemon; for the grade perhaps a file as well. */
#include "worker/run_daemon.h"

#include <ev.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/body_file.h"
#include "worker/daemon.h"
#include "worker/doc_render.h"
#include "worker/doc_slices.h"
#include "worker/exchange.h"
#include "worker/file_slice.h"
#include "worker/run_source.h"
#include "worker/worker.h"

struct asked {
    struct exchange *x;
    struct daemon_call *call; /* NULL: answered */
    struct run_source source; /* of result.json */
    int status;               /* the first answer, kept while result.json is looked at */
    const char *error;
    struct buf body;
    struct doc_slices *slices; /* of a large result.json that is looked at */
    ev_timer turn;             /* the next of them */
    char run_id[MESSAGE_ID_SIZE];
};

static void on_turn(struct ev_loop *loop, ev_timer *w, int events);

static void
free_asked(struct asked *a)
{
    if (a->call != NULL)
        daemon_cancel(a->call);
    run_source_done(&a->source);
    ev_timer_stop(worker_loop(), &a->turn);
    doc_slices_free(a->slices);
    buf_done(&a->body);
    free(a);
}

static void
on_gone(struct exchange *x, void *ctx)
{
    free_asked(ctx);
}

/* What was kept. */
static void
answer_first(struct asked *a)
{
    struct exchange *x = a->x;
    const char *error = a->error;
    struct buf body = a->body;
    int status = a->status;

    buf_init(&a->body, 0);
    free_asked(a);
    if (error != NULL)
        exchange_error(x, status, error, NULL);
    else
        exchange_json(x, status, &body);
}

static void
keep_first(struct asked *a, struct daemon_answer *answer)
{
    a->call = NULL;
    a->status = answer->status;
    if (answer->error != 0) {
        a->status = daemon_failure(answer, &a->error);
        return;
    }
    a->body = answer->body;
    buf_init(&answer->body, 0);
}

static void
on_document(void *ctx, struct daemon_answer *answer)
{
    keep_first(ctx, answer);
    answer_first(ctx);
}

static void
begin(struct exchange *x, const struct daemon_question *q, daemon_fn fn)
{
    struct asked *a = calloc(1, sizeof *a);

    if (a == NULL) {
        exchange_error(x, 503, "Out of memory: try again", NULL);
        return;
    }
    a->x = x;
    a->source.fd = -1;
    ev_timer_init(&a->turn, on_turn, 0., 0.);
    a->turn.data = a;
    buf_init(&a->body, 0);
    message_string_set(a->run_id, sizeof a->run_id, q->run_id);
    a->call = daemon_get(q, fn, a);
    if (a->call == NULL) {
        free_asked(a);
        exchange_error(x, 503, "SDK not accessible - the run may not be running",
                       "Too many requests to containers are under way: try again");
        return;
    }
    exchange_on_gone(x, on_gone, a);
}

void
run_daemon_answer(struct exchange *x, const char *run_id, const char *target)
{
    struct daemon_question q = {.run_id = run_id, .target = target,
                                .timeout_ms = LIMIT_UPSTREAM_MS};

    begin(x, &q, on_document);
}

void
run_daemon_answer_dialog(struct exchange *x, const char *run_id, const char *target)
{
    struct daemon_question q = {.run_id = run_id, .target = target, .member = "entries",
                                .timeout_ms = LIMIT_UPSTREAM_MS, .cut = true};

    begin(x, &q, on_document);
}

/* --- the grade ----------------------------------------------------------------------------- */

static void
on_turn(struct ev_loop *loop, ev_timer *w, int events)
{
    struct asked *a = w->data;
    struct exchange *x = a->x;
    struct body_source body = {doc_slices_fill, doc_slices_done, a->slices};
    int more = doc_slices_look(a->slices);

    if (more == 1) {
        ev_timer_start(loop, w);
    } else if (more == 0) {
        a->slices = NULL;
        free_asked(a);
        body_answer(x, body, UINT64_MAX);
    } else {
        answer_first(a);
    }
}

static bool
begin_slices(struct asked *a)
{
    a->slices = doc_slices_new(a->source.fd, a->source.size, DOC_RESULT);
    a->source.fd = -1;
    if (a->slices != NULL)
        ev_timer_start(worker_loop(), &a->turn);
    return a->slices != NULL;
}

static void
on_result_file(void *ctx)
{
    struct asked *a = ctx;
    struct buf body;
    size_t len = 0;
    char *bytes = NULL;

    if (a->source.status == ANSWER_OK && a->source.size > DOC_AT_ONCE && begin_slices(a))
        return;
    buf_init(&body, 0);
    if (a->source.status == ANSWER_OK)
        bytes = file_slice_whole(a->source.fd, a->source.size, &len);
    if (bytes != NULL && doc_render_result(bytes, len, &body) == 0 && !body.failed) {
        struct exchange *x = a->x;

        free_asked(a);
        exchange_json(x, 200, &body);
    } else {
        buf_done(&body);
        answer_first(a);
    }
    free(bytes);
}

static void
on_directory(void *ctx)
{
    struct asked *a = ctx;

    if (a->source.place == PLACE_FILES)
        run_source_open(&a->source, RUN_FILE_RESULT, on_result_file, a);
    else
        answer_first(a);
}

static void
on_result(void *ctx, struct daemon_answer *answer)
{
    struct asked *a = ctx;
    bool graded = answer->error == 0 && answer->status == 200 && answer->kind == 't';

    keep_first(a, answer);
    if (graded)
        answer_first(a);
    else
        run_source_find(&a->source, a->run_id, true, on_directory, a);
}

void
run_daemon_answer_result(struct exchange *x, const char *run_id)
{
    struct daemon_question q = {.run_id = run_id, .target = "/result", .member = "available",
                                .timeout_ms = LIMIT_UPSTREAM_MS};

    begin(x, &q, on_result);
}

/* --- health ---------------------------------------------------------------------------------- */

static void
on_health(void *ctx, struct daemon_answer *answer)
{
    struct asked *a = ctx;
    struct exchange *x = a->x;
    struct json_writer w;
    struct buf body;

    a->call = NULL;
    buf_init(&body, 0);
    json_begin(&w, &body);
    json_object_open(&w);
    json_key(&w, "healthy");
    json_bool(&w, answer->error == 0 && answer->status == 200);
    json_key(&w, answer->url != NULL ? "sdkUrl" : "reason");
    json_cstring(&w, answer->url != NULL ? answer->url : "SDK URL not found");
    json_object_close(&w);
    free_asked(a);
    exchange_json(x, 200, &body);
}

void
run_daemon_answer_health(struct exchange *x, const char *run_id)
{
    struct daemon_question q = {.run_id = run_id, .target = "/version",
                                .timeout_ms = LIMIT_UPSTREAM_HEALTH_MS};

    begin(x, &q, on_health);
}
