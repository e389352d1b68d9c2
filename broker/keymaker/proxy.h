/* One request to the LiteLLM proxy, blocking; TLS where the address says so. */
#ifndef BROKER_KEYMAKER_PROXY_H
#define BROKER_KEYMAKER_PROXY_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "broker/keymaker/order.h"
#include "common/buf.h"

/* An address taken apart, and the connection to it. */
struct proxy {
    bool tls;
    char host[KEYMAKER_URL_SIZE]; /* without brackets, for the certificate */
    char authority[KEYMAKER_URL_SIZE];
    char connect[KEYMAKER_URL_SIZE + 8]; /* host:port as BIO takes it */
    char path[KEYMAKER_URL_SIZE]; /* "" or "/llm" */
    BIO *bio; /* stays open: who has one ends soon */
};

/* Before the fence: connect `p`, which must be zero, and read the files that TLS needs. Nothing
 * of the proxy's is read. 0, or -1 with `error` (constant size KEYMAKER_ERROR_SIZE) in words
 * that hold no secret. */
int
proxy_connect(struct proxy *p, const char *url, char *error);

/* Behind it: the handshake, the question, and the answer, unread. 0, or -1 with `error`. */
int
proxy_post(const struct proxy *p, const char *path, const char *master_key,
           const struct buf *body, struct buf *ret_answer, char *error);

/* Take an HTTP answer apart: its status, and where its body begins. 0 or -1: not HTTP. */
int
proxy_answer_split(const struct buf *answer, int *ret_status, const char **ret_body,
                   size_t *ret_len);

#endif
