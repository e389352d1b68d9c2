/* What a container printed of SSE_BASE_URL and SSE_MODEL_NAME, read with suspicion. Pure. */
#ifndef BROKER_KEYMAKER_READ_MODEL_H
#define BROKER_KEYMAKER_READ_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "broker/keymaker/order.h"

/* Two lines: the address, the model. Either blank: 0 and both are "". -1: one of them is
 * nothing that could be used (control bytes, not an http URL, too long, not one model). Fills the arrays
 * (KEYMAKER_URL_SIZE, MESSAGE_MODEL_SIZE), which must be zero. */
int
read_model(const char *printed, size_t len, char *ret_base_url, char *ret_model);

/* Whether LiteLLM takes `name` for the name of one model: in a key's list "all-proxy-models" and
 * its like, and whatever has a "*", are many. */
bool
model_is_one(const char *name, size_t len);

#endif
