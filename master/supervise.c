/* Starting, watching and restarting the broker and the workers, and what signals ask for. */
#include "master/supervise.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/monotonic.h"
#include "master/children.h"
#include "master/drain.h"
#include "master/greeting.h"
#include "master/notify.h"
#include "master/reload.h"
#include "master/start.h"
#include "master/status_file.h"
#include "master/stop.h"
#include "master/upgrade.h"

static struct supervisor {
    struct event_base *base;
    const struct settings *settings;
    struct handover *handover;
    struct listeners *listeners;
    const char *program; /* where an upgrade finds the next one */
    bool kept_token;
    bool started; /* every child was ready once */
    struct children children;
    struct event *on_watchdog;
} sup;

/* --- starting and restarting --- */

__attribute__((format(printf, 1, 2))) static void
give_up(const char *format, ...)
{
    va_list args;

    if (stop_under_way())
        return;
    fflush(stdout);
    fprintf(stderr, "[Server] ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    stop_begin(1);
}

static void
restart_later(struct child *c, const char *how, uint64_t lived_ms)
{
    struct timeval delay;
    uint32_t delay_ms = 0;

    if (!restart_note(&c->restart, monotonic_ms(), lived_ms, &delay_ms)) {
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
    else if (!sup.started)
        give_up("Cannot start %s: %s.", c->name, strerror(error));
    else
        restart_later(c, strerror(error), 0);
}

static void
run_start(struct child *c)
{
    int channel = -1;
    int status = c->role == CHILD_WORKER ? children_link(&sup.children, c, &channel) : 0;

    if (status == 0)
        status = start_child(c, sup.base, sup.handover, sup.listeners, channel);
    if (channel >= 0)
        close(channel);
    if (status != 0) {
        handle_failed_start(c, -status);
        return;
    }
    log_event(LOG_LEVEL_INFO, "child-started", "child=%s pid=%d", c->name, (int)c->pid);
    if (c->role == CHILD_BROKER)
        children_link_all(&sup.children);
}

static void
handle_restart(int fd, short what, void *arg)
{
    if (!stop_under_way())
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
    bool asked = stop_under_way() && WIFEXITED(status) && WEXITSTATUS(status) == 0;

    /* A call that the filter forbids ends a worker by SIGSYS; its last line, relayed
     * before this one, names the call (common/sandbox_seccomp.c). */
    log_event(asked ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "child-ended",
              "child=%s pid=%d how=%s", c->name, (int)pid, log_quote(how, strlen(how)));
}

static void
handle_end(struct child *c, int status)
{
    uint64_t lived_ms = c->ready ? monotonic_ms() - c->ready_ms : 0;
    pid_t pid = c->pid;
    char how[64];

    describe_end(status, how, sizeof(how));
    child_detach(c);
    log_end(c, pid, status, how);
    if (stop_under_way())
        return;
    if (!sup.started && WIFEXITED(status))
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
        struct child *c = children_find(&sup.children, pid);

        if (WIFSTOPPED(status)) {
            log_event(LOG_LEVEL_WARNING, "child-stopped", "pid=%d signal=SIG%s action=continue",
                      (int)pid, sigabbrev_np(WSTOPSIG(status)));
            kill(pid, SIGCONT); /* it serves, or it is killed */
        } else if (c != NULL)
            handle_end(c, status);
        else if (!drain_take_end(pid, status))
            upgrade_take_end(pid, status);
    }
    stop_continue();
}

/* --- serving --- */

static void
handle_ready(struct child *c)
{
    log_event(LOG_LEVEL_DEBUG, "child-ready", "child=%s", c->name);
    if (c->role == CHILD_BROKER)
        reload_broker_ready();
    if (sup.started || stop_under_way())
        return;
    for (uint32_t i = 0; i < sup.children.n; i++)
        if (!sup.children.item[i].ready)
            return;
    sup.started = true;
    greeting_print(sup.listeners, sup.handover->worker.base_path, sup.children.item,
                   sup.children.n);
    notify_send("READY=1");
}

/* The broker read something from this worker that no worker of ours says (design R3).
 */
static void
handle_kill(uint32_t number)
{
    if (number == 0 || number >= sup.children.n || sup.children.item[number].pid == 0)
        return;
    log_event(LOG_LEVEL_ERROR, "worker-killed", "child=%s reason=broker_asked",
              sup.children.item[number].name);
    kill(sup.children.item[number].pid, SIGKILL);
}

static void
handle_sighup(int fd, short what, void *arg)
{
    if (!stop_under_way())
        reload_begin();
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
    return !stop_under_way();
}

/* SIGUSR2: as long as everything is as it should be, and one thing at a time. */
static void
handle_sigusr2(int fd, short what, void *arg)
{
    struct upgrade u = {.base = sup.base, .program = sup.program, .settings = sup.settings,
                        .handover = sup.handover, .listeners = sup.listeners,
                        .children = sup.children.item, .n_children = sup.children.n,
                        .kept_token = sup.kept_token, .wanted = is_serving};

    if (stop_under_way())
        return;
    if (!sup.started || drain_under_way())
        log_event(LOG_LEVEL_ERROR, "upgrade-refused",
                  "reason=\"the last one is not over, or the start\"");
    else
        upgrade_begin(&u);
}

static void
handle_sigterm(int fd, short what, void *arg)
{
    if (stop_under_way()) { /* asked twice: now */
        stop_kill();
        return;
    }
    log_event(LOG_LEVEL_INFO, "stopping", "signal=SIG%s", sigabbrev_np(fd));
    stop_begin(0);
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
set_up_children(uint32_t n_workers)
{
    int status = children_init(&sup.children, sup.base, n_workers, handle_restart);

    for (uint32_t i = 0; i < sup.children.n; i++)
        sup.children.item[i].on_ready = handle_ready;
    children_broker(&sup.children)->on_kill = handle_kill;
    return status;
}

static int
set_up(void)
{
    sup.base = event_base_new();
    if (sup.base == NULL || set_up_children(sup.settings->workers) != 0 ||
        stop_init(sup.base, &sup.children, sup.listeners) != 0 ||
        reload_init(sup.base, sup.settings, sup.handover, &sup.children) != 0 ||
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
    for (uint32_t i = 0; i < sup.children.n && !stop_under_way(); i++)
        run_start(&sup.children.item[i]);
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
    status = set_up();
    if (status != 0)
        log_die("Cannot set up supervision: %s.", strerror(-status));
    if (t != NULL)
        take_over(t);
    else
        start_all();
    event_base_dispatch(sup.base);
    status_file_close();
    log_event(LOG_LEVEL_INFO, "stopped", "exit_status=%d", stop_exit_status());
    return stop_exit_status();
}
