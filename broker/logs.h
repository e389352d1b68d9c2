/* Followers: `ssebench runs logs --follow`, whose output goes to the worker that asked. */
#ifndef BROKER_LOGS_H
#define BROKER_LOGS_H

#include <stdint.h>

struct broker;
struct logs;

struct logs *
logs_new(struct broker *b);
void
logs_free(struct logs *logs); /* after children_free: no exit is told any more */

/* This worker's channel is closed: end what it follows. */
void
logs_end_peer(struct logs *logs, uint64_t peer);

#endif
