/*
 * HTTP/1.1 to a container, over a socket that the broker connected: one request, one answer,
 * told piece by piece. No redirects, no cookies, no proxies, no TLS. One connection for each
 * run and port is kept for the next request.
 */
#ifndef WORKER_UPSTREAM_H
#define WORKER_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/messages.h"

struct upstream;

struct upstream_request {
    uint16_t token; /* in whose name (exchange_token); 0: what anyone may see */
    const char *run_id;
    enum run_port port;
    const char *method;   /* "GET", "POST", "DELETE" */
    const char *target;   /* path and query, without blanks or control bytes */
    const char *body;     /* JSON, copied; NULL: none */
    size_t body_len;
    unsigned timeout_ms;  /* for the whole exchange, connecting too; 0: none */
    unsigned head_ms;     /* until the answer's head is there; 0: timeout_ms alone counts */
    uint64_t max_body;    /* bytes of the answer; 0: LIMIT_UPSTREAM_BODY */
    bool endless;         /* an event stream: no bound on its body */
    bool fresh;           /* on a new connection, so that it is never sent twice */
};

struct upstream_handler {
    /* The head is there. `type` is the content type, "" without one, until this returns. May
     * cancel. NULL: not of interest. */
    void (*head)(void *ctx, int status, const char *type);
    /* Bytes of the body. May cancel, pause. */
    void (*data)(void *ctx, const char *bytes, size_t len);
    /* The last call, after which it is freed: 0, the answer is complete; -EHOSTUNREACH: no such run, no address, nobody
     * listens; -ETIMEDOUT; -EAGAIN: a bound is reached or the
     * broker is away; -EMSGSIZE: over a limit; -EBADMSG: not HTTP; -EPIPE: cut off. */
    void (*done)(void *ctx, int error);
};

/* Begin. No callback runs before this returns. NULL: no memory, or LIMIT_UPSTREAMS are under
 * way. It is freed after `done`. */
struct upstream *
upstream_start(const struct upstream_request *q, const struct upstream_handler *handler,
               void *ctx);

/* Free it; no callback runs any more. */
void
upstream_cancel(struct upstream *u);

/* Read no more until resumed: the reader of this stream is slow. */
void
upstream_pause(struct upstream *u);
void
upstream_resume(struct upstream *u);

/* Where the run's port is, for people; NULL: not known (yet). */
const char *
upstream_url(const struct upstream *u);

#endif
