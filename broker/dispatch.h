/*
 * The broker's side of the vocabulary: each worker's channel, and one table that says which
 * handler takes which message. Handlers are declared here, one file per area has them.
 */
#ifndef BROKER_DISPATCH_H
#define BROKER_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/channel.h"
#include "common/messages.h"

struct broker;
struct dispatch;

/* Who asked what: kept by a handler that answers later. Plain data, copied freely; a worker
 * that is gone meanwhile makes the answer go nowhere. */
struct ask {
    uint64_t peer; /* this worker's channel; never used twice */
    uint32_t seq;
    uint16_t type;
    uint8_t role; /* enum role: what its asker may do */
    uint16_t as;  /* the token whose proof was shown; 0: none */
};

struct dispatch *
dispatch_new(struct broker *b);
void
dispatch_free(struct dispatch *d);

/* Worker `number` (1..LIMIT_WORKERS) has a new channel, which now belongs to us; an older one
 * of that number is closed. 0; -EINVAL (number) or -ENOMEM: `fd` is closed. */
int
dispatch_add_worker(struct dispatch *d, uint32_t number, int fd);

/* The name of a token (`as` of struct ask), which stays when the token is changed; "": none. Valid
 * until the configuration changes. */
const char *
dispatch_token_name(const struct broker *b, uint16_t as);

/* The configuration has other tokens now: what was shown of those that went counts no more. */
void
dispatch_tokens_changed(struct dispatch *d);

/* Answer a request, once. `answer` is the struct of the request's type; its head is filled in
 * here. `fd` goes along and is closed here in every case; -1: none. */
void
dispatch_answer(struct dispatch *d, const struct ask *ask, void *answer, int fd);

/* Answer a request that needs nothing but a status: the rest of its answer is zero. */
void
dispatch_answer_status(struct dispatch *d, const struct ask *ask, enum answer_status status);

/* Tell an event to the worker of channel `peer`; nothing happens when it is gone. */
void
dispatch_tell(struct dispatch *d, uint64_t peer, uint16_t type, void *event);

/* Workers that are connected, and what they still wait for. */
unsigned
dispatch_n_peers(const struct dispatch *d);
unsigned
dispatch_n_pending(const struct dispatch *d);

/* Does this worker not read as fast as it is told? Then a caller that can tell later should. */
bool
dispatch_is_behind(struct dispatch *d, uint64_t peer);

/*
 * A handler gets a request of exactly its type's length and descriptor count, whose head is
 * checked. It validates every field, then answers through dispatch_answer, now or later, and
 * returns 0. -EBADMSG: malformed, the worker is ended (nothing may have been answered).
 * Descriptors it takes from `packet` it sets to -1.
 */
typedef int (*dispatch_handler)(struct broker *b, const struct ask *ask,
                                const void *request, struct channel_packet *packet);

int
handle_runs_list(struct broker *b, const struct ask *ask, const void *request,
                 struct channel_packet *packet);
int
handle_results_scan(struct broker *b, const struct ask *ask, const void *request,
                    struct channel_packet *packet);
int
handle_run_locate(struct broker *b, const struct ask *ask, const void *request,
                  struct channel_packet *packet);
int
handle_run_file(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet);
int
handle_run_stop(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet);
int
handle_run_remove(struct broker *b, const struct ask *ask, const void *request,
                  struct channel_packet *packet);
int
handle_run_logs(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet);
int
handle_child_end(struct broker *b, const struct ask *ask, const void *request,
                 struct channel_packet *packet);
int
handle_peer_uid(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet);

int
handle_launchables(struct broker *b, const struct ask *ask, const void *request,
                   struct channel_packet *packet);
int
handle_catalog(struct broker *b, const struct ask *ask, const void *request,
               struct channel_packet *packet);
int
handle_doctor(struct broker *b, const struct ask *ask, const void *request,
              struct channel_packet *packet);
int
handle_launch(struct broker *b, const struct ask *ask, const void *request,
              struct channel_packet *packet);
int
handle_launch_cancel(struct broker *b, const struct ask *ask, const void *request,
                     struct channel_packet *packet);
int
handle_launch_clear(struct broker *b, const struct ask *ask, const void *request,
                    struct channel_packet *packet);
int
handle_launch_watch(struct broker *b, const struct ask *ask, const void *request,
                    struct channel_packet *packet);
int
handle_launch_output(struct broker *b, const struct ask *ask, const void *request,
                     struct channel_packet *packet);
int
handle_assistant_start(struct broker *b, const struct ask *ask, const void *request,
                       struct channel_packet *packet);

int
handle_run_connect(struct broker *b, const struct ask *ask, const void *request,
                   struct channel_packet *packet);
int
handle_run_watch(struct broker *b, const struct ask *ask, const void *request,
                 struct channel_packet *packet);
int
handle_run_unwatch(struct broker *b, const struct ask *ask, const void *request,
                   struct channel_packet *packet);
int
handle_task_file(struct broker *b, const struct ask *ask, const void *request,
                 struct channel_packet *packet);
int
handle_tty_open(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet);
int
handle_tty_join(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet);
int
handle_tty_take(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet);
int
handle_tty_leave(struct broker *b, const struct ask *ask, const void *request,
                 struct channel_packet *packet);
int
handle_tty_list(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet);
int
handle_tty_end(struct broker *b, const struct ask *ask, const void *request,
               struct channel_packet *packet);

#endif
