/* Connections to containers between two requests: one for each run and port, for a while. */
#ifndef WORKER_UPSTREAM_KEPT_H
#define WORKER_UPSTREAM_KEPT_H

#include "common/messages.h"

/* Where a connection leads. */
struct upstream_place {
    enum run_port port;
    char run_id[MESSAGE_ID_SIZE];
    char url[MESSAGE_URL_SIZE]; /* for people */
};

/* Take over a connection whose answer was read whole; closed when there are enough. */
void
upstream_kept_put(const struct upstream_place *place, int fd);

/* The connection kept for this run and port, and its URL. Descriptor, or -1: none. */
int
upstream_kept_take(struct upstream_place *place);

/* Close what is kept for this run (it was stopped or removed). */
void
upstream_kept_forget(const char *run_id);

#endif
