/* Reading an HTTP answer. The parser's header and libwebsockets' define the same names, so it is
 * in a translation unit of its own and shows nothing of itself. */
#ifndef WORKER_UPSTREAM_PARSE_H
#define WORKER_UPSTREAM_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UPSTREAM_TYPE_SIZE 128u

struct upstream_parser; /* about 300 bytes */

struct upstream_sink {
    /* False: no more of this (the parser is not touched afterwards). */
    bool (*head)(void *ctx, int status, const char *type);
    bool (*data)(void *ctx, const char *bytes, size_t len);
    void *ctx;
};

/* NULL: no memory. `endless`: no bound on the body. */
struct upstream_parser *
upstream_parser_new(struct upstream_sink sink, uint64_t max_body, bool endless);
void
upstream_parser_free(struct upstream_parser *p);

/* More bytes. 0: go on; 1: the answer is complete; -EBADMSG: not HTTP, or more than an answer;
 * -EMSGSIZE: over a limit; -ECANCELED: the sink said so. */
int
upstream_parser_feed(struct upstream_parser *p, const char *bytes, size_t len);

/* The other side closed. 1: that completes the answer; -EPIPE: it is cut off. */
int
upstream_parser_end(struct upstream_parser *p);

/* After 1: may the connection be used again? */
bool
upstream_parser_keeps(const struct upstream_parser *p);

/* Has a byte of the answer come? */
bool
upstream_parser_begun(const struct upstream_parser *p);

#endif
