/* Accepting on the inherited listeners, caps, and the wheel of deadlines. */
#include "worker/server.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/handoff.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/scoreboard.h"
#include "worker/http.h"
#include "worker/peers.h"
#include "worker/tokens.h"
#include "worker/worker.h"

#define WHEEL_SLOTS 256u /* half seconds: twice the longest deadline */
#define WHEEL_TICK_S 0.5
#define ACCEPT_RETRY_S 0.1 /* the kernel had no descriptor or memory for us */

static struct {
    struct ev_loop *loop;
    ev_io listeners[HANDOFF_LISTENERS];
    unsigned n_listeners;
    bool started;   /* accepting is wanted */
    bool accepting; /* the watchers are on */
    bool stopped;   /* for good */
    ev_timer retry;
    ev_timer tick;
    struct deadline *wheel[WHEEL_SLOTS];
    unsigned wheel_at;
    double wheel_s; /* when wheel_at was reached */
    struct idle_place idle; /* head of a ring */
} server;

/* --- deadlines ------------------------------------------------------------------------ */

void
server_deadline_clear(struct deadline *d)
{
    if (!d->link)
        return;
    *d->link = d->next;
    if (d->next)
        d->next->link = d->link;
    d->link = NULL;
}

void
server_deadline_set(struct deadline *d, unsigned timeout_ms)
{
    unsigned ticks = timeout_ms / (unsigned)(WHEEL_TICK_S * 1000) + 1;
    struct deadline **head;

    server_deadline_clear(d);
    if (ticks > WHEEL_SLOTS - 2)
        ticks = WHEEL_SLOTS - 2;
    head = &server.wheel[(server.wheel_at + ticks) % WHEEL_SLOTS];
    d->next = *head;
    d->link = head;
    if (d->next)
        d->next->link = &d->next;
    *head = d;
}

static void
on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    /* After a long stall several half seconds have passed at once. */
    while (worker_now_s() - server.wheel_s >= WHEEL_TICK_S) {
        server.wheel_s += WHEEL_TICK_S;
        server.wheel_at = (server.wheel_at + 1) % WHEEL_SLOTS;
        while (server.wheel[server.wheel_at]) {
            struct deadline *d = server.wheel[server.wheel_at];

            server_deadline_clear(d);
            http_deadline_passed(d);
        }
    }
    tokens_tick();
}

/* --- idle connections ------------------------------------------------------------------- */

void
server_idle_add(struct idle_place *place)
{
    if (place->listed)
        return;
    place->prev = server.idle.prev;
    place->next = &server.idle;
    server.idle.prev->next = place;
    server.idle.prev = place;
    place->listed = true;
}

void
server_idle_remove(struct idle_place *place)
{
    if (!place->listed)
        return;
    place->prev->next = place->next;
    place->next->prev = place->prev;
    place->listed = false;
}

/* Close the connection that has been idle longest. False: all are at work. */
static bool
idle_evict(void)
{
    if (server.idle.next == &server.idle)
        return false;
    conn_close_idle(server.idle.next);
    return true;
}

/* --- accepting ------------------------------------------------------------------------------ */

static void
accepting_set(bool on)
{
    if (server.accepting == on)
        return;
    server.accepting = on;
    for (unsigned i = 0; i < server.n_listeners; i++) {
        if (on)
            ev_io_start(server.loop, &server.listeners[i]);
        else
            ev_io_stop(server.loop, &server.listeners[i]);
    }
}

/* A place became free: accept again if the cap was what stopped us. */
static void
on_release(void)
{
    if (server.started && !server.stopped && !ev_is_active(&server.retry) &&
        peers_n_slots() < worker_config()->max_connections)
        accepting_set(true);
}

static void
on_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
    on_release();
}

/* Out of descriptors although below the cap: a level-triggered listener would spin. */
static void
accept_pause(int error)
{
    log_event(LOG_LEVEL_ERROR, "accept", "errno=%d", error);
    accepting_set(false);
    ev_timer_set(&server.retry, ACCEPT_RETRY_S, 0.);
    ev_timer_start(server.loop, &server.retry);
}

/* The peer's address is at its cap: say so in the fewest bytes and close. */
static void
turn_away(int fd)
{
    static const char ANSWER[] =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
        "Connection: close\r\nRetry-After: 5\r\n\r\n";
    static double said_s;

    scoreboard_add(SCORE_LIMITED, 1);
    if (worker_now_s() - said_s > 10) {
        said_s = worker_now_s();
        log_event(LOG_LEVEL_WARNING, "limited", "cap=per-address");
    }
    if (send(fd, ANSWER, sizeof(ANSWER) - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        errno = 0; /* it is being closed either way */
    close(fd);
}

static void
take_connection(int fd, const struct sockaddr_storage *address)
{
    struct connection_slot *slot =
        peers_slot_new(address, worker_config()->max_per_address);

    if (!slot) {
        turn_away(fd);
        return;
    }
    if (http_conn_new(fd, slot) < 0) {
        close(fd);
        connection_slot_release(slot);
    }
}

static void
on_acceptable(struct ev_loop *loop, ev_io *io, int events)
{
    for (unsigned i = 0; i < LIMIT_ACCEPTS_PER_WAKE; i++) {
        struct sockaddr_storage address = {0};
        socklen_t len = sizeof(address);
        int fd;

        if (peers_n_slots() >= worker_config()->max_connections && !idle_evict()) {
            scoreboard_add(SCORE_LIMITED, 1);
            accepting_set(false);
            return;
        }
        fd = accept4(io->fd, (struct sockaddr *)&address, &len,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            take_connection(fd, &address);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            accept_pause(errno);
        if (errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

/* --- life ------------------------------------------------------------------------------------ */

int
server_init(struct ev_loop *loop, const struct worker_config *config)
{
    int one = 1;

    server.loop = loop;
    server.n_listeners = config->n_listeners;
    server.idle.prev = server.idle.next = &server.idle;
    server.wheel_s = worker_now_s();
    peers_init(config->token_key);
    peers_on_release(on_release);
    for (unsigned i = 0; i < server.n_listeners; i++) {
        int fd = HANDOFF_LISTENER + (int)i;
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
            return -errno;
        /* Accepted sockets inherit it; a Unix socket has no such option. */
        if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 &&
            errno != EOPNOTSUPP && errno != ENOPROTOOPT)
            return -errno;
        ev_io_init(&server.listeners[i], on_acceptable, fd, EV_READ);
    }
    ev_timer_init(&server.retry, on_retry, 0., 0.);
    ev_timer_init(&server.tick, on_tick, WHEEL_TICK_S, WHEEL_TICK_S);
    return 0;
}

void
server_start(void)
{
    server.started = true;
    ev_timer_start(server.loop, &server.tick);
    accepting_set(true);
}

void
server_stop(void)
{
    server.stopped = true;
    accepting_set(false);
    for (unsigned i = 0; i < server.n_listeners; i++)
        close(server.listeners[i].fd);
    server.n_listeners = 0;
    for (struct idle_place *at = server.idle.next, *next; at != &server.idle; at = next) {
        next = at->next;
        conn_drain_idle(at);
    }
}
