/*
 * One request to the assistant on its way: find the server, then one call after the other,
 * then the answer. What the routes (opencode.c), the chat (opencode_chat.c) and the endings
 * (opencode_end.c) share.
 */
#ifndef WORKER_OPENCODE_OP_H
#define WORKER_OPENCODE_OP_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/json_read.h"
#include "common/messages.h"
#include "worker/container_http.h"
#include "worker/opencode_find.h"

#define OPENCODE_ID_SIZE 129u         /* of a session or permission request, and NUL */
#define OPENCODE_DIRECTORY_SIZE 1025u /* and NUL */
#define OPENCODE_PENDING 32u          /* permission requests rejected before an abort */

struct exchange;

struct opencode_op {
    struct exchange *x;
    struct opencode_find find;
    struct container_call *call;
    ev_timer timer;
    void (*found)(struct opencode_op *op); /* it is up */
    void (*answered)(struct opencode_op *op, const struct container_answer *a);
    void (*on_timer)(struct opencode_op *op);
    const char *failure; /* text of a failure that has none of its own */
    char session[OPENCODE_ID_SIZE];
    char permission[OPENCODE_ID_SIZE];
    char directory[OPENCODE_DIRECTORY_SIZE];
    struct buf body;   /* what is sent with the last call */
    struct buf secret; /* the user's key as OpenCode takes it; wiped */
    const char *reply; /* a permission's: once, always, reject */
    const char *notice;
    bool deletes;
    int64_t deadline_ms;
    unsigned n_pending;
    char pending[OPENCODE_PENDING][OPENCODE_ID_SIZE];
};

/* Begin; the run is the route's first parameter. NULL: answered (no memory). */
struct opencode_op *
opencode_op_new(struct exchange *x, const char *failure);

/* The route's second parameter is a session's ID: taken over, or answered 404 (false, and the
 * op is gone). */
bool
opencode_op_take_session(struct opencode_op *op);

/* Find the server; then `found`, or an answer that says why not. */
void
opencode_op_find(struct opencode_op *op, enum opencode_wish wish,
                 void (*found)(struct opencode_op *op));

/* Call it. `answered` may keep the op going or end it. */
void
opencode_op_call(struct opencode_op *op, const char *method, const char *target,
                 const struct buf *body, unsigned timeout_ms,
                 void (*answered)(struct opencode_op *op, const struct container_answer *a));

void
opencode_op_later(struct opencode_op *op, double seconds, void (*fn)(struct opencode_op *op));

/* --- ends of an op ------------------------------------------------------------------- */

/* 2xx with JSON? Else the op is answered with the right error, and false. `not_found`: text
 * of the 404. */
bool
opencode_op_good(struct opencode_op *op, const struct container_answer *a,
                 const char *not_found);

/* Answer with these bytes of JSON. */
void
opencode_op_answer(struct opencode_op *op, const char *json, size_t len);

/* Answer with what OpenCode answered: an error as by opencode_op_good, `when_empty` for a
 * success without a body; NULL: there has to be one. */
void
opencode_op_pass_on(struct opencode_op *op, const struct container_answer *a,
                    const char *not_found, const char *when_empty);

void
opencode_op_fail(struct opencode_op *op, int status, const char *error, const char *hint);

/* --- small things ------------------------------------------------------------------------- */

/* An ID of OpenCode's that begins so, fit to stand in a path? */
bool
opencode_id_valid(const char *id, const char *prefix);

/* `text` as one value of a query. */
void
opencode_add_encoded(struct buf *out, const char *text);

/* An absolute path without control bytes that fits? */
bool
opencode_directory_valid(const char *directory);

/* The op's directory becomes the one that this answer of /session/ID names; false: the op was
 * answered with what went wrong. What is asked about a session must name its directory. */
bool
opencode_op_take_directory(struct opencode_op *op, const struct container_answer *a);

/* Is this session at work? From an answer of /session/status. */
bool
opencode_is_busy(const struct container_answer *a, const char *session);

#endif
