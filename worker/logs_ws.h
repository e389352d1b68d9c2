/* A run's log as a WebSocket. */
#ifndef WORKER_LOGS_WS_H
#define WORKER_LOGS_WS_H

struct exchange;

void
handle_logs_ws(struct exchange *x);

#endif
