/*
 * The table of runs: live ones and finished ones (worker/results_scan.h), asked for in rounds
 * that all waiting requests share.
 */
#include "worker/runs.h"

#include <ev.h>
#include <stdlib.h>

#include "worker/broker_link.h"
#include "worker/iso_time.h"
#include "worker/listing.h"
#include "worker/results_scan.h"
#include "worker/run_grades.h"
#include "worker/runs_live.h"
#include "worker/runs_results.h"
#include "worker/worker.h"

#define GLANCE_MS 250 /* the listing's state is no older for who only asks for that */

static struct {
    bool started;
    /* live runs */
    struct listing listing;
    bool live_pending;
    broker_ticket live_ticket;
    bool glance_pending;
    int64_t glanced_ms;
    struct runs_glance *glancing;
    /* rows */
    struct run_row *rows;
    size_t n_rows, rows_cap;
    uint64_t rows_live, rows_done; /* versions the rows were made of */
    uint64_t rows_generation;
    /* who waits */
    struct runs_wait *waiting;
    bool round;
    bool graded; /* this round asked for the grades of live runs */
    ev_timer work, deadline;
} runs;

static void
on_work(struct ev_loop *loop, ev_timer *w, int events);
static void
on_deadline(struct ev_loop *loop, ev_timer *w, int events);

/* Go on from the loop, never inside somebody's call. */
static void
schedule_work(void)
{
    if (!ev_is_active(&runs.work)) {
        ev_timer_set(&runs.work, 0., 0.);
        ev_timer_start(worker_loop(), &runs.work);
    }
}

static void
start_once(void)
{
    if (runs.started)
        return;
    runs.started = true;
    results_scan_init(schedule_work);
    ev_timer_init(&runs.work, on_work, 0., 0.);
    ev_timer_init(&runs.deadline, on_deadline, 0., 0.);
    listing_init(&runs.listing);
}

/* --- live ----------------------------------------------------------------------------- */

/* What went from the listing has left its summary before: a round that heard of the finished
 * runs first asks for them again, or a run would be in neither. */
static void
take_listing(const void *answer, int fd)
{
    uint64_t before = runs.listing.generation;

    listing_take(&runs.listing, answer, fd);
    if (runs.round && runs.listing.generation != before)
        results_scan_again();
}

static void
on_listing(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    runs.live_pending = false;
    runs.live_ticket = 0;
    take_listing(answer, n_fds > 0 ? fds[0] : -1);
    schedule_work();
}

static void
on_glanced(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    runs.glance_pending = false;
    take_listing(answer, n_fds > 0 ? fds[0] : -1);
    while (runs.glancing != NULL) {
        struct runs_glance *g = runs.glancing;

        runs.glancing = g->next;
        g->ready(g->ctx);
    }
}

/* Ask and wait for a fresh one; while the CLI hangs or fails, take what is known. */
static void
ask_listing(void)
{
    broker_ticket ticket;

    runs.live_pending = true;
    ticket = broker_ask_runs_list(runs.listing.generation, listing_failing(&runs.listing),
                                  on_listing, NULL);
    if (runs.live_pending)
        runs.live_ticket = ticket;
}

bool
runs_glance(struct runs_glance *g, void (*ready)(void *ctx), void *ctx)
{
    int64_t now = iso_time_steady_ms();

    start_once();
    if (!runs.glance_pending && runs.glanced_ms != 0 && now - runs.glanced_ms < GLANCE_MS)
        return true;
    if (!runs.glance_pending) {
        runs.glanced_ms = now;
        runs.glance_pending = true;
        broker_ask_runs_list(runs.listing.generation, true, on_glanced, NULL);
        if (!runs.glance_pending)
            return true; /* the broker is away, which is the newest state */
    }
    *g = (struct runs_glance){runs.glancing, ready, ctx};
    runs.glancing = g;
    return false;
}

void
runs_glance_cancel(struct runs_glance *g)
{
    for (struct runs_glance **at = &runs.glancing; *at != NULL; at = &(*at)->next)
        if (*at == g) {
            *at = g->next;
            return;
        }
}

/* --- waiting ------------------------------------------------------------------------------ */

static void
unlink_wait(struct runs_wait *w)
{
    struct runs_wait **at = &runs.waiting;

    while (*at != NULL && *at != w)
        at = &(*at)->next;
    if (*at != NULL)
        *at = w->next;
    w->next = NULL;
    w->waiting = false;
}

/* Wake those whose deadline is over, or all. A waiter may wait again or cancel another. */
static void
wake(bool all)
{
    int64_t now = iso_time_steady_ms();
    struct runs_wait *w = runs.waiting;

    while (w != NULL) {
        if (!all && w->deadline_ms > now) {
            w = w->next;
            continue;
        }
        unlink_wait(w);
        w->ready(w->ctx);
        w = runs.waiting; /* the list may be another one now */
        if (all && runs.round)
            return; /* someone began a new round */
    }
}

static void
arm_deadline(void)
{
    int64_t first = INT64_MAX;
    int64_t now = iso_time_steady_ms();

    ev_timer_stop(worker_loop(), &runs.deadline);
    for (const struct runs_wait *w = runs.waiting; w != NULL; w = w->next)
        if (w->deadline_ms < first)
            first = w->deadline_ms;
    if (first == INT64_MAX)
        return;
    ev_timer_set(&runs.deadline, first > now ? (double)(first - now) / 1000. : 0.001, 0.);
    ev_timer_start(worker_loop(), &runs.deadline);
}

static void
on_deadline(struct ev_loop *loop, ev_timer *w, int events)
{
    wake(false);
    arm_deadline();
}

static void
on_work(struct ev_loop *loop, ev_timer *w, int events)
{
    if (results_scan_apply()) {
        schedule_work();
        return;
    }
    if (!runs.round || runs.live_pending || results_scan_pending())
        return;
    if (!runs.graded)
        run_grades_ask(&runs.listing.live, schedule_work);
    runs.graded = true;
    if (run_grades_pending())
        return; /* schedule_work is called */
    runs.round = false;
    wake(true);
    arm_deadline();
}

void
runs_wait(struct runs_wait *w, unsigned limit_ms, void (*ready)(void *ctx), void *ctx)
{
    struct runs_wait **at = &runs.waiting;

    start_once();
    *w = (struct runs_wait){
        .waiting = true,
        .deadline_ms = iso_time_steady_ms() + limit_ms,
        .ready = ready,
        .ctx = ctx,
    };
    while (*at != NULL)
        at = &(*at)->next;
    *at = w;
    if (!runs.round) {
        runs.round = true;
        runs.graded = false;
        ask_listing();
        results_scan_ask();
        schedule_work();
    } else if (!runs.live_pending) {
        ask_listing(); /* what this round heard is older than the newcomer */
    }
    arm_deadline();
}

void
runs_wait_cancel(struct runs_wait *w)
{
    if (w->waiting)
        unlink_wait(w);
}

void
runs_expire(void)
{
    if (!runs.round)
        return;
    if (runs.live_pending)
        broker_cancel(runs.live_ticket);
    ask_listing();
}

/* --- what is known ------------------------------------------------------------------------ */

struct runs_listing
runs_listing(void)
{
    struct runs_listing l = {0};

    start_once();
    listing_describe(&runs.listing, &l);
    l.scanned = results_scan_whole();
    l.cut = results_scan_cut();
    l.generation = runs.rows_generation;
    return l;
}

void
runs_set_grade(const char *id, enum grade grade, int32_t duration)
{
    const struct live_run *found = live_list_find(&runs.listing.live, id);

    if (found == NULL)
        return;
    struct live_run *run = &runs.listing.live.runs[found - runs.listing.live.runs];
    if (run->grade != grade || run->duration != duration)
        runs.listing.version++;
    run->grade = (uint8_t)grade;
    run->duration = duration;
}

bool
runs_find(const char *id, struct run_row *ret_row)
{
    struct run_row row = {0};

    if (!runs.started)
        return false;
    row.live = live_list_find(&runs.listing.live, id);
    row.done = results_table_find(results_scan_table(), id);
    if (row.live == NULL && row.done == NULL)
        return false;
    *ret_row = row;
    return true;
}

static bool
reserve_rows(size_t n)
{
    struct run_row *rows;

    if (n <= runs.rows_cap)
        return true;
    n += n / 2;
    rows = realloc(runs.rows, n * sizeof *rows);
    if (rows == NULL)
        return false;
    runs.rows = rows;
    runs.rows_cap = n;
    return true;
}

static void
build_rows(const struct finished_run *const *done, size_t n_done)
{
    const struct live_list *live = &runs.listing.live;
    const struct results_table *results = results_scan_table();

    runs.n_rows = 0;
    for (size_t i = 0; i < live->n_runs; i++)
        runs.rows[runs.n_rows++] = (struct run_row){
            &live->runs[i], results_table_find(results, live->runs[i].id)};
    for (size_t i = 0; i < n_done; i++)
        if (live->n_runs == 0 || live_list_find(live, done[i]->run_id) == NULL)
            runs.rows[runs.n_rows++] = (struct run_row){NULL, done[i]};
}

const struct run_row *
runs_rows(size_t *ret_n)
{
    const struct finished_run *const *done;
    size_t n_done;
    struct results_table *results;
    uint64_t version;

    start_once();
    *ret_n = 0;
    results = results_scan_table();
    version = results_scan_version();
    if (runs.rows_generation == 0 || runs.rows_live != runs.listing.version ||
        runs.rows_done != version) {
        done = results_table_sorted(results, &n_done);
        if (done == NULL && !results_table_is_empty(results))
            return NULL;
        if (!reserve_rows(n_done + runs.listing.live.n_runs + 1))
            return NULL;
        build_rows(done, n_done);
        runs.rows_live = runs.listing.version;
        runs.rows_done = version;
        runs.rows_generation++;
    }
    *ret_n = runs.n_rows;
    return runs.rows;
}

uint64_t
runs_epoch(void)
{
    return results_scan_epoch();
}
