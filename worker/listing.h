/* What this worker knows of the CLI's listing, and what is wrong with it. */
#ifndef WORKER_LISTING_H
#define WORKER_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/messages.h"
#include "worker/runs_live.h"

#define LISTING_ERROR_SIZE 1024u
struct runs_listing;

struct listing {
    struct live_list live;
    bool known;
    uint64_t generation; /* the broker's, of what was last read (usable or not) */
    uint64_t version;    /* ours: changes with every new content */
    int64_t born_ms;     /* steady clock: when the CLI's answer was made */
    int64_t failing_since_ms; /* wall clock; 0: the newest attempt went well */
    int64_t rubbish_since_ms; /* wall clock; 0: the newest answer was a listing */
    char error[MESSAGE_ERROR_SIZE];
    const char *rubbish; /* constant text */
    char described[LISTING_ERROR_SIZE];
};

void
listing_init(struct listing *l);

/* Is something wrong with the CLI? Then nobody should wait for it. */
bool
listing_failing(const struct listing *l);

/* An answer to RUNS_LIST (NULL: the broker is away). The descriptor stays the caller's;
 * -1: none. */
void
listing_take(struct listing *l, const struct answer_runs_list *answer, int fd);

/* Fill in what is known: all but `scanned` and `generation`. */
void
listing_describe(struct listing *l, struct runs_listing *ret);

#endif
