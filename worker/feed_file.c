/* A feed's own eyes: the dialog on this host, read as it grows. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "worker/broker_ends.h"
#include "worker/feed_parts.h"
#include "worker/file_slice.h"
#include "worker/runs.h"
#include "worker/runs_live.h"
#include "worker/worker.h"

#define WINDOW (64u * 1024u)
#define WINDOWS_PER_TURN 4u

struct feed_file *
feed_file_ref(struct feed_file *file)
{
    file->references++;
    return file;
}

void
feed_file_unref(struct feed_file *file)
{
    if (file == NULL || --file->references > 0)
        return;
    close(file->fd);
    free(file);
}

/* --- growth ------------------------------------------------------------------------------------ */

static void
tail_later(struct feed *f)
{
    if (!ev_is_active(&f->tail))
        ev_timer_start(worker_loop(), &f->tail);
}

/* Look for the last newline in what is new; a line without one is not there yet. */
static void
scan(struct feed *f)
{
    static char window[WINDOW];
    uint64_t from = f->file_end;
    int64_t n = 1;

    for (unsigned i = 0; i < WINDOWS_PER_TURN && n > 0; i++) {
        const char *newline;

        n = file_slice_read(f->file->fd, window, sizeof window, f->scanned);
        if (n <= 0)
            break;
        newline = memrchr(window, '\n', (size_t)n);
        if (newline != NULL)
            f->file_end = f->scanned + (uint64_t)(newline - window) + 1;
        f->scanned += (uint64_t)n;
    }
    if (n > 0)
        tail_later(f);
    if (f->file_end > from)
        feed_file_grew(f, from);
}

static void
on_tail(struct ev_loop *loop, ev_timer *w, int events)
{
    struct feed *f = w->data;

    if (f->file != NULL)
        scan(f);
}

/* --- opening -------------------------------------------------------------------------------------- */

static void
drop_file(struct feed *f)
{
    feed_file_unref(f->file);
    f->file = NULL;
    f->file_end = f->scanned = 0;
}

static void
use_file(struct feed *f, struct run_source *s)
{
    struct feed_file *file;

    if (f->file != NULL && f->file->inode == s->inode && s->size >= f->scanned) {
        if (s->size > f->scanned)
            tail_later(f);
        return; /* the same, it is still open */
    }
    file = malloc(sizeof *file);
    if (file == NULL)
        return;
    *file = (struct feed_file){1, s->fd, s->inode};
    s->fd = -1;
    drop_file(f);
    f->file = file;
    tail_later(f);
}

static void
on_opened(void *ctx)
{
    struct feed *f = ctx;
    struct run_source *s = &f->source;
    enum answer_status status = s->status;

    f->opening = false;
    if (status == ANSWER_OK)
        use_file(f, s);
    else if (status == ANSWER_NOT_FOUND)
        drop_file(f); /* the daemon may know more. One that grew too large stays open. */
    run_source_done(s);
    if (f->reopen)
        feed_file_look(f);
}

void
feed_file_look(struct feed *f)
{
    off_t size = f->file != NULL ? lseek(f->file->fd, 0, SEEK_END) : -1;

    if (size >= 0 && (uint64_t)size > f->scanned) {
        scan(f);
        return;
    }
    f->reopen = f->opening || f->looking;
    if (!f->located || f->reopen)
        return;
    f->opening = true;
    f->source.epoch = f->dir_epoch;
    f->source.ref = f->dir_ref;
    run_source_open(&f->source, RUN_FILE_DIALOG, on_opened, f);
}

/* --- watching ---------------------------------------------------------------------------------------- */

static void
on_file_event(const void *event)
{
    const struct event_file *e = event;

    for (struct feed *f = feed_list(); f != NULL; f = f->next) {
        if (f->watch != e->watch)
            continue;
        feed_file_look(f);
        return;
    }
}

/* A new broker knows nothing of what was asked of the one before. */
static void
on_broker_up(void)
{
    for (struct feed *f = feed_list(); f != NULL; f = f->next) {
        f->watch = 0;
        f->located = false;
        feed_file_begin(f);
    }
}

static void
on_watched(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_run_watch *a = answer;
    struct feed *f = ctx;

    f->watch_asked = false;
    f->watch = a != NULL && a->status == ANSWER_OK ? a->watch : 0;
    if (f->watch != 0)
        feed_file_look(f); /* what came before the watch */
}

static void
watch(struct feed *f)
{
    struct request_run_watch q = {.epoch = f->dir_epoch, .ref = f->dir_ref};

    if (f->watch != 0 || f->watch_asked || !broker_link_up())
        return;
    f->watch_asked = true;
    f->watch_ticket = broker_ask(MESSAGE_RUN_WATCH, &q, NULL, 0, on_watched, f);
}

static void
unwatch(struct feed *f)
{
    if (f->watch_asked)
        broker_cancel(f->watch_ticket);
    if (f->watch != 0)
        broker_end(MESSAGE_RUN_UNWATCH, f->watch);
    f->watch_asked = false;
    f->watch = 0;
}

/* --- where it is --------------------------------------------------------------------------------------- */

static bool
goes_on(const struct feed *f)
{
    struct run_row row;

    if (!runs_find(f->run_id, &row))
        return !runs_listing().known;
    return row.live != NULL &&
           (row.live->state == LIVE_RUNNING || row.live->state == LIVE_UNKNOWN);
}

static void
on_found(void *ctx)
{
    struct feed *f = ctx;
    struct run_source *s = &f->source;
    bool same = f->located && f->dir_epoch == s->epoch && f->dir_ref == s->ref;

    f->looking = false;
    if (s->place != PLACE_TRY_AGAIN && !goes_on(f)) {
        feed_over(f);
        return;
    }
    if (s->place == PLACE_FILES) {
        if (!same)
            unwatch(f);
        f->located = true;
        f->dir_epoch = s->epoch;
        f->dir_ref = s->ref;
        watch(f);
        if (!same || f->reopen)
            feed_file_look(f);
    }
}

void
feed_file_begin(struct feed *f)
{
    static bool listening;

    if (!listening) {
        listening = true;
        broker_on_event(MESSAGE_EVENT_FILE, on_file_event);
        broker_on_up(on_broker_up);
    }
    if (f->tail.data == NULL) {
        ev_timer_init(&f->tail, on_tail, 0., 0.);
        f->tail.data = f;
    }
    if (f->looking || f->opening || f->state == FEED_OVER)
        return;
    f->looking = true;
    run_source_find(&f->source, f->run_id, true, on_found, f);
}

void
feed_file_end(struct feed *f)
{
    run_source_done(&f->source);
    ev_timer_stop(worker_loop(), &f->tail);
    unwatch(f);
    drop_file(f);
}
