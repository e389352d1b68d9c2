/*
 * Asking the broker: one function per request, mirrored by handle_X and act_X over there.
 * Answers come later, in a callback; a broker that is down answers ANSWER_BUSY at once.
 */
#ifndef WORKER_BROKER_LINK_H
#define WORKER_BROKER_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/channel.h"
#include "common/messages.h"

/* Called once per request. `answer` is the checked answer struct of the request's type
 * (cast), or NULL when the broker went away: say "try again". Descriptors: take from
 * fds[0..n_fds) by setting to -1; the rest is closed afterwards. */
typedef void (*broker_answer_fn)(void *ctx, const void *answer, int *fds, unsigned n_fds);

/* Names a request until its callback ran. 0 is none. */
typedef uint32_t broker_ticket;

struct ev_loop;
void
broker_link_init(struct ev_loop *loop, int channel_fd);

/* The master sent a new channel: pending requests are answered with NULL, then it is used. */
void
broker_link_replace(int channel_fd);

/* False while the broker is away. */
bool
broker_link_up(void);

/* Never call the callback of this request; what still comes for it is closed,
 * and ended where the broker would keep it (worker/broker_ends.h). */
void
broker_cancel(broker_ticket ticket);

/* The general form, for modules that own a message of the vocabulary: `request` is its whole
 * struct (the head is filled in here; `as` is worker/broker_as.h's). The callback may run before this returns (broker away,
 * table full: NULL answer, ticket 0). `fn` NULL: the answer is of no interest. */
broker_ticket
broker_ask(uint16_t type, void *request, const int *fds, unsigned n_fds,
           broker_answer_fn fn, void *ctx);

/* Who hears events of this type: their whole, checked struct. One listener a type, for good. */
void
broker_on_event(uint16_t type, void (*fn)(const void *event));

/* Who hears that a broker is there (again), after it was greeted: what was asked of an earlier
 * one is forgotten. For good; at most BROKER_UP_LISTENERS. */
#define BROKER_UP_LISTENERS 8u
void
broker_on_up(void (*fn)(void));

broker_ticket
broker_ask_runs_list(uint64_t generation, bool no_wait, broker_answer_fn fn, void *ctx);
broker_ticket
broker_ask_results_scan(uint64_t epoch, uint64_t generation, broker_answer_fn fn, void *ctx);
broker_ticket
broker_ask_run_locate(const char *task, const char *model, const char *agent,
                      const char *run_id, broker_answer_fn fn, void *ctx);
broker_ticket
broker_ask_run_file(uint64_t epoch, uint64_t ref, enum run_file file, broker_answer_fn fn,
                    void *ctx);
broker_ticket
broker_ask_run_stop(uint16_t token, const char *run_id, broker_answer_fn fn, void *ctx);
broker_ticket
broker_ask_run_remove(uint16_t token, const char *run_id, broker_answer_fn fn, void *ctx);
broker_ticket
broker_ask_run_logs(const char *run_id, bool once, broker_answer_fn fn, void *ctx);
broker_ticket
broker_ask_peer_uid(int connection_fd, broker_answer_fn fn, void *ctx);
void
broker_ask_child_end(uint64_t child);

/* Who hears that follower `child` ended: its exit status, or -1 when the broker went away.
 * Register in the callback of its answer; broker_ask_child_end forgets it. */
void
broker_on_child_end(uint64_t child, void (*fn)(void *ctx, int exit_status), void *ctx);

#endif
