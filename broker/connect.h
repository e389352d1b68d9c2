/*
 * Connections to containers: which address the CLI names for a run's port, remembered for
 * LIMIT_ENDPOINT_AGE_MS, and a connected socket for the worker that asked.
 */
#ifndef BROKER_CONNECT_H
#define BROKER_CONNECT_H

struct broker;
struct connects;

/* NULL: no memory. */
struct connects *
connects_new(struct broker *b);
void
connects_free(struct connects *all); /* after children_free and dispatch_free */

/* The run was stopped or removed: what is known of its addresses is no longer true. */
void
connects_forget(struct connects *all, const char *run_id);

#endif
