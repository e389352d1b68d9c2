/*
 * A byte stream as whole lines, whatever the borders of its reads: blank lines dropped, very
 * long ones in pieces that never cut a UTF-8 sequence. Pure.
 */
#ifndef WORKER_LOG_LINES_H
#define WORKER_LOG_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

struct log_lines {
    struct buf rest; /* the line at hand as far as it came; at most LIMIT_LOG_PIECE bytes */
    bool in_pieces;  /* a piece of the line at hand was passed on */
    void (*line)(void *ctx, const char *text, size_t len); /* without the newline; a carriage
                                                              return stays */
    void *ctx;
};

void
log_lines_init(struct log_lines *l, void (*line)(void *ctx, const char *text, size_t len),
               void *ctx);
void
log_lines_done(struct log_lines *l);

/* Forget the line at hand. */
void
log_lines_reset(struct log_lines *l);

void
log_lines_feed(struct log_lines *l, const char *bytes, size_t len);

/* The same, but no more than so many lines: bytes used. */
size_t
log_lines_feed_some(struct log_lines *l, const char *bytes, size_t len, unsigned max_lines);

/* The stream is over: what has no newline is a line too. */
void
log_lines_end(struct log_lines *l);

#endif
