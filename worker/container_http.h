/*
 * One call of the OpenCode server inside a container: answered whole, or piece by piece as it
 * comes. The answer is the container's: hostile.
 */
#ifndef WORKER_CONTAINER_HTTP_H
#define WORKER_CONTAINER_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "common/messages.h"

struct container_call;

struct container_answer {
    int error; /* 0: there is an answer; else as worker/upstream.h says, or -ENOMEM */
    int status;
    bool is_json;     /* by its Content-Type, and as a whole answer indeed one document */
    const char *body; /* whole answers, and what is not 2xx; NUL-terminated, lives for the call */
    size_t len;
};

struct container_request {
    uint16_t token; /* in whose name (exchange_token); 0: what anyone may see */
    const char *run_id;
    enum run_port port;
    const char *method, *target; /* the target is of our making: no blank, no control byte */
    const char *directory;       /* what it is about, added to the query; NULL or "": none */
    const char *body;            /* JSON; NULL: none */
    size_t body_len;
    unsigned timeout_ms;         /* for all of it; 0: none */
    size_t max_body;             /* of a whole answer */
    /* Streaming: each piece of a 2xx body as it comes. NULL: the answer is kept whole. */
    void (*piece)(void *ctx, const char *bytes, size_t len);
    void (*begun)(void *ctx, bool is_json); /* streaming: a 2xx head has come; or NULL */
    void (*done)(void *ctx, const struct container_answer *answer);
    void *ctx;
};

/* Everything is copied. `done` is called once, later (never from here), unless the call is
 * cancelled; the call is gone when it returns. NULL: no memory or too many calls: `done` is
 * never called. */
struct container_call *
container_call_start(const struct container_request *request);

/* From anywhere but inside `done`; NULL: nothing. */
void
container_call_cancel(struct container_call *call);

/* Streaming: take no more bytes, go on. */
void
container_call_pause(struct container_call *call);
void
container_call_resume(struct container_call *call);

#endif
