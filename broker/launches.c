/*
 * The table of launches and what becomes of each.
 * Distrusts: the CLI (its listing is only searched for IDs we made) and the disk.
 */
#include "broker/launches.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/launch.h"
#include "broker/listed.h"
#include "broker/results_scan.h"
#include "broker/runs_list.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/scoreboard.h"

#define LOCK_RETRY_MS 500

/* --- one launch ------------------------------------------------------------------------------ */

struct launch *
launch_new(struct launches *all)
{
    struct launch *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    *l = (struct launch){.all = all, .dir_fd = -1, .pipe_fd = -1, .output_fd = -1,
                         .lock_fd = -1, .report_fd = -1, .conn_fd = -1, .pid_fd = -1,
                         .watch = -1, .exit_status = -1};
    TAILQ_INSERT_TAIL(&all->list, l, link);
    all->n++;
    return l;
}

static void
free_event(struct event **event)
{
    if (*event != NULL)
        event_free(*event);
    *event = NULL;
}

void
launch_free(struct launch *l)
{
    int *fds[] = {&l->dir_fd, &l->pipe_fd, &l->output_fd, &l->lock_fd,
                  &l->report_fd, &l->conn_fd, &l->pid_fd};

    free_event(&l->report);
    free_event(&l->conn);
    free_event(&l->reap);
    free_event(&l->retry);
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (*fds[i] >= 0)
            close(*fds[i]);
    TAILQ_REMOVE(&l->all->list, l, link);
    l->all->n--;
    free(l);
}

struct launch *
launch_find(struct launches *all, const char *id)
{
    struct launch *l;

    TAILQ_FOREACH(l, &all->list, link)
        if (strcmp(l->meta.id, id) == 0)
            return l;
    return NULL;
}

void
launch_remove(struct launch *l)
{
    static const char *const names[] = {LAUNCH_META, LAUNCH_META ".new", LAUNCH_KEEPER,
                                        LAUNCH_KEEPER ".new", LAUNCH_OUTPUT, LAUNCH_PIPE,
                                        LAUNCH_SOCKET, LAUNCH_LOCK};

    for (size_t i = 0; l->dir_fd >= 0 && i < sizeof names / sizeof names[0]; i++)
        unlinkat(l->dir_fd, names[i], 0);
    if (l->all->dir_fd >= 0 && l->meta.id[0] != '\0')
        unlinkat(l->all->dir_fd, l->meta.id, AT_REMOVEDIR);
    launch_free(l);
}

void
launch_remove_later(struct launch *l)
{
    static const struct timeval now = {0, 0};

    l->doomed = true;
    evtimer_add(l->all->sweep, &now);
}

static void
on_sweep(evutil_socket_t fd, short what, void *arg)
{
    struct launches *all = arg;
    struct launch *l, *next;

    (void)fd;
    (void)what;
    for (l = TAILQ_FIRST(&all->list); l != NULL; l = next) {
        next = TAILQ_NEXT(l, link);
        if (l->doomed && l->pid == 0) /* else when its keeper is reaped */
            launch_remove(l);
    }
}

static void
save(struct launch *l)
{
    /* A record of another version is left as it is until its launch is cleared. */
    bool foreign = l->unknown_meta && l->meta.state != LAUNCH_CLEARED;
    int r = foreign || l->dir_fd < 0 ? 0 : launch_meta_save(l->dir_fd, &l->meta);

    if (r < 0)
        log_event(LOG_LEVEL_ERROR, "launch-not-recorded", "launch=%s reason=%s", l->meta.id,
                  log_quote(strerror(-r), strlen(strerror(-r))));
}

void
launch_set_state(struct launch *l, enum launch_state state, const char *error)
{
    /* Its own start is no change worth a write: keeper.json tells of it. */
    bool durable = !(l->meta.state == LAUNCH_QUEUED && state == LAUNCH_LAUNCHING);

    l->meta.state = state;
    message_string_set(l->meta.error, sizeof l->meta.error, error);
    if (durable)
        save(l);
    launch_changed(l);
}

/* --- ends -------------------------------------------------------------------------------------- */

/* Contract 10.5. */
static void
fail_ended(struct launch *l)
{
    char error[128];

    if (l->exit_status < 0)
        snprintf(error, sizeof error,
                 "Interrupted: its keeper was killed, so how it ended is not known");
    else if (l->exit_status == 0)
        snprintf(error, sizeof error, "The run ended without starting a container");
    else
        snprintf(error, sizeof error, "Process exited with code %d", l->exit_status);
    l->meta.interrupted = l->exit_status < 0;
    launch_set_state(l, LAUNCH_FAILED, error);
}

/* Nothing more will be heard of it. */
static void
settle(struct launch *l)
{
    launch_measure(l);
    if (l->meta.state == LAUNCH_CLEARED && !l->alive)
        launch_remove_later(l);
    else
        launch_changed(l);
}

void
launch_command_ended(struct launch *l, int exit_status, int64_t ended_ms)
{
    if (l->ended_ms != 0)
        return;
    l->ended_ms = ended_ms;
    l->ended_mono_ms = broker_now_ms();
    l->exit_status = exit_status;
    log_event(LOG_LEVEL_INFO, "launch-ended", "launch=%s status=%d", l->meta.id, exit_status);
    launch_measure(l);
    results_scan_expire(l->all->broker->results_scan);
    if (l->meta.state == LAUNCH_LAUNCHING) { /* one more look at the list */
        runs_list_invalidate(l->all->broker->runs_list);
        runs_list_look(l->all->broker->runs_list);
    }
    launch_changed(l);
    launches_schedule(l->all);
}

void
launch_keeper_gone(struct launch *l)
{
    struct launch_keeper_record record;
    char error[MESSAGE_ERROR_SIZE];
    int r;

    l->alive = l->ready = false;
    /* It may have recorded the end and died before it told. */
    if (l->ended_ms == 0 && launch_keeper_load(l->dir_fd, &record) == 0 && record.ended_ms != 0)
        launch_command_ended(l, (int)record.exit_status, record.ended_ms);
    if (l->ended_ms == 0 && l->rescues++ < 8) {
        log_event(LOG_LEVEL_WARNING, "keeper-lost", "launch=%s", l->meta.id);
        r = launch_start(l, true, error, sizeof error);
        if (r == -EBUSY) /* the dead one's lock goes with its last breath */
            launch_take_up_later(l);
        if (r == 0 || r == -EBUSY)
            return;
        log_event(LOG_LEVEL_ERROR, "keeper-not-replaced", "launch=%s reason=%s", l->meta.id,
                  log_quote(error, strlen(error)));
    }
    if (l->ended_ms == 0)
        launch_command_ended(l, -1, (int64_t)time(NULL) * 1000);
    if (l->pipe_fd >= 0)
        close(l->pipe_fd);
    l->pipe_fd = -1;
    settle(l);
}

/* --- places ---------------------------------------------------------------------------------------- */

/* A kept run keeps its CLI until somebody stops it. Its place is free once it is graded, told
 * by the size of result.json (contract 1.2), or a queue would stand for ever. */
static bool
is_graded(const struct launch *l)
{
    const char *model = l->meta.model[0] != '\0' && strcmp(l->meta.agent, "reference") != 0
                            ? l->meta.model
                            : "none";
    char path[HANDOFF_PATH + 1024];
    struct stat st;

    snprintf(path, sizeof path, "%s/%s/%s/%s/%s/result.json", l->all->broker->config.roots,
             l->meta.task, model, l->meta.agent, l->meta.id);
    return lstat(path, &st) == 0 && st.st_size > 0;
}

static unsigned
count_places(struct launches *all)
{
    struct launch *l;
    unsigned n = 0;

    TAILQ_FOREACH(l, &all->list, link)
        n += l->alive && l->ended_ms == 0 && !l->graded;
    return n;
}

static unsigned
count_running(const struct launches *all)
{
    const struct launch *l;
    unsigned n = 0;

    TAILQ_FOREACH(l, &all->list, link)
        n += l->alive && l->ended_ms == 0;
    return n;
}

void
launches_schedule(struct launches *all)
{
    struct launch *l, *next;
    unsigned n = count_places(all);
    uint32_t position = 0;

    for (l = TAILQ_FIRST(&all->list); l != NULL; l = next) {
        char error[MESSAGE_ERROR_SIZE];

        next = TAILQ_NEXT(l, link);
        if (l->meta.state != LAUNCH_QUEUED)
            continue;
        if (n >= all->broker->config.max_launches || all->broker->config.hosted) {
            if (++position != l->position)
                launch_changed(l);
            l->position = position;
            continue;
        }
        if (launch_start(l, false, error, sizeof error) == 0) {
            launch_set_state(l, LAUNCH_LAUNCHING, "");
            n++;
        } else {
            launch_set_state(l, LAUNCH_FAILED, error);
        }
    }
    scoreboard_set(SCORE_LAUNCHES, count_running(all));
    if (!evtimer_pending(all->tick, NULL)) {
        static const struct timeval poll = {LIMIT_LAUNCH_POLL_MS / 1000,
                                            LIMIT_LAUNCH_POLL_MS % 1000 * 1000};

        evtimer_add(all->tick, &poll);
    }
}

/* --- the listing ------------------------------------------------------------------------------------- */

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct launches *all = arg;
    struct launch *l;
    bool look = false, again = false, freed = false;

    (void)fd;
    (void)what;
    TAILQ_FOREACH(l, &all->list, link) {
        look |= l->meta.state == LAUNCH_LAUNCHING;
        again |= l->alive || l->meta.state == LAUNCH_LAUNCHING ||
                 l->meta.state == LAUNCH_QUEUED;
        if (l->alive && !l->graded && is_graded(l))
            l->graded = freed = true;
    }
    if (look)
        runs_list_look(all->broker->runs_list);
    if (freed || again)
        launches_schedule(all);
}

void
launches_on_listing(struct launches *all, const struct listed *listed)
{
    struct launch *l, *next;

    for (l = TAILQ_FIRST(&all->list); l != NULL; l = next) {
        next = TAILQ_NEXT(l, link);
        if (l->meta.state != LAUNCH_LAUNCHING)
            continue;
        if (listed_names(listed, l->meta.id))
            launch_set_state(l, LAUNCH_RUNNING, "");
        else if (l->ended_ms != 0 && listed->called_ms >= l->ended_mono_ms)
            fail_ended(l);
    }
}

/* --- all of them ---------------------------------------------------------------------------- */

/* The broker before us may take a moment to vanish, and another server may end. */
static void
on_lock_retry(evutil_socket_t fd, short what, void *arg)
{
    static const struct timeval pause = {0, LOCK_RETRY_MS * 1000};
    struct launches *all = arg;

    (void)fd;
    (void)what;
    if (all->dir_fd < 0 && launches_ready(all) < 0)
        evtimer_add(all->lock_retry, &pause);
}

struct launches *
launches_new(struct broker *b)
{
    struct launches *all = calloc(1, sizeof *all);

    if (all == NULL)
        return NULL;
    all->broker = b;
    all->dir_fd = all->lock_fd = all->inotify_fd = -1;
    TAILQ_INIT(&all->list);
    all->tick = evtimer_new(b->base, on_tick, all);
    all->sweep = evtimer_new(b->base, on_sweep, all);
    all->lock_retry = evtimer_new(b->base, on_lock_retry, all);
    if (all->tick == NULL || all->sweep == NULL || all->lock_retry == NULL ||
        launch_tell_init(all) != 0) {
        launches_free(all);
        return NULL;
    }
    b->launches = all; /* adoption already needs it */
    on_lock_retry(-1, 0, all);
    if (all->dir_fd < 0)
        log_event(LOG_LEVEL_WARNING, "launches-off", "reason=%s",
                  log_quote(all->why, strlen(all->why)));
    return all;
}

void
launches_free(struct launches *all)
{
    if (all == NULL)
        return;
    while (!TAILQ_EMPTY(&all->list))
        launch_free(TAILQ_FIRST(&all->list));
    launch_tell_done(all);
    free_event(&all->tick);
    free_event(&all->sweep);
    free_event(&all->lock_retry);
    launches_unlock(all);
    free(all);
}
