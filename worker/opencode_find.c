/* Choice (the broker's), probe (ours), start (the broker's), and again until it is up. */
#include "worker/broker_as.h"
#include "worker/opencode_find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/limits.h"
#include "worker/container_http.h"
#include "worker/iso_time.h"
#include "worker/runs_live.h"
#include "worker/worker.h"

#define FIRST_PROBE_S 0.3
#define NEXT_PROBE_S 0.5

static void ask(struct opencode_find *f, enum assistant_wish wish);

const char *
opencode_backend_lacks(void)
{
    static char text[192];
    struct runs_listing l = runs_listing();
    const char *backend = l.backend != NULL ? l.backend : worker_config()->backend;

    if (!l.supports_exec) {
        snprintf(text, sizeof text,
                 "The %.64s backend cannot run commands in a run, so there is no assistant.",
                 *backend != '\0' ? backend : "configured");
        return text;
    }
    /* Contract 2.9: `runs exec --env` is refused there. */
    return strcmp(backend, "kubernetes") == 0
               ? "The kubernetes backend cannot hand a key to a run, so there is no assistant."
               : NULL;
}

static void
finish(struct opencode_find *f, enum opencode_place place, const char *reason)
{
    f->place = place;
    if (reason != NULL)
        snprintf(f->reason, sizeof f->reason, "%s", reason);
    f->fn(f->ctx);
}

static void
later(struct opencode_find *f, double seconds)
{
    ev_timer_stop(worker_loop(), &f->timer);
    ev_timer_set(&f->timer, seconds, 0.);
    ev_timer_start(worker_loop(), &f->timer);
}

static void
not_up(struct opencode_find *f)
{
    if (f->wish == OPENCODE_LOOK)
        finish(f, OPENCODE_DOWN, NULL);
    else if (!f->began)
        ask(f, ASSISTANT_BEGIN);
    else if (iso_time_steady_ms() >= f->deadline_ms)
        finish(f, OPENCODE_FAILED, "OpenCode did not become ready within 10 seconds; it is "
                                   "still starting: try again");
    else
        later(f, NEXT_PROBE_S);
}

/* Contract 9.3: it is up only if its list of sessions is one. */
static void
on_probe(void *ctx, const struct container_answer *a)
{
    struct opencode_find *f = ctx;

    f->call = NULL;
    if (a->error == 0 && a->status / 100 == 2 && a->is_json && *a->body == '[')
        finish(f, OPENCODE_UP, NULL);
    else
        not_up(f);
}

static void
probe(struct opencode_find *f)
{
    const struct container_request q = {
        .token = f->token, .run_id = f->run_id, .port = f->port, .method = "GET", .target = "/session?limit=1",
        .timeout_ms = LIMIT_OPENCODE_PROBE_MS, .max_body = LIMIT_OPENCODE_ANSWER,
        .done = on_probe, .ctx = f};

    f->call = container_call_start(&q);
    if (f->call == NULL)
        finish(f, OPENCODE_FAILED, "Too much is under way: try again");
}

/* True: the answer ends the search. */
static bool
is_final(struct opencode_find *f, const struct answer_assistant *a)
{
    if (a == NULL) {
        finish(f, OPENCODE_FAILED, "A part of the server is being restarted: try again");
        return true;
    }
    switch ((enum answer_status)a->status) {
    case ANSWER_OK:
        return false;
    case ANSWER_REFUSED:
        finish(f, OPENCODE_REFUSED, NULL);
        return true;
    case ANSWER_NOT_FOUND:
        finish(f, OPENCODE_NO_RUN, "Run not found");
        return true;
    case ANSWER_AMBIGUOUS:
        finish(f, OPENCODE_NO_RUN, "More than one run has this ID");
        return true;
    case ANSWER_BUSY:
        finish(f, OPENCODE_FAILED, "Too much is under way: try again");
        return true;
    case ANSWER_TOO_LARGE:
    case ANSWER_TIMEOUT:
    case ANSWER_FAILED:
    case ANSWER_STATUSES:
        break;
    }
    finish(f, OPENCODE_FAILED, a->error[0] != '\0' ? a->error : "OpenCode cannot be started");
    return true;
}

static void
on_answer(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    struct opencode_find *f = ctx;
    const struct answer_assistant *a = answer;

    f->ticket = 0;
    if (is_final(f, a))
        return;
    f->port = a->port == RUN_PORT_ASSISTANT ? RUN_PORT_ASSISTANT : RUN_PORT_OPENCODE;
    f->running = a->running;
    f->uptime_ms = a->uptime_ms;
    message_string_set(f->model, sizeof f->model, a->model);
    message_string_set(f->reason, sizeof f->reason, a->error);
    if (f->began && !f->running)
        finish(f, OPENCODE_FAILED, *f->reason != '\0' ? NULL : "OpenCode ended at once");
    else if (!f->waiting)
        probe(f);
    else if (f->wish == OPENCODE_BEGIN)
        finish(f, OPENCODE_STARTING, NULL);
    else
        f->waiting = false, later(f, FIRST_PROBE_S);
}

static void
ask(struct opencode_find *f, enum assistant_wish wish)
{
    struct request_assistant q = {.wish = wish};
    broker_ticket ticket;

    f->waiting = wish == ASSISTANT_BEGIN;
    f->began = f->began || f->waiting;
    message_string_set(q.run_id, sizeof q.run_id, f->run_id);
    f->ticket = 0;
    ticket = broker_ask_as(f->token, MESSAGE_ASSISTANT_START, &q, on_answer, f);
    if (ticket != 0) /* 0: the callback ran, and `f` may be gone */
        f->ticket = ticket;
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)events;
    ask(w->data, ASSISTANT_CHOOSE); /* does it live still? then the probe */
}

static void
on_listing(void *ctx)
{
    struct opencode_find *f = ctx;
    struct run_row row;
    const char *lack = opencode_backend_lacks();

    if (!runs_find(f->run_id, &row))
        finish(f, OPENCODE_NO_RUN, "Run not found");
    else if (row.live == NULL || row.live->state == LIVE_EXITED ||
             row.live->state == LIVE_CREATED)
        finish(f, OPENCODE_OVER, "The run has no running container");
    else if (lack != NULL)
        finish(f, OPENCODE_FAILED, lack);
    else
        ask(f, ASSISTANT_CHOOSE);
}

void
opencode_find(struct opencode_find *f, uint16_t token, const char *run_id,
              enum opencode_wish wish, void (*fn)(void *ctx), void *ctx)
{
    *f = (struct opencode_find){.token = token, .wish = wish, .fn = fn, .ctx = ctx,
                                .deadline_ms = iso_time_steady_ms() + LIMIT_ASSISTANT_READY_MS};
    message_string_set(f->run_id, sizeof f->run_id, run_id);
    ev_timer_init(&f->timer, on_timer, 0., 0.);
    f->timer.data = f;
    runs_wait(&f->wait, LIMIT_LIST_WAIT_MS, on_listing, f);
}

void
opencode_find_cancel(struct opencode_find *f)
{
    if (f->fn == NULL)
        return;
    runs_wait_cancel(&f->wait);
    if (f->ticket != 0)
        broker_cancel(f->ticket);
    f->ticket = 0;
    container_call_cancel(f->call);
    f->call = NULL;
    ev_timer_stop(worker_loop(), &f->timer);
}
