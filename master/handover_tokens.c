/* The tokens in force, as the workers and the broker are told of them. */
#include <string.h>

#include "common/hash.h"
#include "common/messages.h"
#include "master/handover.h"

#define SINGLE "token" /* the name of SSEBENCH_WEBUI_TOKEN's; policy_token_name_valid refuses it */
#define NUMBER_MAX 65534u /* worker/tokens.h has a use for the next one */

_Static_assert(HANDOFF_TOKENS == POLICY_TOKENS + 1, "room for all, and the single one");
_Static_assert(HANDOFF_TOKEN_NAME >= POLICY_TOKEN_NAME_SIZE, "room for a name");

/* What the broker is told, being made anew. */
struct making {
    const struct handover *h;
    uint32_t last_number;
    uint32_t n;
    struct handoff_token item[HANDOFF_TOKENS];
};

static const struct handoff_token *
find_number(const struct handover *h, uint32_t number)
{
    return handoff_token_by_number(h->broker.tokens, h->broker.n_tokens, number);
}

/* Its number until now, if it is the same; else one that no connection knows. */
static uint16_t
number_of(struct making *m, const struct handoff_token *t)
{
    for (uint32_t i = 0; i < m->h->broker.n_tokens; i++) {
        const struct handoff_token *old = &m->h->broker.tokens[i];

        if (old->role == t->role && strcmp(old->name, t->name) == 0 &&
            memcmp(old->digest, t->digest, sizeof t->digest) == 0)
            return old->number;
    }
    do
        m->last_number = m->last_number % NUMBER_MAX + 1;
    while (find_number(m->h, m->last_number) != NULL);
    return (uint16_t)m->last_number;
}

static void
add(struct making *m, const char *name, enum role role, const uint8_t proof[32],
    int64_t expires_s)
{
    struct handoff_token *t = &m->item[m->n++];

    memset(t, 0, sizeof *t);
    message_string_set(t->name, sizeof t->name, name);
    t->role = (uint8_t)role;
    t->expires_s = expires_s;
    memcpy(t->digest, proof, sizeof t->digest);
    t->number = number_of(m, t);
}

/* Those that stay because nothing new is said of their kind. */
static void
keep(struct making *m, bool single)
{
    for (uint32_t i = 0; i < m->h->broker.n_tokens; i++)
        if ((strcmp(m->h->broker.tokens[i].name, SINGLE) == 0) == single)
            m->item[m->n++] = m->h->broker.tokens[i];
}

static void
add_single(struct making *m, char token[POLICY_TOKEN_MAX])
{
    uint8_t proof[HASH_SIZE];

    if (token[0] != '\0') {
        hash_sha256(token, strlen(token), proof);
        add(m, SINGLE, ROLE_FULL, proof, 0);
    }
    explicit_bzero(token, POLICY_TOKEN_MAX);
    explicit_bzero(proof, sizeof proof);
}

const uint8_t *
handover_single_proof(const struct handover *h)
{
    for (uint32_t i = 0; i < h->broker.n_tokens; i++)
        if (strcmp(h->broker.tokens[i].name, SINGLE) == 0)
            return h->broker.tokens[i].digest;
    return NULL;
}

/* Put the list in force. True: it is another one. */
static bool
use(struct making *m, struct handover *h)
{
    bool changed = m->n != h->broker.n_tokens ||
                   memcmp(m->item, h->broker.tokens, sizeof m->item) != 0;

    h->last_number = m->last_number;
    h->broker.n_tokens = h->worker.n_tokens = m->n;
    memcpy(h->broker.tokens, m->item, sizeof m->item);
    memcpy(h->worker.tokens, m->item, sizeof m->item);
    for (uint32_t i = 0; i < m->n; i++)
        hash_keyed(h->worker.token_key, m->item[i].digest, HASH_SIZE,
                   h->worker.tokens[i].digest);
    explicit_bzero(m, sizeof *m);
    return changed;
}

void
handover_keep_token(struct handover *h, const uint8_t proof[32])
{
    struct making m = {.h = h, .last_number = h->last_number};

    add(&m, SINGLE, ROLE_FULL, proof, 0);
    keep(&m, false);
    h->worker.has_token = h->broker.has_token = 1;
    use(&m, h);
}

bool
handover_set_tokens(struct handover *h, char single[POLICY_TOKEN_MAX],
                    const struct token_list *named)
{
    struct making m = {.h = h, .last_number = h->last_number};

    if (single != NULL)
        add_single(&m, single);
    else
        keep(&m, true);
    for (uint32_t i = 0; named != NULL && i < named->n; i++)
        add(&m, named->item[i].name, named->item[i].role, named->item[i].digest,
            named->item[i].expires_s);
    if (named == NULL)
        keep(&m, false);
    return use(&m, h);
}
