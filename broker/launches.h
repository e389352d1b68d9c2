/*
 * Launches: what was started through this server, held by their keepers and their folders in
 * the state directory, so that this process may end and be started again at any moment.
 *
 * Layout: <state>/launches/<digest of the checkout's path>/<launch id>/. Two servers of one
 * account share the default state directory, each its own checkout's folder. Two servers on
 * one checkout share that folder too: the first holds its lock, the other launches nothing and
 * says so.
 */
#ifndef BROKER_LAUNCHES_H
#define BROKER_LAUNCHES_H

#include <stdint.h>

struct broker;
struct launches;
struct listed;

/* Takes up what is there. NULL: no memory. */
struct launches *
launches_new(struct broker *b);

/* For the end of the process: nothing that was launched is touched. */
void
launches_free(struct launches *all);

/* The worker of this channel is gone. */
void
launches_end_peer(struct launches *all, uint64_t peer);

/* What a call of the CLI's listing gave. */
void
launches_on_listing(struct launches *all, const struct listed *listed);

#endif
