/* What can be launched, as the broker lists it: kept by generation. */
#ifndef WORKER_LAUNCH_OFFER_H
#define WORKER_LAUNCH_OFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/messages.h"
#include "policy/launch.h"

struct launchables_list {
    char *bytes; /* records of common/messages.h, or NULL */
    size_t len;
    uint64_t generation;
    bool has_catalog, has_local;
};

/* An answer to LAUNCHABLES; the descriptor stays the caller's (-1: none). False: it cannot be
 * used: try again. */
bool
launch_offer_take(struct launchables_list *list, const struct answer_launchables *answer, int fd);

/* Walk the records: *at begins as NULL; fields[0..n) of the next one of this kind ('p' has 4,
 * others 1). False: no more. */
bool
launch_offer_next(const struct launchables_list *list, char kind, const char **at,
                  const char *fields[4]);

/* For policy_launch_refusal; borrows the list. */
struct launch_offer
launch_offer_of(const struct launchables_list *list);

#endif
