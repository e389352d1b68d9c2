/* A finished run's kept logs, a slice of a file at a time. */
#include "worker/kept_logs.h"

#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "worker/broker_link.h"
#include "worker/file_slice.h"
#include "worker/log_follower.h"
#include "worker/log_lines.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define KEPT_FILES 2u
#define KEPT_READ (64u * 1024u) /* bytes of one slice; a few hundred microseconds */
#define KEPT_LINES 1000u        /* of it, where they are short: about a millisecond */

struct kept_file {
    struct kept_logs *owner;
    broker_ticket ticket;
    int fd;         /* -1: missing, or read */
    bool answered;
    bool too_large;
    bool header_sent;
};

struct kept_logs {
    struct ws *ws;
    void (*failed)(void *ctx);
    void *ctx;
    struct kept_file files[KEPT_FILES];
    unsigned now;   /* file at hand; KEPT_FILES: all done */
    uint64_t left;  /* bytes of it that may still be read */
    struct log_lines lines;
    ev_timer turn;  /* the next slice, after the others had theirs */
    bool refused;   /* `failed` was called */
};

static const struct {
    const char *header;
    const char *too_large;
    enum run_file file;
} kept_kinds[KEPT_FILES] = {
    {"==> agent.log <==", "(agent.log is over 32 MiB and is not shown)", RUN_FILE_AGENT_LOG},
    {"==> evaluator.log <==", "(evaluator.log is over 32 MiB and is not shown)",
     RUN_FILE_EVALUATOR_LOG},
};

static char kept_buffer[KEPT_READ];

static void
send_line(struct kept_logs *k, const char *text, size_t len)
{
    struct ws_bytes *message = log_message_line(text, len);
    ws_send_shared(k->ws, message);
    ws_bytes_unref(message);
}

/* The header comes with the first line, so a blank file has none. */
static void
on_line(void *ctx, const char *text, size_t len)
{
    struct kept_logs *k = ctx;
    struct kept_file *file = &k->files[k->now];
    if (!file->header_sent)
        send_line(k, kept_kinds[k->now].header, strlen(kept_kinds[k->now].header));
    file->header_sent = true;
    send_line(k, text, len);
}

static void
finish_file(struct kept_logs *k)
{
    struct kept_file *file = &k->files[k->now];
    log_lines_end(&k->lines);
    if (file->too_large)
        on_line(k, kept_kinds[k->now].too_large, strlen(kept_kinds[k->now].too_large));
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    k->now++;
    k->left = LIMIT_RUN_FILE;
    if (k->now < KEPT_FILES)
        return;
    struct ws_bytes *message = log_message_end(0);
    ws_send_shared(k->ws, message);
    ws_bytes_unref(message);
}

static void
read_slice(struct kept_logs *k)
{
    struct kept_file *file = &k->files[k->now];
    size_t most = k->left < sizeof(kept_buffer) ? (size_t)k->left : sizeof(kept_buffer);
    int64_t n = file->fd >= 0 && most > 0
                    ? file_slice_read(file->fd, kept_buffer, most, LIMIT_RUN_FILE - k->left)
                    : 0;
    if (n <= 0) {
        finish_file(k);
        return;
    }
    k->left -= log_lines_feed_some(&k->lines, kept_buffer, (size_t)n, KEPT_LINES);
}

static void
go_on(struct kept_logs *k)
{
    if (k->now >= KEPT_FILES || ws_queue_full(k->ws))
        return; /* done, or kept_logs_resume goes on */
    read_slice(k);
    if (k->now < KEPT_FILES && !ev_is_active(&k->turn)) {
        ev_timer_set(&k->turn, 0., 0.);
        ev_timer_start(worker_loop(), &k->turn);
    }
}

static void
on_turn(struct ev_loop *loop, ev_timer *w, int events)
{
    go_on(w->data);
}

static void
take_file(struct kept_file *file, int *fds, unsigned n_fds)
{
    if (n_fds != 1)
        return;
    file->fd = fds[0]; /* a regular file, says the broker; fstat is no call of a worker */
    fds[0] = -1;
}

static void
on_file(void *ctx, const void *bytes, int *fds, unsigned n_fds)
{
    struct kept_file *file = ctx;
    struct kept_logs *k = file->owner;
    const struct answer_run_file *answer = bytes;
    file->ticket = 0;
    file->answered = true;
    if (!answer || answer->status == ANSWER_BUSY) {
        if (!k->refused) {
            k->refused = true;
            k->failed(k->ctx);
        }
        return;
    }
    file->too_large = answer->status == ANSWER_TOO_LARGE;
    if (answer->status == ANSWER_OK)
        take_file(file, fds, n_fds);
    for (unsigned i = 0; i < KEPT_FILES; i++)
        if (!k->files[i].answered)
            return;
    if (!k->refused)
        go_on(k);
}

struct kept_logs *
kept_logs_new(struct ws *ws, void (*failed)(void *ctx), void *ctx)
{
    struct kept_logs *k = calloc(1, sizeof(*k));
    if (!k)
        return NULL;
    k->ws = ws;
    k->failed = failed;
    k->ctx = ctx;
    k->left = LIMIT_RUN_FILE;
    log_lines_init(&k->lines, on_line, k);
    ev_timer_init(&k->turn, on_turn, 0., 0.);
    k->turn.data = k;
    for (unsigned i = 0; i < KEPT_FILES; i++)
        k->files[i] = (struct kept_file){.owner = k, .fd = -1};
    return k;
}

void
kept_logs_start(struct kept_logs *k, uint64_t epoch, uint64_t ref)
{
    for (unsigned i = 0; i < KEPT_FILES; i++) {
        broker_ticket ticket =
            broker_ask_run_file(epoch, ref, kept_kinds[i].file, on_file, &k->files[i]);
        /* 0: answered already, by `failed`, which must not free from within a start. */
        k->files[i].ticket = ticket;
    }
}

void
kept_logs_resume(struct kept_logs *k)
{
    go_on(k);
}

void
kept_logs_free(struct kept_logs *k)
{
    if (!k)
        return;
    for (unsigned i = 0; i < KEPT_FILES; i++) {
        if (k->files[i].ticket != 0)
            broker_cancel(k->files[i].ticket);
        if (k->files[i].fd >= 0)
            close(k->files[i].fd);
    }
    ev_timer_stop(worker_loop(), &k->turn);
    log_lines_done(&k->lines);
    free(k);
}
