/*
 * The data of a run that goes on, for all its viewers in this worker (contract 10.6): one
 * conversation with its daemon, one watch of its dialog. Each viewer gets every `seq` once and
 * in order. Nobody's past is kept in memory: whoever is behind reads the file, or asks the
 * daemon, from where he stands.
 */
#ifndef WORKER_FEED_H
#define WORKER_FEED_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/sdk_documents.h"

struct buf;
struct dialog_reader;
struct feed;
struct feed_file;
struct ws;

/* One viewer; embedded in its memory. Zero before the join, but for the first block. */
struct feed_place {
    struct ws *ws;
    double last_seq;    /* the viewer has the dialog up to here; -1: nothing */
    bool told_ready;    /* as is left when it is over */
    /* The run is over: leave, and go on from the files. */
    void (*over)(void *ctx);
    void *ctx;
    /* private */
    struct feed_place *next, **link;
    struct feed *feed;  /* NULL: none */
    uint64_t offset;    /* of `file`: read up to here */
    struct feed_file *file;
    struct sdk_document document; /* what it is being sent on its own; fill NULL: nothing */
    struct dialog_reader *reader; /* the document's */
    uint32_t n_entries;
    uint8_t due;        /* which messages it has not got */
    bool in_message, level, behind, over_due, truncated;
    ev_timer slice;
};

void
feed_join(struct feed_place *place, const char *run_id);

/* Harmless if in none. The last one leaving ends the feed. */
void
feed_leave(struct feed_place *place);

/* The viewer's queue has room again. */
void
feed_resume(struct feed_place *place);

/* Add the array of this worker's feeds: [{"containerId","clientCount","status",
 * "lastActivity"}]. */
void
feed_report(struct buf *out);

#endif
