/* Documents that are made from parsed files (contract 4.4). */
#ifndef WORKER_DOC_RENDER_H
#define WORKER_DOC_RENDER_H

#include <stddef.h>

#include "common/buf.h"

/* summary.json -> the project's document. 0; -EBADMSG when it is not usable. */
int
doc_render_project(const char *bytes, size_t len, struct buf *out);

/* result.json -> the grade. 0; -EBADMSG when there is none in it yet. */
int
doc_render_result(const char *bytes, size_t len, struct buf *out);

#endif
