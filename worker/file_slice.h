/* Reading run files piece by piece; they may shrink or grow meanwhile. */
#ifndef WORKER_FILE_SLICE_H
#define WORKER_FILE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define FILE_SLICE (64u * 1024u) /* bytes read at a time */

/* Read at most `max` bytes at `offset`. Bytes read, 0 at the end, -EIO. */
int64_t
file_slice_read(int fd, void *into, size_t max, uint64_t offset);

/* Read a slice of a text file of `size` bytes at `offset` and add it as the inside of a JSON
 * string; a sequence of UTF-8 at the slice's border is left to the next one. Bytes taken, 0 at
 * the end, -EIO. */
int64_t
file_slice_escape(int fd, uint64_t size, uint64_t offset, struct buf *out);

/* The whole of an open file (at most LIMIT_RUN_FILE), malloc'ed. NULL: unreadable, no memory,
 * too large or empty. */
char *
file_slice_whole(int fd, uint64_t size, size_t *ret_len);

/* Are these bytes nothing but blanks? */
bool
file_slice_is_blank(const char *bytes, size_t len);

/* Does the file hold nothing but blanks? */
bool
file_slice_blank(int fd, uint64_t size);

#endif
