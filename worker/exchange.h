/*
 * One request being answered. The HTTP side (worker/http.h) makes it, a route answers it
 * exactly once, now or later. If the client goes away first, `on_gone` is called (once) and
 * the exchange must not be touched again.
 */
#ifndef WORKER_EXCHANGE_H
#define WORKER_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "policy/role.h"
#include "worker/request.h"

struct exchange;

/* The request, valid until the answer begins. The body is body[0..body_len). */
const struct request *
exchange_request(const struct exchange *x);
const char *
exchange_body(const struct exchange *x, size_t *ret_len);
/* The run ID (or other parameter) that the route's pattern matched, NUL-terminated. */
const char *
exchange_param(const struct exchange *x, unsigned index);

/* In whose name the broker is asked for it (worker/broker_as.h): the number of the client's
 * token, or 0 where there are no tokens; and what that allows. */
uint16_t
exchange_token(const struct exchange *x);
enum role
exchange_role(const struct exchange *x);

/* Someone waits for a broker answer on behalf of this exchange: call when the client is gone. */
void
exchange_on_gone(struct exchange *x, void (*gone)(struct exchange *x, void *ctx), void *ctx);

/* Extra answer header, before the answer begins; `value` without control bytes. */
void
exchange_header(struct exchange *x, const char *name, const char *value);

/* Answer with JSON (status, body). Takes the buffer's memory; a failed buffer becomes a 500.
 * Bodies over 1 KiB are gzipped when the client accepts it. */
void
exchange_json(struct exchange *x, int status, struct buf *body);

/* The same for text of another type, as it stands. */
void
exchange_text(struct exchange *x, int status, const char *type, struct buf *body);

/* Answer {"error": error} and, if not NULL, "hint". */
void
exchange_error(struct exchange *x, int status, const char *error, const char *hint);

/* Answer with bytes that live for ever (page assets). `type` is the content type. */
void
exchange_static(struct exchange *x, int status, const char *type, const void *bytes,
                size_t len);

/* Answer with a body that is produced as the client takes it. `fill` adds at least one byte
 * to `out` (as it likes, up to about 64 KiB) and returns 1, or 0 at the end, or -EAGAIN: call
 * exchange_resume when there is more; any other -errno cuts the connection. `done` frees ctx
 * in every case. Sent chunked (HTTP/1.0: until close). */
struct body_source {
    int (*fill)(void *ctx, struct buf *out);
    void (*done)(void *ctx);
    void *ctx;
};
void
exchange_stream(struct exchange *x, int status, const char *type, struct body_source source);
void
exchange_resume(struct exchange *x);

#endif
