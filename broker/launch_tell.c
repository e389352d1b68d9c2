/*
 * Telling workers of launches: states at once, growing output at a bounded pace, nothing to a
 * worker that does not read.
 * Distrusts: workers (slow or stuck ones hold up nobody and cost no memory).
 */
#include "broker/launch.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/broker.h"
#include "common/limits.h"

#define EVENTS_SIZE 65536u

/* --- what is told ------------------------------------------------------------------------------ */

static uint32_t
position_of(const struct launch *l)
{
    const struct launch *other;
    uint32_t position = 1;

    if (l->meta.state != LAUNCH_QUEUED)
        return 0;
    TAILQ_FOREACH(other, &l->all->list, link) {
        if (other == l)
            break;
        position += other->meta.state == LAUNCH_QUEUED;
    }
    return position;
}

static void
send_state(struct launch *l, uint64_t peer)
{
    struct event_launch e = {
        .start_ms = l->meta.start_ms,
        .end_ms = l->ended_ms,
        .output_size = l->size,
        .output_cut = l->cut,
        .exit_status = l->exit_status,
        .position = position_of(l),
        .output_error = (uint32_t)l->output_error,
        .state = (uint8_t)l->meta.state,
        .interrupted = (uint8_t)l->meta.interrupted,
    };

    message_string_set(e.launch_id, sizeof e.launch_id, l->meta.id);
    message_string_set(e.task, sizeof e.task, l->meta.task);
    message_string_set(e.command, sizeof e.command, l->meta.command);
    message_string_set(e.error, sizeof e.error, l->meta.error);
    dispatch_tell(l->all->broker->dispatch, peer, MESSAGE_EVENT_LAUNCH, &e);
}

static void
send_output(struct launch *l, uint64_t peer)
{
    struct event_launch_output e = {.size = l->size, .cut = l->cut};

    message_string_set(e.launch_id, sizeof e.launch_id, l->meta.id);
    dispatch_tell(l->all->broker->dispatch, peer, MESSAGE_EVENT_LAUNCH_OUTPUT, &e);
}

/* Tell watcher `i` what is due of this launch. */
static void
tell_one(struct launch *l, unsigned i)
{
    uint64_t bit = UINT64_C(1) << i, peer = l->all->watchers[i].peer;

    if (l->untold & bit)
        send_state(l, peer); /* has the sizes too */
    else if (l->untold_output & bit)
        send_output(l, peer);
    l->untold &= ~bit;
    l->untold_output &= ~bit;
}

/* Tell everyone who reads. Returns false when someone is left. */
static bool
tell_all(struct launch *l)
{
    struct launches *all = l->all;

    for (unsigned i = 0; i < LAUNCH_WATCHERS && (l->untold | l->untold_output) != 0; i++)
        if (all->watchers[i].peer != 0 &&
            !dispatch_is_behind(all->broker->dispatch, all->watchers[i].peer))
            tell_one(l, i);
    return (l->untold | l->untold_output) == 0;
}

static uint64_t
every_watcher(const struct launches *all)
{
    uint64_t mask = 0;

    for (unsigned i = 0; i < LAUNCH_WATCHERS; i++)
        if (all->watchers[i].peer != 0)
            mask |= UINT64_C(1) << i;
    return mask;
}

static void
tell_later(struct launches *all)
{
    static const struct timeval pause = {0, LIMIT_LAUNCH_TELL_MS * 1000};

    if (!evtimer_pending(all->tell, NULL))
        evtimer_add(all->tell, &pause);
}

void
launch_changed(struct launch *l)
{
    l->untold = every_watcher(l->all);
    if (!tell_all(l))
        tell_later(l->all);
}

/* --- watchers ------------------------------------------------------------------------------------- */

void
launches_end_peer(struct launches *all, uint64_t peer)
{
    struct launch *l;

    for (unsigned i = 0; i < LAUNCH_WATCHERS; i++) {
        if (all->watchers[i].peer != peer)
            continue;
        all->watchers[i].peer = 0;
        TAILQ_FOREACH(l, &all->list, link) {
            l->untold &= ~(UINT64_C(1) << i);
            l->untold_output &= ~(UINT64_C(1) << i);
        }
    }
}

static int
find_slot(struct launches *all, uint64_t peer)
{
    int free_slot = -EBUSY;

    for (unsigned i = 0; i < LAUNCH_WATCHERS; i++) {
        if (all->watchers[i].peer == peer)
            return (int)i;
        if (all->watchers[i].peer == 0 && free_slot < 0)
            free_slot = (int)i;
    }
    return free_slot;
}

int
launch_watch(struct launches *all, uint64_t peer, bool full)
{
    int slot = find_slot(all, peer);
    struct launch *l;

    if (slot < 0)
        return slot;
    all->watchers[slot].peer = peer;
    /* Even if it is behind: the answer that follows means that nothing older is due. */
    TAILQ_FOREACH(l, &all->list, link) {
        if (full && l->meta.state != LAUNCH_CLEARED)
            l->untold |= UINT64_C(1) << slot;
        launch_measure(l);
        tell_one(l, (unsigned)slot);
    }
    return 0;
}

/* --- output ------------------------------------------------------------------------------------------ */

int
launch_open_output(struct launch *l)
{
    int fd;

    if (l->output_fd < 0)
        l->output_fd = openat(l->dir_fd, LAUNCH_OUTPUT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (l->output_fd < 0)
        return -errno;
    fd = fcntl(l->output_fd, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? -errno : fd;
}

void
launch_measure(struct launch *l)
{
    uint64_t size = l->size;
    struct stat st;
    off_t data;

    if (l->output_fd < 0)
        l->output_fd = openat(l->dir_fd, LAUNCH_OUTPUT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (l->output_fd < 0 || fstat(l->output_fd, &st) != 0)
        return;
    l->size = (uint64_t)st.st_size;
    if (l->size == size)
        return;
    /* Only a keeper makes holes, and only before what it keeps. */
    data = l->size > LIMIT_LAUNCH_OUTPUT ? lseek(l->output_fd, 0, SEEK_DATA) : 0;
    if (data > 0)
        l->cut = (uint64_t)data;
    l->untold_output = every_watcher(l->all);
}

void
launch_watch_output(struct launch *l)
{
    char path[64];

    if (l->watch >= 0 || l->all->inotify_fd < 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d/" LAUNCH_OUTPUT, l->dir_fd);
    l->watch = inotify_add_watch(l->all->inotify_fd, path, IN_MODIFY);
}

static void
mark_grown(struct launches *all, int watch)
{
    struct launch *l;

    TAILQ_FOREACH(l, &all->list, link)
        if (l->watch == watch || watch < 0)
            launch_measure(l);
}

/* Many events of one file in one turn are one look at it. */
static void
take_events(struct launches *all, const char *bytes, size_t len)
{
    int last = -2;

    for (size_t at = 0; at + sizeof(struct inotify_event) <= len;) {
        struct inotify_event event;

        memcpy(&event, bytes + at, sizeof event);
        at += sizeof event + event.len;
        if (event.mask & IN_Q_OVERFLOW)
            mark_grown(all, -1);
        else if (event.wd != last && !(event.mask & IN_IGNORED))
            mark_grown(all, event.wd);
        last = event.wd;
    }
}

static void
on_tell(evutil_socket_t fd, short what, void *arg)
{
    struct launches *all = arg;
    struct launch *l;
    bool done = true;

    (void)fd;
    (void)what;
    TAILQ_FOREACH(l, &all->list, link)
        done &= tell_all(l);
    if (!done)
        tell_later(all);
    event_add(all->notify, NULL);
}

static void
on_notify(evutil_socket_t fd, short what, void *arg)
{
    static char bytes[EVENTS_SIZE];
    struct launches *all = arg;
    struct launch *l;
    ssize_t n;

    (void)what;
    /* Once: many keepers may write faster than this reads. What is left has its turn below, or
     * becomes one mark that events were lost. */
    n = read(fd, bytes, sizeof bytes);
    if (n > 0)
        take_events(all, bytes, (size_t)n);
    TAILQ_FOREACH(l, &all->list, link)
        tell_all(l);
    /* What comes within the next moments is told together. */
    event_del(all->notify);
    tell_later(all);
}

int
launch_tell_init(struct launches *all)
{
    all->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    all->tell = evtimer_new(all->broker->base, on_tell, all);
    if (all->inotify_fd < 0 || all->tell == NULL)
        return -ENOMEM;
    all->notify = event_new(all->broker->base, all->inotify_fd, EV_READ | EV_PERSIST, on_notify,
                            all);
    return all->notify != NULL && event_add(all->notify, NULL) == 0 ? 0 : -ENOMEM;
}

void
launch_tell_done(struct launches *all)
{
    if (all->notify != NULL)
        event_free(all->notify);
    if (all->tell != NULL)
        event_free(all->tell);
    if (all->inotify_fd >= 0)
        close(all->inotify_fd);
}
