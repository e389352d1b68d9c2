/*
 * The finished runs that claim one ID, as a heap (a pairing heap): the best claim is on top.
 * However many there are, one comes or goes in few comparisons, averaged over all.
 */
#ifndef WORKER_RUN_HEAP_H
#define WORKER_RUN_HEAP_H

struct finished_run;

/* `a` before `b` in the order of `runs results` (contract 2.10): negative; after: positive; 0:
 * only for one and the same. */
int
run_heap_order(const struct finished_run *a, const struct finished_run *b);

/* Two heaps (NULL: none) become one. Its top. */
struct finished_run *
run_heap_join(struct finished_run *a, struct finished_run *b);

/* Take `r` out of the heap below `top`. The new top, NULL after the last. */
struct finished_run *
run_heap_remove(struct finished_run *top, struct finished_run *r);

#endif
