/* The documents of a run that goes on, from its daemon to the client. */
#ifndef WORKER_RUN_DAEMON_H
#define WORKER_RUN_DAEMON_H

struct exchange;

/* Answer with the daemon's status and body for `target` (constant path, perhaps a query). */
void
run_daemon_answer(struct exchange *x, const char *run_id, const char *target);

/* The same for the dialog, which is cut and says so when it is over the limit for an answer. */
void
run_daemon_answer_dialog(struct exchange *x, const char *run_id, const char *target);

/* The grade: the daemon's, else that of the run directory's result.json, else what the daemon
 * said (contract 10.4). */
void
run_daemon_answer_result(struct exchange *x, const char *run_id);

/* {"healthy":...} (contract 10.4). */
void
run_daemon_answer_health(struct exchange *x, const char *run_id);

#endif
