/*
 * A launch's folder and its keeper's start.
 * Distrusts: nobody new: the fields were checked, the folder is ours.
 */
#include "broker/launch.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/child.h"
#include "broker/keeper.h"
#include "broker/launch_argv.h"
#include "common/limits.h"
#include "common/log.h"

#define KEEPER_LOW_FD 10 /* above every number that the keeper expects something at */

/* --- the folder --------------------------------------------------------------------------- */

static int
make_id(char id[MESSAGE_LAUNCH_ID_SIZE])
{
    unsigned char r[16];

    if (getrandom(r, sizeof r, 0) != sizeof r)
        return -EIO;
    r[6] = (r[6] & 0x0f) | 0x40;
    r[8] = (r[8] & 0x3f) | 0x80;
    snprintf(id, MESSAGE_LAUNCH_ID_SIZE,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", r[0], r[1],
             r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13], r[14],
             r[15]);
    return 0;
}

static int
build_argv(struct launch *l, struct launch_argv *v, char *const *before)
{
    const struct broker_config *c = &l->all->broker->config;
    struct launch_fields f;
    int r = launch_meta_get_fields(&l->meta, &f);

    *v = (struct launch_argv){0};
    return r < 0 ? r : launch_argv_build(v, before, &f, l->meta.id, c->local_tasks, c->catalog);
}

static int
describe(struct launch *l)
{
    struct launch_argv v;
    int r = build_argv(l, &v, children_words(l->all->broker->children));

    if (r == 0)
        launch_argv_join(&v, 0, l->meta.command, sizeof l->meta.command);
    launch_argv_done(&v);
    return r;
}

/* The folder, its FIFO and its first record: from here on the launch exists. */
static int
make_folder(struct launch *l)
{
    int r;

    if (mkdirat(l->all->dir_fd, l->meta.id, 0700) != 0)
        return -errno;
    l->dir_fd = openat(l->all->dir_fd, l->meta.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->dir_fd < 0)
        return -errno;
    if (mkfifoat(l->dir_fd, LAUNCH_PIPE, 0600) != 0)
        return -errno;
    r = launch_meta_save(l->dir_fd, &l->meta);
    if (r == 0 && fsync(l->all->dir_fd) != 0)
        r = -errno;
    return r;
}

int
launch_create(struct launches *all, const struct launch_fields *f, const char *key,
              struct launch **ret_launch)
{
    struct launch *l = launch_new(all);
    struct timespec now;
    int r;

    if (l == NULL)
        return -ENOMEM;
    clock_gettime(CLOCK_REALTIME, &now);
    l->meta.version = LAUNCH_RECORD_VERSION;
    l->meta.state = LAUNCH_QUEUED;
    l->meta.start_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    message_string_set(l->meta.key, sizeof l->meta.key, key);
    launch_meta_set_fields(&l->meta, f);
    r = make_id(l->meta.id);
    if (r == 0)
        r = describe(l);
    if (r == 0)
        r = make_folder(l);
    if (r < 0) {
        launch_remove(l);
        return r;
    }
    *ret_launch = l;
    return 0;
}

/* --- the keeper ------------------------------------------------------------------------------ */

static int
take_lock(struct launch *l)
{
    int fd = openat(l->dir_fd, LAUNCH_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return -EBUSY;
    }
    return fd;
}

/* It has ended, or is about to. */
static void
reap_keeper(struct launch *l)
{
    if (l->pid != 0) {
        kill(l->pid, SIGKILL);
        while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    l->pid = 0;
    if (l->reap != NULL)
        event_free(l->reap);
    l->reap = NULL;
    if (l->pid_fd >= 0)
        close(l->pid_fd);
    l->pid_fd = -1;
}

static void
on_keeper_exit(evutil_socket_t fd, short what, void *arg)
{
    struct launch *l = arg;

    (void)fd;
    (void)what;
    reap_keeper(l);
    if (l->doomed)
        launch_remove_later(l);
}

/* A keeper we started is our child as long as we live. */
static void
watch_pid(struct launch *l)
{
    l->pid_fd = (int)syscall(SYS_pidfd_open, l->pid, 0);
    if (l->pid_fd < 0) {
        l->pid = 0; /* not reaped: a zombie is the smaller harm */
        return;
    }
    fcntl(l->pid_fd, F_SETFD, FD_CLOEXEC);
    l->reap = event_new(l->all->broker->base, l->pid_fd, EV_READ, on_keeper_exit, l);
    if (l->reap != NULL)
        event_add(l->reap, NULL);
}

static void
answer_asker(struct launch *l, enum answer_status status, const char *error)
{
    struct answer_launch a = {.status = status};

    if (!l->asked)
        return;
    l->asked = false;
    message_string_set(a.launch_id, sizeof a.launch_id, l->meta.id);
    message_string_set(a.error, sizeof a.error, error);
    dispatch_answer(l->all->broker->dispatch, &l->ask, &a, -1);
}

/* Nothing runs. A client that waits for the start is told, and nothing stays behind. */
static void
start_failed(struct launch *l, const char *error)
{
    bool asked = l->asked;

    log_event(LOG_LEVEL_WARNING, "launch-failed", "launch=%s reason=%s", l->meta.id,
              log_quote(error, strlen(error)));
    l->alive = l->ready = false;
    answer_asker(l, ANSWER_FAILED, error);
    launch_set_state(l, asked ? LAUNCH_CLEARED : LAUNCH_FAILED, error);
    if (asked)
        launch_remove_later(l);
}

static void
start_done(struct launch *l)
{
    int r;

    l->ready = true;
    launch_watch_output(l);
    r = launch_connect(l);
    if (r < 0)
        log_event(LOG_LEVEL_WARNING, "keeper-not-reached", "launch=%s reason=%s", l->meta.id,
                  strerror(-r));
    answer_asker(l, ANSWER_OK, "");
    if (r < 0)
        launch_keeper_gone(l);
}

static void
explain(const struct launch *l, const struct keeper_report *report, char *error, size_t size)
{
    char *const *words = children_words(l->all->broker->children);

    if (report->exec)
        snprintf(error, size, "Cannot run `%s` (SSEBENCH_CLI): %s", words[0],
                 strerror(report->error));
    else
        snprintf(error, size, "Cannot keep the launch's output in %.300s: %s",
                 l->all->broker->config.state_dir, strerror(report->error));
}

static void
on_report(evutil_socket_t fd, short what, void *arg)
{
    struct launch *l = arg;
    struct keeper_report report = {.error = ETIMEDOUT};
    char error[MESSAGE_ERROR_SIZE];
    ssize_t n = what & EV_TIMEOUT ? 0 : read(fd, &report, sizeof report);

    event_free(l->report);
    l->report = NULL;
    close(l->report_fd);
    l->report_fd = -1;
    if (n == sizeof report && report.error == 0) {
        start_done(l);
        launches_schedule(l->all);
        return;
    }
    if (n != sizeof report && !(what & EV_TIMEOUT))
        report = (struct keeper_report){.error = ECHILD}; /* it died before it could report */
    explain(l, &report, error, sizeof error);
    if (l->rescues > 0)
        launch_keeper_gone(l);
    else
        start_failed(l, error);
    launches_schedule(l->all);
}

static int
spawn(struct launch *l, char *const *argv, int report_fd)
{
    struct broker *b = l->all->broker;
    const int from[] = {l->dir_fd, report_fd, l->lock_fd};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, defaults;
    int copies[3] = {-1, -1, -1}, r = 0;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    sigemptyset(&none);
    sigfillset(&defaults);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &defaults);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    for (int i = 0; i < 3 && r == 0; i++) {
        copies[i] = fcntl(from[i], F_DUPFD_CLOEXEC, KEEPER_LOW_FD);
        r = copies[i] < 0 ? errno : 0;
        posix_spawn_file_actions_adddup2(&actions, copies[i], KEEPER_DIR + i);
    }
    posix_spawn_file_actions_addchdir_np(&actions, b->config.checkout);
    if (r == 0)
        r = posix_spawn(&l->pid, b->config.keeper, &actions, &attr, argv,
                        children_environment(b->children));
    for (int i = 0; i < 3; i++)
        if (copies[i] >= 0)
            close(copies[i]);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        l->pid = 0;
    return -r;
}

/* `argv` is the keeper's whole command line. */
static int
start_keeper(struct launch *l, char *const *argv)
{
    static const struct timeval limit = {LIMIT_LAUNCH_START_MS / 1000, 0};
    int ends[2], r;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -errno;
    l->report_fd = ends[0];
    r = spawn(l, argv, ends[1]);
    close(ends[1]);
    if (r == 0) {
        watch_pid(l);
        l->report = event_new(l->all->broker->base, l->report_fd, EV_READ, on_report, l);
        if (l->report == NULL || event_add(l->report, &limit) != 0)
            r = -ENOMEM;
    }
    if (r < 0 && l->report == NULL) {
        close(l->report_fd);
        l->report_fd = -1;
    }
    return r;
}

/* Safe: the vector holds SSEBENCH_CLI's words and arguments built from fields that were held
 * against what the checkout lists; no shell; the environment has no token of ours. */
static int
act_launch(struct launch *l, bool rescue)
{
    char *const run[] = {(char *)"ssebench-webui-keeper", (char *)"run", NULL};
    char *const again[] = {(char *)"ssebench-webui-keeper", (char *)"rescue", NULL};
    char *before[LAUNCH_ARGV_MAX];
    char *const *words = children_words(l->all->broker->children);
    struct launch_argv v = {0};
    size_t n = 2;
    int r = 0;

    if (rescue)
        return start_keeper(l, again);
    memcpy(before, run, 2 * sizeof before[0]);
    while (*words != NULL && n < LAUNCH_ARGV_MAX - 1)
        before[n++] = *words++;
    before[n] = NULL;
    r = build_argv(l, &v, before);
    if (r == 0)
        r = start_keeper(l, v.at);
    launch_argv_done(&v);
    return r;
}

int
launch_start(struct launch *l, bool rescue, char *error, size_t error_size)
{
    int r;

    reap_keeper(l);
    if (l->lock_fd < 0)
        l->lock_fd = take_lock(l);
    r = l->lock_fd < 0 ? l->lock_fd : 0;
    if (r == 0 && l->pipe_fd < 0) {
        l->pipe_fd = openat(l->dir_fd, LAUNCH_PIPE,
                            O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        r = l->pipe_fd < 0 ? -errno : 0;
    }
    l->started_ms = broker_now_ms();
    if (r == 0)
        r = act_launch(l, rescue);
    if (l->lock_fd >= 0)
        close(l->lock_fd);
    l->lock_fd = -1;
    if (r < 0) {
        snprintf(error, error_size, "Cannot start the launch: %s", strerror(-r));
        return r;
    }
    l->alive = true;
    l->ready = false;
    return 0;
}
