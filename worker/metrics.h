/* For those who watch the server: GET /healthz and GET /api/metrics. */
#ifndef WORKER_METRICS_H
#define WORKER_METRICS_H

struct exchange;

/* Needs no token and tells nothing: 200 "ok", or 503 while a part is away or the server
 * stops. */
void
handle_healthz(struct exchange *x);

/* The counters of all workers in Prometheus' text format 0.0.4. */
void
handle_metrics(struct exchange *x);

#endif
