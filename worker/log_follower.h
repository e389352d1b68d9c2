/*
 * A live run's log: one `runs logs --follow` of the broker, read once, for all its viewers in
 * this worker. Each viewer gets every line from the log's start, in order.
 */
#ifndef WORKER_LOG_FOLLOWER_H
#define WORKER_LOG_FOLLOWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ws;
struct ws_bytes;
struct log_follower;

/* One viewer's place in a log; embedded in the viewer. Zero but for `ws` before the join. */
struct log_place {
    struct log_place *next, **link;
    struct log_follower *follower; /* NULL: not following */
    struct ws *ws;
    uint64_t cursor; /* messages of the log that this viewer has */
};

/* Follow the log of this run: every line from the start, then `end` with the exit status.
 * Errors are told to the viewer as a message. */
void
log_follower_join(struct log_place *place, const char *run_id);

/* Harmless if not following. The last one leaving ends the follower. */
void
log_follower_leave(struct log_place *place);

/* The viewer's queue has room again. */
void
log_follower_resume(struct log_place *place);

/* The messages of a log socket. NULL: no memory. */
struct ws_bytes *
log_message_line(const char *text, size_t len);
struct ws_bytes *
log_message_end(int exit_status);
struct ws_bytes *
log_message_error(const char *text);

#endif
