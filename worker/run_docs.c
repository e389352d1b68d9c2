/*
 * The documents of a run: project, diff, files, dialog, grade, note, reference patch. One way
 * for all: find the run, open the file, answer; a table says how they differ.
 */
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/body_file.h"
#include "worker/dialog_read.h"
#include "worker/doc_render.h"
#include "worker/doc_slices.h"
#include "worker/exchange.h"
#include "worker/file_slice.h"
#include "worker/reference_patch.h"
#include "worker/run_daemon.h"
#include "worker/run_source.h"
#include "worker/runs.h"
#include "worker/runs_live.h"
#include "worker/runs_results.h"
#include "worker/worker.h"

static const char NO_RUN[] = "Run not found";
static const char NO_CONTAINER[] = "Container not found";
static const char LEFT_NOTHING[] = "The run is over and left nothing to show for this";
static const char TRY_AGAIN[] = "Try again: a part of the server is being restarted";

struct doc;

/* How one document differs from the others. */
struct doc_kind {
    enum run_file file; /* 0: none, files have nothing to say */
    bool want_files;    /* from the run directory even while the run goes on */
    const char *unknown; /* text of the 404 for a run nobody knows */
    const char *empty;   /* answer 200 when there is no file; NULL: 404 LEFT_NOTHING */
    const char *going_on; /* answer 200 for a run that goes on; NULL: its daemon's */
    const char *target;    /* the daemon's path */
    const char *too_large; /* answer 200 for a file over the limit; NULL: as none, with hint */
    /* The open file is doc->source.fd: answer from it, and free doc. */
    void (*answer)(struct doc *doc);
};

/* A request for a document, waiting for the table or the broker. */
struct doc {
    struct exchange *x;
    const struct doc_kind *kind;
    double since; /* dialog only */
    struct run_source source;
    struct reference_patch reference; /* of the local task */
    struct doc_slices *slices;        /* of a large file that is looked at */
    ev_timer turn;                    /* the next of them */
};

static void
free_doc(struct doc *doc)
{
    run_source_done(&doc->source);
    reference_patch_done(&doc->reference);
    if (doc->slices != NULL)
        ev_timer_stop(worker_loop(), &doc->turn);
    doc_slices_free(doc->slices);
    free(doc);
}

static void
on_gone(struct exchange *x, void *ctx)
{
    free_doc(ctx);
}

static void
answer_text(struct doc *doc, const char *json)
{
    struct exchange *x = doc->x;
    struct buf body;

    free_doc(doc);
    buf_init(&body, 0);
    buf_add_str(&body, json);
    exchange_json(x, 200, &body);
}

static void
answer_error(struct doc *doc, int status, const char *error, const char *hint)
{
    struct exchange *x = doc->x;

    free_doc(doc);
    exchange_error(x, status, error, hint);
}

static void
answer_body(struct doc *doc, const char *no_memory, bool made, struct body_source body,
            uint64_t size)
{
    struct exchange *x = doc->x;

    free_doc(doc);
    if (made)
        body_answer(x, body, size);
    else
        exchange_error(x, 503, no_memory, NULL);
}

static int
take_fd(struct doc *doc)
{
    int fd = doc->source.fd;

    doc->source.fd = -1;
    return fd;
}

/* More is no number of an entry; the daemon would have to read it as one. */
#define SINCE_MAX 9007199254740991.

static const struct doc_kind kind_dialog, kind_health, kind_reference;

/* --- the seam ------------------------------------------------------------------------- */

/* A run that goes on: its daemon has the documents. */
static void
answer_from_daemon(struct doc *doc)
{
    struct exchange *x = doc->x;
    const struct doc_kind *kind = doc->kind;
    char run_id[MESSAGE_ID_SIZE], target[64];

    memcpy(run_id, doc->source.id, sizeof run_id);
    if (doc->since >= 0)
        snprintf(target, sizeof target, "%s?since=%.0f", kind->target,
                 doc->since < SINCE_MAX ? doc->since : SINCE_MAX);
    else
        snprintf(target, sizeof target, "%s", kind->target);
    free_doc(doc);
    if (kind == &kind_health)
        run_daemon_answer_health(x, run_id);
    else if (kind->file == RUN_FILE_RESULT)
        run_daemon_answer_result(x, run_id);
    else if (kind == &kind_dialog)
        run_daemon_answer_dialog(x, run_id, target);
    else
        run_daemon_answer(x, run_id, target);
}

/* --- the way of a request ------------------------------------------------------------- */

static void
answer_missing(struct doc *doc)
{
    const struct doc_kind *kind = doc->kind;
    char hint[128];

    if (doc->source.status != ANSWER_TOO_LARGE) {
        if (kind->empty != NULL)
            answer_text(doc, kind->empty);
        else
            answer_error(doc, 404, LEFT_NOTHING, NULL);
        return;
    }
    snprintf(hint, sizeof hint, "The file is over %u bytes, the limit for one file",
             LIMIT_RUN_FILE);
    if (kind->too_large != NULL)
        answer_text(doc, kind->too_large);
    else
        answer_error(doc, 404, LEFT_NOTHING, hint);
}

/* A finished run's file says by its inode, size and time whether an answer made of it would be
 * the same. Sets the tag of this answer. */
static bool
is_unchanged(struct doc *doc)
{
    const struct run_source *s = &doc->source;
    struct span known = exchange_request(doc->x)->if_none_match;
    char tag[128];

    snprintf(tag, sizeof tag, "W/\"%s-%llx-%llx-%llx-%.0f\"", worker_config()->server_version,
             (unsigned long long)s->inode, (unsigned long long)s->size,
             (unsigned long long)s->mtime_ns, doc->since);
    exchange_header(doc->x, "ETag", tag);
    return known.at != NULL && memmem(known.at, known.len, tag, strlen(tag)) != NULL;
}

static void
answer_unchanged(struct doc *doc)
{
    struct exchange *x = doc->x;

    free_doc(doc);
    exchange_static(x, 304, NULL, NULL, 0);
}

/* The run directory has none: perhaps the local task names one. */
static void
on_reference(void *ctx)
{
    struct doc *doc = ctx;
    struct reference_patch *r = &doc->reference;

    if (r->status == ANSWER_OK) {
        doc->source.fd = r->fd;
        doc->source.size = r->size;
        r->fd = -1;
        doc->kind->answer(doc);
    } else if (r->status == ANSWER_BUSY) {
        answer_error(doc, 503, TRY_AGAIN, NULL);
    } else {
        doc->source.status = r->status;
        answer_missing(doc);
    }
}

static void
find_reference(struct doc *doc)
{
    struct run_row row = {0};
    const char *task = NULL;

    if (runs_find(doc->source.id, &row))
        task = row.live != NULL ? row.live->task : row.done->task;
    reference_patch_find(&doc->reference, task, on_reference, doc);
}

static void
on_opened(void *ctx)
{
    struct doc *doc = ctx;

    if (doc->source.status == ANSWER_OK && is_unchanged(doc))
        answer_unchanged(doc);
    else if (doc->source.status == ANSWER_OK)
        doc->kind->answer(doc);
    else if (doc->source.status == ANSWER_BUSY)
        answer_error(doc, 503, TRY_AGAIN, NULL);
    else if (doc->kind == &kind_reference && doc->source.status == ANSWER_NOT_FOUND)
        find_reference(doc);
    else
        answer_missing(doc);
}

static void
on_found(void *ctx)
{
    struct doc *doc = ctx;

    switch (doc->source.place) {
    case PLACE_UNKNOWN:
        if (doc->kind == &kind_health)
            answer_text(doc, doc->kind->empty);
        else
            answer_error(doc, 404, doc->kind->unknown, NULL);
        return;
    case PLACE_DAEMON:
        if (doc->kind->going_on != NULL)
            answer_text(doc, doc->kind->going_on);
        else
            answer_from_daemon(doc);
        return;
    case PLACE_FILES:
        if (doc->kind->file != 0) {
            run_source_open(&doc->source, doc->kind->file, on_opened, doc);
            return;
        }
        break;
    case PLACE_NOTHING:
        if (doc->kind == &kind_reference) {
            find_reference(doc);
            return;
        }
        break;
    case PLACE_TRY_AGAIN:
        answer_error(doc, 503, TRY_AGAIN, NULL);
        return;
    }
    doc->source.status = ANSWER_NOT_FOUND;
    answer_missing(doc);
}

static void
begin_since(struct exchange *x, const struct doc_kind *kind, double since)
{
    struct doc *doc = calloc(1, sizeof *doc);

    if (doc == NULL) {
        exchange_error(x, 503, "Out of memory: try again", NULL);
        return;
    }
    doc->x = x;
    doc->kind = kind;
    doc->since = since;
    exchange_on_gone(x, on_gone, doc);
    run_source_find(&doc->source, exchange_param(x, 0), kind->want_files, on_found, doc);
}

static void
begin(struct exchange *x, const struct doc_kind *kind)
{
    begin_since(x, kind, -1);
}

/* --- streamed ones ---------------------------------------------------------------------- */

static void
answer_diff(struct doc *doc)
{
    struct body_source body = {0};
    uint64_t size = doc->source.size;
    bool made = body_text_new(take_fd(doc), size, "{\"diff\":\"", "\"}", &body);

    answer_body(doc, TRY_AGAIN, made, body, size);
}

static void
answer_files(struct doc *doc)
{
    struct body_source body = {0};
    uint64_t size = doc->source.size;
    bool made = body_files_new(take_fd(doc), size, &body);

    answer_body(doc, TRY_AGAIN, made, body, size);
}

static void
answer_dialog(struct doc *doc)
{
    struct body_source body = {0};
    uint64_t size = doc->source.size;
    bool made = body_dialog_new(take_fd(doc), size, doc->since, &body);

    answer_body(doc, TRY_AGAIN, made, body, size);
}

static const char NO_NOTE[] = "{\"available\":false}";

static void
answer_review(struct doc *doc)
{
    struct body_source body = {0};
    uint64_t size = doc->source.size;
    bool made = body_note_new(take_fd(doc), size, "{\"available\":true,\"text\":\"", "\"}",
                              NO_NOTE, &body);

    answer_body(doc, TRY_AGAIN, made, body, size);
}

/* --- parsed ones ------------------------------------------------------------------------ */

static void
answer_rendered(struct doc *doc,
                int (*render)(const char *bytes, size_t len, struct buf *out))
{
    struct exchange *x = doc->x;
    size_t len = 0;
    char *bytes = file_slice_whole(doc->source.fd, doc->source.size, &len);
    struct buf body;
    bool usable;

    free_doc(doc);
    buf_init(&body, 0);
    usable = bytes != NULL && render(bytes, len, &body) == 0;
    free(bytes);
    if (usable) {
        exchange_json(x, 200, &body);
        return;
    }
    buf_done(&body);
    exchange_error(x, 404, LEFT_NOTHING, NULL);
}

static void
on_turn(struct ev_loop *loop, ev_timer *w, int events)
{
    struct doc *doc = w->data;
    struct body_source body = {doc_slices_fill, doc_slices_done, doc->slices};
    int more = doc_slices_look(doc->slices);

    if (more == 1) {
        ev_timer_start(loop, w);
    } else if (more == 0) {
        doc->slices = NULL;
        answer_body(doc, TRY_AGAIN, true, body, UINT64_MAX);
    } else {
        answer_error(doc, 404, LEFT_NOTHING, NULL);
    }
}

/* Large ones wait for their turns. */
static void
answer_parsed(struct doc *doc, enum doc_slices_kind kind,
              int (*render)(const char *bytes, size_t len, struct buf *out))
{
    if (doc->source.size <= DOC_AT_ONCE) {
        answer_rendered(doc, render);
        return;
    }
    doc->slices = doc_slices_new(take_fd(doc), doc->source.size, kind);
    if (doc->slices == NULL) {
        answer_error(doc, 503, TRY_AGAIN, NULL);
        return;
    }
    ev_timer_init(&doc->turn, on_turn, 0., 0.);
    doc->turn.data = doc;
    ev_timer_start(worker_loop(), &doc->turn);
}

static void
answer_project(struct doc *doc)
{
    answer_parsed(doc, DOC_PROJECT, doc_render_project);
}

static void
answer_result(struct doc *doc)
{
    answer_parsed(doc, DOC_RESULT, doc_render_result);
}

/* --- the table ---------------------------------------------------------------------------- */

static const struct doc_kind kind_project = {
    .file = RUN_FILE_SUMMARY, .target = "/project", .unknown = NO_RUN, .answer = answer_project};
static const struct doc_kind kind_diff = {
    .file = RUN_FILE_FINAL_PATCH, .target = "/diff", .unknown = NO_RUN, .answer = answer_diff};
static const struct doc_kind kind_files = {
    .file = RUN_FILE_FINAL_PATCH, .target = "/files", .unknown = NO_RUN, .answer = answer_files};
static const struct doc_kind kind_dialog = {
    .file = RUN_FILE_DIALOG,
    .target = "/agent/dialog",
    .unknown = NO_RUN,
    .empty = "{\"entries\":[]}",
    .too_large = "{\"entries\":[],\"truncated\":true}",
    .answer = answer_dialog};
static const struct doc_kind kind_result = {
    .file = RUN_FILE_RESULT, .target = "/result", .unknown = NO_RUN, .answer = answer_result};
static const struct doc_kind kind_review = {.file = RUN_FILE_REVIEW,
                                            .unknown = NO_RUN,
                                            .empty = NO_NOTE,
                                            .going_on = NO_NOTE,
                                            .answer = answer_review};
static const struct doc_kind kind_reference = {
    .file = RUN_FILE_REFERENCE_PATCH,
    .want_files = true,
    .unknown = NO_CONTAINER,
    .empty = "{\"diff\":\"\"}",
    .too_large = "{\"diff\":\"\",\"truncated\":true}",
    .answer = answer_diff};
static const struct doc_kind kind_version = {.target = "/version", .unknown = NO_RUN};

static const struct doc_kind kind_health = {
    .target = "/version",
    .unknown = NO_RUN,
    .empty = "{\"healthy\":false,\"reason\":\"SDK URL not found\"}"};

/* --- routes ------------------------------------------------------------------------------- */

void
handle_project(struct exchange *x)
{
    begin(x, &kind_project);
}

void
handle_diff(struct exchange *x)
{
    begin(x, &kind_diff);
}

void
handle_files(struct exchange *x)
{
    begin(x, &kind_files);
}

void
handle_dialog(struct exchange *x)
{
    char text[64];
    double since = -1;
    int given = request_query(exchange_request(x), "since", text, sizeof text);

    if (given < 0 || (given > 0 && !dialog_since_parse(text, &since))) {
        exchange_error(x, 400, "Invalid since: expected a sequence number", NULL);
        return;
    }
    begin_since(x, &kind_dialog, since);
}

void
handle_result(struct exchange *x)
{
    begin(x, &kind_result);
}

void
handle_review(struct exchange *x)
{
    begin(x, &kind_review);
}

void
handle_reference_patch(struct exchange *x)
{
    begin(x, &kind_reference);
}

void
handle_sdk_version(struct exchange *x)
{
    begin(x, &kind_version);
}

void
handle_sdk_health(struct exchange *x)
{
    begin(x, &kind_health);
}
