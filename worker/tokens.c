/* Tokens of the configuration in force; connections that outlived theirs. */
#include "worker/tokens.h"

#include <ev.h>
#include <string.h>

#include "common/hash.h"
#include "common/log.h"
#include "policy/token.h"
#include "policy/token_list.h"
#include "worker/broker_as.h"
#include "worker/conn.h"
#include "worker/worker.h"
#include "worker/ws.h"

static int64_t
now_s(void)
{
    return (int64_t)ev_now(worker_loop());
}

/* Every entry is compared in full, whichever it is: the time tells nothing of the list. */
const struct handoff_token *
tokens_match(const char *token, size_t len)
{
    const struct worker_config *c = worker_config();
    const struct handoff_token *found = NULL;
    uint8_t proof[HASH_SIZE], digest[HASH_SIZE];

    hash_sha256(token, len, proof);
    hash_keyed(c->token_key, proof, sizeof proof, digest);
    for (uint32_t i = 0; i < c->n_tokens; i++)
        if (policy_digest_equal(c->tokens[i].digest, digest))
            found = &c->tokens[i];
    if (found != NULL && !tokens_expired(found))
        broker_as_know(found->number, proof);
    explicit_bzero(proof, sizeof proof);
    return found;
}

const struct handoff_token *
tokens_find(uint16_t number)
{
    const struct worker_config *c = worker_config();

    return handoff_token_by_number(c->tokens, c->n_tokens, number);
}

bool
tokens_expired(const struct handoff_token *token)
{
    return policy_token_expired(token->expires_s, now_s());
}

/* May a connection that this number let in stay? 0 (nothing of the API so far): always. */
static bool
is_valid(uint16_t number)
{
    const struct handoff_token *token;

    if (number == 0 || number == TOKENS_NONE)
        return number == 0 || !worker_config()->has_token;
    token = tokens_find(number);
    return token != NULL && !tokens_expired(token);
}

enum role
tokens_role(uint16_t number)
{
    const struct handoff_token *token = tokens_find(number);

    if (number == TOKENS_NONE)
        return ROLE_FULL;
    return token != NULL ? (enum role)token->role : ROLE_NONE;
}

static void
sweep(void)
{
    unsigned n;

    broker_as_forget(is_valid);
    n = ws_close_tokens(is_valid, TOKENS_CLOSE_CODE, "Token no longer valid");
    n += conn_close_tokens(is_valid);
    if (n > 0)
        log_event(LOG_LEVEL_INFO, "token-closed", "connections=%u", n);
}

/* When the next of them ends; 0: none does. */
static int64_t next_end_s;

static void
plan(void)
{
    const struct worker_config *c = worker_config();

    next_end_s = 0;
    for (uint32_t i = 0; i < c->n_tokens; i++) {
        int64_t end_s = c->tokens[i].expires_s;

        if (end_s > now_s() && (next_end_s == 0 || end_s < next_end_s))
            next_end_s = end_s;
    }
}

void
tokens_reloaded(void)
{
    sweep();
    plan();
}

void
tokens_tick(void)
{
    static bool planned;

    if (!planned || (next_end_s != 0 && next_end_s <= now_s())) {
        if (planned)
            sweep();
        planned = true;
        plan();
    }
}
