/*
 * RUN_STOP and RUN_REMOVE: one CLI call each, its exit status made an answer.
 * Distrusts: the worker (hosted mode and the run ID's form are checked again) and the CLI.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "broker/assistant.h"
#include "broker/broker.h"
#include "broker/cli.h"
#include "broker/connect.h"
#include "broker/dispatch.h"
#include "broker/results_scan.h"
#include "broker/runs_list.h"
#include "policy/run_id.h"

struct run_op {
    struct broker *broker;
    struct ask ask;
    bool removes;
    char run_id[MESSAGE_ID_SIZE];
};

static void
on_done(void *ctx, struct cli_result *result)
{
    struct run_op *op = ctx;
    struct answer_run a = {.status = cli_answer_status(result)};

    message_string_set(a.error, sizeof a.error, result->error);
    if (op->removes && (a.status == ANSWER_OK || a.status == ANSWER_NOT_FOUND))
        assistants_run_removed(op->broker->assistants, op->run_id);
    /* Whatever came of it: what is known of the runs may be wrong now. */
    runs_list_invalidate(op->broker->runs_list);
    results_scan_expire(op->broker->results_scan); /* its summary may have been written last */
    connects_forget(op->broker->connects, op->run_id);
    dispatch_answer(op->broker->dispatch, &op->ask, &a, -1);
    free(op);
}

/* Safe: not in hosted mode; the only variable word is a run ID, which cannot be an option or
 * "latest", and the backend acts on SSEBench's own runs alone (security model). */
static int
act_run_op(struct broker *b, const struct ask *ask, const char *verb, const char *run_id,
           char *error)
{
    const char *const args[] = {"runs", verb, run_id, NULL};
    struct run_op *op = malloc(sizeof *op);
    struct cli_call call = {.args = args, .fn = on_done, .ctx = op};
    int r;

    if (op == NULL)
        return -EBUSY;
    *op = (struct run_op){b, *ask, strcmp(verb, "remove") == 0, ""};
    message_string_set(op->run_id, sizeof op->run_id, run_id);
    r = cli_start(b->cli, &call, error);
    if (r < 0)
        free(op);
    return r;
}

static int
handle(struct broker *b, const struct ask *ask, const struct request_run *q,
       const char *verb)
{
    static const uint8_t zero[sizeof q->reserved];
    struct answer_run a = {.status = ANSWER_OK};
    char error[LIMIT_CLI_ERROR] = "";
    int r;

    if (!message_string_valid(q->run_id, sizeof q->run_id) ||
        memcmp(q->reserved, zero, sizeof zero) != 0)
        return -EBADMSG;
    if (b->config.hosted || !policy_run_id_valid(q->run_id, strlen(q->run_id))) {
        a.status = ANSWER_REFUSED;
    } else {
        r = act_run_op(b, ask, verb, q->run_id, error);
        if (r == 0)
            return 0; /* answered by on_done */
        a.status = r == -EBUSY ? ANSWER_BUSY : ANSWER_FAILED;
    }
    message_string_set(a.error, sizeof a.error, error);
    dispatch_answer(b->dispatch, ask, &a, -1);
    return 0;
}

int
handle_run_stop(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet)
{
    (void)packet;
    return handle(b, ask, request, "stop");
}

int
handle_run_remove(struct broker *b, const struct ask *ask, const void *request,
                  struct channel_packet *packet)
{
    (void)packet;
    return handle(b, ask, request, "remove");
}
