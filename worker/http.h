/*
 * Requests and answers on a connection: what http.c (reading), exchange.c, answer.c and
 * answer_stream.c (writing) and access_gate.c share; everyone else sees worker/exchange.h.
 */
#ifndef WORKER_HTTP_H
#define WORKER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "worker/conn.h"
#include "worker/exchange.h"

#define HTTP_PARAMS 3u           /* parameters in one route's pattern */
#define HTTP_HEADERS_SIZE 2048u  /* bytes of extra answer headers */

struct exchange {
    struct conn *conn;
    struct exchange *next; /* in the pool */
    struct request request;
    size_t head_len;
    const char *body;
    size_t body_len;
    char *body_owned;     /* body, when it did not arrive with the head */
    bool body_whole;
    bool answered;
    bool let_in;          /* policy admitted it */
    bool outside;         /* the path is not below the base path */
    bool has_csp, has_cache;
    void (*gone)(struct exchange *x, void *ctx);
    void *gone_ctx;
    void (*admitted)(struct exchange *x); /* access_gate.c: what follows */
    uint32_t ticket;                      /* its question to the broker */
    uint16_t token;                       /* that it carried, or TOKENS_NONE; 0: no good one */
    char params[HTTP_PARAMS][LIMIT_PATH_SEGMENT + 1];
    size_t headers_len;
    char headers[HTTP_HEADERS_SIZE];
};

/* --- http.c ----------------------------------------------------------------------- */

/* A new connection; takes fd and slot on success. 0 or -ENOMEM. */
int
http_conn_new(int fd, struct connection_slot *slot);

/* From server.c: a deadline passed. */
void
http_deadline_passed(struct deadline *d);

/* The whole answer is with the kernel: go on with the next request, or close. */
void
http_answer_done(struct conn *c);

/* --- exchange.c ------------------------------------------------------------------- */

/* A connection's next exchange, its request not yet filled in. NULL: no memory. */
struct exchange *
exchange_new(struct conn *c);
void
exchange_free(struct exchange *x);

/* --- answer.c --------------------------------------------------------------------- */

/* Render the head of an answer into `out` (HTTP_HEAD_MAX bytes). content_len < 0: none given
 * (`chunked` says whether the body is). Returns its length. */
#define HTTP_HEAD_MAX (HTTP_HEADERS_SIZE + 2048u)
size_t
answer_head(struct exchange *x, int status, const char *type, int64_t content_len,
            bool chunked, char *out);

/* The moment an answer begins: no more on_gone, decide whether the connection stays. */
void
answer_begin(struct exchange *x);

/* Write these pieces; the first `n_volatile` live only until the call returns and are copied
 * if they do not fit into the socket. `owned` is freed when all is written. Ends in
 * http_answer_done, stream_written or conn_abort, perhaps before it returns. */
void
answer_write(struct conn *c, const struct iovec *iov, unsigned n, unsigned n_volatile,
             char *owned);

/* The socket takes bytes again. */
void
answer_flush(struct conn *c);

void
answer_out_free(struct out *out);

/* --- answer_stream.c -------------------------------------------------------------- */

/* The last piece is with the kernel: end, or wait for the next turn. */
void
stream_written(struct conn *c);

/* Make and write the next piece. */
void
stream_next(struct conn *c);

/* End the source, if there is one. */
void
stream_free(struct conn *c);

#endif
