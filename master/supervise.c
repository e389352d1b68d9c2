/* Starting, watching, restarting, reloading and stopping the broker and the workers. */
#include "master/supervise.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/channel.h"
#include "common/log.h"
#include "master/child.h"
#include "master/drain.h"
#include "master/greeting.h"
#include "master/notify.h"
#include "master/reload.h"
#include "master/spawn.h"
#include "master/start.h"
#include "master/status_file.h"
#include "master/upgrade.h"

#define RELOAD_WAIT_MS 500u /* for the broker to have taken a reload */

enum phase {
    PHASE_STARTING,
    PHASE_SERVING,
    PHASE_STOPPING_WORKERS,
    PHASE_STOPPING_BROKER
};

static struct supervisor {
    struct event_base *base;
    const struct settings *settings;
    struct handover *handover;
    struct listeners *listeners;
    const char *program; /* where an upgrade finds the next one */
    bool kept_token;
    enum phase phase;
    int exit_status;
    uint32_t n_children;                      /* the broker and the workers */
    struct child children[1 + LIMIT_WORKERS]; /* [0]: the broker */
    struct event *on_deadline, *on_watchdog, *on_reload;
    bool reloading; /* the workers are not told yet */
    bool greeted;
} sup;

static struct child *
broker(void)
{
    return &sup.children[0];
}

static bool
is_stopping(void)
{
    return sup.phase >= PHASE_STOPPING_WORKERS;
}

/* --- starting --- */

/* A new channel between the broker and this worker: one end to each by CONTROL_CHANNEL.
 * With `ret_worker_end`, the worker is about to be started and finds its end at
 * HANDOFF_CHANNEL. */
static int
link_worker(struct child *worker, int *ret_worker_end)
{
    int ends[2];
    int status = channel_pair(ends);

    if (status != 0)
        return status;
    child_tell(broker(), CONTROL_CHANNEL, worker->number, ends[0]);
    close(ends[0]); /* with no broker alive, the worker's end reads as closed: "try
                       again" */
    if (ret_worker_end != NULL) {
        *ret_worker_end = spawn_raise_fd(ends[1]);
        return *ret_worker_end < 0 ? *ret_worker_end : 0;
    }
    child_tell(worker, CONTROL_CHANNEL, worker->number, ends[1]);
    close(ends[1]);
    return 0;
}

/* --- stopping --- */

static bool
any_alive(uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (sup.children[i].pid > 0)
            return true;
    return false;
}

static void
kill_all(void)
{
    for (uint32_t i = 0; i < sup.n_children; i++)
        if (sup.children[i].pid > 0)
            kill(sup.children[i].pid, SIGKILL);
    drain_kill();
}

static void
set_deadline(void)
{
    struct timeval limit = {.tv_sec = LIMIT_STOP_MS / 1000};

    evtimer_add(sup.on_deadline, &limit);
}

/* Called whenever something ended: what is the next step of the stop? */
static void
continue_stop(void)
{
    if (sup.phase == PHASE_STOPPING_WORKERS && !any_alive(1, sup.n_children) &&
        !drain_under_way()) {
        sup.phase = PHASE_STOPPING_BROKER; /* nobody asks it anything any more */
        child_tell(broker(), CONTROL_STOP, 0, -1);
        set_deadline();
    }
    if (sup.phase == PHASE_STOPPING_BROKER && !any_alive(0, 1))
        event_base_loopbreak(sup.base);
}

static void
begin_stop(int exit_status)
{
    if (is_stopping())
        return;
    sup.phase = PHASE_STOPPING_WORKERS;
    sup.exit_status = exit_status;
    notify_send("STOPPING=1");
    for (uint32_t i = 1; i < sup.n_children; i++)
        child_tell(&sup.children[i], CONTROL_STOP, 0, -1);
    drain_stop();
    for (uint32_t i = 0; i < sup.n_children; i++)
        evtimer_del(sup.children[i].on_restart);
    listener_close(sup.listeners); /* closed for good with the workers' copies */
    set_deadline();
    continue_stop();
}

static void
handle_deadline(int fd, short what, void *arg)
{
    log_event(LOG_LEVEL_WARNING, "stop-slow", "limit_ms=%u action=kill", LIMIT_STOP_MS);
    if (sup.phase == PHASE_STOPPING_WORKERS) {
        for (uint32_t i = 1; i < sup.n_children; i++)
            if (sup.children[i].pid > 0)
                kill(sup.children[i].pid, SIGKILL);
        drain_kill();
    } else {
        kill_all();
    }
}

__attribute__((format(printf, 1, 2))) static void
give_up(const char *format, ...)
{
    va_list args;

    if (is_stopping())
        return;
    fflush(stdout);
    fprintf(stderr, "[Server] ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    begin_stop(1);
}

/* --- restarting --- */

static void
restart_later(struct child *c, const char *how, uint64_t lived_ms)
{
    struct timeval delay;
    uint32_t delay_ms = 0;

    if (!restart_note(&c->restart, child_now_ms(), lived_ms, &delay_ms)) {
        give_up("%s ended %u times within %u seconds, the last time by %s. The lines "
                "above say why; start the server again when that is mended.",
                c->name, LIMIT_RESTARTS, LIMIT_RESTARTS_MS / 1000, how);
        return;
    }
    delay.tv_sec = delay_ms / 1000;
    delay.tv_usec = (delay_ms % 1000) * 1000;
    evtimer_add(c->on_restart, &delay);
}

/* No process or no descriptor to be had: at start that is final, later it may pass. */
static void
handle_failed_start(struct child *c, int error)
{
    log_event(LOG_LEVEL_ERROR, "start-failed", "child=%s error=%s", c->name,
              strerrorname_np(error));
    if (c->pid > 0)
        kill(c->pid, SIGKILL); /* it runs unwatched: its end leads back here */
    else if (sup.phase == PHASE_STARTING)
        give_up("Cannot start %s: %s.", c->name, strerror(error));
    else
        restart_later(c, strerror(error), 0);
}

static void
run_start(struct child *c)
{
    int channel = -1;
    int status = c->role == CHILD_WORKER ? link_worker(c, &channel) : 0;

    if (status == 0)
        status = start_child(c, sup.base, sup.handover, sup.listeners, channel);
    if (channel >= 0)
        close(channel);
    if (status != 0) {
        handle_failed_start(c, -status);
        return;
    }
    log_event(LOG_LEVEL_INFO, "child-started", "child=%s pid=%d", c->name, (int)c->pid);
    if (c->role == CHILD_WORKER)
        return;
    /* A new broker knows nobody: every worker gets a new line. */
    for (uint32_t i = 1; i < sup.n_children; i++)
        if (sup.children[i].pid > 0)
            link_worker(&sup.children[i], NULL);
}

static void
handle_restart(int fd, short what, void *arg)
{
    if (!is_stopping())
        run_start(arg);
}

static void
describe_end(int status, char *ret_text, size_t size)
{
    if (WIFEXITED(status))
        snprintf(ret_text, size, "exit status %d", WEXITSTATUS(status));
    else
        snprintf(ret_text, size, "signal SIG%s", sigabbrev_np(WTERMSIG(status)));
}

static void
log_end(const struct child *c, pid_t pid, int status, const char *how)
{
    bool asked = is_stopping() && WIFEXITED(status) && WEXITSTATUS(status) == 0;

    /* A call that the filter forbids ends a worker by SIGSYS; its last line, relayed
     * before this one, names the call (common/sandbox_seccomp.c). */
    log_event(asked ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "child-ended",
              "child=%s pid=%d how=%s", c->name, (int)pid, log_quote(how, strlen(how)));
}

static struct child *
find_child(pid_t pid)
{
    for (uint32_t i = 0; i < sup.n_children; i++)
        if (sup.children[i].pid == pid)
            return &sup.children[i];
    return NULL;
}

static void
handle_end(struct child *c, int status)
{
    uint64_t lived_ms = c->ready ? child_now_ms() - c->ready_ms : 0;
    pid_t pid = c->pid;
    char how[64];

    describe_end(status, how, sizeof(how));
    child_detach(c);
    log_end(c, pid, status, how);
    if (is_stopping())
        return;
    if (sup.phase == PHASE_STARTING && WIFEXITED(status))
        give_up("%s could not start (%s). The lines above say why.", c->name, how);
    else
        restart_later(c, how, lived_ms);
}

/* As process 1 of a container we inherit orphans: they are reaped and forgotten. */
static void
handle_sigchld(int fd, short what, void *arg)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        struct child *c = find_child(pid);

        if (WIFSTOPPED(status)) {
            log_event(LOG_LEVEL_WARNING, "child-stopped", "pid=%d signal=SIG%s action=continue",
                      (int)pid, sigabbrev_np(WSTOPSIG(status)));
            kill(pid, SIGCONT); /* it serves, or it is killed */
        } else if (c != NULL)
            handle_end(c, status);
        else if (!drain_take_end(pid, status))
            upgrade_take_end(pid, status);
    }
    continue_stop();
}

/* --- serving --- */

static void
tell_config(struct child *c)
{
    int config = c->role == CHILD_WORKER ? handover_worker_config(sup.handover, c->number)
                                         : handover_broker_config(sup.handover);

    if (config < 0) {
        log_event(LOG_LEVEL_ERROR, "reload-failed", "child=%s error=%s", c->name,
                  strerrorname_np(-config));
        return;
    }
    child_tell(c, CONTROL_CONFIG, 0, config);
    close(config);
}

/* Second half of a reload: the broker knows. */
static void
reload_workers(void)
{
    if (!sup.reloading)
        return;
    sup.reloading = false;
    evtimer_del(sup.on_reload);
    for (uint32_t i = 1; i < sup.n_children; i++)
        if (sup.children[i].pid > 0)
            tell_config(&sup.children[i]);
    log_event(LOG_LEVEL_INFO, "reload-told", "workers=%u", sup.n_children - 1);
    notify_send("READY=1");
}

static void
handle_reload_late(int fd, short what, void *arg)
{
    reload_workers();
}

static void
handle_ready(struct child *c)
{
    log_event(LOG_LEVEL_DEBUG, "child-ready", "child=%s", c->name);
    if (c->role == CHILD_BROKER)
        reload_workers();
    if (sup.phase != PHASE_STARTING)
        return;
    for (uint32_t i = 0; i < sup.n_children; i++)
        if (!sup.children[i].ready)
            return;
    sup.phase = PHASE_SERVING;
    greeting_print(sup.listeners, sup.handover->worker.base_path, sup.children,
                   sup.n_children);
    notify_send("READY=1");
}

/* The broker read something from this worker that no worker of ours says (design R3).
 */
static void
handle_kill(uint32_t number)
{
    if (number == 0 || number >= sup.n_children || sup.children[number].pid == 0)
        return;
    log_event(LOG_LEVEL_ERROR, "worker-killed", "child=%s reason=broker_asked",
              sup.children[number].name);
    kill(sup.children[number].pid, SIGKILL);
}

/* SIGHUP. The broker first: a token that is new to a worker must not be news to the broker, and
 * one that went is refused there before anybody asks. One that does not answer is not waited
 * for: a revoked token must not live on because of it. */
static void
handle_sighup(int fd, short what, void *arg)
{
    struct timeval limit = {.tv_usec = RELOAD_WAIT_MS * 1000};

    if (is_stopping())
        return;
    notify_reloading();
    if (reload_files(sup.settings, sup.handover) && drain_under_way())
        drain_cut(); /* they know other numbers, and cannot be told which token went */
    sup.reloading = true;
    if (broker()->pid == 0) { /* the next one starts with it */
        reload_workers();
        return;
    }
    tell_config(broker());
    evtimer_add(sup.on_reload, &limit);
}

/* SIGUSR1: somebody on this host wants to know (master/status_file.h). */
static void
handle_sigusr1(int fd, short what, void *arg)
{
    status_file_write();
}

static bool
is_serving(void)
{
    return !is_stopping();
}

/* SIGUSR2: as long as everything is as it should be, and one thing at a time. */
static void
handle_sigusr2(int fd, short what, void *arg)
{
    struct upgrade u = {.base = sup.base, .program = sup.program, .settings = sup.settings,
                        .handover = sup.handover, .listeners = sup.listeners,
                        .children = sup.children, .n_children = sup.n_children,
                        .kept_token = sup.kept_token, .wanted = is_serving};

    if (is_stopping())
        return;
    if (sup.phase != PHASE_SERVING || drain_under_way())
        log_event(LOG_LEVEL_ERROR, "upgrade-refused",
                  "reason=\"the last one is not over, or the start\"");
    else
        upgrade_begin(&u);
}

static void
handle_sigterm(int fd, short what, void *arg)
{
    if (is_stopping()) { /* asked twice: now */
        kill_all();
        return;
    }
    log_event(LOG_LEVEL_INFO, "stopping", "signal=SIG%s", sigabbrev_np(fd));
    begin_stop(0);
}

static void
handle_watchdog(int fd, short what, void *arg)
{
    notify_send("WATCHDOG=1");
}

/* --- setting up --- */

static int
watch_signal(int number, event_callback_fn handler)
{
    struct event *event = evsignal_new(sup.base, number, handler, NULL);

    return event != NULL && event_add(event, NULL) == 0 ? 0 : -ENOMEM;
}

static int
watch_watchdog(void)
{
    uint32_t ms = notify_watchdog_ms();
    struct timeval interval = {.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};

    if (ms == 0)
        return 0;
    sup.on_watchdog = event_new(sup.base, -1, EV_PERSIST, handle_watchdog, NULL);
    return sup.on_watchdog != NULL && event_add(sup.on_watchdog, &interval) == 0
               ? 0
               : -ENOMEM;
}

static int
set_up_children(void)
{
    for (uint32_t i = 0; i < sup.n_children; i++) {
        struct child *c = &sup.children[i];

        c->role = i == 0 ? CHILD_BROKER : CHILD_WORKER;
        c->number = i;
        c->control = c->output = -1;
        c->on_ready = handle_ready;
        c->on_kill = i == 0 ? handle_kill : NULL;
        c->on_restart = evtimer_new(sup.base, handle_restart, c);
        if (c->on_restart == NULL)
            return -ENOMEM;
        if (i == 0)
            strcpy(c->name, "broker");
        else
            snprintf(c->name, sizeof(c->name), "worker.%u", i % 1000);
    }
    return 0;
}

static int
set_up(void)
{
    sup.base = event_base_new();
    if (sup.base == NULL)
        return -ENOMEM;
    sup.on_deadline = evtimer_new(sup.base, handle_deadline, NULL);
    sup.on_reload = evtimer_new(sup.base, handle_reload_late, NULL);
    if (sup.on_deadline == NULL || sup.on_reload == NULL || set_up_children() != 0 ||
        watch_signal(SIGCHLD, handle_sigchld) != 0 ||
        watch_signal(SIGTERM, handle_sigterm) != 0 ||
        watch_signal(SIGINT, handle_sigterm) != 0 ||
        watch_signal(SIGHUP, handle_sighup) != 0 ||
        watch_signal(SIGUSR1, handle_sigusr1) != 0 ||
        watch_signal(SIGUSR2, handle_sigusr2) != 0 || watch_watchdog() != 0)
        return -ENOMEM;
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

/* The broker first: the workers' channels then wait in its control channel. All of them
 * start side by side. */
static void
start_all(void)
{
    for (uint32_t i = 0; i < sup.n_children && !is_stopping(); i++)
        run_start(&sup.children[i]);
}

/* New clients wait in the listeners' queues until the old broker has left what only one may
 * have: the launches. */
static void
take_over(const struct takeover *t)
{
    int status = drain_begin(sup.base, t, start_all);

    if (status != 0)
        log_die("Cannot watch the children of the program before: %s.", strerror(-status));
    handle_sigchld(SIGCHLD, 0, NULL); /* those that ended while nobody looked */
    upgrade_block(false);
}

int
supervise_run(const struct settings *s, struct handover *h, struct listeners *l,
              const char *program, const struct takeover *t)
{
    int status;

    sup.settings = s;
    sup.handover = h;
    sup.listeners = l;
    sup.program = program;
    sup.kept_token = handover_single_proof(h) != NULL && s->token_file[0] == '\0';
    sup.n_children = 1 + s->workers;
    status = set_up();
    if (status != 0)
        log_die("Cannot set up supervision: %s.", strerror(-status));
    if (t != NULL)
        take_over(t);
    else
        start_all();
    event_base_dispatch(sup.base);
    status_file_close();
    log_event(LOG_LEVEL_INFO, "stopped", "exit_status=%d", sup.exit_status);
    return sup.exit_status;
}
