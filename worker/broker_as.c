/* Proofs of the tokens that clients brought, and showing them before they are needed. */
#include "worker/broker_as.h"

#include <string.h>

#include "common/handoff.h"

static struct proof {
    uint16_t number; /* 0: free */
    bool shown;      /* on this channel */
    uint8_t bytes[32];
} proofs[HANDOFF_TOKENS];

static struct proof *
find(uint16_t number)
{
    for (size_t i = 0; i < HANDOFF_TOKENS; i++)
        if (proofs[i].number == number)
            return &proofs[i];
    return NULL;
}

void
broker_as_know(uint16_t number, const uint8_t proof[32])
{
    struct proof *p = find(number);

    if (p != NULL || (p = find(0)) == NULL)
        return; /* one number, one proof; and there are no more tokens than places */
    p->number = number;
    p->shown = false;
    memcpy(p->bytes, proof, sizeof p->bytes);
}

void
broker_as_forget(bool (*valid)(uint16_t number))
{
    for (size_t i = 0; i < HANDOFF_TOKENS; i++)
        if (proofs[i].number != 0 && !valid(proofs[i].number))
            explicit_bzero(&proofs[i], sizeof proofs[i]);
}

void
broker_as_new_channel(void)
{
    for (size_t i = 0; i < HANDOFF_TOKENS; i++)
        proofs[i].shown = false;
}

/* The broker had another list at that moment, or is away: show it again next time. */
static void
on_shown(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_plain *a = answer;
    struct proof *p = ctx;

    if (a == NULL || a->status != ANSWER_OK)
        p->shown = false;
}

static void
show(struct proof *p)
{
    struct request_token_show q = {.number = p->number};

    memcpy(q.proof, p->bytes, sizeof q.proof);
    p->shown = true;
    broker_ask(MESSAGE_TOKEN_SHOW, &q, NULL, 0, on_shown, p);
    explicit_bzero(&q, sizeof q);
}

broker_ticket
broker_ask_as(uint16_t token, uint16_t type, void *request, broker_answer_fn fn, void *ctx)
{
    struct proof *p = token != 0 ? find(token) : NULL;

    if (p != NULL && !p->shown)
        show(p); /* the channel keeps the order */
    ((struct message_head *)request)->as = token;
    return broker_ask(type, request, NULL, 0, fn, ctx);
}
