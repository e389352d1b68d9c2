/* Who did what from where with what result: the facts of log lines about requests. */
#ifndef WORKER_AUDIT_H
#define WORKER_AUDIT_H

#include <stddef.h>

struct exchange;

#define AUDIT_TEXT 64u /* room for either text below */

/* The client's address: the connection's, or, where that is one of SSEBENCH_WEBUI_PROXIES, the
 * last one in X-Forwarded-For. For logs and limits only; nobody is let in by it. */
void
audit_client(const struct exchange *x, char ret_text[AUDIT_TEXT]);

/* "token", "uid:N", "anyone": what admits requests of this exchange's connection. */
void
audit_who(const struct exchange *x, char ret_text[AUDIT_TEXT]);

/* An answer begins (101: a WebSocket was handed over). One line if the request was admitted
 * and may change something; reads are not logged. */
void
audit_answer(const struct exchange *x, int status);

#endif
