/* A worker: parses what strangers send, holds nothing but what it was handed. */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/channel.h"
#include "common/control.h"
#include "common/log.h"
#include "common/sandbox.h"
#include "common/scoreboard.h"
#include "worker/broker_link.h"
#include "worker/conn.h"
#include "worker/launches.h"
#include "worker/page.h"
#include "worker/peers.h"
#include "worker/routes.h"
#include "worker/server.h"
#include "worker/tokens.h"
#include "worker/turns.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define STOP_CHECK_S 0.05
#define STOP_MARGIN_MS 1000u /* leave by ourselves before the master's SIGKILL */
#define MAPPED_FROM (4 * 1024 * 1024) /* bytes; a larger block grows without a copy, always:
                                         malloc would put the next ones of its size elsewhere */
#define SPARE_FDS 64u        /* beside connections: broker files, pipes, epoll, channels */

static struct {
    struct worker_config config;
    struct ev_loop *loop;
    ev_io control;
    ev_timer stop_check, alive;
    double stop_by_s; /* 0: no limit (draining) */
    bool stopping;
    char role[32];
} worker;

const struct worker_config *
worker_config(void)
{
    return &worker.config;
}

struct ev_loop *
worker_loop(void)
{
    return worker.loop;
}

double
worker_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

bool
worker_stopping(void)
{
    return worker.stopping;
}

/* --- the end ------------------------------------------------------------------------------ */

static void
on_stop_check(struct ev_loop *loop, ev_timer *timer, int events)
{
    if (peers_n_slots() == 0 || (worker.stop_by_s > 0 && worker_now_s() > worker.stop_by_s))
        ev_break(loop, EVBREAK_ALL);
}

/* Accept nothing new and leave when the last connection is gone. */
static void
finish(unsigned limit_ms)
{
    if (limit_ms > 0)
        worker.stop_by_s = worker_now_s() + limit_ms / 1000.0;
    if (worker.stopping)
        return;
    worker.stopping = true;
    server_stop();
    ev_timer_init(&worker.stop_check, on_stop_check, STOP_CHECK_S, STOP_CHECK_S);
    ev_timer_start(worker.loop, &worker.stop_check);
}

/* --- the master's words ----------------------------------------------------------- */

static void
take_config(struct channel_packet *packet)
{
    struct worker_config config;
    int fd = packet->fds[0];

    packet->fds[0] = -1; /* the reader closes it */
    if (handoff_read_config(fd, &config, sizeof(config)) < 0) {
        log_event(LOG_LEVEL_ERROR, "reload", "reason=\"not a configuration\"");
        return;
    }
    /* What was fixed at start stays: numbers, listeners, caps. */
    config.number = worker.config.number;
    config.n_workers = worker.config.n_workers;
    config.n_listeners = worker.config.n_listeners;
    config.max_connections = worker.config.max_connections;
    worker.config = config;
    log_event(LOG_LEVEL_INFO, "reload", "tokens=%u origins=%u", config.n_tokens,
              config.n_origins);
    tokens_reloaded();
}

static void
take_word(struct channel_packet *packet)
{
    struct control_head head;

    if (packet->len != sizeof(head))
        return;
    memcpy(&head, packet->bytes, sizeof(head));
    switch (head.type) {
    case CONTROL_CHANNEL:
        if (packet->n_fds == 1) {
            broker_link_replace(packet->fds[0]);
            packet->fds[0] = -1;
        }
        break;
    case CONTROL_CONFIG:
        if (packet->n_fds == 1)
            take_config(packet);
        break;
    case CONTROL_STOP:
        ws_close_all("Server shutting down");
        finish(LIMIT_STOP_MS - STOP_MARGIN_MS);
        break;
    case CONTROL_DRAIN:
        ws_close_all("Server upgrading");
        finish(LIMIT_DRAIN_MS - STOP_MARGIN_MS);
        break;
    default:
        log_event(LOG_LEVEL_ERROR, "control", "unknown=%u", head.type);
    }
}

static void
on_control(struct ev_loop *loop, ev_io *io, int events)
{
    struct channel_packet packet;
    int error = channel_receive(HANDOFF_CONTROL, &packet);

    if (error == -EAGAIN)
        return;
    if (error < 0)
        _exit(1); /* without a master nobody restarts, reloads or stops us */
    take_word(&packet);
    channel_packet_done(&packet);
}

static void
tell_master(enum control_type type, uint32_t value)
{
    struct control_head head = {.type = type, .value = value};

    if (channel_send(HANDOFF_CONTROL, &head, sizeof(head), NULL, 0) < 0)
        log_die("the control channel does not take a message");
}

/* One that is not taken is followed by the next. */
static void
on_alive(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct control_head head = {.type = CONTROL_ALIVE};

    (void)channel_send(HANDOFF_CONTROL, &head, sizeof(head), NULL, 0);
}

/* --- the start ------------------------------------------------------------------------------ */

static void
take_what_was_handed_down(void)
{
    int error = handoff_read_config(HANDOFF_CONFIG, &worker.config, sizeof(worker.config));

    if (error < 0) {
        dprintf(STDERR_FILENO, "this program is started by ssebench-webui only\n");
        exit(1);
    }
    snprintf(worker.role, sizeof(worker.role), "worker.%u", worker.config.number);
    log_init(worker.role, HANDOFF_CONTROL, worker.config.log_level);
    error = scoreboard_map(HANDOFF_SCOREBOARD, worker.config.n_workers + 1,
                           worker.config.number - 1);
    if (error < 0)
        log_die("scoreboard: %s", strerror(-error));
}

/* The terminal's Ctrl-C and a service manager's SIGTERM reach the whole group: when to go is
 * the master's word. A client that is gone is an error of write. */
static void
ignore_signals(void)
{
    static const int IGNORED[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < sizeof(IGNORED) / sizeof(IGNORED[0]); i++)
        signal(IGNORED[i], SIG_IGN);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        log_die("PR_SET_PDEATHSIG: %s", strerror(errno));
}

static int
compare_nothing(const void *a, const void *b)
{
    return 0;
}

/* What the C library asks of the system only once: it must do so before the sandbox. */
static void
warm_up_libc(void)
{
    static char items[2][4096];
    time_t now = time(NULL);
    struct tm tm;

    gmtime_r(&now, &tm);                                     /* reads the zone file */
    qsort(items, 2, sizeof(items[0]), compare_nothing); /* asks how much memory there is */
}

/* The loop's own way out, abort(), is a call that the sandbox forbids. */
static void *
loop_memory(void *old, long size)
{
    void *memory = size > 0 ? realloc(old, (size_t)size) : NULL;

    if (size <= 0)
        free(old);
    else if (memory == NULL)
        log_die("no memory for the loop");
    return memory;
}

/* Everything that opens files or loads code, before that becomes impossible. */
static void
set_up(void)
{
    int error;

    warm_up_libc();
    ev_set_allocator(loop_memory);
    mallopt(M_MMAP_THRESHOLD, MAPPED_FROM);
    mallopt(M_TRIM_THRESHOLD, 2 * MAPPED_FROM);
    worker.loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (!worker.loop)
        log_die("no event loop");
    if ((error = page_init(worker.config.base_path)) < 0)
        log_die("page: %s", strerror(-error));
    if ((error = ws_init(worker.loop)) < 0)
        log_die("WebSockets: %s", strerror(-error));
    if ((error = server_init(worker.loop, &worker.config)) < 0)
        log_die("listener: %s", strerror(-error));
    conn_init(worker.loop);
    launches_init();
    broker_link_init(worker.loop, HANDOFF_CHANNEL);
    ev_io_init(&worker.control, on_control, HANDOFF_CONTROL, EV_READ);
    ev_io_start(worker.loop, &worker.control);
}

static uint32_t
lock_down(void)
{
    struct sandbox_worker s = {
        .drop_uid = worker.config.drop_uid,
        .drop_gid = worker.config.drop_gid,
        .max_fds = worker.config.max_connections + SPARE_FDS,
    };
    uint32_t fences = 0;
    int error = sandbox_worker_enter(&s, &fences);

    if (error < 0)
        log_die("sandbox: %s", strerror(-error));
    return fences;
}

int
main(int argc, char **argv)
{
    uint32_t fences;

    if (argc == 2 && strcmp(argv[1], "--routes") == 0)
        return routes_dump();
    ignore_signals();
    take_what_was_handed_down();
    set_up();
    fences = lock_down();
    tell_master(CONTROL_FENCES, fences);
    turns_watch(worker.loop);
    ev_timer_init(&worker.alive, on_alive, LIMIT_ALIVE_MS / 1e3, LIMIT_ALIVE_MS / 1e3);
    ev_timer_start(worker.loop, &worker.alive);
    server_start();
    tell_master(CONTROL_READY, 0);
    ev_run(worker.loop, 0);
    _exit(0);
}
