/*
 * The end of a run, which ends its assistant, and the end of the broker, which ends all: keys are
 * revoked, servers ended.
 * Distrusts: the worker (a run need not be removed through it) and the listing (only one that is
 * whole, and younger than what else is known of a run, tells that the run is gone).
 */
#include "broker/assistant.h"

#include <event2/event.h>
#include <stdlib.h>

#include "broker/broker.h"
#include "broker/child.h"
#include "broker/listed.h"
#include "common/log.h"

/* --- of a run ------------------------------------------------------------------------------- */

/* May free it. */
static void
end_assistant(struct assistant *as)
{
    assistant_revoke_keys(as, NULL, NULL);
    if (assistant_has_keys(as))
        return; /* no key maker is free: a later listing says it again */
    as->gone = true;
    if (as->child != NULL) { /* its end goes on; a client may outlive its container */
        as->ending = true;
        child_end(as->child);
    } else if (!as->busy) {
        assistant_go_on(as);
    }
}

void
assistants_run_removed(struct assistants *all, const char *run_id)
{
    struct assistant *as = assistant_find(all, run_id);

    if (as != NULL)
        end_assistant(as);
}

/* Runs are removed on the command line, too, or remove themselves when they end. */
void
assistants_on_listing(struct assistants *all, const struct listed *listed)
{
    struct assistant *as, *next;

    if (all->stopped != NULL)
        return;
    for (as = LIST_FIRST(&all->list); as != NULL; as = next) {
        next = LIST_NEXT(as, link);
        if (as->gone || !(as->read_known || assistant_has_keys(as)) ||
            listed->called_ms < as->seen_ms || !listed_lacks(listed, as->run_id))
            continue;
        log_event(LOG_LEVEL_INFO, "assistant-run-gone", "run=%s", as->run_id);
        end_assistant(as);
    }
}

/* --- of the broker -------------------------------------------------------------------------- */

static void
all_said(struct assistants *all)
{
    void (*stopped)(void *) = all->stopped;

    event_del(all->stop_timer);
    if (all->n_farewells != 0)
        return;
    all->n_farewells = ~0u; /* once */
    stopped(all->stopped_ctx);
}

static void
on_farewell(void *ctx);

/* As many as there are key makers for; the end of each of them makes room for another. */
static void
revoke_rest(struct assistants *all)
{
    struct assistant *as;

    LIST_FOREACH(as, &all->list, link)
        all->n_farewells += assistant_revoke_keys(as, on_farewell, all);
}

static void
on_farewell(void *ctx)
{
    struct assistants *all = ctx;

    if (all->n_farewells == ~0u)
        return;
    revoke_rest(all);
    if (--all->n_farewells == 0)
        all_said(all);
}

static void
on_stop_timer(evutil_socket_t fd, short what, void *arg)
{
    struct assistants *all = arg;

    (void)fd;
    (void)what;
    if (all->n_farewells == ~0u)
        return;
    all->n_farewells = 0;
    all_said(all);
}

void
assistants_stop(struct assistants *all, void (*stopped)(void *ctx), void *ctx)
{
    static const struct timeval limit = {LIMIT_REVOKE_MS / 1000, LIMIT_REVOKE_MS % 1000 * 1000};
    struct assistant *as;

    if (all->stopped != NULL)
        return; /* told twice */
    all->stopped = stopped;
    all->stopped_ctx = ctx;
    all->stop_timer = evtimer_new(all->broker->base, on_stop_timer, all);
    if (all->stop_timer == NULL) {
        stopped(ctx);
        return;
    }
    all->n_farewells = 1;
    LIST_FOREACH(as, &all->list, link)
        if (as->child != NULL)
            all->n_farewells += assistant_server_end_inside(as, on_farewell, all);
    evtimer_add(all->stop_timer, &limit);
    on_farewell(all);
}
