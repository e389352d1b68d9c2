/* A feed's conversation with the daemon: is it ready, what has changed, what is being said. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "worker/feed_parts.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define READY_LIMIT_S (25. * 60) /* contract 10.2 */
#define PROBE_S 3.               /* between two looks at the dialog of a run that is quiet */
#define FULL_S 8.5               /* after a whole round others are probes */
#define PROBE_MAX 4096u          /* bytes of an answer without an entry that cost nothing */
#define SILENT_MAX 2u            /* questions without an answer; then the round is over */
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

/* --- a round ------------------------------------------------------------------------------------ */

static double
quiet_s(const struct feed *f)
{
    return worker_now_s() - f->changed;
}

/* Contract 10.2. In a quiet run whose daemon alone has the dialog, that is looked at more often
   than the rest, as long as it costs next to nothing. */
static double
pause_s(const struct feed *f)
{
    static const double back_off[] = {1, 2, 5, 10};
    double quiet = quiet_s(f);

    if (f->state == FEED_CONNECTING)
        return back_off[f->attempts < 4 ? f->attempts : 3];
    if (quiet < 60)
        return quiet < 5 ? 1 : 3;
    return f->file == NULL && f->cheap ? PROBE_S : 10;
}

static bool
only_probes(const struct feed *f)
{
    return f->state == FEED_READY && f->file == NULL && quiet_s(f) >= 60 &&
           worker_now_s() < f->full_due;
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
    int len;

    f->attempts++;
    if (waited < READY_LIMIT_S) {
        len = snprintf(text, sizeof text,
                       "{\"type\":\"status\",\"status\":\"connecting\",\"retryAttempt\":%u}",
                       f->attempts);
    } else {
        f->state = FEED_FAILED;
        len = snprintf(text, sizeof text,
                       "{\"type\":\"status\",\"status\":\"error\",\"error\":\"SDK did not "
                       "become ready after %.0f seconds (%u attempts)\"}",
                       waited, f->attempts);
    }
    feed_message_set(f, FEED_STATUS, text, (size_t)len);
    feed_file_begin(f); /* is it over? */
    end_round(f);
}

static void
ready(struct feed *f, const struct daemon_answer *a)
{
    size_t len = a->end - a->start;
    char text[64 + VERSION_MAX];
    int n;

    f->state = FEED_READY;
    f->changed = worker_now_s();
    if (a->kind == '"' && len <= VERSION_MAX)
        n = snprintf(text, sizeof text,
                     "{\"type\":\"status\",\"status\":\"ready\",\"sdkVersion\":%.*s}", (int)len,
                     a->body.data + a->start);
    else
        n = snprintf(text, sizeof text, "{\"type\":\"status\",\"status\":\"ready\"}");
    feed_message_set(f, FEED_STATUS, text, (size_t)n);
}

static bool
is_usable(const struct daemon_answer *a, enum step step)
{
    return a->error == 0 && a->status == 200 &&
           (steps[step].kind == '\0' || a->kind == steps[step].kind);
}

/* Returns whether something of it goes on in later turns, before the next question. */
static bool
take_answer(struct feed *f, struct daemon_answer *a)
{
    const enum step step = (enum step)f->step;
    bool whole = steps[step].kind == '\0', graded = a->kind == 't';
    enum feed_taken taken;

    if (!is_usable(a, step)) {
        f->cheap = f->cheap && step != ASK_DIALOG;
        return false;
    }
    if (step == ASK_DIALOG) {
        f->cheap = a->body.len <= PROBE_MAX;
        if (!feed_entries_take(f, a))
            return false;
        feed_pump_all(f); /* what was asked for before comes before */
        return true;
    }
    taken = feed_message_take(f, steps[step].message, steps[step].prefix, &a->body,
                              whole ? DAEMON_ROOM : a->start, whole ? a->body.len : a->end);
    if (step == ASK_RESULT)
        f->graded = graded;
    if (taken == FEED_NEW)
        f->changed = worker_now_s();
    return taken == FEED_LATER;
}

/* What a failed question says of those that would follow: is it worth while to go on? */
static bool
goes_on(struct feed *f, int error)
{
    if (error == 0 || error == -EMSGSIZE || error == -EBADMSG) {
        f->silent = 0; /* it answers, if only rubbish to this one */
        return true;
    }
    feed_file_begin(f); /* silent: perhaps it is over */
    return (error == -ETIMEDOUT || error == -EPIPE) && ++f->silent < SILENT_MAX;
}

/* For one who is behind. A failure is no end of its past: it asks again after the round. */
static void
on_single(struct feed *f, struct daemon_answer *a)
{
    struct feed_entries *e = &f->entries;

    if (is_usable(a, ASK_DIALOG) && feed_entries_take(f, a))
        return;
    if (e->for_place != NULL)
        e->for_place->behind = false;
    e->for_place = NULL;
    e->single = false;
    if (!goes_on(f, a->error) && f->in_round)
        end_round(f);
    else
        go_on(f);
}

static void
pump_and_go_on(struct feed *f)
{
    f->guard++;
    feed_pump_all(f);
    f->guard--;
    go_on(f);
}

static void
on_answer(void *ctx, struct daemon_answer *a)
{
    struct feed *f = ctx;

    f->call = NULL;
    if (f->entries.single) {
        on_single(f, a);
    } else if (f->state == FEED_CONNECTING && !(a->error == 0 && a->status == 200)) {
        not_ready(f);
    } else if (f->state == FEED_CONNECTING) {
        ready(f, a);
        f->step++;
        pump_and_go_on(f);
    } else if (!goes_on(f, a->error)) {
        end_round(f);
    } else {
        bool later = take_answer(f, a);

        f->step++;
        if (!later)
            go_on(f);
    }
}

void
feed_daemon_compared(struct feed *f, bool changed)
{
    if (changed)
        f->changed = worker_now_s();
    go_on(f);
}

void
feed_daemon_handed_out(struct feed *f, bool again)
{
    if (again)
        f->step = ASK_DIALOG;
    pump_and_go_on(f);
}

/* A member's value is looked for by name; for one who is behind the same as in a round. */
static void
ask(struct feed *f, enum step step, double since)
{
    char target[64];
    struct daemon_question q = {.run_id = f->run_id, .target = target,
                                .member = steps[step].member, .timeout_ms = LIMIT_UPSTREAM_MS,
                                .room = true, .cut = step == ASK_DIALOG};

    if (step == ASK_DIALOG && since >= 0 && since < 9007199254740991.)
        snprintf(target, sizeof target, "%s?since=%.0f", steps[step].target, since);
    else
        snprintf(target, sizeof target, "%s", steps[step].target);
    if (step == ASK_VERSION)
        q.timeout_ms = LIMIT_UPSTREAM_HEALTH_MS;
    f->call = daemon_get(&q, on_answer, f);
    if (f->call != NULL)
        return;
    /* Too much is under way: the next round. */
    f->entries.for_place = NULL;
    f->entries.single = f->in_round = false;
    set_timer(&f->round, pause_s(f));
}

static struct feed_place *
first_behind(const struct feed *f)
{
    if (f->file == NULL && f->state == FEED_READY)
        for (struct feed_place *p = f->places; p != NULL; p = p->next)
            if (p->behind && feed_may_take(p))
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
        return f->messages[FEED_PROJECT] == NULL;
    case ASK_DIALOG:
        return f->file == NULL;
    case ASK_RESULT:
        return !f->graded && !f->probing;
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

    if (f->call != NULL || f->entries.body != NULL || f->fresh.bytes != NULL ||
        f->state == FEED_OVER)
        return;
    p = first_behind(f);
    if (p != NULL) {
        f->entries.for_place = p;
        f->entries.single = true;
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
    f->silent = 0;
    f->probing = only_probes(f);
    f->step = f->probing ? ASK_DIALOG : ASK_VERSION;
    if (!f->probing)
        f->full_due = worker_now_s() + FULL_S;
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
    feed_entries_begin(f);
    ev_timer_init(&f->round, on_round, 0., 0.);
    f->round.data = f;
    set_timer(&f->round, 0.);
}

void
feed_daemon_end(struct feed *f)
{
    if (f->call != NULL)
        daemon_cancel(f->call);
    f->call = NULL;
    ev_timer_stop(worker_loop(), &f->round);
    feed_entries_end(f);
    f->in_round = false;
}
