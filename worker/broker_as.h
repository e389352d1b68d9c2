/*
 * Asking the broker in the name of a client: what needs more than a view is asked as the token
 * that the client brought, whose proof is shown to each broker once. A worker that never saw
 * the token cannot make the proof.
 */
#ifndef WORKER_BROKER_AS_H
#define WORKER_BROKER_AS_H

#include "worker/broker_link.h"

/* A client brought token `number`; keep its proof (SHA-256) until it is forgotten. */
void
broker_as_know(uint16_t number, const uint8_t proof[32]);

/* Forget the proofs of tokens that are not `valid`. */
void
broker_as_forget(bool (*valid)(uint16_t number));

/* A new channel: nothing was shown on it. */
void
broker_as_new_channel(void);

/* broker_ask in the name of `token` (exchange_token; 0: a token-less server's client). */
broker_ticket
broker_ask_as(uint16_t token, uint16_t type, void *request, broker_answer_fn fn, void *ctx);

#endif
