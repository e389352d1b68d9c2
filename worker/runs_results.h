/*
 * The finished runs, kept compact and changed record by record as the broker's scans say
 * (contract 2.10, 4.3, 4.4). Summaries are hostile bytes; a run whose summary is not usable is
 * not in the table. No I/O.
 */
#ifndef WORKER_RUNS_RESULTS_H
#define WORKER_RUNS_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum grade { GRADE_NONE, GRADE_PASSED, GRADE_FAILED, GRADE_ERROR };
enum tristate { TRI_NULL, TRI_FALSE, TRI_TRUE };

/* One finished run. Texts are NULL where the summary has null, nothing or no string. */
struct finished_run {
    uint64_t ref; /* of the run directory, for RUN_FILE; valid in runs_epoch() */
    int64_t mtime_ns;
    const char *run_id, *task, *model, *agent, *mode, *status, *started_at;
    const char *egress, *language, *project;
    double spend;         /* USD; negative: not told */
    int32_t duration;     /* agent's seconds; -1: not told */
    int32_t timeout;      /* seconds; -1: not told */
    int32_t pov_passed, pov_total; /* -1: not told */
    int8_t difficulty;    /* 0..4; -1: not told */
    uint8_t grade;        /* enum grade, by the rule of contract 4.2 when status is absent */
    uint8_t build, func, intent;             /* enum tristate */
    uint8_t agent_timeout, evaluator_timeout; /* enum tristate */
    bool reference_run;
    bool named; /* its directory's name is its ID, as the command names it */
    /* private */
    bool removed; /* no longer in the table, but in its order */
    uint64_t id_hash;
    struct finished_run *next_ref, *next_id; /* chains of the two indexes */
    struct finished_run *heap_child, *heap_left, *heap_right; /* worker/run_heap.h */
};

struct results_table;

/* `key`: random, for its hash of IDs, which agents may choose. */
struct results_table *
results_table_new(const uint64_t key[2]);
void
results_table_free(struct results_table *t);

/* Forget everything (another broker numbers anew). */
void
results_table_clear(struct results_table *t);

/* Apply records (struct scan_record of common/messages.h, laid out one after another) from
 * the front of bytes[0..len) until about `budget` bytes of summaries were parsed; a short one
 * counts as 1 KiB. Returns how many bytes were used, or -EBADMSG for a layout that cannot be, or -ENOMEM. */
int64_t
results_table_apply(struct results_table *t, const unsigned char *bytes, size_t len,
                    size_t budget);

/* The winner among the runs of this ID (one named by it, then later started_at), or NULL. */
const struct finished_run *
results_table_find(const struct results_table *t, const char *run_id);

bool
results_table_is_empty(const struct results_table *t);

/* Winners in the order of `runs results`: started_at, then run_id, descending. Valid until the
 * next apply or clear. NULL and 0 when there are none, or no memory. */
const struct finished_run *const *
results_table_sorted(struct results_table *t, size_t *ret_n);

/* Changes with every applied change. */
uint64_t
results_table_version(const struct results_table *t);

const char *
grade_name(enum grade grade); /* NULL for GRADE_NONE */

#endif
