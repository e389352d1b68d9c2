/* A client's POST /api/launch, taken from its JSON. Pure. */
#ifndef WORKER_LAUNCH_REQUEST_H
#define WORKER_LAUNCH_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/launch.h"

/* Read the body. False: it is no JSON object, or not strictly one (`Invalid launch request`).
 * What is wrong with a single value is marked in the fields, for policy_launch_refusal. */
bool
launch_request_read(const char *body, size_t len, struct launch_fields *ret_fields);

/* {"launch_id": "..."} of cancel and clear. False: no strict JSON object. `out` gets "" when
 * the member is absent, null, or no launch's ID can look like that (`*ret_given` tells). */
bool
launch_request_read_id(const char *body, size_t len, char out[37], bool *ret_given);

#endif
