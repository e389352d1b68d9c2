/*
 * Short CLI calls: stdout into a memfd, the last line of stderr as the reason, a deadline.
 * Distrusts: the CLI's output (never looked into, bounded) and its punctuality.
 */
#include "broker/cli.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/child.h"
#include "broker/stderr_tail.h"

#define READ_SIZE 65536u  /* a pipe's capacity */

struct running {
    struct cli *cli;
    LIST_ENTRY(running) link;
    struct child *child;
    struct event *out, *err, *deadline;
    int out_fd, err_fd; /* our ends of the pipes */
    char name[64];      /* first words of the arguments, for messages */
    struct stderr_tail tail;
    unsigned timeout_ms;
    bool counted;
    cli_done_fn fn;
    void *ctx;
    struct cli_result result;
};

struct cli {
    struct broker *broker;
    LIST_HEAD(, running) list;
    unsigned n_counted;
};

struct cli *
cli_new(struct broker *b)
{
    struct cli *cli = calloc(1, sizeof *cli);

    if (cli != NULL) {
        cli->broker = b;
        LIST_INIT(&cli->list);
    }
    return cli;
}

static void
running_free(struct running *run)
{
    if (run->out != NULL)
        event_free(run->out);
    if (run->err != NULL)
        event_free(run->err);
    if (run->deadline != NULL)
        event_free(run->deadline);
    if (run->out_fd >= 0)
        close(run->out_fd);
    if (run->err_fd >= 0)
        close(run->err_fd);
    if (run->result.output_fd >= 0)
        close(run->result.output_fd);
    if (run->counted)
        run->cli->n_counted--;
    LIST_REMOVE(run, link);
    free(run);
}

void
cli_free(struct cli *cli)
{
    if (cli == NULL)
        return;
    while (!LIST_EMPTY(&cli->list))
        running_free(LIST_FIRST(&cli->list));
    free(cli);
}

/* The first failure stands; the group is ended and its exit completes the call. */
static void
give_up(struct running *run, enum cli_outcome outcome)
{
    if (run->result.outcome != CLI_EXITED)
        return;
    run->result.outcome = outcome;
    if (outcome == CLI_TIMEOUT)
        child_end(run->child);
    else
        child_kill(run->child);
}

/* All of it or an error: a memfd is memory. */
static int
append(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -ENOSPC;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Take what is in the pipe, at most a few reads, so that a flood does not keep the loop.
 * Returns false when there is nothing more now or ever. */
static bool
take_output(struct running *run)
{
    char bytes[READ_SIZE];
    ssize_t n = read(run->out_fd, bytes, sizeof bytes);

    if (n == 0)
        event_del(run->out);
    if (n <= 0)
        return false;
    if (run->result.outcome != CLI_EXITED)
        return true; /* given up: let it run dry, keep nothing */
    if (run->result.size + (size_t)n > LIMIT_CLI_OUTPUT)
        give_up(run, CLI_TOO_LARGE);
    else if (append(run->result.output_fd, bytes, (size_t)n) != 0)
        give_up(run, CLI_FAILED);
    else
        run->result.size += (size_t)n;
    return true;
}

static bool
take_error(struct running *run)
{
    ssize_t n = stderr_tail_read(&run->tail, run->err_fd);

    if (n == 0)
        event_del(run->err);
    return n > 0;
}

static void
on_output(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    take_output(arg);
}

static void
on_error(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    take_error(arg);
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    give_up(arg, CLI_TIMEOUT);
}

static void
explain(struct running *run)
{
    struct cli_result *res = &run->result;

    switch (res->outcome) {
    case CLI_EXITED:
        if (res->exit_status == 0)
            res->error[0] = '\0';
        else if (!stderr_tail_line(&run->tail, res->error, sizeof res->error))
            snprintf(res->error, sizeof res->error, "`ssebench %s` ended with status %d",
                     run->name, res->exit_status);
        break;
    case CLI_TIMEOUT:
        snprintf(res->error, sizeof res->error, "`ssebench %s` timed out after %u s",
                 run->name, run->timeout_ms / 1000);
        break;
    case CLI_TOO_LARGE:
        snprintf(res->error, sizeof res->error, "`ssebench %s` printed more than %u MiB",
                 run->name, LIMIT_CLI_OUTPUT / 1024 / 1024);
        break;
    case CLI_FAILED:
        snprintf(res->error, sizeof res->error,
                 "no memory for the output of `ssebench %s`", run->name);
        break;
    }
}

/* What the child wrote before it ended is in the pipes now. Somebody who escaped the group
 * may hold them open: their end is not waited for. */
static void
on_exit_status(void *ctx, int exit_status)
{
    struct running *run = ctx;
    struct cli_result *res = &run->result;
    const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

    for (unsigned i = 0; i < LIMIT_CLI_OUTPUT / READ_SIZE && take_output(run); i++)
        ;
    for (unsigned i = 0; i < READ_SIZE / STDERR_TAIL && take_error(run); i++)
        ;
    res->exit_status = exit_status;
    if (lseek(res->output_fd, 0, SEEK_SET) != 0 ||
        fcntl(res->output_fd, F_ADD_SEALS, seals) != 0)
        res->outcome = CLI_FAILED;
    explain(run);
    run->fn(run->ctx, res);
    running_free(run);
}

/* Our non-blocking end; the child gets a blocking one, as programs expect. */
static int
pipe_from_child(int *ret_ours, int *ret_theirs)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return -errno;
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    *ret_ours = fds[0];
    *ret_theirs = fds[1];
    return 0;
}

static int
watch(struct running *run)
{
    struct event_base *base = run->cli->broker->base;
    struct timeval limit = {run->timeout_ms / 1000, run->timeout_ms % 1000 * 1000};

    run->out = event_new(base, run->out_fd, EV_READ | EV_PERSIST, on_output, run);
    run->err = event_new(base, run->err_fd, EV_READ | EV_PERSIST, on_error, run);
    run->deadline = evtimer_new(base, on_deadline, run);
    if (run->out == NULL || run->err == NULL || run->deadline == NULL ||
        event_add(run->out, NULL) != 0 || event_add(run->err, NULL) != 0 ||
        evtimer_add(run->deadline, &limit) != 0)
        return -ENOMEM;
    return 0;
}

static int
launch(struct running *run, const struct cli_call *call, char *error)
{
    struct children *children = run->cli->broker->children;
    int out = -1, err = -1;
    int r = pipe_from_child(&run->out_fd, &out);

    if (r == 0)
        r = pipe_from_child(&run->err_fd, &err);
    if (r == 0) {
        run->result.output_fd = memfd_create("cli", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (run->result.output_fd < 0)
            r = -errno;
    }
    if (r == 0)
        r = watch(run);
    if (r < 0)
        snprintf(error, LIMIT_CLI_ERROR, "Cannot call the CLI: %s", strerror(-r));
    else if (call->program != NULL)
        r = child_start_program(children, call->program, call->in_fd, out, err, on_exit_status,
                                run, &run->child, error, LIMIT_CLI_ERROR);
    else
        r = child_start(children, call->args, out, err, on_exit_status, run, &run->child, error,
                        LIMIT_CLI_ERROR);
    if (out >= 0)
        close(out);
    if (err >= 0)
        close(err);
    return r;
}

int
cli_start(struct cli *cli, const struct cli_call *call, char *error)
{
    struct running *run;
    int r;

    if (!call->own_bound && cli->n_counted >= LIMIT_CLI_CALLS) {
        snprintf(error, LIMIT_CLI_ERROR, "%u calls of the CLI are running: try again",
                 LIMIT_CLI_CALLS);
        return -EBUSY;
    }
    run = calloc(1, sizeof *run);
    if (run == NULL) {
        snprintf(error, LIMIT_CLI_ERROR, "Cannot call the CLI: %s", strerror(ENOMEM));
        return -ENOMEM;
    }
    *run = (struct running){.cli = cli, .out_fd = -1, .err_fd = -1, .fn = call->fn,
                            .ctx = call->ctx, .counted = !call->own_bound,
                            .timeout_ms = call->timeout_ms != 0 ? call->timeout_ms
                                                                : LIMIT_CLI_MS};
    run->result.output_fd = -1;
    cli->n_counted += run->counted;
    LIST_INSERT_HEAD(&cli->list, run, link);
    snprintf(run->name, sizeof run->name, "%s%s%s", call->args[0],
             call->args[1] != NULL ? " " : "", call->args[1] != NULL ? call->args[1] : "");
    r = launch(run, call, error);
    if (r < 0)
        running_free(run);
    return r;
}

enum answer_status
cli_answer_status(const struct cli_result *result)
{
    if (result->outcome == CLI_TIMEOUT)
        return ANSWER_TIMEOUT;
    if (result->outcome != CLI_EXITED)
        return ANSWER_FAILED;
    switch (result->exit_status) { /* contract 2.2 */
    case 0:
        return ANSWER_OK;
    case 3:
        return ANSWER_NOT_FOUND;
    case 4:
        return ANSWER_AMBIGUOUS;
    default:
        return ANSWER_FAILED;
    }
}
