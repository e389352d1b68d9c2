/*
 * The documents of a run: project, diff, files, dialog, grade, note, reference patch. One way
 * for all: find the run, open the file, answer; a table says how they differ.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "worker/dialog_read.h"
#include "worker/doc_answer.h"
#include "worker/exchange.h"
#include "worker/reference_patch.h"
#include "worker/run_daemon.h"
#include "worker/run_source.h"
#include "worker/runs.h"
#include "worker/runs_live.h"
#include "worker/runs_results.h"
#include "worker/worker.h"

static const char NO_RUN[] = "Run not found";
static const char NO_CONTAINER[] = "Container not found";

/* How one document differs from the others. */
struct doc_kind {
    enum run_file file; /* 0: none, files have nothing to say */
    bool want_files;    /* from the run directory even while the run goes on */
    const char *unknown; /* text of the 404 for a run nobody knows */
    const char *empty;   /* answer 200 when there is no file; NULL: 404 */
    const char *going_on; /* answer 200 for a run that goes on; NULL: its daemon's */
    const char *target;    /* the daemon's path */
    const char *too_large; /* answer 200 for a file over the limit; NULL: 404 with a hint */
    /* Of the open file (worker/doc_answer.h). */
    void (*answer)(struct exchange *x, int fd, uint64_t size, double since);
};

/* A request for a document, waiting for the table or the broker. */
struct doc {
    struct exchange *x;
    const struct doc_kind *kind;
    double since; /* dialog only */
    struct run_source source;
    struct reference_patch reference; /* of the local task */
};

static void
free_doc(struct doc *doc)
{
    run_source_done(&doc->source);
    reference_patch_done(&doc->reference);
    free(doc);
}

static void
on_gone(struct exchange *x, void *ctx)
{
    free_doc(ctx);
}

/* The document's way is over: the exchange is to be answered. */
static struct exchange *
end_doc(struct doc *doc)
{
    struct exchange *x = doc->x;

    free_doc(doc);
    return x;
}

static void
answer_text(struct doc *doc, const char *json)
{
    struct buf body;

    buf_init(&body, 0);
    buf_add_str(&body, json);
    exchange_json(end_doc(doc), 200, &body);
}

/* More is no number of an entry; the daemon would have to read it as one. */
#define SINCE_MAX 9007199254740991.

static const struct doc_kind kind_dialog, kind_health, kind_reference;

/* --- the seam ------------------------------------------------------------------------- */

/* A file of the run was opened: the answer is made of it. */
static void
answer_from_file(struct doc *doc)
{
    const struct doc_kind *kind = doc->kind;
    int fd = doc->source.fd;
    uint64_t size = doc->source.size;
    double since = doc->since;

    doc->source.fd = -1;
    kind->answer(end_doc(doc), fd, size, since);
}

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
            doc_answer_nothing(end_doc(doc), NULL);
        return;
    }
    snprintf(hint, sizeof hint, "The file is over %u bytes, the limit for one file",
             LIMIT_RUN_FILE);
    if (kind->too_large != NULL)
        answer_text(doc, kind->too_large);
    else
        doc_answer_nothing(end_doc(doc), hint);
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
        answer_from_file(doc);
    } else if (r->status == ANSWER_BUSY) {
        doc_answer_try_again(end_doc(doc));
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
        exchange_static(end_doc(doc), 304, NULL, NULL, 0);
    else if (doc->source.status == ANSWER_OK)
        answer_from_file(doc);
    else if (doc->source.status == ANSWER_BUSY)
        doc_answer_try_again(end_doc(doc));
    else if (doc->kind == &kind_reference && doc->source.status == ANSWER_NOT_FOUND)
        find_reference(doc);
    else
        answer_missing(doc);
}

static void
on_found(void *ctx)
{
    struct doc *doc = ctx;
    const char *unknown = doc->kind->unknown;

    switch (doc->source.place) {
    case PLACE_UNKNOWN:
        if (doc->kind == &kind_health)
            answer_text(doc, doc->kind->empty);
        else
            exchange_error(end_doc(doc), 404, unknown, NULL);
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
        doc_answer_try_again(end_doc(doc));
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

/* --- the table ---------------------------------------------------------------------------- */

static const struct doc_kind kind_project = {
    .file = RUN_FILE_SUMMARY,
    .target = "/project",
    .unknown = NO_RUN,
    .answer = doc_answer_project};
static const struct doc_kind kind_diff = {
    .file = RUN_FILE_FINAL_PATCH, .target = "/diff", .unknown = NO_RUN, .answer = doc_answer_diff};
static const struct doc_kind kind_files = {
    .file = RUN_FILE_FINAL_PATCH,
    .target = "/files",
    .unknown = NO_RUN,
    .answer = doc_answer_files};
static const struct doc_kind kind_dialog = {
    .file = RUN_FILE_DIALOG,
    .target = "/agent/dialog",
    .unknown = NO_RUN,
    .empty = "{\"entries\":[]}",
    .too_large = "{\"entries\":[],\"truncated\":true}",
    .answer = doc_answer_dialog};
static const struct doc_kind kind_result = {
    .file = RUN_FILE_RESULT, .target = "/result", .unknown = NO_RUN, .answer = doc_answer_result};
static const struct doc_kind kind_review = {.file = RUN_FILE_REVIEW,
                                            .unknown = NO_RUN,
                                            .empty = DOC_NO_NOTE,
                                            .going_on = DOC_NO_NOTE,
                                            .answer = doc_answer_review};
static const struct doc_kind kind_reference = {
    .file = RUN_FILE_REFERENCE_PATCH,
    .want_files = true,
    .unknown = NO_CONTAINER,
    .empty = "{\"diff\":\"\"}",
    .too_large = "{\"diff\":\"\",\"truncated\":true}",
    .answer = doc_answer_diff};
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
