/* A feed's conversation with the daemon: is it ready, what has changed, what is being said. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/body_scan.h"
#include "worker/feed_parts.h"
#include "worker/json_line.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define READY_LIMIT_S (25. * 60) /* contract 10.2 */
#define BATCH (64u * 1024u)      /* bytes of entries in one message, and in one turn */
#define VERSION_MAX 64u

enum step { ASK_VERSION, ASK_PROJECT, ASK_FILES, ASK_DIFF, ASK_DIALOG, ASK_RESULT, STEPS };

/* What is asked in a round, and what becomes of the answer. `prefix` NULL: see on_answer. */
static const struct {
    const char *target, *member;
    char kind; /* of the member; '\0': the whole body is the value */
    enum feed_message message;
    const char *prefix;
} steps[STEPS] = {
    [ASK_VERSION] = {"/version", "version", '"', FEED_STATUS, NULL},
    [ASK_PROJECT] = {"/project", "", '\0', FEED_PROJECT, "{\"type\":\"project\",\"data\":"},
    [ASK_FILES] = {"/files", "files", '[', FEED_FILES, "{\"type\":\"files\",\"files\":"},
    [ASK_DIFF] = {"/diff", "diff", '"', FEED_DIFF, "{\"type\":\"diff\",\"diff\":"},
    [ASK_DIALOG] = {"/agent/dialog", "entries", '[', FEED_MESSAGES, NULL},
    [ASK_RESULT] = {"/result", "available", '\0', FEED_RESULT,
                    "{\"type\":\"result\",\"result\":"},
};

static void go_on(struct feed *f);

static void
set_timer(ev_timer *timer, double seconds)
{
    ev_timer_stop(worker_loop(), timer);
    ev_timer_set(timer, seconds, 0.);
    ev_timer_start(worker_loop(), timer);
}

/* --- entries to whom they belong -------------------------------------------------------------- */

static void
close_batch(struct buf *out, double last_seq)
{
    struct json_writer w;

    buf_add_str(out, "],\"lastSeq\":");
    json_begin(&w, out);
    json_double(&w, last_seq);
    buf_add_str(out, "}");
}

/* Entries above *last_seq as one message. The number of them. */
static unsigned
render_batch(struct feed *f, struct buf *out, double *last_seq)
{
    const char *element;
    size_t len, from = f->at;
    unsigned n = 0;

    buf_add_str(out, "{\"type\":\"dialog\",\"entries\":[");
    while (out->len < BATCH && f->at - from < 4 * BATCH &&
           body_scan_element(f->body.data, f->end, &f->at, &element, &len)) {
        struct json_line line;
        double seq;

        json_line_begin(&line);
        json_line_feed(&line, element, len);
        if (!json_line_end(&line, &seq) || seq <= *last_seq)
            continue;
        if (n++ > 0)
            buf_add(out, ",", 1);
        buf_add(out, element, len);
        *last_seq = seq;
    }
    close_batch(out, *last_seq);
    return n;
}

static void
give(struct feed_place *p, struct ws_bytes *message, unsigned n, double last_seq)
{
    static const char cut[] = "{\"type\":\"dialog\",\"entries\":[],\"truncated\":true}";

    ws_send_shared(p->ws, message);
    p->last_seq = last_seq;
    p->n_entries += n;
    if (p->n_entries < LIMIT_DIALOG_ENTRIES)
        return;
    p->truncated = true;
    ws_send_text(p->ws, cut, sizeof cut - 1);
}

static bool
may_take(const struct feed_place *p)
{
    return p->document.fill == NULL && !p->truncated && !ws_queue_full(p->ws);
}

/* Hand one message out. False: nobody is there to take the rest. */
static bool
hand_batch(struct feed *f)
{
    double since = f->single && f->for_place != NULL ? f->for_place->last_seq : f->last_seq;
    double last_seq = since;
    struct ws_bytes *message;
    struct buf out;
    unsigned n;
    size_t len;

    if (f->single && (f->for_place == NULL || !may_take(f->for_place)))
        return false;
    buf_init(&out, 0);
    n = render_batch(f, &out, &last_seq);
    len = out.len;
    message = n > 0 ? ws_bytes_take(buf_take(&out, &len), len) : NULL;
    buf_done(&out);
    if (message == NULL)
        return true;
    if (f->single)
        give(f->for_place, message, n, last_seq);
    else
        for (struct feed_place *p = f->places; p != NULL; p = p->next)
            if (p->level && p->last_seq == since && may_take(p))
                give(p, message, n, last_seq);
    if (!f->single) {
        f->last_seq = last_seq;
        f->changed = worker_now_s();
        f->active = ev_now(worker_loop());
    }
    ws_bytes_unref(message);
    return true;
}

static void
finish_handing(struct feed *f, bool all)
{
    struct feed_place *p = f->single ? f->for_place : NULL;

    buf_done(&f->body);
    f->for_place = NULL;
    f->single = false;
    if (p != NULL) {
        p->behind = false;
        /* It has got all there is, whatever the daemon said before. */
        if (all && p->last_seq < f->last_seq)
            p->last_seq = f->last_seq;
    }
}

static void
on_hand_out(struct ev_loop *loop, ev_timer *w, int events)
{
    struct feed *f = w->data;
    bool taken = hand_batch(f);

    if (taken && f->at < f->end && f->body.data != NULL) {
        set_timer(&f->hand_out, 0.);
        return;
    }
    finish_handing(f, taken);
    f->guard++;
    feed_pump_all(f);
    f->guard--;
    go_on(f);
}

void
feed_daemon_drop(struct feed *f, const struct feed_place *place)
{
    if (f->for_place == place)
        f->for_place = NULL;
}

/* --- a round ------------------------------------------------------------------------------------ */

static double
pause_s(const struct feed *f)
{
    static const double back_off[] = {1, 2, 5, 10};
    double quiet = worker_now_s() - f->changed;

    if (f->state == FEED_CONNECTING)
        return back_off[f->attempts < 4 ? f->attempts : 3];
    return quiet < 5 ? 1 : quiet < 60 ? 3 : 10;
}

static void
end_round(struct feed *f)
{
    f->in_round = false;
    if (f->state == FEED_CONNECTING || f->state == FEED_READY)
        set_timer(&f->round, pause_s(f));
    feed_pump_all(f);
}

static void
not_ready(struct feed *f)
{
    double waited = worker_now_s() - f->begun;
    char text[160];

    f->attempts++;
    if (waited < READY_LIMIT_S) {
        snprintf(text, sizeof text,
                 "{\"type\":\"status\",\"status\":\"connecting\",\"retryAttempt\":%u",
                 f->attempts);
    } else {
        f->state = FEED_FAILED;
        snprintf(text, sizeof text,
                 "{\"type\":\"status\",\"status\":\"error\",\"error\":\"SDK did not become ready "
                 "after %.0f seconds (%u attempts)\"",
                 waited, f->attempts);
    }
    feed_set_message(f, FEED_STATUS, text, "", 0);
    feed_file_begin(f); /* is it over? */
    end_round(f);
}

static void
ready(struct feed *f, const struct daemon_answer *a)
{
    size_t len = a->end - a->start;

    f->state = FEED_READY;
    f->changed = worker_now_s();
    if (a->kind == '"' && len <= VERSION_MAX)
        feed_set_message(f, FEED_STATUS,
                         "{\"type\":\"status\",\"status\":\"ready\",\"sdkVersion\":",
                         a->body.data + a->start, len);
    else
        feed_set_message(f, FEED_STATUS, "{\"type\":\"status\",\"status\":\"ready\"", "", 0);
}

/* Returns whether the entries are handed out first. After a round f->step is STEPS; one who is
   behind asks for the dialog then too. */
static bool
take_answer(struct feed *f, struct daemon_answer *a)
{
    const enum step step = f->single ? ASK_DIALOG : (enum step)f->step;
    const char kind = steps[step].kind;
    bool changed;

    if (a->status != 200 || (kind != '\0' && a->kind != kind))
        return false;
    if (step == ASK_DIALOG) {
        f->body = a->body;
        buf_init(&a->body, 0);
        f->at = a->start + 1;
        f->end = a->end - 1;
        set_timer(&f->hand_out, 0.);
        return true;
    }
    if (kind == '\0')
        changed = feed_set_message(f, steps[step].message, steps[step].prefix,
                                   a->body.data, a->body.len);
    else
        changed = feed_set_message(f, steps[step].message, steps[step].prefix,
                                   a->body.data + a->start, a->end - a->start);
    if (step == ASK_RESULT)
        f->graded = a->kind == 't';
    if (changed)
        f->changed = worker_now_s();
    return false;
}

static void
on_answer(void *ctx, struct daemon_answer *a)
{
    struct feed *f = ctx;
    bool ok = a->error == 0 && a->status == 200;

    f->call = NULL;
    if (f->state == FEED_CONNECTING && f->step == ASK_VERSION) {
        if (!ok) {
            not_ready(f);
            return;
        }
        ready(f, a);
        feed_pump_all(f);
        f->step++;
        go_on(f);
        return;
    }
    if (f->single && (!ok || a->kind != '[')) {
        finish_handing(f, true);
    } else if (a->error != 0) {
        /* Silent: perhaps it is over. The rest of this round would wait in vain. */
        feed_file_begin(f);
        end_round(f);
        return;
    } else {
        bool single = f->single, handing = take_answer(f, a);

        if (!single)
            f->step++;
        if (handing)
            return;
    }
    go_on(f);
}

/* A member's value is looked for by name; for one who is behind the same as in a round. */
static void
ask(struct feed *f, enum step step, double since)
{
    char target[64];

    if (step == ASK_DIALOG && since >= 0 && since < 9007199254740991.)
        snprintf(target, sizeof target, "%s?since=%.0f", steps[step].target, since);
    else
        snprintf(target, sizeof target, "%s", steps[step].target);
    f->call = daemon_get(f->run_id, target, steps[step].member,
                         step == ASK_VERSION ? LIMIT_UPSTREAM_HEALTH_MS : LIMIT_UPSTREAM_MS,
                         on_answer, f);
    if (f->call == NULL) {
        f->for_place = NULL;
        f->single = false;
        end_round(f);
    }
}

static struct feed_place *
first_behind(const struct feed *f)
{
    if (f->file == NULL && f->state == FEED_READY)
        for (struct feed_place *p = f->places; p != NULL; p = p->next)
            if (p->behind && may_take(p))
                return p;
    return NULL;
}

static bool
is_needed(const struct feed *f, enum step step)
{
    switch (step) {
    case ASK_VERSION:
        return f->state == FEED_CONNECTING;
    case ASK_PROJECT:
        return f->messages[FEED_PROJECT].bytes == NULL;
    case ASK_DIALOG:
        return f->file == NULL;
    case ASK_RESULT:
        return !f->graded;
    case ASK_FILES:
    case ASK_DIFF:
    case STEPS:
        break;
    }
    return true;
}

/* The next question, if none is under way: first for those who are behind. */
static void
go_on(struct feed *f)
{
    struct feed_place *p;

    if (f->call != NULL || f->body.data != NULL || f->state == FEED_OVER)
        return;
    p = first_behind(f);
    if (p != NULL) {
        f->for_place = p;
        f->single = true;
        ask(f, ASK_DIALOG, p->last_seq);
        return;
    }
    if (!f->in_round)
        return;
    while (f->step < STEPS && !is_needed(f, (enum step)f->step))
        f->step++;
    if (f->step < STEPS)
        ask(f, (enum step)f->step, f->last_seq);
    else
        end_round(f);
}

static void
on_round(struct ev_loop *loop, ev_timer *w, int events)
{
    struct feed *f = w->data;

    f->in_round = true;
    f->step = ASK_VERSION;
    feed_file_look(f); /* where nothing is watched, this finds what is new */
    go_on(f);
}

void
feed_daemon_hurry(struct feed *f, double seconds)
{
    if (f->state == FEED_READY && !f->in_round &&
        ev_timer_remaining(worker_loop(), &f->round) > seconds)
        set_timer(&f->round, seconds);
}

void
feed_daemon_serve(struct feed *f)
{
    go_on(f);
}

void
feed_daemon_begin(struct feed *f)
{
    buf_init(&f->body, 0);
    ev_timer_init(&f->round, on_round, 0., 0.);
    ev_timer_init(&f->hand_out, on_hand_out, 0., 0.);
    f->round.data = f->hand_out.data = f;
    set_timer(&f->round, 0.);
}

void
feed_daemon_end(struct feed *f)
{
    if (f->call != NULL)
        daemon_cancel(f->call);
    f->call = NULL;
    ev_timer_stop(worker_loop(), &f->round);
    ev_timer_stop(worker_loop(), &f->hand_out);
    buf_done(&f->body);
    f->for_place = NULL;
    f->single = f->in_round = false;
}
