/*
 * RUN_WATCH, RUN_UNWATCH and EVENT_FILE: `archive/dialog.jsonl` of a run directory grows,
 * appears or is replaced. The two directories are watched, never the file, so nothing that the
 * agent puts in its place is opened here.
 * Distrusts: the worker (it may name directories the broker found, a bounded number) and the
 * directory: what stands in it is compared by name, links are not followed.
 */
#include "broker/watch.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/queue.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/dispatch.h"
#include "broker/run_dirs.h"
#include "common/limits.h"
#include "common/open_beneath.h"

#define ARCHIVE "archive"
#define DIALOG "dialog.jsonl"
#define WATCH_ENTRIES (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR)
#define READS_PER_WAKE 4u /* buffers of events before others have a turn */

/* One worker's interest in one run directory. */
struct watch {
    LIST_ENTRY(watch) link;
    struct watches *all;
    uint64_t id, peer;
    uint64_t epoch, ref;
    int run_wd, archive_wd; /* the kernel's names of the directories; -1: not watched */
    bool due;               /* a change is to be told */
    uint64_t told_ms;
    struct event *timer;
};

struct watches {
    struct broker *broker;
    int fd; /* -1: no inotify */
    struct event *readable;
    uint64_t last_id;
    unsigned n_watches;
    LIST_HEAD(, watch) list;
};

/* --- telling ----------------------------------------------------------------------------- */

static void
tell(struct watch *w)
{
    struct event_file e = {.watch = w->id};

    w->due = false;
    w->told_ms = broker_now_ms();
    dispatch_tell(w->all->broker->dispatch, w->peer, MESSAGE_EVENT_FILE, &e);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct watch *w = arg;
    static const struct timeval again = {0, 10000};

    (void)fd;
    (void)what;
    if (!w->due)
        return;
    if (dispatch_is_behind(w->all->broker->dispatch, w->peer))
        event_add(w->timer, &again);
    else
        tell(w);
}

/* At once when it was quiet, else in a moment: an agent that writes byte by byte makes one
 * event of many changes. */
static void
changed(struct watch *w)
{
    static const struct timeval pause = {0, LIMIT_WATCH_TELL_MS * 1000};

    if (w->due)
        return;
    w->due = true;
    if (broker_now_ms() - w->told_ms > LIMIT_WATCH_TELL_MS &&
        !dispatch_is_behind(w->all->broker->dispatch, w->peer))
        tell(w);
    else
        event_add(w->timer, &pause);
}

/* --- the kernel's watches ------------------------------------------------------------------ */

/* Two workers that look at one directory share the kernel's watch. */
static bool
is_shared(const struct watch *mine, int wd)
{
    const struct watch *w;

    LIST_FOREACH(w, &mine->all->list, link)
        if (w != mine && (w->run_wd == wd || w->archive_wd == wd))
            return true;
    return false;
}

static void
drop_wd(const struct watch *w, int *wd)
{
    int old = *wd;

    *wd = -1;
    if (old >= 0 && !is_shared(w, old))
        inotify_rm_watch(w->all->fd, old);
}

/* A directory below a results root, by a handle that cannot be exchanged meanwhile. */
static int
add_directory(struct watch *w, const char *below, uint32_t mask)
{
    struct run_dirs *rd = w->all->broker->run_dirs;
    uint32_t dir = run_dirs_by_ref(rd, w->epoch, w->ref);
    char path[RUN_DIRS_PATH + sizeof "/" ARCHIVE];
    char self[sizeof "/proc/self/fd/" + 3 * sizeof(int)];
    int len, fd, wd;

    if (dir == RUN_DIR_NONE)
        return -ENOENT;
    len = run_dirs_path(rd, dir, path);
    if (len < 0 || rd->root_fds[rd->dirs[dir].root] < 0)
        return -ENOENT;
    snprintf(path + len, sizeof path - (size_t)len, "%s", below);
    fd = open_beneath(rd->root_fds[rd->dirs[dir].root], path, O_PATH | O_DIRECTORY);
    if (fd < 0)
        return fd;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    wd = inotify_add_watch(w->all->fd, self, mask);
    wd = wd < 0 ? -errno : wd;
    close(fd);
    return wd;
}

/* Whatever `archive` is now. */
static void
renew_archive(struct watch *w)
{
    int wd = add_directory(w, "/" ARCHIVE, WATCH_ENTRIES | IN_MODIFY);

    if (wd == w->archive_wd)
        return;
    drop_wd(w, &w->archive_wd);
    w->archive_wd = wd >= 0 ? wd : -1;
}

static void
take_event(struct watch *w, const struct inotify_event *e)
{
    if (e->mask & IN_Q_OVERFLOW) {
        renew_archive(w);
        changed(w);
    } else if (e->wd == w->archive_wd) {
        if (e->mask & IN_IGNORED)
            w->archive_wd = -1;
        if ((e->mask & IN_IGNORED) || (e->len > 0 && strcmp(e->name, DIALOG) == 0))
            changed(w);
    } else if (e->wd == w->run_wd) {
        if (e->mask & IN_IGNORED) {
            w->run_wd = -1;
            changed(w);
        } else if (e->len > 0 && strcmp(e->name, ARCHIVE) == 0) {
            renew_archive(w);
            changed(w);
        }
    }
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
    static _Alignas(struct inotify_event) char buffer[16384];
    struct watches *all = arg;

    (void)what;
    for (unsigned i = 0; i < READS_PER_WAKE; i++) {
        ssize_t n = read(fd, buffer, sizeof buffer);
        const struct inotify_event *e;

        for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof *e + e->len)) {
            struct watch *w, *next;

            e = (const struct inotify_event *)(buffer + at);
            for (w = LIST_FIRST(&all->list); w != NULL; w = next) {
                next = LIST_NEXT(w, link);
                take_event(w, e);
            }
        }
        if (n <= 0)
            return;
    }
}

/* --- the table ------------------------------------------------------------------------------ */

struct watches *
watches_new(struct broker *b)
{
    struct watches *all = calloc(1, sizeof *all);

    if (all == NULL)
        return NULL;
    all->broker = b;
    all->last_id = b->epoch; /* a number from another broker names nothing here */
    LIST_INIT(&all->list);
    all->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (all->fd < 0)
        return all;
    all->readable = event_new(b->base, all->fd, EV_READ | EV_PERSIST, on_readable, all);
    if (all->readable == NULL || event_add(all->readable, NULL) != 0) {
        watches_free(all);
        return NULL;
    }
    return all;
}

static void
free_watch(struct watch *w)
{
    drop_wd(w, &w->archive_wd);
    drop_wd(w, &w->run_wd);
    LIST_REMOVE(w, link);
    w->all->n_watches--;
    if (w->timer != NULL)
        event_free(w->timer);
    free(w);
}

void
watches_free(struct watches *all)
{
    if (all == NULL)
        return;
    while (!LIST_EMPTY(&all->list))
        free_watch(LIST_FIRST(&all->list));
    if (all->readable != NULL)
        event_free(all->readable);
    if (all->fd >= 0)
        close(all->fd);
    free(all);
}

void
watches_end_peer(struct watches *all, uint64_t peer)
{
    struct watch *w, *next;

    for (w = LIST_FIRST(&all->list); w != NULL; w = next) {
        next = LIST_NEXT(w, link);
        if (w->peer == peer)
            free_watch(w);
    }
}

static bool
may_watch(const struct watches *all, uint64_t peer)
{
    const struct watch *w;
    unsigned n = 0;

    LIST_FOREACH(w, &all->list, link)
        n += w->peer == peer;
    return all->fd >= 0 && all->n_watches < LIMIT_WATCHES && n < LIMIT_WATCHES_PER_WORKER;
}

/* Safe: a directory the broker has found itself, opened without links; all that comes of it
 * is a number told when a name in it changes. */
static enum answer_status
act_run_watch(struct watches *all, const struct ask *ask, const struct request_run_watch *q,
              uint64_t *ret_id)
{
    struct watch *w;

    if (!may_watch(all, ask->peer))
        return ANSWER_BUSY;
    w = calloc(1, sizeof *w);
    if (w == NULL)
        return ANSWER_BUSY;
    *w = (struct watch){.all = all, .id = ++all->last_id, .peer = ask->peer,
                        .epoch = q->epoch, .ref = q->ref, .run_wd = -1, .archive_wd = -1};
    LIST_INSERT_HEAD(&all->list, w, link);
    all->n_watches++;
    w->timer = evtimer_new(all->broker->base, on_timer, w);
    w->run_wd = add_directory(w, "", WATCH_ENTRIES);
    if (w->timer == NULL || w->run_wd < 0) {
        bool missing = w->run_wd < 0 && open_beneath_is_missing(w->run_wd);

        free_watch(w);
        return missing ? ANSWER_NOT_FOUND : ANSWER_BUSY;
    }
    renew_archive(w);
    *ret_id = w->id;
    return ANSWER_OK;
}

int
handle_run_watch(struct broker *b, const struct ask *ask, const void *request,
                 struct channel_packet *packet)
{
    const struct request_run_watch *q = request;
    struct answer_run_watch a = {0};

    (void)packet;
    a.status = act_run_watch(b->watches, ask, q, &a.watch);
    dispatch_answer(b->dispatch, ask, &a, -1);
    return 0;
}

int
handle_run_unwatch(struct broker *b, const struct ask *ask, const void *request,
                   struct channel_packet *packet)
{
    const struct request_run_unwatch *q = request;
    enum answer_status status = ANSWER_NOT_FOUND;
    struct watch *w;

    (void)packet;
    LIST_FOREACH(w, &b->watches->list, link) {
        if (w->id != q->watch || w->peer != ask->peer)
            continue;
        free_watch(w);
        status = ANSWER_OK;
        break;
    }
    dispatch_answer_status(b->dispatch, ask, status);
    return 0;
}
