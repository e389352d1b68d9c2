/*
 * The document of a large summary.json or result.json, slice by slice: what doc_render.c makes
 * of a small one at once. First the file is looked at, then the values are copied as they
 * stand. Memory is one slice. Pure.
 */
#ifndef WORKER_DOC_SLICES_H
#define WORKER_DOC_SLICES_H

#include <stdint.h>

#include "common/buf.h"

#define DOC_AT_ONCE (128u * 1024u) /* bytes; a smaller file is parsed in one turn */

enum doc_slices_kind { DOC_PROJECT, DOC_RESULT };

struct doc_slices;

/* Takes the descriptor, on failure too. NULL: no memory. */
struct doc_slices *
doc_slices_new(int fd, uint64_t size, enum doc_slices_kind kind);
void
doc_slices_free(struct doc_slices *d);

/* Look at one slice more. 1: go on; 0: it can be rendered; -EBADMSG: it is no such document;
 * -EIO. */
int
doc_slices_look(struct doc_slices *d);

/* Then: add the next slice of the document. 1; 0: it is complete, nothing was added; -EIO.
 * As body_source takes it. */
int
doc_slices_fill(void *d, struct buf *out);
void
doc_slices_done(void *d);

#endif
