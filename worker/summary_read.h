/* One summary.json (contract 4.3) as a finished run. Pure. */
#ifndef WORKER_SUMMARY_READ_H
#define WORKER_SUMMARY_READ_H

#include <stddef.h>
#include <stdint.h>

#include "worker/runs_results.h"

#define SUMMARY_TEXT 1024u /* bytes of one kept text; a longer one counts as missing */

/* Read a summary; `dir` (dir_len bytes, relative to its root) names the run if the summary
 * does not. One block of memory, free(). NULL: not usable (contract 2.10: no JSON object, no
 * task, no valid ID, over 8 MiB) or no memory. */
struct finished_run *
summary_read(const char *bytes, size_t len, const char *dir, size_t dir_len);

/* The grade and the agent's seconds (-1: not told) of a result.json (contract 4.2), which may
 * be empty or half there: then GRADE_NONE. */
enum grade
summary_read_result(const char *bytes, size_t len, int32_t *ret_duration);

#endif
