/* Bodies made from an open file, slice by slice, in memory that does not grow with it. */
#ifndef WORKER_BODY_FILE_H
#define WORKER_BODY_FILE_H

#include <stdint.h>

#include "worker/exchange.h"

#define BODY_WHOLE (32u * 1024u) /* a file up to here is answered with a length */

/* `before`, the file's text as the inside of a JSON string, `after` (constant texts). Takes
 * the descriptor. False: no memory (the descriptor is closed). */
bool
body_text_new(int fd, uint64_t size, const char *before, const char *after,
              struct body_source *ret);

/* The same, but `none` when the file holds nothing but blanks. */
bool
body_note_new(int fd, uint64_t size, const char *before, const char *after, const char *none,
              struct body_source *ret);

/* The files of a git diff: {"files":[...]}. Takes the descriptor. */
bool
body_files_new(int fd, uint64_t size, struct body_source *ret);

/* A dialog's entries: {"entries":[...]}. Takes the descriptor. */
bool
body_dialog_new(int fd, uint64_t size, double since, struct body_source *ret);

/* Answer 200 with this body: whole when the file is small, else as a stream. */
void
body_answer(struct exchange *x, struct body_source source, uint64_t size);

#endif
