/* The access token's form and where a request may carry it. Pure; hashing is the caller's. */
#ifndef POLICY_TOKEN_H
#define POLICY_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_TOKEN_MIN 16u   /* characters (security model) */
#define POLICY_TOKEN_MAX 1024u /* bytes: a bound for our buffers */

/* At least 16 characters (UTF-8 counted as characters), no white space or control byte. */
bool
policy_token_valid(const char *token, size_t len);

/* The token of `Authorization: Bearer <t>` (scheme in any case, RFC 6750): where it starts and
 * how long it is. False: another scheme or an empty token. */
bool
policy_token_from_bearer(const char *value, size_t len, const char **ret_token,
                         size_t *ret_len);

/* The token of the subprotocol `ssebench.token.<base64url>` in a Sec-WebSocket-Protocol list,
 * decoded into `out`. Unpadded base64url, canonical (no stray bits). False: none, or malformed. */
bool
policy_token_from_subprotocols(const char *list, size_t len, char out[POLICY_TOKEN_MAX],
                               size_t *ret_len);

/* Is the subprotocol `ssebench` offered? */
bool
policy_subprotocol_offered(const char *list, size_t len, const char *name);

/* Constant-time equality of two digests. */
bool
policy_digest_equal(const uint8_t a[32], const uint8_t b[32]);

#endif
