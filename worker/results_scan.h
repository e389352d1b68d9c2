/*
 * The finished runs as the broker's scans of the results roots tell them (RESULTS_SCAN): asked
 * for what changed, applied in slices so that a big first scan holds nobody up. worker/runs.c
 * drives it.
 */
#ifndef WORKER_RESULTS_SCAN_H
#define WORKER_RESULTS_SCAN_H

#include <stdbool.h>
#include <stdint.h>

struct results_table;

/* First of all, once. `ready` is called, perhaps while asking, when results_scan_apply has
 * something to do or nothing is pending any more. */
void
results_scan_init(void (*ready)(void));

/* Ask for what has changed, unless that is under way. */
void
results_scan_ask(void);

/* The same, but what is under way may be too old: then once more after it. */
void
results_scan_again(void);

/* Is an answer awaited or not applied yet? */
bool
results_scan_pending(void);

/* Apply the next slice of an answer. True: call again, in another turn of the loop. */
bool
results_scan_apply(void);

/* The finished runs, never NULL; until the loop is entered again. */
struct results_table *
results_scan_table(void);

/* Changes with every change of what results_scan_table shows, another table included. */
uint64_t
results_scan_version(void);

/* Are they complete? Until the first scan has ended they are not. */
bool
results_scan_whole(void);

/* Why some are missing however often one asks, for people; NULL: none are. */
const char *
results_scan_cut(void);

/* Epoch of the broker that gave out their references. */
uint64_t
results_scan_epoch(void);

#endif
