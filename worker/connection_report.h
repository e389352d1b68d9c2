/* How a connection looks from the server's side. */
#ifndef WORKER_CONNECTION_REPORT_H
#define WORKER_CONNECTION_REPORT_H

struct exchange;

/* Host, Origin, peer and settings as the server sees them: with what the page sees, the two
 * sides of every proxy fault. */
void
handle_connection(struct exchange *x);

#endif
