/*
 * ASSISTANT_START: which OpenCode server a run has, and starting it. One run, one state; all
 * workers' questions about it wait for the same step.
 * Distrusts: the worker (hosted mode, the run ID's form, the wish); everything a container or
 * the proxy says is read elsewhere (keymaker/).
 */
#include "broker/assistant.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/litellm.h"
#include "broker/runs_list.h"
#include "policy/run_id.h"

struct assistants *
assistants_new(struct broker *b)
{
    struct assistants *all = calloc(1, sizeof *all);

    if (all != NULL) {
        all->broker = b;
        LIST_INIT(&all->list);
        assistant_aliases_load(all);
    }
    return all;
}

static void
assistant_free(struct assistant *as)
{
    struct assistant_ask *a;

    while ((a = STAILQ_FIRST(&as->asks)) != NULL) {
        STAILQ_REMOVE_HEAD(&as->asks, link);
        free(a);
    }
    assistant_server_done(as);
    if (as->alias_fd >= 0)
        close(as->alias_fd);
    if (as->old_alias_fd >= 0)
        close(as->old_alias_fd);
    LIST_REMOVE(as, link);
    as->all->n--;
    explicit_bzero(as, sizeof *as);
    free(as);
}

void
assistants_free(struct assistants *all)
{
    if (all == NULL)
        return;
    while (!LIST_EMPTY(&all->list))
        assistant_free(LIST_FIRST(&all->list));
    if (all->stop_timer != NULL)
        event_free(all->stop_timer);
    free(all);
}

struct assistant *
assistant_find(struct assistants *all, const char *run_id)
{
    struct assistant *as;

    LIST_FOREACH(as, &all->list, link)
        if (strcmp(as->run_id, run_id) == 0 && !as->gone)
            return as;
    return NULL;
}

/* The oldest of which nothing would be lost makes room. */
static bool
make_room(struct assistants *all)
{
    struct assistant *as, *oldest = NULL;

    if (all->n < LIMIT_ASSISTANTS)
        return true;
    LIST_FOREACH(as, &all->list, link)
        if (!as->busy && as->child == NULL && !assistant_has_keys(as) &&
            STAILQ_EMPTY(&as->asks))
            oldest = as; /* new ones are put in front */
    if (oldest != NULL)
        assistant_free(oldest);
    return oldest != NULL;
}

struct assistant *
assistant_find_or_make(struct assistants *all, const char *run_id)
{
    struct assistant *as = assistant_find(all, run_id);

    if (as != NULL || !make_room(all))
        return as;
    as = calloc(1, sizeof *as);
    if (as == NULL)
        return NULL;
    as->all = all;
    as->err_fd = as->alias_fd = as->old_alias_fd = -1;
    message_string_set(as->run_id, sizeof as->run_id, run_id);
    STAILQ_INIT(&as->asks);
    LIST_INSERT_HEAD(&all->list, as, link);
    all->n++;
    return as;
}

/* --- deciding ---------------------------------------------------------------------- */

static bool
holds(uint64_t failed_ms)
{
    return failed_ms != 0 && broker_now_ms() - failed_ms < LIMIT_ASSISTANT_CHOICE_MS;
}

/* Does the assistant have the run's own model? */
static bool
has_provider(const struct assistant *as)
{
    if (as->key[0] != '\0')
        return true; /* for ever: contract 9.1 */
    return as->read_known && as->model[0] != '\0' && !holds(as->key_failed_ms) &&
           litellm_has_master_key(as->all->broker->litellm);
}

static bool
someone_begins(const struct assistant *as)
{
    const struct assistant_ask *a;

    STAILQ_FOREACH(a, &as->asks, link)
        if (a->wish == ASSISTANT_BEGIN)
            return true;
    return false;
}

static const char *
reason(const struct assistant *as, bool provider)
{
    if (as->last_error[0] != '\0' && as->child == NULL)
        return as->last_error;
    if (provider)
        return "";
    if (holds(as->read_failed_ms))
        return as->read_error;
    if (holds(as->key_failed_ms))
        return as->key_error;
    return as->model[0] == '\0' ? "The container has no model"
                                : "There is no LITELLM_MASTER_KEY, in the server's environment "
                                  "or in .env";
}

static void
answer(struct assistant *as, const struct assistant_ask *a, enum answer_status status,
       bool provider)
{
    struct answer_assistant answer = {.status = status};

    answer.port = provider ? RUN_PORT_ASSISTANT : RUN_PORT_OPENCODE;
    if (as->child != NULL && !as->ending && as->port == (enum run_port)answer.port) {
        answer.running = 1;
        answer.uptime_ms = (uint32_t)(broker_now_ms() - as->started_ms);
    }
    if (provider)
        message_string_set(answer.model, sizeof answer.model, as->model);
    message_string_set(answer.error, sizeof answer.error, reason(as, provider));
    dispatch_answer(as->all->broker->dispatch, &a->ask, &answer, -1);
}

static void
answer_all(struct assistant *as, enum answer_status status, enum answer_status begin_status)
{
    bool provider = has_provider(as);
    struct assistant_ask *a;

    while ((a = STAILQ_FIRST(&as->asks)) != NULL) {
        STAILQ_REMOVE_HEAD(&as->asks, link);
        answer(as, a, a->wish == ASSISTANT_BEGIN ? begin_status : status, provider);
        free(a);
    }
}

/* Somebody found no server there. Returns false while a step is under way. */
static bool
begin_server(struct assistant *as, enum answer_status *ret_status)
{
    bool provider = has_provider(as);
    enum run_port port = provider ? RUN_PORT_ASSISTANT : RUN_PORT_OPENCODE;

    if (as->ending)
        return false; /* its exit goes on here */
    if (as->child != NULL) {
        if (as->port == port &&
            broker_now_ms() - as->started_ms < LIMIT_ASSISTANT_HUNG_MS)
            return true; /* it is on its way */
        assistant_server_end(as);
        return false;
    }
    if (provider && as->key[0] == '\0') {
        as->busy = true;
        assistant_make_key(as);
        return false;
    }
    /* One that dies at once is not started again for everybody who asks. */
    if ((as->died_young_ms != 0 &&
         broker_now_ms() - as->died_young_ms < LIMIT_ASSISTANT_READY_MS) ||
        assistant_server_start(as, port) != 0)
        *ret_status = ANSWER_FAILED;
    return true;
}

void
assistant_go_on(struct assistant *as)
{
    enum answer_status begin_status = ANSWER_OK;

    as->busy = false;
    if (as->gone && as->child == NULL) {
        answer_all(as, ANSWER_NOT_FOUND, ANSWER_NOT_FOUND);
        assistant_free(as);
        return;
    }
    if (STAILQ_EMPTY(&as->asks))
        return;
    if (!as->read_known && !holds(as->read_failed_ms)) {
        as->busy = true;
        assistant_read_model(as);
        return;
    }
    if (!as->read_known &&
        (as->read_status == ANSWER_NOT_FOUND || as->read_status == ANSWER_AMBIGUOUS)) {
        answer_all(as, as->read_status, as->read_status);
        return;
    }
    if (someone_begins(as) && !begin_server(as, &begin_status))
        return;
    answer_all(as, ANSWER_OK, begin_status);
}

/* Safe: not in hosted mode; the only variable word of every command is a run ID. */
static enum answer_status
act_assistant_start(struct broker *b, const struct ask *ask, const struct request_assistant *q)
{
    struct assistant *as;
    struct assistant_ask *a;

    if (b->assistants->stopped != NULL)
        return ANSWER_BUSY;
    as = assistant_find_or_make(b->assistants, q->run_id);
    if (as == NULL)
        runs_list_look(b->runs_list); /* the run of another one may be gone */
    a = as != NULL ? calloc(1, sizeof *a) : NULL;
    if (a == NULL)
        return ANSWER_BUSY;
    a->ask = *ask;
    a->wish = (enum assistant_wish)q->wish;
    STAILQ_INSERT_TAIL(&as->asks, a, link);
    if (!as->busy)
        assistant_go_on(as);
    return ANSWER_OK; /* and answered there */
}

int
handle_assistant_start(struct broker *b, const struct ask *ask, const void *request,
                       struct channel_packet *packet)
{
    const struct request_assistant *q = request;
    static const uint8_t zero[sizeof q->reserved];
    enum answer_status status;

    (void)packet;
    if (!message_string_valid(q->run_id, sizeof q->run_id) ||
        memcmp(q->reserved, zero, sizeof zero) != 0 || q->wish < ASSISTANT_CHOOSE ||
        q->wish >= ASSISTANT_WISHES)
        return -EBADMSG;
    status = b->config.hosted || !policy_run_id_valid(q->run_id, strlen(q->run_id))
                 ? ANSWER_REFUSED
                 : act_assistant_start(b, ask, q);
    if (status != ANSWER_OK)
        dispatch_answer_status(b->dispatch, ask, status);
    return 0;
}
