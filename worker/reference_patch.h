/* The patch that a local task names as its solution (contract 4.4, 7.4). */
#ifndef WORKER_REFERENCE_PATCH_H
#define WORKER_REFERENCE_PATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/messages.h"
#include "worker/broker_link.h"

/* Embedded in the asker's memory; zero at first. */
struct reference_patch {
    /* what was found */
    enum answer_status status;
    int fd; /* OK: a regular file; take it by setting -1 */
    uint64_t size;
    /* private */
    broker_ticket ticket;
    bool waiting, asking, early, has_path;
    char task[MESSAGE_NAME_SIZE];
    void (*fn)(void *ctx);
    void *ctx;
};

/* Find it: `fn` is called once, perhaps before this returns (then touch nothing). */
void
reference_patch_find(struct reference_patch *r, const char *task, void (*fn)(void *ctx),
                     void *ctx);

/* Forget what is under way and close what was not taken. */
void
reference_patch_done(struct reference_patch *r);

#endif
