/* The LiteLLM proxy: where it is, its master key, and the orders to the key maker. */
#ifndef BROKER_LITELLM_H
#define BROKER_LITELLM_H

#include <stdbool.h>
#include <stddef.h>

#include "broker/keymaker/order.h"

struct broker;
struct litellm;

struct litellm *
litellm_new(struct broker *b);
void
litellm_free(struct litellm *l); /* after children_free: no callback runs */

/* Is there a master key, in our environment or in .env as it stands now? */
bool
litellm_has_master_key(const struct litellm *l);

/* LIMIT_KEYMAKERS are at work: an order would be refused now. In a litellm_fn there is room. */
bool
litellm_is_full(const struct litellm *l);

/* `answer` lives for the call; with `done` 0 its `error` is for people. */
typedef void (*litellm_fn)(void *ctx, const struct keymaker_answer *answer);

/* Give an order (task and its fields; address and master key are filled in here). `fn` is
 * called once, later. 0; -EBUSY: LIMIT_KEYMAKERS are at work; another -errno. With an error
 * `fn` is never called. */
int
litellm_order(struct litellm *l, struct keymaker_order *order, litellm_fn fn, void *ctx);

/* Replace every occurrence of `secret` in `text` by '*'. */
void
litellm_redact(char *text, const char *secret);

/* The same with the master key. */
void
litellm_redact_master(const struct litellm *l, char *text);

#endif
