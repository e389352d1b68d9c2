/* The assistant's routes: OpenCode in a run's container, driven through our API (contract 9,
 * 10.4). */
#ifndef WORKER_OPENCODE_H
#define WORKER_OPENCODE_H

struct exchange;

void
handle_opencode_health(struct exchange *x);
void
handle_opencode_sessions(struct exchange *x);
void
handle_opencode_create(struct exchange *x);
void
handle_opencode_session(struct exchange *x);
void
handle_opencode_delete(struct exchange *x);
void
handle_opencode_messages(struct exchange *x);
void
handle_opencode_prompt(struct exchange *x);
void
handle_opencode_permission(struct exchange *x);
void
handle_opencode_abort(struct exchange *x);
void
handle_opencode_events_ws(struct exchange *x);

#endif
