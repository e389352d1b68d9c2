/*
 * In whose name a worker may speak.
 * Distrusts: every worker. It names a token by its number and must have shown that token's proof;
 * what the token allows is the configuration's word.
 */
#include "broker/proofs.h"

#include <errno.h>
#include <time.h>

#include "policy/token.h"
#include "policy/token_list.h"

static const struct handoff_token *
token_by_number(const struct broker_config *config, uint32_t number)
{
    return handoff_token_by_number(config->tokens, config->n_tokens, number);
}

static bool
is_shown(const struct proofs *p, uint16_t number)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->shown[i] == number)
            return true;
    return false;
}

int
proofs_show(struct proofs *p, const struct broker_config *config,
            const struct request_token_show *q)
{
    const struct handoff_token *token = token_by_number(config, q->number);

    if (q->reserved != 0 || q->number == 0 || q->number > UINT16_MAX)
        return -EBADMSG;
    if (token == NULL)
        return -ENOENT;
    if (!policy_digest_equal(token->digest, q->proof))
        return -EBADMSG;
    if (!is_shown(p, token->number) && p->n < HANDOFF_TOKENS)
        p->shown[p->n++] = token->number;
    return 0;
}

/* What a worker may do for itself is what every client may see. The role of a token is the
 * configuration's word, never the worker's; and it ends with the token. */
enum role
proofs_role(const struct proofs *p, const struct broker_config *config, uint16_t as)
{
    const struct handoff_token *token;

    if (as == 0)
        return config->has_token ? ROLE_VIEW : ROLE_FULL;
    token = token_by_number(config, as);
    if (token == NULL || !is_shown(p, as) || policy_token_expired(token->expires_s, time(NULL)))
        return ROLE_NONE;
    return (enum role)token->role;
}

void
proofs_prune(struct proofs *p, const struct broker_config *config)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->n; i++)
        if (token_by_number(config, p->shown[i]) != NULL)
            p->shown[n++] = p->shown[i];
    p->n = n;
}
