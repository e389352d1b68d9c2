/* The broker and the workers of the program before this one: they finish, nothing more.
 * They know each other and speak their own version of common/messages.h, so they are never
 * given a channel to anybody new. */
#include "master/drain.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"

static struct {
    uint32_t n;
    struct child children[1 + LIMIT_WORKERS];
    struct event *broker_limit, *worker_limit;
    void (*broker_gone)(void);
} drain;

static void
ignore_ready(struct child *c)
{
}

static struct child *
find(bool is_broker, uint32_t number)
{
    for (uint32_t i = 0; i < drain.n; i++)
        if (drain.children[i].pid > 0 && drain.children[i].number == number &&
            (drain.children[i].role == CHILD_BROKER) == is_broker)
            return &drain.children[i];
    return NULL;
}

/* Their broker's word on one of their workers. */
static void
handle_kill(uint32_t number)
{
    struct child *c = number > 0 ? find(false, number) : NULL;

    if (c == NULL)
        return;
    log_event(LOG_LEVEL_ERROR, "worker-killed", "child=%s reason=broker_asked", c->name);
    kill(c->pid, SIGKILL);
}

static void
kill_them(bool brokers, bool workers, const char *event)
{
    for (uint32_t i = 0; i < drain.n; i++) {
        struct child *c = &drain.children[i];

        if (c->pid > 0 && (c->role == CHILD_BROKER ? brokers : workers)) {
            log_event(LOG_LEVEL_WARNING, event, "child=%s action=kill", c->name);
            kill(c->pid, SIGKILL);
        }
    }
}

static void
on_broker_limit(int fd, short what, void *arg)
{
    kill_them(true, false, "drain-slow");
}

static void
on_worker_limit(int fd, short what, void *arg)
{
    kill_them(false, true, "drain-slow");
}

static int
adopt(struct event_base *base, struct child *c, const struct takeover_child *from)
{
    memset(c, 0, sizeof(*c));
    c->role = from->number == 0 ? CHILD_BROKER : CHILD_WORKER;
    c->number = from->number;
    c->on_ready = ignore_ready;
    c->on_kill = from->number == 0 ? handle_kill : NULL;
    if (from->number == 0)
        strcpy(c->name, "old-broker");
    else
        snprintf(c->name, sizeof(c->name), "old-worker.%u", from->number % 1000);
    fcntl(from->control, F_SETFD, FD_CLOEXEC);
    fcntl(from->output, F_SETFD, FD_CLOEXEC);
    return child_attach(c, base, from->pid, from->control, from->output);
}

static int
set_limits(struct event_base *base)
{
    struct timeval broker = {LIMIT_DRAIN_BROKER_MS / 1000, 0};
    struct timeval worker = {LIMIT_DRAIN_MS / 1000, 0};

    drain.broker_limit = evtimer_new(base, on_broker_limit, NULL);
    drain.worker_limit = evtimer_new(base, on_worker_limit, NULL);
    return drain.broker_limit != NULL && drain.worker_limit != NULL &&
                   evtimer_add(drain.broker_limit, &broker) == 0 &&
                   evtimer_add(drain.worker_limit, &worker) == 0
               ? 0
               : -ENOMEM;
}

int
drain_begin(struct event_base *base, const struct takeover *t, void (*broker_gone)(void))
{
    int status = set_limits(base);

    drain.broker_gone = broker_gone;
    for (uint32_t i = 0; status == 0 && i < t->n_children; i++)
        status = adopt(base, &drain.children[drain.n++], &t->children[i]);
    if (status != 0)
        return status;
    for (uint32_t i = 0; i < drain.n; i++)
        child_tell(&drain.children[i], CONTROL_DRAIN, 0, -1);
    if (find(true, 0) == NULL)
        broker_gone();
    return 0;
}

bool
drain_take_end(pid_t pid, int status)
{
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;

    for (uint32_t i = 0; i < drain.n; i++) {
        struct child *c = &drain.children[i];

        if (c->pid != pid)
            continue;
        child_detach(c);
        log_event(good ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "drained",
                  "child=%s pid=%d whole=%s", c->name, (int)pid, good ? "yes" : "no");
        if (c->role == CHILD_BROKER)
            drain.broker_gone();
        return true;
    }
    return false;
}

bool
drain_under_way(void)
{
    for (uint32_t i = 0; i < drain.n; i++)
        if (drain.children[i].pid > 0)
            return true;
    return false;
}

void
drain_stop(void)
{
    for (uint32_t i = 0; i < drain.n; i++)
        child_tell(&drain.children[i], CONTROL_STOP, 0, -1);
}

void
drain_cut(void)
{
    kill_them(false, true, "drain-cut");
}

void
drain_kill(void)
{
    kill_them(true, true, "drain-slow");
}
