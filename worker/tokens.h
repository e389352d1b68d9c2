/*
 * Which tokens there are, which one a client brought, and what becomes of connections whose
 * token went: closed, WebSockets with 4401. The configuration in force is the only list.
 */
#ifndef WORKER_TOKENS_H
#define WORKER_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/handoff.h"
#include "policy/role.h"

#define TOKENS_CLOSE_CODE 4401 /* of a WebSocket whose token was revoked, changed or expired */
#define TOKENS_NONE UINT16_MAX /* the number of who was let in without one (token-less) */

/* The token with this text, or NULL; perhaps expired. In constant time over all of them. */
const struct handoff_token *
tokens_match(const char *token, size_t len);

/* The token of this number, or NULL. */
const struct handoff_token *
tokens_find(uint16_t number);

bool
tokens_expired(const struct handoff_token *token);

/* What its holder may do; ROLE_FULL for TOKENS_NONE, ROLE_NONE where it went. */
enum role
tokens_role(uint16_t number);

/* The configuration was replaced, or half a second has passed: close what no valid token
 * holds open. */
void
tokens_reloaded(void);
void
tokens_tick(void);

#endif
