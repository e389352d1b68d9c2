/*
 * Asking a run's daemon (contract 6): a GET whose answer is held until it is known to be one
 * JSON object within the limits. What the daemon sends is the container's word, and hostile.
 * Its bytes are looked at as they come and not copied afterwards: an answer may have 32 MiB.
 */
#ifndef WORKER_DAEMON_H
#define WORKER_DAEMON_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

struct daemon_call;

struct daemon_answer {
    int error;       /* 0, or why there is no answer: -EHOSTUNREACH (nobody is there), -EAGAIN,
                        -ETIMEDOUT, another (not what a daemon says) */
    int status;      /* 200, 400..599 */
    struct buf body; /* DAEMON_ROOM bytes of no meaning if they were asked for, then one JSON
                        object in valid UTF-8; take it with buf_take, or leave it */
    char kind;       /* first character of the member asked for; '\0': not there */
    size_t start, end; /* its value in the body */
    bool truncated;  /* it had more entries than the limit for an answer holds */
    const char *url; /* where the daemon is, for people; NULL: not known */
};

typedef void (*daemon_fn)(void *ctx, struct daemon_answer *answer);

#define DAEMON_ROOM 64u

struct daemon_question {
    const char *run_id;
    const char *target; /* path and query */
    const char *member; /* a constant name; NULL: no member is looked for */
    unsigned timeout_ms;
    bool room;          /* leave DAEMON_ROOM bytes in front of the answer, for a head */
    bool cut;           /* an answer over the limit is cut behind the last object of the array
                           that `member` is, and says so; otherwise it is no answer */
};

/* `fn` is called once, later. NULL: too much is under way. */
struct daemon_call *
daemon_get(const struct daemon_question *q, daemon_fn fn, void *ctx);

/* `fn` is not called any more. */
void
daemon_cancel(struct daemon_call *call);

/* Status and text (contract 10.4) for an answer that failed. */
int
daemon_failure(const struct daemon_answer *answer, const char **ret_error);

#endif
