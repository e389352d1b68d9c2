/*
 * The keeper's word: connecting to it, hearing it, taking up what an earlier broker left.
 * Distrusts: what is found in the state directory after a crash (torn, old, half made).
 */
#include "broker/launch.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/keeper.h"
#include "common/log.h"

#define RETRY_MS 50 /* a keeper that holds its lock and does not listen yet */

static void
disconnect(struct launch *l)
{
    if (l->conn != NULL)
        event_free(l->conn);
    l->conn = NULL;
    if (l->conn_fd >= 0)
        close(l->conn_fd);
    l->conn_fd = -1;
}

static void
take_state(struct launch *l, const struct keeper_state *state)
{
    if (l->output_error != state->output_error) {
        l->output_error = state->output_error;
        if (l->output_error != 0)
            log_event(LOG_LEVEL_ERROR, "launch-output-held", "launch=%s reason=%s", l->meta.id,
                      log_quote(strerror(l->output_error), strlen(strerror(l->output_error))));
        launch_changed(l);
    }
    if (state->ended_ms != 0)
        launch_command_ended(l, state->exit_status, state->ended_ms);
}

static void
on_keeper(evutil_socket_t fd, short what, void *arg)
{
    struct launch *l = arg;
    struct keeper_state state;
    ssize_t n = recv(fd, &state, sizeof state, MSG_DONTWAIT);

    (void)what;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == sizeof state) {
        take_state(l, &state);
        return;
    }
    disconnect(l);
    launch_keeper_gone(l);
}

static void
order_end(struct launch *l)
{
    static const char order = KEEPER_END;

    if (l->conn_fd >= 0)
        send(l->conn_fd, &order, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int
launch_connect(struct launch *l)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int r = 0;

    l->conn_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (l->conn_fd < 0)
        return -errno;
    snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", l->dir_fd, LAUNCH_SOCKET);
    if (connect(l->conn_fd, (struct sockaddr *)&a, sizeof a) != 0)
        r = -errno;
    if (r == 0) {
        l->conn = event_new(l->all->broker->base, l->conn_fd, EV_READ | EV_PERSIST, on_keeper, l);
        if (l->conn == NULL || event_add(l->conn, NULL) != 0)
            r = -ENOMEM;
    }
    if (r < 0)
        disconnect(l);
    else if (l->end_wanted)
        order_end(l);
    return r;
}

void
launch_end(struct launch *l)
{
    l->end_wanted = true;
    order_end(l);
}

/* --- taking up ------------------------------------------------------------------------------ */

/* A torn or foreign meta.json: what the folder itself tells. */
static void
guess_meta(struct launch *l, const char *id)
{
    struct stat st;

    l->unknown_meta = true;
    memset(&l->meta, 0, sizeof l->meta);
    message_string_set(l->meta.id, sizeof l->meta.id, id);
    message_string_set(l->meta.task, sizeof l->meta.task, "unknown");
    l->meta.state = LAUNCH_LAUNCHING; /* or what the listing says */
    l->meta.timeout = l->meta.difficulty = LAUNCH_NUMBER_ABSENT;
    if (fstat(l->dir_fd, &st) == 0)
        l->meta.start_ms = (int64_t)st.st_mtim.tv_sec * 1000;
    log_event(LOG_LEVEL_WARNING, "launch-record-unreadable", "launch=%s", id);
}

static bool
has_keeper(struct launch *l)
{
    int fd = openat(l->dir_fd, LAUNCH_LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;

    if (fd >= 0)
        close(fd);
    return held;
}

static void
interrupt(struct launch *l, const char *why)
{
    l->ended_ms = l->ended_ms != 0 ? l->ended_ms : (int64_t)time(NULL) * 1000;
    if (l->meta.state == LAUNCH_FAILED)
        return;
    l->meta.interrupted = 1;
    launch_set_state(l, LAUNCH_FAILED, why);
}

/* Nobody keeps it. What does its record say? */
static void
take_up_orphan(struct launch *l)
{
    struct launch_keeper_record record;
    char boot[40];
    int r = launch_keeper_load(l->dir_fd, &record);

    launch_boot_id(boot);
    if (r == 0 && l->meta.state == LAUNCH_QUEUED)
        l->meta.state = LAUNCH_LAUNCHING; /* it was started; only that was not written down */
    if (r == -ENOENT && !l->unknown_meta && l->meta.state <= LAUNCH_LAUNCHING) {
        l->meta.state = LAUNCH_QUEUED; /* nothing was ever started: it waits again */
    } else if (r == 0 && record.ended_ms != 0) {
        launch_command_ended(l, (int)record.exit_status, record.ended_ms);
    } else if (r == 0 && strcmp(record.boot_id, boot) == 0 &&
               launch_start_ticks(record.pid) == record.start_ticks) {
        launch_keeper_gone(l); /* only its keeper was killed: another one goes on */
    } else if (r == 0 && strcmp(record.boot_id, boot) != 0) {
        interrupt(l, "Interrupted: the machine was restarted while the launch went on");
    } else {
        interrupt(l, "Interrupted: the launch and its keeper were killed");
    }
}

static void
on_retry(evutil_socket_t fd, short what, void *arg);

void
launch_take_up_later(struct launch *l)
{
    static const struct timeval pause = {0, RETRY_MS * 1000};

    l->alive = true;
    if (l->retry == NULL)
        l->retry = evtimer_new(l->all->broker->base, on_retry, l);
    if (l->retry != NULL)
        evtimer_add(l->retry, &pause);
}

/* A keeper lives. It may be so new that its socket is not there yet. */
static void
take_up_kept(struct launch *l)
{
    l->alive = true;
    if (l->meta.state == LAUNCH_QUEUED)
        l->meta.state = LAUNCH_LAUNCHING;
    if (launch_connect(l) == 0) {
        l->ready = true;
        launch_watch_output(l);
    } else {
        launch_take_up_later(l);
    }
}

static void
take_up(struct launch *l)
{
    if (has_keeper(l))
        take_up_kept(l);
    else
        take_up_orphan(l);
}

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
    struct launch *l = arg;

    (void)fd;
    (void)what;
    l->alive = false;
    take_up(l);
    launches_schedule(l->all);
}

/* Keep the order in which they were asked for. */
static void
insert_by_start(struct launch *l)
{
    struct launch_list *list = &l->all->list;
    struct launch *other;

    TAILQ_REMOVE(list, l, link);
    TAILQ_FOREACH(other, list, link)
        if (other->meta.start_ms > l->meta.start_ms)
            break;
    if (other != NULL)
        TAILQ_INSERT_BEFORE(other, l, link);
    else
        TAILQ_INSERT_TAIL(list, l, link);
}

void
launch_adopt(struct launches *all, const char *id)
{
    struct launch *l = launch_new(all);

    if (l == NULL)
        return;
    l->dir_fd = openat(all->dir_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (l->dir_fd < 0) {
        launch_free(l);
        return;
    }
    if (launch_meta_load(l->dir_fd, &l->meta) != 0 || strcmp(l->meta.id, id) != 0)
        guess_meta(l, id);
    insert_by_start(l);
    /* Nothing else than a cancellation fails a launch whose command goes on. */
    l->end_wanted = l->meta.state == LAUNCH_FAILED;
    /* Hold what is in the FIFO, whoever reads it next. */
    l->pipe_fd = openat(l->dir_fd, LAUNCH_PIPE, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    take_up(l);
    launch_measure(l);
    if (l->meta.state == LAUNCH_CLEARED && !l->alive)
        launch_remove_later(l);
    else
        launch_changed(l);
}
