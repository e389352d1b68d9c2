/*
 * Grades of runs that have no summary yet: a kept run is graded, by its result.json, long before
 * its command ends. Asked for once a second at most, until there is one.
 */
#ifndef WORKER_RUN_GRADES_H
#define WORKER_RUN_GRADES_H

#include <stdbool.h>

struct live_list;

/* Ask for what is missing; runs_set_grade is called with what is found. When something had to
 * be asked, `ready` is called once all answers are in, perhaps before this returns. */
void
run_grades_ask(struct live_list *list, void (*ready)(void));

/* Are answers awaited? */
bool
run_grades_pending(void);

#endif
