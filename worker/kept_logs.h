/*
 * A finished run's kept logs, read from its directory as one viewer takes them: agent.log,
 * then evaluator.log, each that is not blank behind a header line (contract 4.4).
 */
#ifndef WORKER_KEPT_LOGS_H
#define WORKER_KEPT_LOGS_H

#include <stdint.h>

struct ws;
struct kept_logs;

/* A reader for this viewer; kept_logs_free it, at the latest when the socket is gone. `failed`
 * is called when the broker cannot answer now (nothing was sent yet), maybe from within
 * kept_logs_start: do not free it there, but from the loop, and begin anew. NULL: no memory. */
struct kept_logs *
kept_logs_new(struct ws *ws, void (*failed)(void *ctx), void *ctx);

/* Ask for the files of this run directory and send them. */
void
kept_logs_start(struct kept_logs *k, uint64_t epoch, uint64_t ref);

/* The viewer's queue has room again. */
void
kept_logs_resume(struct kept_logs *k);

void
kept_logs_free(struct kept_logs *k); /* NULL: nothing */

#endif
