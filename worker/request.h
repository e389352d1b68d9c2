/*
 * The strict reader: takes a request's head apart and refuses whatever two parsers could
 * read differently (contract attacks.md, websockets-library.md 7). Pure: bytes in, verdict out.
 */
#ifndef WORKER_REQUEST_H
#define WORKER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/limits.h"

enum request_method {
    METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_PUT, METHOD_PATCH, METHOD_DELETE,
    METHOD_OPTIONS, METHOD_OTHER
};

/* A run of bytes inside the connection's buffer. */
struct span {
    const char *at;
    size_t len;
};

/* One head. Spans point into the bytes that were parsed and live as long as they do. */
struct request {
    enum request_method method;
    char method_name[16];
    bool http10;
    struct span target;        /* as sent, origin-form */
    char path[LIMIT_REQUEST_LINE]; /* decoded once, without the query; NUL-terminated, no NUL inside */
    size_t path_len;
    struct span query;         /* raw, without '?' */
    struct span host;
    struct span origin;        /* at == NULL: header absent, here and below */
    struct span fetch_site;
    struct span authorization;
    struct span content_type;
    struct span accept_encoding;
    struct span if_none_match;
    struct span forwarded_for; /* for logs only */
    struct span idempotency_key;
    bool keep_alive;           /* what the client asks for */
    bool has_length;
    uint64_t content_length;   /* <= LIMIT_BODY + 1 is enough to refuse */
    bool expect_continue;
    bool upgrade;              /* a well-formed WebSocket handshake (RFC 6455 4.2.1) */
    struct span ws_key;        /* 16 bytes of base64 */
    struct span ws_protocols;  /* the whole list */
};

enum request_verdict {
    REQUEST_MORE,  /* not a whole head yet */
    REQUEST_WHOLE, /* `request` is filled in; head_len bytes were used */
    REQUEST_BAD,   /* answer `status` with `reason`, then close */
};

struct request_result {
    enum request_verdict verdict;
    size_t head_len;
    int status;         /* 400, 405, 411, 413, 414, 417, 426, 431, 501, 505 */
    const char *reason; /* one sentence: the limit or rule, for the `error` text */
};

/* Parse one head from the front of bytes[0..len). Never reads past len, never waits. */
struct request_result
request_parse(const char *bytes, size_t len, struct request *ret_request);

/* The decoded value of one query parameter (form decoding: '+' is a blank), NUL-terminated
 * into `out`. 1: found; 0: absent; -EBADMSG: given twice, malformed, holds a NUL, or does not
 * fit. */
int
request_query(const struct request *request, const char *name, char *out, size_t out_size);

#endif
