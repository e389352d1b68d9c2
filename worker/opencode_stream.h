/* OpenCode's event stream taken apart, and which events belong to a session. Pure. */
#ifndef WORKER_OPENCODE_STREAM_H
#define WORKER_OPENCODE_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/json_read.h"
#include "common/messages.h"

#define OPENCODE_CHILDREN 32u /* sessions that a session's own tools have opened */

/* Server-sent events (the WHATWG's rules for data lines; other fields are not used). */
struct opencode_stream {
    struct buf line, event;
    bool too_long; /* the event at hand is over LIMIT_OPENCODE_EVENT: skipped */
};

void
opencode_stream_init(struct opencode_stream *s);
void
opencode_stream_done(struct opencode_stream *s);

/* More bytes; `event` is called for each whole event (NULL: one was too long). It returns
 * false to stop: the rest is dropped. */
void
opencode_stream_feed(struct opencode_stream *s, const char *bytes, size_t len,
                     bool (*event)(void *ctx, const char *data, size_t len), void *ctx);

struct opencode_filter {
    char session[129]; /* "": everything passes */
    unsigned n_children;
    char children[OPENCODE_CHILDREN][129];
};

/* Does this event belong to the session, or to nobody's? Learns of the session's children on
 * the way: what a subagent asks is asked of the same user. */
bool
opencode_filter_passes(struct opencode_filter *f, const struct json_value *event);

/* Is it this session, or a child of it? */
bool
opencode_filter_has(const struct opencode_filter *f, const char *session);

void
opencode_filter_add_child(struct opencode_filter *f, const char *session);

#endif
