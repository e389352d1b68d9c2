/* Compressing JSON answers with zlib: at once when small, in slices when large. */
#ifndef WORKER_GZIP_H
#define WORKER_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/exchange.h"

#define GZIP_FROM 1024u            /* bytes; smaller answers fit a packet anyway */
#define GZIP_AT_ONCE (128u * 1024u) /* bytes; about 2 ms of work, larger ones go in slices */

/* Does the client take gzip (RFC 9110 12.5.3)? "gzip;q=0" says no. */
bool
gzip_accepted(const struct request *request);

/* Compress `bytes` (malloc'ed, taken). Returns malloc'ed bytes and their length; the same
 * ones when they do not shrink or there is no memory: gzip_is tells. */
char *
gzip_bytes(char *bytes, size_t *len);
bool
gzip_is(const char *bytes, size_t len);

/* Answer with `bytes` (malloc'ed, taken) compressed in slices. */
void
gzip_answer(struct exchange *x, int status, char *bytes, size_t len);

/* Wrap a source: what it gives goes out compressed. Takes the source; on failure (memory, too
 * many at once) it is given back unchanged and `ret_wrapped` is false. */
struct body_source
gzip_source(struct body_source inner, bool *ret_wrapped);

#endif
