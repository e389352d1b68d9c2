/*
 * One HTTP request to a server inside a container, over a socket that the broker connected:
 * answered whole, or piece by piece as it comes. The answer is the container's: hostile.
 */
#ifndef WORKER_CONTAINER_HTTP_H
#define WORKER_CONTAINER_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "common/messages.h"

struct container_call;

struct container_answer {
    /* 0: there is an answer. -ECONNREFUSED: nobody listens there (or no such run, or the
     * broker is away): nothing was sent. -ETIMEDOUT, -EMSGSIZE (over max_body), -EPROTO (not
     * HTTP), -EPIPE (broken off), -ENOMEM. */
    int error;
    int status;
    bool is_json;     /* by its Content-Type */
    const char *body; /* whole answers, and what is not 2xx; NUL-terminated, lives for the call */
    size_t len;
    const char *why;  /* for people, with an error; "" where there is nothing to say */
};

struct container_request {
    const char *run_id;
    enum run_port port;
    const char *method, *target; /* the target is of our making: no blank, no control byte */
    const char *directory;       /* x-opencode-directory; NULL or "": none */
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
