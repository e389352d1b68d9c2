/* In whose name a worker may speak: the tokens whose proof it has shown, and their roles. */
#ifndef BROKER_PROOFS_H
#define BROKER_PROOFS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/handoff.h"
#include "common/messages.h"
#include "policy/role.h"

/* One worker's. All zero: none was shown. */
struct proofs {
    uint16_t shown[HANDOFF_TOKENS]; /* numbers of tokens */
    unsigned n;
};

/* Take a proof. 0; -ENOENT: the number is no token's, which is the race with a reload; -EBADMSG:
 * malformed, or a wrong proof, which is no race. */
int
proofs_show(struct proofs *p, const struct broker_config *config,
            const struct request_token_show *q);

/* What may be done in the name of token `as`; 0: the worker's own. */
enum role
proofs_role(const struct proofs *p, const struct broker_config *config, uint16_t as);

/* The configuration has other tokens now: what was shown of those that went counts no more. */
void
proofs_prune(struct proofs *p, const struct broker_config *config);

#endif
