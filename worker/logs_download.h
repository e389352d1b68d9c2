/* A run's whole log as a file: what is kept of a finished run, what there is now of a live one. */
#ifndef WORKER_LOGS_DOWNLOAD_H
#define WORKER_LOGS_DOWNLOAD_H

struct exchange;

void
handle_logs(struct exchange *x);

#endif
