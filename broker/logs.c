/*
 * RUN_LOGS and CHILD_END: a follower writes into a pipe whose other end the worker holds, so
 * not one byte of a run's output passes through the broker.
 * Distrusts: the worker (it may end only what it started) and the CLI.
 */
#include "broker/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/child.h"
#include "broker/dispatch.h"
#include "common/limits.h"
#include "common/log.h"
#include "policy/run_id.h"

struct follower {
    struct logs *logs;
    LIST_ENTRY(follower) link;
    uint64_t id;
    uint64_t peer;
    struct child *child;
    bool unwanted; /* ended by the worker or with it: nobody to tell */
};

struct logs {
    struct broker *broker;
    LIST_HEAD(, follower) list;
    unsigned n_followers;
    uint64_t last_id;
};

struct logs *
logs_new(struct broker *b)
{
    struct logs *logs = calloc(1, sizeof *logs);

    if (logs == NULL)
        return NULL;
    logs->broker = b;
    logs->last_id = b->epoch; /* a number from another broker names nothing here */
    LIST_INIT(&logs->list);
    return logs;
}

static void
follower_free(struct follower *f)
{
    LIST_REMOVE(f, link);
    f->logs->n_followers--;
    free(f);
}

void
logs_free(struct logs *logs)
{
    if (logs == NULL)
        return;
    while (!LIST_EMPTY(&logs->list))
        follower_free(LIST_FIRST(&logs->list));
    free(logs);
}

static void
on_exit_status(void *ctx, int exit_status)
{
    struct follower *f = ctx;
    struct event_child e = {.child = f->id, .exit_status = exit_status};

    if (!f->unwanted)
        dispatch_tell(f->logs->broker->dispatch, f->peer, MESSAGE_EVENT_CHILD, &e);
    follower_free(f);
}

void
logs_end_peer(struct logs *logs, uint64_t peer)
{
    struct follower *f;

    LIST_FOREACH(f, &logs->list, link) {
        if (f->peer != peer || f->unwanted)
            continue;
        f->unwanted = true;
        child_end(f->child);
    }
}

/* Followers that are being ended still count: they are processes. */
static bool
may_follow(const struct logs *logs, uint64_t peer)
{
    const struct follower *f;
    unsigned n = 0;

    LIST_FOREACH(f, &logs->list, link)
        n += f->peer == peer;
    return logs->n_followers < LIMIT_FOLLOWERS && n < LIMIT_FOLLOWERS_PER_WORKER;
}

/* Safe: the only variable word is a run ID; the worker gets the reading end of a pipe that
 * only this follower writes to. Returns the pipe's reading end or -errno. */
static int
act_run_logs(struct logs *logs, const struct ask *ask, const char *run_id, bool once,
             uint64_t *ret_id)
{
    const char *const following[] = {"runs", "logs", "--follow", run_id, NULL};
    const char *const reading[] = {"runs", "logs", run_id, NULL};
    struct follower *f;
    char error[LIMIT_CLI_ERROR];
    int fds[2], r;

    if (!may_follow(logs, ask->peer))
        return -EBUSY;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -EBUSY;
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    f = calloc(1, sizeof *f);
    if (f == NULL) {
        r = -ENOMEM;
        goto out;
    }
    *f = (struct follower){.logs = logs, .id = ++logs->last_id, .peer = ask->peer};
    LIST_INSERT_HEAD(&logs->list, f, link);
    logs->n_followers++;
    r = child_start(logs->broker->children, once ? reading : following, fds[1], fds[1], on_exit_status, f,
                    &f->child, error, sizeof error);
    if (r < 0) {
        log_event(LOG_LEVEL_WARNING, "logs-not-followed", "reason=%s",
                  log_quote(error, strlen(error)));
        follower_free(f);
    } else {
        *ret_id = f->id;
    }
out:
    close(fds[1]);
    if (r < 0)
        close(fds[0]);
    return r < 0 ? r : fds[0];
}

int
handle_run_logs(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet)
{
    const struct request_run_logs *q = request;
    static const uint8_t zero[sizeof q->reserved];
    struct answer_run_logs a = {.status = ANSWER_OK};
    int fd = -1;

    (void)packet;
    if (!message_string_valid(q->run_id, sizeof q->run_id) || q->once > 1 ||
        memcmp(q->reserved, zero, sizeof zero) != 0)
        return -EBADMSG;
    if (!policy_run_id_valid(q->run_id, strlen(q->run_id))) {
        a.status = ANSWER_REFUSED;
    } else {
        fd = act_run_logs(b->logs, ask, q->run_id, q->once == 1, &a.child);
        if (fd < 0)
            a.status = fd == -EBUSY || fd == -ENOMEM || fd == -EAGAIN ? ANSWER_BUSY
                                                                      : ANSWER_FAILED;
    }
    dispatch_answer(b->dispatch, ask, &a, fd < 0 ? -1 : fd);
    return 0;
}

int
handle_child_end(struct broker *b, const struct ask *ask, const void *request,
                 struct channel_packet *packet)
{
    const struct request_child_end *q = request;
    enum answer_status status = ANSWER_NOT_FOUND; /* it may have ended by itself */
    struct follower *f;

    (void)packet;
    LIST_FOREACH(f, &b->logs->list, link) {
        if (f->id != q->child || f->peer != ask->peer || f->unwanted)
            continue;
        f->unwanted = true;
        child_end(f->child);
        status = ANSWER_OK;
        break;
    }
    dispatch_answer_status(b->dispatch, ask, status);
    return 0;
}
