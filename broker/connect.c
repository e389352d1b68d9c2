/*
 * RUN_CONNECT: `runs endpoint`, then a connected socket; not one byte goes through it here.
 * Distrusts: the worker (a run ID and one of three ports is all it may say), the CLI's output
 * (an address in numbers and nothing else is taken) and whoever listens there.
 */
#include "broker/connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/cli.h"
#include "broker/dispatch.h"
#include "broker/endpoint_url.h"
#include "common/limits.h"
#include "policy/role.h"
#include "policy/run_id.h"

/* Contract 2.8, 9.2: what can be connected to is what stands here. */
static const char *const port_words[RUN_PORTS] = {
    [RUN_PORT_DAEMON] = "4263",
    [RUN_PORT_OPENCODE] = "4096",
    [RUN_PORT_ASSISTANT] = "4098",
};

struct waiter {
    STAILQ_ENTRY(waiter) link;
    struct ask ask;
};

/* What is known, or being asked, of one run's port. */
struct endpoint {
    TAILQ_ENTRY(endpoint) link; /* oldest first */
    struct connects *all;
    uint32_t port; /* enum run_port */
    bool asking;
    bool forgotten; /* while it was being asked */
    uint64_t known_ms;
    struct sockaddr_storage address;
    char run_id[MESSAGE_ID_SIZE];
    char url[MESSAGE_URL_SIZE];
    STAILQ_HEAD(, waiter) waiters; /* while asking */
};

/* A connection under way. */
struct attempt {
    LIST_ENTRY(attempt) link;
    struct connects *all;
    struct ask ask;
    uint32_t port;
    int fd;
    struct event *event;
    char run_id[MESSAGE_ID_SIZE];
    char url[MESSAGE_URL_SIZE];
};

struct connects {
    struct broker *broker;
    TAILQ_HEAD(endpoints, endpoint) endpoints;
    LIST_HEAD(, attempt) attempts;
    unsigned n_endpoints;
    unsigned n_pending; /* attempts and waiters */
};

struct connects *
connects_new(struct broker *b)
{
    struct connects *all = calloc(1, sizeof *all);

    if (all == NULL)
        return NULL;
    all->broker = b;
    TAILQ_INIT(&all->endpoints);
    LIST_INIT(&all->attempts);
    return all;
}

static void
free_endpoint(struct endpoint *e)
{
    struct waiter *w;

    while ((w = STAILQ_FIRST(&e->waiters)) != NULL) {
        STAILQ_REMOVE_HEAD(&e->waiters, link);
        e->all->n_pending--;
        free(w);
    }
    TAILQ_REMOVE(&e->all->endpoints, e, link);
    e->all->n_endpoints--;
    free(e);
}

static void
free_attempt(struct attempt *at)
{
    LIST_REMOVE(at, link);
    at->all->n_pending--;
    if (at->event != NULL)
        event_free(at->event);
    if (at->fd >= 0)
        close(at->fd);
    free(at);
}

void
connects_free(struct connects *all)
{
    if (all == NULL)
        return;
    while (!LIST_EMPTY(&all->attempts))
        free_attempt(LIST_FIRST(&all->attempts));
    while (!TAILQ_EMPTY(&all->endpoints))
        free_endpoint(TAILQ_FIRST(&all->endpoints));
    free(all);
}

static struct endpoint *
find_endpoint(struct connects *all, const char *run_id, uint32_t port)
{
    struct endpoint *e;

    TAILQ_FOREACH(e, &all->endpoints, link)
        if (e->port == port && strcmp(e->run_id, run_id) == 0)
            return e;
    return NULL;
}

/* One that is being asked has a CLI call that points to it: it goes when that ends. */
static void
drop_endpoint(struct endpoint *e)
{
    if (e->asking)
        e->forgotten = true;
    else
        free_endpoint(e);
}

void
connects_forget(struct connects *all, const char *run_id)
{
    struct endpoint *e, *next;

    for (e = TAILQ_FIRST(&all->endpoints); e != NULL; e = next) {
        next = TAILQ_NEXT(e, link);
        if (strcmp(e->run_id, run_id) == 0)
            drop_endpoint(e);
    }
}

static void
answer_error(struct connects *all, const struct ask *ask, enum answer_status status,
             const char *error)
{
    struct answer_run_connect a = {.status = status};

    message_string_set(a.error, sizeof a.error, error);
    dispatch_answer(all->broker->dispatch, ask, &a, -1);
}

/* --- connecting -------------------------------------------------------------------------- */

static void
attempt_failed(struct attempt *at, enum answer_status status, const char *error)
{
    struct connects *all = at->all;
    struct endpoint *e = find_endpoint(all, at->run_id, at->port);
    struct answer_run_connect a = {.status = status};
    struct ask ask = at->ask;

    message_string_set(a.url, sizeof a.url, at->url);
    message_string_set(a.error, sizeof a.error, error);
    if (e != NULL && !e->asking)
        free_endpoint(e);
    free_attempt(at);
    dispatch_answer(all->broker->dispatch, &ask, &a, -1);
}

static void
attempt_succeeded(struct attempt *at)
{
    struct answer_run_connect a = {.status = ANSWER_OK};
    struct dispatch *dispatch = at->all->broker->dispatch;
    struct ask ask = at->ask;
    int one = 1, fd = at->fd;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    message_string_set(a.url, sizeof a.url, at->url);
    at->fd = -1;
    free_attempt(at);
    dispatch_answer(dispatch, &ask, &a, fd);
}

static void
on_connected(evutil_socket_t fd, short what, void *arg)
{
    struct attempt *at = arg;
    socklen_t len = sizeof(int);
    int error = 0;

    if (what & EV_TIMEOUT)
        attempt_failed(at, ANSWER_TIMEOUT, "Nobody answers at the run's address");
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0)
        attempt_failed(at, ANSWER_FAILED, strerror(error));
    else
        attempt_succeeded(at);
}

/* Safe: the address came from the CLI for this very run, the port is one of three of the
 * container, and no byte is sent. */
static void
act_run_connect(struct connects *all, const struct endpoint *e, const struct ask *ask)
{
    static const struct timeval patience = {LIMIT_CONNECT_MS / 1000,
                                            LIMIT_CONNECT_MS % 1000 * 1000};
    socklen_t len = e->address.ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                                    : sizeof(struct sockaddr_in6);
    struct attempt *at = calloc(1, sizeof *at);

    if (at == NULL) {
        answer_error(all, ask, ANSWER_BUSY, "");
        return;
    }
    *at = (struct attempt){.all = all, .ask = *ask, .port = e->port};
    memcpy(at->run_id, e->run_id, sizeof at->run_id);
    memcpy(at->url, e->url, sizeof at->url);
    LIST_INSERT_HEAD(&all->attempts, at, link);
    all->n_pending++;
    at->fd = socket(e->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (at->fd >= 0)
        at->event = event_new(all->broker->base, at->fd, EV_WRITE, on_connected, at);
    if (at->fd < 0 || at->event == NULL) {
        free_attempt(at);
        answer_error(all, ask, ANSWER_BUSY, "");
    } else if (connect(at->fd, (const struct sockaddr *)&e->address, len) != 0 &&
               errno != EINPROGRESS) {
        attempt_failed(at, ANSWER_FAILED, strerror(errno));
    } else {
        event_add(at->event, &patience);
    }
}

/* --- asking ------------------------------------------------------------------------------ */

static bool
read_url(struct endpoint *e, const struct cli_result *result)
{
    char text[MESSAGE_URL_SIZE];
    ssize_t n = pread(result->output_fd, text, sizeof text, 0);

    if (n <= 0 || (size_t)n >= sizeof text)
        return false;
    text[n] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (endpoint_url_parse(text, &e->address) != 0)
        return false;
    message_string_set(e->url, sizeof e->url, text);
    return true;
}

static void
on_endpoint(void *ctx, struct cli_result *result)
{
    struct endpoint *e = ctx;
    struct connects *all = e->all;
    enum answer_status status = cli_answer_status(result);
    const char *error = result->error;
    struct waiter *w;

    e->asking = false;
    e->known_ms = broker_now_ms();
    if (status == ANSWER_OK && !read_url(e, result)) {
        status = ANSWER_FAILED;
        error = "`ssebench runs endpoint` did not print http://address:port";
    }
    while ((w = STAILQ_FIRST(&e->waiters)) != NULL) {
        struct ask ask = w->ask;

        STAILQ_REMOVE_HEAD(&e->waiters, link);
        all->n_pending--;
        free(w);
        /* A failure at once may forget the endpoint; then it is asked no more of it. */
        e->asking = true;
        if (status == ANSWER_OK)
            act_run_connect(all, e, &ask);
        else
            answer_error(all, &ask, status, error);
        e->asking = false;
    }
    if (status != ANSWER_OK || e->forgotten)
        free_endpoint(e);
}

static int
begin_asking(struct endpoint *e, char *error)
{
    const char *const args[] = {"runs", "endpoint", e->run_id, port_words[e->port], NULL};
    struct cli_call call = {.args = args, .fn = on_endpoint, .ctx = e};

    return cli_start(e->all->broker->cli, &call, error);
}

static struct endpoint *
add_endpoint(struct connects *all, const char *run_id, uint32_t port)
{
    struct endpoint *e = calloc(1, sizeof *e);

    if (e == NULL)
        return NULL;
    if (all->n_endpoints >= LIMIT_ENDPOINTS && !TAILQ_FIRST(&all->endpoints)->asking)
        free_endpoint(TAILQ_FIRST(&all->endpoints));
    e->all = all;
    e->port = port;
    e->asking = true;
    message_string_set(e->run_id, sizeof e->run_id, run_id);
    STAILQ_INIT(&e->waiters);
    TAILQ_INSERT_TAIL(&all->endpoints, e, link);
    all->n_endpoints++;
    return e;
}

static int
add_waiter(struct endpoint *e, const struct ask *ask)
{
    struct waiter *w = malloc(sizeof *w);

    if (w == NULL)
        return -ENOMEM;
    w->ask = *ask;
    STAILQ_INSERT_TAIL(&e->waiters, w, link);
    e->all->n_pending++;
    return 0;
}

static void
connect_or_ask(struct connects *all, const struct ask *ask,
               const struct request_run_connect *q)
{
    struct endpoint *e = find_endpoint(all, q->run_id, q->port);
    char error[LIMIT_CLI_ERROR] = "";
    int r;

    if (all->n_pending >= LIMIT_CONNECTS) {
        answer_error(all, ask, ANSWER_BUSY, "");
        return;
    }
    if (e != NULL && !e->asking && broker_now_ms() - e->known_ms > LIMIT_ENDPOINT_AGE_MS) {
        free_endpoint(e);
        e = NULL;
    }
    if (e != NULL && !e->asking) {
        act_run_connect(all, e, ask);
        return;
    }
    if (e == NULL) {
        e = add_endpoint(all, q->run_id, q->port);
        r = e != NULL ? begin_asking(e, error) : -EBUSY;
        if (r < 0) {
            if (e != NULL)
                free_endpoint(e);
            answer_error(all, ask, r == -EBUSY ? ANSWER_BUSY : ANSWER_FAILED, error);
            return;
        }
    }
    if (add_waiter(e, ask) != 0)
        answer_error(all, ask, ANSWER_BUSY, "");
}

int
handle_run_connect(struct broker *b, const struct ask *ask, const void *request,
                   struct channel_packet *packet)
{
    const struct request_run_connect *q = request;
    static const uint8_t zero[sizeof q->reserved];

    (void)packet;
    if (!message_string_valid(q->run_id, sizeof q->run_id) || q->port == 0 ||
        q->port >= RUN_PORTS || memcmp(q->reserved, zero, sizeof zero) != 0)
        return -EBADMSG;
    if (!policy_run_id_valid(q->run_id, strlen(q->run_id)) ||
        (q->port != RUN_PORT_DAEMON &&
         (b->config.hosted || !policy_role_allows((enum role)ask->role, DEED_ASSISTANT))))
        answer_error(b->connects, ask, ANSWER_REFUSED, "");
    else
        connect_or_ask(b->connects, ask, q);
    return 0;
}
