/* The routes about runs: list, one run, its documents, stop and remove. */
#ifndef WORKER_RUNS_H
#define WORKER_RUNS_H

struct exchange;

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

#endif
