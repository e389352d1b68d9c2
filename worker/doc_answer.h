/*
 * The answers that are made of one file of a run. Each takes the descriptor of the open file
 * and answers the exchange, now or when a large file was looked at in slices.
 */
#ifndef WORKER_DOC_ANSWER_H
#define WORKER_DOC_ANSWER_H

#include <stdint.h>

#include "worker/exchange.h"

#define DOC_NO_NOTE "{\"available\":false}"

/* `since` is for the dialog: only entries above it; the others have no use for it. */
void
doc_answer_diff(struct exchange *x, int fd, uint64_t size, double since);
void
doc_answer_files(struct exchange *x, int fd, uint64_t size, double since);
void
doc_answer_dialog(struct exchange *x, int fd, uint64_t size, double since);
void
doc_answer_review(struct exchange *x, int fd, uint64_t size, double since);
void
doc_answer_project(struct exchange *x, int fd, uint64_t size, double since);
void
doc_answer_result(struct exchange *x, int fd, uint64_t size, double since);

/* 404: the run is over and there is no such file, or none that is usable. `hint` may be NULL. */
void
doc_answer_nothing(struct exchange *x, const char *hint);

/* 503: the broker is away, or no memory. */
void
doc_answer_try_again(struct exchange *x);

#endif
