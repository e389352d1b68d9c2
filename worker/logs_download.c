/*
 * GET /api/containers/:id/logs. A live run's log comes through a pipe from `runs logs`, a
 * finished one's from two files; either is passed on as it stands, a slice at a time.
 */
#include "worker/logs_download.h"

#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "worker/broker_link.h"
#include "worker/exchange.h"
#include "worker/file_slice.h"
#include "worker/run_source.h"
#include "worker/runs.h"
#include "worker/worker.h"

#define KEPT_FILES 2u

static const struct {
    const char *name;
    enum run_file file;
} kept_kinds[KEPT_FILES] = {
    {"agent.log", RUN_FILE_AGENT_LOG},
    {"evaluator.log", RUN_FILE_EVALUATOR_LOG},
};

struct download {
    struct exchange *x;
    bool streaming; /* the answer has begun: done_stream frees */
    struct run_source source;
    struct runs_wait wait;
    /* live: the pipe, and how the command ended */
    broker_ticket ticket;
    uint64_t child; /* 0: none, or it ended */
    int fd;
    ev_io readable;
    struct buf first; /* read before the answer began */
    bool exited;
    int exit_status;
    /* finished */
    unsigned now; /* file at hand */
    struct kept_file {
        int fd; /* -1: none */
        bool too_large;
        uint64_t size, offset;
    } files[KEPT_FILES];
    bool in_file; /* its header is out */
    char id[MESSAGE_ID_SIZE];
};

static const char TRY_AGAIN[] = "Try again: a part of the server is being restarted";
static const char CANNOT_READ[] = "The log of this run cannot be read";

static char slice[FILE_SLICE]; /* one thread, used up before the return */

static void
download_free(struct download *d)
{
    runs_wait_cancel(&d->wait);
    run_source_done(&d->source);
    if (d->ticket != 0)
        broker_cancel(d->ticket);
    ev_io_stop(worker_loop(), &d->readable);
    if (d->fd >= 0)
        close(d->fd);
    buf_done(&d->first);
    if (d->child != 0)
        broker_ask_child_end(d->child);
    for (unsigned i = 0; i < KEPT_FILES; i++)
        if (d->files[i].fd >= 0)
            close(d->files[i].fd);
    free(d);
}

static void
done_stream(void *ctx)
{
    download_free(ctx);
}

static void
on_gone(struct exchange *x, void *ctx)
{
    struct download *d = ctx;

    if (!d->streaming)
        download_free(d);
}

static void
fail(struct download *d, int status, const char *error)
{
    struct exchange *x = d->x;

    download_free(d);
    exchange_error(x, status, error, NULL);
}

static void
begin_answer(struct download *d, int (*fill)(void *ctx, struct buf *out))
{
    char disposition[MESSAGE_ID_SIZE + 48];

    /* A run ID has no character that would end a quoted string. */
    snprintf(disposition, sizeof disposition, "attachment; filename=\"%s.log\"", d->id);
    exchange_header(d->x, "Content-Disposition", disposition);
    d->streaming = true;
    exchange_stream(d->x, 200, "text/plain; charset=utf-8",
                    (struct body_source){fill, done_stream, d});
}

/* --- live ----------------------------------------------------------------------------- */

/* Bytes added to `out`; 0: the pipe is at its end; -EAGAIN; -EIO. */
static int
read_pipe(struct download *d, struct buf *out)
{
    ssize_t n = d->fd >= 0 ? read(d->fd, slice, sizeof slice) : 0;

    if (n > 0) {
        buf_add(out, slice, (size_t)n);
        return 1;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        ev_io_start(worker_loop(), &d->readable);
        return -EAGAIN;
    }
    ev_io_stop(worker_loop(), &d->readable); /* it may wait: the exit status came first */
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
    return n < 0 ? -EIO : 0;
}

/* The end of the pipe counts only with the command's exit status: the broker may have died. */
static int
fill_live(void *ctx, struct buf *out)
{
    struct download *d = ctx;
    int r = 1;

    if (d->first.len > 0)
        buf_add(out, d->first.data, d->first.len);
    else
        r = read_pipe(d, out);
    buf_done(&d->first);
    if (r != 0)
        return r;
    if (!d->exited)
        return -EAGAIN;
    return d->exit_status == 0 ? 0 : -EIO;
}

/* A command that fails without a word can still be told by the status of the answer. */
static void
go_on_live(struct download *d)
{
    int r;

    if (d->streaming) {
        exchange_resume(d->x);
        return;
    }
    r = read_pipe(d, &d->first);
    if (r > 0 || (r == 0 && d->exited && d->exit_status == 0))
        begin_answer(d, fill_live);
    else if (r == -EIO || (r == 0 && d->exited))
        fail(d, 502, CANNOT_READ);
}

static void
on_readable(struct ev_loop *loop, ev_io *w, int events)
{
    ev_io_stop(loop, w);
    go_on_live(w->data);
}

static void
on_exit_status(void *ctx, int exit_status)
{
    struct download *d = ctx;

    d->child = 0;
    d->exited = true;
    d->exit_status = exit_status;
    go_on_live(d);
}

static void
on_pipe(void *ctx, const void *bytes, int *fds, unsigned n_fds)
{
    struct download *d = ctx;
    const struct answer_run_logs *answer = bytes;

    d->ticket = 0;
    if (answer == NULL || answer->status == ANSWER_BUSY) {
        fail(d, 503, TRY_AGAIN);
    } else if (answer->status != ANSWER_OK) {
        fail(d, 502, CANNOT_READ);
    } else {
        d->child = answer->child;
        if (n_fds != 1) {
            fail(d, 502, CANNOT_READ);
            return;
        }
        d->fd = fds[0];
        fds[0] = -1;
        ev_io_set(&d->readable, d->fd, EV_READ);
        ev_io_start(worker_loop(), &d->readable);
        broker_on_child_end(d->child, on_exit_status, d); /* `d` may be gone now */
    }
}

/* --- finished -------------------------------------------------------------------------- */

static void
begin_file(struct download *d, struct buf *out)
{
    const char *name = kept_kinds[d->now].name;

    buf_add_format(out, "==> %s <==\n", name);
    if (d->files[d->now].too_large)
        buf_add_format(out, "(%s is over 32 MiB and is not shown)\n", name);
    d->in_file = true;
}

/* Header and text of each file that is there; a file ends with a newline of ours if it has none. */
static int
fill_kept(void *ctx, struct buf *out)
{
    struct download *d = ctx;
    struct kept_file *file;
    size_t max;
    int64_t n;

    while (d->now < KEPT_FILES && d->files[d->now].fd < 0 && !d->files[d->now].too_large)
        d->now++;
    if (d->now == KEPT_FILES)
        return 0;
    file = &d->files[d->now];
    if (!d->in_file)
        begin_file(d, out);
    max = file->size - file->offset < sizeof slice ? (size_t)(file->size - file->offset)
                                                   : sizeof slice;
    n = file->fd >= 0 && max > 0 ? file_slice_read(file->fd, slice, max, file->offset) : 0;
    if (n < 0)
        return (int)n;
    file->offset += (uint64_t)n;
    buf_add(out, slice, (size_t)n);
    if (n > 0 && file->offset < file->size)
        return 1;
    if (file->fd >= 0 && (n == 0 || slice[n - 1] != '\n'))
        buf_add_str(out, "\n");
    d->now++;
    d->in_file = false;
    return 1;
}

/* Blank as logs are when nothing was said; a large file is not asked. */
static bool
is_blank(const struct run_source *s)
{
    int64_t n = s->size <= sizeof slice ? file_slice_read(s->fd, slice, sizeof slice, 0) : -1;

    return n >= 0 && file_slice_is_blank(slice, (size_t)n);
}

static void
open_next(struct download *d);

static void
on_file(void *ctx)
{
    struct download *d = ctx;
    struct run_source *s = &d->source;
    struct kept_file *file = &d->files[d->now];

    if (s->status == ANSWER_BUSY) {
        fail(d, 503, TRY_AGAIN);
        return;
    }
    file->too_large = s->status == ANSWER_TOO_LARGE;
    if (s->status == ANSWER_OK && !is_blank(s)) {
        file->fd = s->fd;
        file->size = s->size;
        s->fd = -1;
    }
    d->now++;
    open_next(d);
}

static void
open_next(struct download *d)
{
    if (d->now < KEPT_FILES) {
        run_source_open(&d->source, kept_kinds[d->now].file, on_file, d);
        return;
    }
    d->now = 0;
    begin_answer(d, fill_kept);
}

/* --- the way of a request ------------------------------------------------------------- */

static void
on_directory(void *ctx)
{
    struct download *d = ctx;

    if (d->source.place == PLACE_FILES)
        open_next(d);
    else
        fail(d, d->source.place == PLACE_TRY_AGAIN ? 503 : 404,
             d->source.place == PLACE_TRY_AGAIN ? TRY_AGAIN : "The run left no log");
}

static void
on_current(void *ctx)
{
    struct download *d = ctx;
    struct run_row row;

    if (!runs_find(d->id, &row)) {
        fail(d, runs_listing().scanned ? 404 : 503,
             runs_listing().scanned ? "Run not found" : TRY_AGAIN);
    } else if (row.live != NULL) {
        broker_ticket ticket = broker_ask_run_logs(d->id, true, on_pipe, d);

        if (ticket != 0) /* else answered already, and `d` is gone */
            d->ticket = ticket;
    } else {
        run_source_directory(&d->source, &row, on_directory, d);
    }
}

void
handle_logs(struct exchange *x)
{
    struct download *d = calloc(1, sizeof *d);

    if (d == NULL) {
        exchange_error(x, 503, "Try again", NULL);
        return;
    }
    *d = (struct download){.x = x, .fd = -1, .source.fd = -1};
    for (unsigned i = 0; i < KEPT_FILES; i++)
        d->files[i].fd = -1;
    message_string_set(d->id, sizeof d->id, exchange_param(x, 0));
    buf_init(&d->first, 0);
    ev_io_init(&d->readable, on_readable, -1, EV_READ);
    d->readable.data = d;
    exchange_on_gone(x, on_gone, d);
    runs_wait(&d->wait, LIMIT_LIST_WAIT_MS, on_current, d);
}
