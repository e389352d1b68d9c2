/*
 * Where a run's documents come from: the daemon of a run that goes on, the run directory of
 * one that is over. The only place that decides it; whoever waits embeds a struct run_source.
 */
#ifndef WORKER_RUN_SOURCE_H
#define WORKER_RUN_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/messages.h"
#include "worker/broker_link.h"
#include "worker/runs.h"

enum run_place {
    PLACE_UNKNOWN,   /* no such run */
    PLACE_DAEMON,    /* it goes on: its daemon has the documents */
    PLACE_FILES,     /* it is over: its directory has them */
    PLACE_NOTHING,   /* it is over and has no directory here */
    PLACE_TRY_AGAIN, /* the broker is away */
};

struct run_source {
    /* what was found */
    enum run_place place;
    uint64_t epoch, ref; /* PLACE_FILES: the run directory */
    /* what was opened (run_source_open) */
    enum answer_status status; /* OK, NOT_FOUND, TOO_LARGE, ... */
    int fd;                    /* -1, or a regular file: take it by setting -1 */
    uint64_t size;
    int64_t mtime_ns;
    uint64_t inode;
    /* private */
    struct runs_wait wait;
    broker_ticket ticket;
    bool waiting, asking, early, want_files;
    char id[MESSAGE_ID_SIZE];
    void (*fn)(void *ctx);
    void *ctx;
};

/* Find where the documents of run `id` are; `fn` is called once, perhaps before this returns:
 * do not touch the memory of `s` afterwards. `want_files`: the directory also of a run that
 * goes on. */
void
run_source_find(struct run_source *s, const char *id, bool want_files,
                void (*fn)(void *ctx), void *ctx);

/* The run directory of a row, without waiting for a newer table. `fn` as above. */
void
run_source_directory(struct run_source *s, const struct run_row *row, void (*fn)(void *ctx),
                     void *ctx);

/* Open one file of a run that was found (PLACE_FILES). `fn` as above. */
void
run_source_open(struct run_source *s, enum run_file file, void (*fn)(void *ctx), void *ctx);

/* Forget what is under way and close what was not taken. Before the memory goes. */
void
run_source_done(struct run_source *s);

#endif
