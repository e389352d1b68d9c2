/* A run's file as an answer: streamed as it stands, or parsed, a large one in slices. */
#include "worker/doc_answer.h"

#include <ev.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/body_file.h"
#include "worker/doc_render.h"
#include "worker/doc_slices.h"
#include "worker/file_slice.h"
#include "worker/worker.h"

void
doc_answer_nothing(struct exchange *x, const char *hint)
{
    exchange_error(x, 404, "The run is over and left nothing to show for this", hint);
}

void
doc_answer_try_again(struct exchange *x)
{
    exchange_error(x, 503, "Try again: a part of the server is being restarted", NULL);
}

/* --- streamed ones ---------------------------------------------------------------- */

static void
answer_body(struct exchange *x, bool made, struct body_source body, uint64_t size)
{
    if (made)
        body_answer(x, body, size);
    else
        doc_answer_try_again(x);
}

void
doc_answer_diff(struct exchange *x, int fd, uint64_t size, double since)
{
    struct body_source body = {0};
    bool made = body_text_new(fd, size, "{\"diff\":\"", "\"}", &body);

    answer_body(x, made, body, size);
}

void
doc_answer_files(struct exchange *x, int fd, uint64_t size, double since)
{
    struct body_source body = {0};
    bool made = body_files_new(fd, size, &body);

    answer_body(x, made, body, size);
}

void
doc_answer_dialog(struct exchange *x, int fd, uint64_t size, double since)
{
    struct body_source body = {0};
    bool made = body_dialog_new(fd, size, since, &body);

    answer_body(x, made, body, size);
}

void
doc_answer_review(struct exchange *x, int fd, uint64_t size, double since)
{
    struct body_source body = {0};
    bool made = body_note_new(fd, size, "{\"available\":true,\"text\":\"", "\"}", DOC_NO_NOTE,
                              &body);

    answer_body(x, made, body, size);
}

/* --- parsed ones ------------------------------------------------------------------ */

static void
answer_rendered(struct exchange *x, int fd, uint64_t size,
                int (*render)(const char *bytes, size_t len, struct buf *out))
{
    size_t len = 0;
    char *bytes = file_slice_whole(fd, size, &len);
    struct buf body;
    bool usable;

    close(fd);
    buf_init(&body, 0);
    usable = bytes != NULL && render(bytes, len, &body) == 0;
    free(bytes);
    if (usable) {
        exchange_json(x, 200, &body);
        return;
    }
    buf_done(&body);
    doc_answer_nothing(x, NULL);
}

/* A large file is looked at, a slice in each turn of the loop. */
struct look {
    struct exchange *x;
    struct doc_slices *slices;
    ev_timer turn; /* the next of them */
};

static void
free_look(struct look *k)
{
    ev_timer_stop(worker_loop(), &k->turn);
    doc_slices_free(k->slices);
    free(k);
}

static void
on_gone(struct exchange *x, void *ctx)
{
    free_look(ctx);
}

static void
on_turn(struct ev_loop *loop, ev_timer *w, int events)
{
    struct look *k = w->data;
    struct exchange *x = k->x;
    struct body_source body = {doc_slices_fill, doc_slices_done, k->slices};
    int more = doc_slices_look(k->slices);

    if (more == 1) {
        ev_timer_start(loop, w);
        return;
    }
    if (more == 0)
        k->slices = NULL; /* the body's now */
    free_look(k);
    if (more == 0)
        body_answer(x, body, UINT64_MAX);
    else
        doc_answer_nothing(x, NULL);
}

static void
answer_slices(struct exchange *x, int fd, uint64_t size, enum doc_slices_kind kind)
{
    struct look *k = calloc(1, sizeof *k);

    if (k == NULL) {
        close(fd);
        doc_answer_try_again(x);
        return;
    }
    k->x = x;
    ev_timer_init(&k->turn, on_turn, 0., 0.);
    k->turn.data = k;
    k->slices = doc_slices_new(fd, size, kind);
    if (k->slices == NULL) {
        free_look(k);
        doc_answer_try_again(x);
        return;
    }
    exchange_on_gone(x, on_gone, k);
    ev_timer_start(worker_loop(), &k->turn);
}

static void
answer_parsed(struct exchange *x, int fd, uint64_t size,
              int (*render)(const char *bytes, size_t len, struct buf *out),
              enum doc_slices_kind kind)
{
    if (size <= DOC_AT_ONCE)
        answer_rendered(x, fd, size, render);
    else
        answer_slices(x, fd, size, kind);
}

void
doc_answer_project(struct exchange *x, int fd, uint64_t size, double since)
{
    answer_parsed(x, fd, size, doc_render_project, DOC_PROJECT);
}

void
doc_answer_result(struct exchange *x, int fd, uint64_t size, double since)
{
    answer_parsed(x, fd, size, doc_render_result, DOC_RESULT);
}
