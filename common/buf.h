/* A growing byte string with a bound; the first error sticks and is asked for once. */
#ifndef COMMON_BUF_H
#define COMMON_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *data;  /* owned; NUL-terminated whenever len > 0 */
    size_t len;  /* bytes, without the NUL */
    size_t cap;
    size_t max;  /* 0: no bound of its own */
    bool failed; /* out of memory or over max: the contents are not to be used */
};

void
buf_init(struct buf *b, size_t max);
void
buf_done(struct buf *b);
void
buf_reset(struct buf *b); /* empty, memory kept, error cleared */

void
buf_add(struct buf *b, const void *bytes, size_t len);
void
buf_add_str(struct buf *b, const char *text);
__attribute__((format(printf, 2, 3))) void
buf_add_format(struct buf *b, const char *format, ...);

/* Room for at least `len` more bytes; returns where to write, or NULL (failed). Follow with
 * buf_commit for what was written. */
char *
buf_reserve(struct buf *b, size_t len);
void
buf_commit(struct buf *b, size_t len);

/* Remove `len` bytes from the front. */
void
buf_consume(struct buf *b, size_t len);

/* Hand the memory to the caller (free with free()); the buffer is empty again. NULL when it
 * failed. */
char *
buf_take(struct buf *b, size_t *ret_len);

#endif
