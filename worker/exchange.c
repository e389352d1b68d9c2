/* Exchanges: where they come from, and what a handler may ask of one. */
#include "worker/exchange.h"

#include <stdlib.h>

#include "worker/http.h"
#include "worker/tokens.h"

#define POOL_MAX 64u /* kept for the next request */

static struct {
    struct exchange *exchanges;
    unsigned n_exchanges;
} pool;

struct exchange *
exchange_new(struct conn *c)
{
    struct exchange *x = pool.exchanges;

    if (x) {
        pool.exchanges = x->next;
        pool.n_exchanges--;
    } else if (!(x = malloc(sizeof(*x)))) {
        return NULL;
    }
    x->conn = c;
    x->head_len = 0;
    x->body = NULL;
    x->body_len = 0;
    x->body_owned = NULL;
    x->body_whole = x->answered = x->outside = x->has_csp = x->has_cache = false;
    x->let_in = false;
    x->gone = NULL;
    x->ticket = 0;
    x->token = 0;
    x->headers_len = 0;
    return x;
}

void
exchange_free(struct exchange *x)
{
    free(x->body_owned);
    if (pool.n_exchanges >= POOL_MAX) {
        free(x);
        return;
    }
    x->next = pool.exchanges;
    pool.exchanges = x;
    pool.n_exchanges++;
}

/* --- what handlers see ------------------------------------------------------------ */

const struct request *
exchange_request(const struct exchange *x)
{
    return &x->request;
}

const char *
exchange_body(const struct exchange *x, size_t *ret_len)
{
    *ret_len = x->body_len;
    return x->body;
}

const char *
exchange_param(const struct exchange *x, unsigned index)
{
    return index < HTTP_PARAMS ? x->params[index] : "";
}

uint16_t
exchange_token(const struct exchange *x)
{
    return x->token == TOKENS_NONE ? 0 : x->token;
}

enum role
exchange_role(const struct exchange *x)
{
    return tokens_role(x->token);
}

void
exchange_on_gone(struct exchange *x, void (*gone)(struct exchange *x, void *ctx), void *ctx)
{
    x->gone = gone;
    x->gone_ctx = ctx;
}
