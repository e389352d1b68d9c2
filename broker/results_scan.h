/* RESULTS_SCAN: what changed among the finished runs, in batches, without keeping the loop. */
#ifndef BROKER_RESULTS_SCAN_H
#define BROKER_RESULTS_SCAN_H

struct broker;
struct results_scan;

/* Begins the first walk (b->run_dirs is there). NULL: no memory. */
struct results_scan *
results_scan_new(struct broker *b);
void
results_scan_free(struct results_scan *scan);

/* A run ended or went: the next request begins a walk, however young the last one is. */
void
results_scan_expire(struct results_scan *scan);

/* Forget the table and its references; the next answers bring everything under a new epoch. */
void
results_scan_renew(struct results_scan *scan);

#endif
