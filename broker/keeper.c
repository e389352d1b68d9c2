/*
 * The keeper of one launch: it outlives every other process of the server (design R7).
 * Distrusts: the command it keeps (forks away, ignores SIGTERM, closes its output, floods).
 */
#include "broker/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "broker/keeper_command.h"
#include "broker/keeper_output.h"
#include "broker/keeper_socket.h"
#include "broker/launch_record.h"
#include "common/limits.h"

#define PACE_MS 10          /* a chatty command wakes us no more often */
#define RETRY_MS 1000       /* a full disk, or a record that could not be written */
#define REAPS 256           /* in one turn, so that signals and orders are heard */
#define GROUP_GRACE_MS 2000 /* to the group, once its leader has ended */

struct keeper {
    struct keeper_output output;
    struct launch_keeper_record record;
    bool rescue;      /* the command is not our child */
    int exit_fd;      /* signalfd of SIGCHLD; rescue: the command's pidfd, -1: it is gone */
    struct keeper_socket socket;
    bool unsaved;     /* the record on disk is older */
    bool give_up;     /* and will stay so */
    bool ending;      /* told to end the command */
    bool reaped;      /* its number may belong to another process */
    bool more_children; /* may have ended than one turn reaps */
    int64_t kill_ms;  /* when SIGKILL goes to the group; 0: not */
    int64_t drain_ms, retry_ms;
};

static int64_t
now_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- telling and keeping ------------------------------------------------------------------ */

static struct keeper_state
state_of(const struct keeper *k)
{
    return (struct keeper_state){.ended_ms = k->record.ended_ms,
                                 .exit_status = (int32_t)k->record.exit_status,
                                 .output_error = k->output.error,
                                 .lost = k->output.lost};
}

static void
tell_all(struct keeper *k)
{
    struct keeper_state state = state_of(k);

    keeper_socket_tell_all(&k->socket, &state);
}

static void
save(struct keeper *k)
{
    int r;

    k->record.lost = (int64_t)k->output.lost;
    r = launch_keeper_save(KEEPER_DIR, &k->record);
    /* A full disk may get room again. A folder that was removed does not come back. */
    k->give_up = r < 0 && r != -ENOSPC && r != -EDQUOT;
    k->unsaved = r < 0 && !k->give_up;
}

/* --- the command -------------------------------------------------------------------------- */

static void
signal_group(struct keeper *k, int number)
{
    if (k->record.pid <= 0 || k->reaped)
        return;
    /* Not our child: its number is still its own only if it started when the record says. */
    if (k->rescue && launch_start_ticks(k->record.pid) != k->record.start_ticks)
        return;
    kill((pid_t)-k->record.pid, number);
}

/* SIGTERM goes to the leader first. `uv run` hands it on, and a second one would make the CLI
 * die at once and leave its container (contract 1.4); the rest of the group follows. */
static void
end_command(struct keeper *k)
{
    if (k->ending || k->record.ended_ms != 0)
        return;
    k->ending = true;
    k->kill_ms = now_ms(CLOCK_MONOTONIC) + LIMIT_LAUNCH_GRACE_MS;
    if (!k->rescue || launch_start_ticks(k->record.pid) == k->record.start_ticks)
        kill((pid_t)k->record.pid, SIGTERM);
}

static void
command_ended(struct keeper *k, int exit_status)
{
    if (k->record.ended_ms != 0)
        return;
    /* All that it wrote itself. What it left behind may write for ever, and has its turns. */
    keeper_output_take_present(&k->output);
    fdatasync(k->output.file_fd);
    k->record.ended_ms = now_ms(CLOCK_REALTIME);
    k->record.exit_status = exit_status;
    if (k->ending) {
        signal_group(k, SIGTERM);
        k->kill_ms = now_ms(CLOCK_MONOTONIC) + GROUP_GRACE_MS;
    }
    save(k);
    tell_all(k);
}

/* We are the subreaper of all that the command leaves behind, and reap it while the command goes
 * on. The leader stays a zombie while its group may still have to be signalled; as our first
 * child it is always the first one that is told. */
static void
look_at_children(struct keeper *k)
{
    siginfo_t info = {0};

    k->more_children = false;
    for (unsigned i = 0; i < REAPS; i++) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return;
        if (info.si_pid == k->record.pid && !k->reaped) {
            command_ended(k, info.si_code == CLD_EXITED ? info.si_status
                                                        : 128 + info.si_status);
            if (k->kill_ms != 0)
                return;
            k->reaped = true;
        }
        waitpid(info.si_pid, NULL, WNOHANG);
    }
    k->more_children = true;
}

static bool
has_descendants(const struct keeper *k)
{
    siginfo_t info;

    /* All that the command left behind is ours by now. */
    return !k->rescue &&
           (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD);
}

static void
on_exit_fd(struct keeper *k)
{
    struct signalfd_siginfo info;

    if (k->rescue) {
        close(k->exit_fd);
        k->exit_fd = -1;
        command_ended(k, -1); /* only a parent is told how a process ended */
        return;
    }
    /* However many ended since: one signal at most is pending. */
    if (read(k->exit_fd, &info, sizeof info) == sizeof info || k->more_children)
        look_at_children(k);
}

/* --- orders ------------------------------------------------------------------------------- */

static void
on_listen(struct keeper *k)
{
    struct keeper_state state = state_of(k);

    keeper_socket_accept(&k->socket, &state);
}

static void
on_connection(struct keeper *k, size_t i)
{
    int order = keeper_socket_read(&k->socket, i);

    if (order == KEEPER_END)
        end_command(k);
    else if (order == KEEPER_KILL)
        signal_group(k, SIGKILL);
}

/* --- the loop ----------------------------------------------------------------------------- */

static bool
is_over(const struct keeper *k)
{
    if (k->record.ended_ms == 0 || k->unsaved || k->kill_ms != 0)
        return false;
    if (k->output.n_held > 0 && !k->give_up &&
        (k->output.error == ENOSPC || k->output.error == EDQUOT))
        return false;
    return k->output.eof || !(k->rescue || has_descendants(k));
}

static int
wait_ms(const struct keeper *k, int64_t now)
{
    int64_t until = k->more_children ? now : now + 60000;

    if (k->kill_ms != 0 && k->kill_ms < until)
        until = k->kill_ms;
    if (!k->output.eof && k->drain_ms > now && k->drain_ms < until)
        until = k->drain_ms;
    if ((k->unsaved || k->output.n_held > 0) && k->retry_ms < until)
        until = k->retry_ms;
    return until > now ? (int)(until - now) : 0;
}

static void
on_timers(struct keeper *k, int64_t now)
{
    if (k->kill_ms != 0 && now >= k->kill_ms) {
        signal_group(k, SIGKILL);
        k->kill_ms = 0;
        if (!k->rescue)
            look_at_children(k);
    }
    if ((k->unsaved || k->output.n_held > 0) && now >= k->retry_ms) {
        int error = k->output.error;

        k->retry_ms = now + RETRY_MS;
        keeper_output_retry(&k->output);
        if (k->unsaved)
            save(k);
        if (error != k->output.error)
            tell_all(k);
    }
}

static void
drain(struct keeper *k, int64_t now)
{
    int error = k->output.error;

    /* What comes within the next moments is moved together. */
    k->drain_ms = keeper_output_drain(&k->output) > 0 ? now : now + PACE_MS;
    if (error != k->output.error) {
        k->retry_ms = now + RETRY_MS;
        tell_all(k);
    }
}

static void
turn(struct keeper *k)
{
    int64_t now = now_ms(CLOCK_MONOTONIC);
    bool reading = !k->output.eof && now >= k->drain_ms;
    struct pollfd fds[3 + KEEPER_CONNECTIONS] = {
        {.fd = k->exit_fd, .events = POLLIN},
        {.fd = k->socket.listen_fd, .events = POLLIN},
        {.fd = reading ? k->output.pipe_fd : -1, .events = POLLIN},
    };

    for (size_t i = 0; i < KEEPER_CONNECTIONS; i++)
        fds[3 + i] = (struct pollfd){.fd = k->socket.connections[i], .events = POLLIN};
    if (poll(fds, 3 + KEEPER_CONNECTIONS, wait_ms(k, now)) < 0)
        return;
    now = now_ms(CLOCK_MONOTONIC);
    if (fds[2].revents != 0)
        drain(k, now);
    if (fds[0].revents != 0 || k->more_children)
        on_exit_fd(k);
    if (fds[1].revents != 0)
        on_listen(k);
    for (size_t i = 0; i < KEEPER_CONNECTIONS; i++)
        if (fds[3 + i].revents != 0)
            on_connection(k, i);
    on_timers(k, now);
}

/* --- the start ---------------------------------------------------------------------------- */

static void
report(int error, bool exec)
{
    struct keeper_report r = {.error = error, .exec = exec};

    if (write(KEEPER_REPORT, &r, sizeof r) != sizeof r && error == 0)
        return; /* the broker is gone: that is what we are for */
    close(KEEPER_REPORT);
}

static int
watch_children(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void
take_process(struct keeper *k)
{
    static const int ignored[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP};

    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    umask(077);
    /* A service manager that ends the whole group must not end a launched run. */
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        signal(ignored[i], SIG_IGN);
    for (int fd = KEEPER_DIR; fd <= KEEPER_LOCK; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    close_range(KEEPER_LOCK + 1, ~0u, 0);
}

/* Returns 0 or -errno; *ret_exec: it was the command's own fault. */
static int
begin(struct keeper *k, char **words, bool *ret_exec)
{
    pid_t pid;
    int r = keeper_output_open(&k->output, KEEPER_DIR);

    *ret_exec = false;
    if (r < 0)
        return r;
    r = keeper_socket_open(&k->socket);
    if (r < 0)
        return r;
    k->exit_fd = watch_children();
    if (k->exit_fd < 0)
        return -errno;
    k->record = (struct launch_keeper_record){.version = LAUNCH_RECORD_VERSION,
                                              .exit_status = -1,
                                              .started_ms = now_ms(CLOCK_REALTIME)};
    launch_boot_id(k->record.boot_id);
    /* Before anything runs: without this record nothing was ever started. */
    r = launch_keeper_save(KEEPER_DIR, &k->record);
    if (r < 0)
        return r;
    r = keeper_command_start(words, &pid);
    *ret_exec = r < 0;
    if (r < 0)
        return r;
    k->record.pid = pid;
    k->record.start_ticks = launch_start_ticks(pid);
    save(k);
    return 0;
}

static int
begin_rescue(struct keeper *k)
{
    int r = keeper_output_open(&k->output, KEEPER_DIR);

    k->rescue = true;
    if (r == 0)
        r = launch_keeper_load(KEEPER_DIR, &k->record);
    if (r < 0)
        return r;
    r = keeper_socket_open(&k->socket);
    if (r < 0)
        return r;
    k->exit_fd = (int)syscall(SYS_pidfd_open, (pid_t)k->record.pid, 0);
    if (k->exit_fd >= 0 && launch_start_ticks(k->record.pid) != k->record.start_ticks) {
        close(k->exit_fd);
        k->exit_fd = -1;
    }
    if (k->exit_fd < 0)
        command_ended(k, -1);
    return 0;
}

int
main(int argc, char **argv)
{
    static struct keeper k = {.exit_fd = -1};
    bool exec = false;
    int r = -EINVAL;

    if (argc < 2 || fcntl(KEEPER_LOCK, F_GETFD) < 0 || fcntl(KEEPER_REPORT, F_GETFD) < 0) {
        fputs("ssebench-webui-keeper: started by ssebench-webui-broker only\n", stderr);
        return 2;
    }
    take_process(&k);
    if (strcmp(argv[1], "rescue") == 0)
        r = begin_rescue(&k);
    else if (strcmp(argv[1], "run") == 0 && argc > 2)
        r = begin(&k, argv + 2, &exec);
    report(-r, exec);
    if (r < 0)
        return 1;
    if (chdir("/") != 0) /* the checkout may be unmounted meanwhile */
        return 1;
    while (!is_over(&k))
        turn(&k);
    keeper_output_take_present(&k.output); /* the last words of what it left behind */
    return 0;
}
