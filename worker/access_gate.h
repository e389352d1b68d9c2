/* Where policy is applied: every request of every connection passes here before routing. */
#ifndef WORKER_ACCESS_GATE_H
#define WORKER_ACCESS_GATE_H

#include <stdbool.h>

struct exchange;

/* Admit or refuse. Refused requests and preflights are answered here; for others `admitted`
 * is called, now or when the broker has said who the peer is. */
void
access_gate_enter(struct exchange *x, void (*admitted)(struct exchange *x));

/* One line about a refusal, sparsely. `reason` is a text of ours; `understood`: the head was
 * read, so its method and path are there. */
void
access_gate_log_refusal(const struct exchange *x, int status, const char *reason,
                        bool understood);

#endif
