/* The target of a request taken apart: path decoded once, query left raw. Part of the strict
 * reader. Pure. */
#ifndef WORKER_REQUEST_TARGET_H
#define WORKER_REQUEST_TARGET_H

#include "worker/request.h"

/* Fill in target, path and query from the request line's target. NULL, or why it is refused
 * (ret_status: 400 or 414). */
const char *
request_target_parse(struct span target, struct request *ret_request, int *ret_status);

#endif
