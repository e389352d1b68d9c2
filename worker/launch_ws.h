/* /api/launch/ws: every launch's status and output, to everyone who looks. */
#ifndef WORKER_LAUNCH_WS_H
#define WORKER_LAUNCH_WS_H

struct exchange;
struct launch_entry;

void
handle_launch_ws(struct exchange *x);

/* From the table: a launch is there or changed; its output grew; it is about to be freed. */
void
launch_ws_changed(struct launch_entry *entry);
void
launch_ws_grown(struct launch_entry *entry);
void
launch_ws_cleared(struct launch_entry *entry);

#endif
