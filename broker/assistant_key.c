/*
 * What the assistant's server is given: the container's model, and a key of the proxy for it.
 * Distrusts: the container and the proxy; their words go to the key maker unread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "broker/assistant.h"
#include "broker/broker.h"
#include "broker/cli.h"
#include "broker/litellm.h"
#include "common/log.h"

/* --- the model ----------------------------------------------------------------------- */

static void
read_failed(struct assistant *as, enum answer_status status, const char *why)
{
    as->read_failed_ms = broker_now_ms();
    as->read_status = status;
    message_string_set(as->read_error, sizeof as->read_error, why);
    assistant_go_on(as);
}

static void
on_read(void *ctx, const struct keymaker_answer *answer)
{
    struct assistant *as = ctx;

    if (!answer->done) {
        read_failed(as, ANSWER_FAILED, answer->error);
        return;
    }
    as->read_known = true;
    as->seen_ms = broker_now_ms();
    as->read_failed_ms = 0;
    memcpy(as->base_url, answer->base_url, sizeof as->base_url);
    memcpy(as->model, answer->model, sizeof as->model);
    assistant_go_on(as);
}

/* The bytes are carried, not read. */
static int
give_to_reader(struct assistant *as, const struct cli_result *result)
{
    struct keymaker_order order = {.task = KEYMAKER_READ};

    if (result->size > sizeof order.printed)
        return -EMSGSIZE;
    order.printed_len = (uint32_t)result->size;
    if (pread(result->output_fd, order.printed, result->size, 0) != (ssize_t)result->size)
        return -EIO;
    return litellm_order(as->all->broker->litellm, &order, on_read, as);
}

static void
on_printed(void *ctx, struct cli_result *result)
{
    struct assistant *as = ctx;
    enum answer_status status = ANSWER_FAILED;

    if (result->outcome == CLI_EXITED && result->exit_status == 0) {
        if (give_to_reader(as, result) != 0)
            read_failed(as, ANSWER_FAILED, "The container's model cannot be read");
        return;
    }
    if (result->outcome == CLI_EXITED && result->exit_status == 3)
        status = ANSWER_NOT_FOUND;
    else if (result->outcome == CLI_EXITED && result->exit_status == 4)
        status = ANSWER_AMBIGUOUS;
    read_failed(as, status, result->error);
}

void
assistant_read_model(struct assistant *as)
{
    /* One line for each name, blank when it is unset. The values are never on this line. */
    const char *const args[] = {"runs", "exec", as->run_id, "--", "sh", "-c",
                                "for n; do printenv \"$n\" || echo; done", "sh",
                                "SSE_BASE_URL", "SSE_MODEL_NAME", NULL};
    struct cli_call call = {.args = args, .fn = on_printed, .ctx = as};
    char error[LIMIT_CLI_ERROR];

    if (cli_start(as->all->broker->cli, &call, error) != 0)
        read_failed(as, ANSWER_FAILED, error);
}

/* --- the key ----------------------------------------------------------------------------- */

static void
key_failed(struct assistant *as, const char *why)
{
    as->key_failed_ms = broker_now_ms();
    snprintf(as->key_error, sizeof as->key_error, "%s", why);
    litellm_redact_master(as->all->broker->litellm, as->key_error);
    log_event(LOG_LEVEL_WARNING, "assistant-key-not-made", "run=%s reason=%s", as->run_id,
              log_quote(as->key_error, strlen(as->key_error)));
    assistant_go_on(as);
}

static void
on_made(void *ctx, const struct keymaker_answer *answer)
{
    struct assistant *as = ctx;

    if (!answer->done || answer->key[0] == '\0' || answer->config[0] == '\0') {
        key_failed(as, answer->error);
        return;
    }
    memcpy(as->key, answer->key, sizeof as->key);
    memcpy(as->config, answer->config, sizeof as->config);
    log_event(LOG_LEVEL_INFO, "assistant-key-made", "run=%s alias=%s", as->run_id, as->alias);
    as->alias_fd = assistant_alias_keep(as);
    if (as->gone)
        assistant_revoke_keys(as, NULL, NULL);
    assistant_go_on(as);
}

void
assistant_make_key(struct assistant *as)
{
    struct keymaker_order order = {.task = KEYMAKER_MAKE};
    uint32_t random = 0;
    int r = getrandom(&random, sizeof random, 0) == sizeof random ? 0 : -EIO;

    /* No server is up, so nobody uses the key of a broker before us. */
    assistant_revoke_keys(as, NULL, NULL);
    snprintf(as->alias, sizeof as->alias, "webui-assistant-%.12s-%08x", as->run_id, random);
    memcpy(order.base_url, as->base_url, sizeof order.base_url);
    memcpy(order.model, as->model, sizeof order.model);
    memcpy(order.alias, as->alias, sizeof order.alias);
    if (r == 0)
        r = litellm_order(as->all->broker->litellm, &order, on_made, as);
    if (r != 0)
        key_failed(as, r == -EBUSY ? "Too many keys are being made: try again"
                                   : "The key maker cannot be started");
}

/* --- its end -------------------------------------------------------------------------------- */

/* Outlives the assistant it belonged to. */
struct revocation {
    struct assistants *all;
    char run_id[MESSAGE_ID_SIZE];
    char alias[KEYMAKER_ALIAS_SIZE];
    int alias_fd; /* the name's locked file, or -1 */
    void (*done)(void *ctx);
    void *ctx;
};

static void
tell_revoked(const struct revocation *r, const char *why)
{
    if (why == NULL)
        log_event(LOG_LEVEL_INFO, "assistant-key-revoked", "run=%s alias=%s", r->run_id,
                  r->alias);
    else
        log_event(LOG_LEVEL_WARNING, "assistant-key-not-revoked", "run=%s alias=%s reason=%s",
                  r->run_id, r->alias, log_quote(why, strlen(why)));
}

/* One that could not be revoked keeps its name on disk: the next end tries again. */
static void
on_revoked(void *ctx, const struct keymaker_answer *answer)
{
    struct revocation *r = ctx;

    tell_revoked(r, answer->done ? NULL : answer->error);
    if (answer->done)
        assistant_alias_drop(r->all, r->alias);
    if (r->alias_fd >= 0)
        close(r->alias_fd);
    if (r->done != NULL)
        r->done(r->ctx);
    free(r);
}

/* `key` "": by its alias alone. Takes `alias_fd`. */
static unsigned
revoke_one(struct assistant *as, const char *key, const char *alias, int alias_fd,
           void (*done)(void *ctx), void *ctx)
{
    struct keymaker_order order = {.task = KEYMAKER_REVOKE};
    struct revocation *r = calloc(1, sizeof *r);

    if (r == NULL) {
        if (alias_fd >= 0)
            close(alias_fd);
        return 0;
    }
    r->alias_fd = alias_fd;
    message_string_set(order.key, sizeof order.key, key);
    message_string_set(order.alias, sizeof order.alias, alias);
    message_string_set(r->alias, sizeof r->alias, alias);
    message_string_set(r->run_id, sizeof r->run_id, as->run_id);
    r->all = as->all;
    r->done = done;
    r->ctx = ctx;
    if (litellm_order(as->all->broker->litellm, &order, on_revoked, r) == 0)
        return 1;
    tell_revoked(r, "the key maker cannot be started");
    if (alias_fd >= 0)
        close(alias_fd);
    free(r);
    return 0;
}

bool
assistant_has_keys(const struct assistant *as)
{
    return as->key[0] != '\0' || as->old_alias[0] != '\0';
}

unsigned
assistant_revoke_keys(struct assistant *as, void (*done)(void *ctx), void *ctx)
{
    const struct litellm *litellm = as->all->broker->litellm;
    unsigned n = 0;

    if (as->key[0] != '\0' && !litellm_is_full(litellm)) {
        n += revoke_one(as, as->key, as->alias, as->alias_fd, done, ctx);
        as->alias_fd = -1;
        explicit_bzero(as->key, sizeof as->key);
        explicit_bzero(as->config, sizeof as->config);
    }
    if (as->old_alias[0] != '\0' && !litellm_is_full(litellm)) {
        n += revoke_one(as, "", as->old_alias, as->old_alias_fd, done, ctx);
        as->old_alias_fd = -1;
        as->old_alias[0] = '\0';
    }
    return n;
}
