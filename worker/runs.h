/*
 * The runs this worker knows: live ones from the CLI's listing, finished ones from the results
 * roots, merged by the contract's rules (4.4, 10.4); and the routes about them.
 */
#ifndef WORKER_RUNS_H
#define WORKER_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/runs_results.h"

struct exchange;
struct live_run;

/* --- routes ------------------------------------------------------------------------ */

void
handle_health(struct exchange *x);
void
handle_containers(struct exchange *x);
void
handle_container(struct exchange *x);
void
handle_container_stop(struct exchange *x);
void
handle_container_remove(struct exchange *x);
void
handle_project(struct exchange *x);
void
handle_diff(struct exchange *x);
void
handle_files(struct exchange *x);
void
handle_dialog(struct exchange *x);
void
handle_result(struct exchange *x);
void
handle_review(struct exchange *x);
void
handle_reference_patch(struct exchange *x);
void
handle_sdk_health(struct exchange *x);
void
handle_sdk_version(struct exchange *x);

/* --- the table --------------------------------------------------------------------- */

/* One run as people see it: live, finished, or both (then the live one leads). */
struct run_row {
    const struct live_run *live;     /* NULL: not listed by the CLI */
    const struct finished_run *done; /* NULL: no summary */
};

/* What is known of the live listing besides the runs. */
struct runs_listing {
    bool known;           /* a listing was had at some time */
    bool supports_exec;   /* true also while unknown */
    const char *backend;  /* NULL: unknown */
    uint64_t age_ms;      /* of the listing; 0 while unknown */
    const char *error;    /* NULL: nothing is wrong; else the reason and since when */
    bool scanned;         /* the finished runs are complete */
    const char *cut;      /* NULL: they are all; else why there are more */
    uint64_t generation;  /* changes with every visible change of the rows */
};

/* Someone waits until the table is current. Embedded in the waiter's own memory. */
struct runs_wait {
    struct runs_wait *next; /* private */
    bool waiting;           /* private */
    int64_t deadline_ms;    /* private */
    void (*ready)(void *ctx);
    void *ctx;
};

/* Call `ready` from the loop (never from here) once the table is as new as the broker has it,
 * or after `limit_ms` with what is there. Nobody is answered from an older look: a run that
 * one worker has shown as over must not go on in the next answer of another worker. */
void
runs_wait(struct runs_wait *w, unsigned limit_ms, void (*ready)(void *ctx), void *ctx);

/* Never call it; harmless if it was called or never waited. */
void
runs_wait_cancel(struct runs_wait *w);

/* Someone wants the listing's state, not a fresh listing. Embedded in his own memory. */
struct runs_glance {
    struct runs_glance *next; /* private */
    void (*ready)(void *ctx);
    void *ctx;
};

/* See to it that the state (runs_listing) is what the broker knew at most a quarter second
 * ago. True: it is, go on. False: `ready` is called as soon as the broker has said so, which
 * never waits for the CLI. Cancel before the memory goes. */
bool
runs_glance(struct runs_glance *g, void (*ready)(void *ctx), void *ctx);
void
runs_glance_cancel(struct runs_glance *g);

/* A run was stopped, removed or launched: what is known is too old for the next asker. */
void
runs_expire(void);

/* The listing's state. Pointers live until the loop is entered again. */
struct runs_listing
runs_listing(void);

/* Find a run by ID. The row's pointers live until the loop is entered again. */
bool
runs_find(const char *id, struct run_row *ret_row);

/* What the result.json of a live run says (run_grades.h). */
void
runs_set_grade(const char *id, enum grade grade, int32_t duration);

/* All rows: live ones in the CLI's order, then finished ones, newest first. */
const struct run_row *
runs_rows(size_t *ret_n);

/* Epoch of the broker that gave out the finished runs' references. */
uint64_t
runs_epoch(void);

#endif
