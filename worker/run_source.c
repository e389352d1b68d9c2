/* From a run ID to a descriptor, step by step; every step may be the one that is cut off. */
#include "worker/run_source.h"

#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "worker/runs_live.h"
#include "worker/runs_results.h"

#define FIND_MS 10000u /* the listing takes 2 s at most; the first scan may take longer */

static void
found(struct run_source *s, enum run_place place)
{
    s->place = place;
    s->fn(s->ctx);
}

/* The broker answers from within the asking when it is away: keep that for finish_asking, so
 * that nobody's memory goes while it is being written. */
static bool
too_early(struct run_source *s)
{
    if (s->asking)
        s->early = true;
    return s->asking;
}

static void
begin_asking(struct run_source *s)
{
    s->asking = true;
    s->early = false;
    s->waiting = true;
}

/* True: the answer was there at once (the broker is away). */
static bool
finish_asking(struct run_source *s, broker_ticket ticket)
{
    s->asking = false;
    s->ticket = ticket;
    return s->early;
}

static void
on_located(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    struct run_source *s = ctx;
    const struct answer_run_locate *a = answer;

    if (too_early(s))
        return;
    s->waiting = false;
    if (a == NULL || a->status == ANSWER_BUSY) {
        found(s, PLACE_TRY_AGAIN);
        return;
    }
    s->epoch = a->epoch;
    s->ref = a->ref;
    found(s, a->status == ANSWER_OK ? PLACE_FILES : PLACE_NOTHING);
}

static bool
fits(const char *text, size_t size)
{
    return text != NULL && *text != '\0' && strlen(text) < size;
}

static bool
same_text(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* Is this finished run the live one's own directory? */
static bool
is_twin(const struct live_run *live, const struct finished_run *done)
{
    return same_text(live->task, done->task) && same_text(live->agent, done->agent) &&
           (same_text(live->model, done->model) ||
            (live->reference_run && done->reference_run));
}

static void
locate(struct run_source *s, const struct live_run *live)
{
    broker_ticket ticket;

    if (!fits(live->task, MESSAGE_NAME_SIZE) || !fits(live->agent, MESSAGE_NAME_SIZE) ||
        !fits(live->model, MESSAGE_MODEL_SIZE)) {
        found(s, PLACE_NOTHING);
        return;
    }
    begin_asking(s);
    ticket = broker_ask_run_locate(live->task, live->model, live->agent, s->id, on_located,
                                   s);
    if (finish_asking(s, ticket))
        on_located(s, NULL, NULL, 0);
}

/* Contract 4.4: a finished run's directory; of a live run its own, and if it names none, that
 * of the finished one with its ID. */
static void
find_directory(struct run_source *s, const struct run_row *row)
{
    const struct live_run *live = row->live;

    if (live != NULL && live->results_dir != NULL &&
        (row->done == NULL || !is_twin(live, row->done))) {
        locate(s, live);
        return;
    }
    if (row->done == NULL) {
        found(s, PLACE_NOTHING);
        return;
    }
    s->epoch = runs_epoch();
    s->ref = row->done->ref;
    found(s, PLACE_FILES);
}

static void
on_ready(void *ctx)
{
    struct run_source *s = ctx;
    struct run_row row;
    bool goes_on;

    if (!runs_find(s->id, &row)) {
        found(s, runs_listing().scanned ? PLACE_UNKNOWN : PLACE_TRY_AGAIN);
        return;
    }
    goes_on = row.live != NULL &&
              (row.live->state == LIVE_RUNNING || row.live->state == LIVE_UNKNOWN);
    if (goes_on && !s->want_files)
        found(s, PLACE_DAEMON);
    else
        find_directory(s, &row);
}

void
run_source_find(struct run_source *s, const char *id, bool want_files,
                void (*fn)(void *ctx), void *ctx)
{
    *s = (struct run_source){.fd = -1, .want_files = want_files, .fn = fn, .ctx = ctx};
    message_string_set(s->id, sizeof s->id, id);
    runs_wait(&s->wait, FIND_MS, on_ready, s);
}

void
run_source_directory(struct run_source *s, const struct run_row *row, void (*fn)(void *ctx),
                     void *ctx)
{
    *s = (struct run_source){.fd = -1, .want_files = true, .fn = fn, .ctx = ctx};
    message_string_set(s->id, sizeof s->id,
                       row->live != NULL ? row->live->id : row->done->run_id);
    find_directory(s, row);
}

static void
on_opened(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    struct run_source *s = ctx;
    const struct answer_run_file *a = answer;

    if (too_early(s))
        return;
    s->waiting = false;
    s->status = a != NULL ? (enum answer_status)a->status : ANSWER_BUSY;
    if (a != NULL && a->status == ANSWER_OK && n_fds == 1) {
        s->fd = fds[0];
        fds[0] = -1;
        s->size = a->size;
        s->mtime_ns = a->mtime_ns;
        s->inode = a->inode;
    } else if (s->status == ANSWER_OK) {
        s->status = ANSWER_FAILED;
    }
    s->fn(s->ctx);
}

void
run_source_open(struct run_source *s, enum run_file file, void (*fn)(void *ctx), void *ctx)
{
    broker_ticket ticket;

    run_source_done(s);
    s->fn = fn;
    s->ctx = ctx;
    begin_asking(s);
    ticket = broker_ask_run_file(s->epoch, s->ref, file, on_opened, s);
    if (finish_asking(s, ticket))
        on_opened(s, NULL, NULL, 0);
}

void
run_source_done(struct run_source *s)
{
    runs_wait_cancel(&s->wait);
    if (s->waiting)
        broker_cancel(s->ticket);
    s->waiting = false;
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
