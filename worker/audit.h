/* Who did what from where with what result: the facts of log lines about requests. */
#ifndef WORKER_AUDIT_H
#define WORKER_AUDIT_H

#include <stddef.h>

struct exchange;

#define AUDIT_TEXT 64u  /* room for an address */
#define AUDIT_WHO 96u   /* room for who it was */

/* The client's address: the connection's, or, where that is one of SSEBENCH_WEBUI_PROXIES, the
 * last one in X-Forwarded-For. For logs and limits only; nobody is let in by it. */
void
audit_client(const struct exchange *x, char ret_text[AUDIT_TEXT]);

/* "who=NAME role=ROLE" with the name of the token it carries; "who=token role=full" for the one
 * of SSEBENCH_WEBUI_TOKEN; "who=unknown" for none; without tokens "who=uid:N", "who=anyone". */
void
audit_who(const struct exchange *x, char ret_text[AUDIT_WHO]);

/* An answer begins (101: a WebSocket was handed over). One line if the request was admitted
 * and may change something; of reads only with SSEBENCH_WEBUI_ACCESS_LOG. */
void
audit_answer(const struct exchange *x, int status);

#endif
