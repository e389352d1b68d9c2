/* Stopping and removing a run: the CLI's outcome as the contract words it (10.4). */
#include <stdlib.h>

#include "worker/broker_link.h"
#include "worker/exchange.h"
#include "worker/runs.h"
#include "worker/worker.h"

struct action_kind {
    broker_ticket (*ask)(uint16_t token, const char *run_id, broker_answer_fn fn, void *ctx);
    const char *done;   /* answer 200 */
    const char *failed; /* text of the 500 */
};

/* A request that waits for the CLI. */
struct action {
    struct exchange *x; /* NULL: the client went away; the deed goes on */
    const struct action_kind *kind;
};

static void
on_gone(struct exchange *x, void *ctx)
{
    struct action *a = ctx;

    a->x = NULL;
}

static void
answer_done(struct exchange *x, const char *json)
{
    struct buf body;

    buf_init(&body, 0);
    buf_add_str(&body, json);
    exchange_json(x, 200, &body);
}

static void
answer_refused(struct exchange *x)
{
    if (worker_config()->hosted)
        exchange_error(x, 403, "This server is read-only", NULL);
    else if (exchange_token(x) != 0) /* the broker heard first that the token went */
        exchange_error(x, 403, "This token's role does not allow it", NULL);
    else
        exchange_error(x, 404, "Container not found", NULL);
}

static void
answer(struct exchange *x, const struct action_kind *kind, const struct answer_run *a)
{
    if (a == NULL) {
        exchange_error(x, 503, kind->failed,
                       "A part of the server is being restarted: try again");
        return;
    }
    switch ((enum answer_status)a->status) {
    case ANSWER_OK:
    case ANSWER_NOT_FOUND: /* it is gone already: what was asked for holds */
        answer_done(x, kind->done);
        return;
    case ANSWER_AMBIGUOUS:
        exchange_error(x, 409, "More than one run has this ID", NULL);
        return;
    case ANSWER_REFUSED:
        answer_refused(x);
        return;
    case ANSWER_BUSY:
        exchange_error(x, 503, kind->failed, "Too much is under way: try again");
        return;
    case ANSWER_TIMEOUT:
    case ANSWER_TOO_LARGE:
    case ANSWER_FAILED:
    case ANSWER_STATUSES:
        break;
    }
    exchange_error(x, 500, kind->failed, a->error[0] != '\0' ? a->error : NULL);
}

static void
on_answer(void *ctx, const void *answer_bytes, int *fds, unsigned n_fds)
{
    struct action *a = ctx;
    struct exchange *x = a->x;
    const struct action_kind *kind = a->kind;

    free(a);
    runs_expire();
    if (x == NULL)
        return;
    exchange_on_gone(x, NULL, NULL);
    answer(x, kind, answer_bytes);
}

static void
begin(struct exchange *x, const struct action_kind *kind)
{
    struct action *a = calloc(1, sizeof *a);

    if (a == NULL) {
        exchange_error(x, 503, kind->failed, "Out of memory: try again");
        return;
    }
    a->x = x;
    a->kind = kind;
    exchange_on_gone(x, on_gone, a);
    kind->ask(exchange_token(x), exchange_param(x, 0), on_answer, a); /* `a` may be gone now */
}

static const struct action_kind stop = {broker_ask_run_stop, "{\"stopped\":true}",
                                        "Failed to stop container"};
static const struct action_kind remove_run = {broker_ask_run_remove, "{\"removed\":true}",
                                              "Failed to remove container"};

void
handle_container_stop(struct exchange *x)
{
    begin(x, &stop);
}

void
handle_container_remove(struct exchange *x)
{
    begin(x, &remove_run);
}
