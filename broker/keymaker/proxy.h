/* One request to the LiteLLM proxy, blocking; TLS where the address says so. */
#ifndef BROKER_KEYMAKER_PROXY_H
#define BROKER_KEYMAKER_PROXY_H

#include <stddef.h>

#include "common/buf.h"

/* The proxy's answer, unread. 0, or -1 with `error` (constant size KEYMAKER_ERROR_SIZE) in
 * words that hold no secret. */
int
proxy_post(const char *url, const char *path, const char *master_key, const struct buf *body,
           struct buf *ret_answer, char *error);

/* Take an HTTP answer apart: its status, and where its body begins. 0 or -1: not HTTP. */
int
proxy_answer_split(const struct buf *answer, int *ret_status, const char **ret_body,
                   size_t *ret_len);

#endif
