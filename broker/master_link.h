/* The broker's channel to the master: new workers in, readiness and misbehaviour out. */
#ifndef BROKER_MASTER_LINK_H
#define BROKER_MASTER_LINK_H

#include <stdint.h>

struct broker;

/* Begin to listen to the master (b->control_fd): tell which fences are up, then that we
 * serve. When the master goes away or says stop, the loop ends. 0 or -errno. */
int
master_link_start(struct broker *b, uint32_t fences);

/* This worker broke the vocabulary: end it. */
void
master_link_kill_worker(struct broker *b, uint32_t number);

#endif
