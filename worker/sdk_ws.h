/* A run's data (project, files, diff, dialog, result) as a WebSocket. */
#ifndef WORKER_SDK_WS_H
#define WORKER_SDK_WS_H

struct exchange;

void
handle_sdk_ws(struct exchange *x);
void
handle_sdk_connections(struct exchange *x);

#endif
