/*
 * The assistant of each run: which server it has, the key it was given, its process. What
 * assistant.c (choice and requests), assistant_key.c (keys), assistant_server.c (the process)
 * and assistant_end.c (ends) share.
 */
#ifndef BROKER_ASSISTANT_H
#define BROKER_ASSISTANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker/dispatch.h"
#include "broker/keymaker/order.h"
#include "broker/stderr_tail.h"
#include "common/limits.h"

struct broker;
struct child;
struct event;
struct listed;

/* A worker waits for the outcome. */
struct assistant_ask {
    STAILQ_ENTRY(assistant_ask) link;
    struct ask ask;
    enum assistant_wish wish;
};

struct assistant {
    struct assistants *all;
    LIST_ENTRY(assistant) link;
    char run_id[MESSAGE_ID_SIZE];
    STAILQ_HEAD(, assistant_ask) asks;
    bool busy; /* a step is under way; its end goes on with the asks */
    bool gone; /* the run was removed: free it when nothing is under way */

    /* what the container says of its model */
    bool read_known;
    uint64_t seen_ms; /* when it had answered: the run was there before */
    uint64_t read_failed_ms; /* 0: it did not fail */
    enum answer_status read_status;
    char read_error[MESSAGE_ERROR_SIZE];
    char base_url[KEYMAKER_URL_SIZE], model[MESSAGE_MODEL_SIZE];

    /* the key: "" until one is made */
    char key[KEYMAKER_SECRET_SIZE];
    char alias[KEYMAKER_ALIAS_SIZE];
    int alias_fd, old_alias_fd; /* their locked files (assistant_aliases.c), or -1 */
    char config[KEYMAKER_CONFIG_SIZE];
    char old_alias[KEYMAKER_ALIAS_SIZE]; /* of a key that a killed broker had made */
    uint64_t key_failed_ms;
    char key_error[KEYMAKER_ERROR_SIZE];

    /* the server that we started */
    struct child *child; /* NULL: none lives */
    bool ending;
    enum run_port port;
    uint64_t started_ms;
    uint64_t died_young_ms; /* when one ended by itself before anybody could use it; 0: none */
    int err_fd;
    struct event *err_event;
    struct stderr_tail tail;
    char last_error[MESSAGE_ERROR_SIZE]; /* why the last one ended */
};

struct assistants {
    struct broker *broker;
    LIST_HEAD(, assistant) list;
    unsigned n;
    /* the broker's stop */
    unsigned n_farewells;
    struct event *stop_timer;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
};

struct assistants *
assistants_new(struct broker *b);
void
assistants_free(struct assistants *all); /* after children_free */

/* The run is gone: its key is revoked. */
void
assistants_run_removed(struct assistants *all, const char *run_id);

/* What a call of the CLI's listing gave: a run that it lacks is gone. */
void
assistants_on_listing(struct assistants *all, const struct listed *listed);

/* Revoke every key and end, inside the containers too, what was started; then `stopped`, at
 * the latest after LIMIT_REVOKE_MS. */
void
assistants_stop(struct assistants *all, void (*stopped)(void *ctx), void *ctx);

/* --- assistant.c ------------------------------------------------------------------- */

/* NULL: none, or its run is gone. */
struct assistant *
assistant_find(struct assistants *all, const char *run_id);

/* The state of this run's assistant; NULL: no memory, or LIMIT_ASSISTANTS. */
struct assistant *
assistant_find_or_make(struct assistants *all, const char *run_id);

/* A step has ended: go on with who waits. May free it. */
void
assistant_go_on(struct assistant *as);

/* --- assistant_key.c ----------------------------------------------------------------- */

/* Ask the container for its model; ends in assistant_go_on with read_known or read_failed_ms.
 */
void
assistant_read_model(struct assistant *as);

/* Make the key; ends in assistant_go_on with `key` or key_failed_ms. */
void
assistant_make_key(struct assistant *as);

/* A key is out for it. */
bool
assistant_has_keys(const struct assistant *as);

/* Revoke its keys; they are forgotten here at once, but for one that no key maker is free for:
 * that stays. `done` is called later, as often as this returns, whatever the outcome. */
unsigned
assistant_revoke_keys(struct assistant *as, void (*done)(void *ctx), void *ctx);

/* --- assistant_aliases.c ------------------------------------------------------------------ */

/* Remember on disk that a key of this name is out, and that it is no more. The descriptor is
 * the lock that others see; -1: not kept. */
int
assistant_alias_keep(const struct assistant *as);
void
assistant_alias_drop(const struct assistants *all, const char *alias);

/* What dead brokers have left. */
void
assistant_aliases_load(struct assistants *all);

/* --- assistant_server.c ----------------------------------------------------------------- */

/* Start the server on this port. 0, or -errno with last_error filled in. */
int
assistant_server_start(struct assistant *as, enum run_port port);

/* End the one we started, inside its container too; assistant_go_on follows its exit. */
void
assistant_server_end(struct assistant *as);

/* The part inside the container alone. True: `done` is called later. */
bool
assistant_server_end_inside(struct assistant *as, void (*done)(void *ctx), void *ctx);

/* Free what is held of its process. */
void
assistant_server_done(struct assistant *as);

#endif
