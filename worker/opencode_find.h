/* Which OpenCode server a run has and whether it is up; starting it where that is wanted. */
#ifndef WORKER_OPENCODE_FIND_H
#define WORKER_OPENCODE_FIND_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/messages.h"
#include "worker/broker_link.h"
#include "worker/runs.h"

struct container_call;

enum opencode_wish {
    OPENCODE_LOOK,  /* nothing is started */
    OPENCODE_BEGIN, /* started if it is not up; not waited for */
    OPENCODE_READY, /* started and waited for, LIMIT_ASSISTANT_READY_MS at most */
};

enum opencode_place {
    OPENCODE_UP,
    OPENCODE_DOWN,     /* OPENCODE_LOOK: it is not up */
    OPENCODE_STARTING, /* OPENCODE_BEGIN: on its way */
    OPENCODE_NO_RUN,   /* no such run, or several have this ID */
    OPENCODE_OVER,     /* the run has no container that runs */
    OPENCODE_REFUSED,  /* hosted */
    OPENCODE_FAILED,   /* `reason` says why */
};

struct opencode_find {
    /* what was found */
    enum opencode_place place;
    enum run_port port;
    char model[MESSAGE_MODEL_SIZE]; /* the run's model, or "": the user's own key */
    bool running;                   /* a server of our starting lives */
    uint32_t uptime_ms;
    char reason[MESSAGE_ERROR_SIZE]; /* why it failed, or why it is not the run's model */
    /* private */
    uint16_t token; /* in whose name (exchange_token) */
    char run_id[MESSAGE_ID_SIZE];
    enum opencode_wish wish;
    bool waiting, began;
    int64_t deadline_ms;
    struct runs_wait wait;
    broker_ticket ticket;
    struct container_call *call;
    ev_timer timer;
    void (*fn)(void *ctx);
    void *ctx;
};

/* `fn` is called once, perhaps before this returns: do not touch `f` afterwards. */
void
opencode_find(struct opencode_find *f, uint16_t token, const char *run_id,
              enum opencode_wish wish, void (*fn)(void *ctx), void *ctx);

/* Forget what is under way; harmless on a zeroed one. */
void
opencode_find_cancel(struct opencode_find *f);

/* Why this backend can have no assistant, or NULL: it can. Text for people, static. */
const char *
opencode_backend_lacks(void);

#endif
