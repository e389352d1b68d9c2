/* The routes below /api/launch (contract 10.4). */
#ifndef WORKER_LAUNCH_H
#define WORKER_LAUNCH_H

#include <stdbool.h>

struct exchange;
struct launchables_list;

void
handle_launch_models(struct exchange *x);
void
handle_launch_agents(struct exchange *x);
void
handle_launch_tasks(struct exchange *x);
void
handle_launch_config(struct exchange *x);
void
handle_launch_doctor(struct exchange *x);
void
handle_launch(struct exchange *x);
void
handle_launch_cancel(struct exchange *x);
void
handle_launch_clear(struct exchange *x);
void
handle_launch_status(struct exchange *x);
void
handle_launch_logs(struct exchange *x);

/* --- shared by the files of this area --------------------------------------------------- */

/* An exchange that waits for the broker; freed by launch_wait_end. */
struct launch_wait {
    struct exchange *x; /* NULL: the client went away */
    void (*then)(struct launch_wait *w, const struct launchables_list *list);
    void *ctx; /* freed with free() */
};

/* NULL: no memory, and the exchange is answered. */
struct launch_wait *
launch_wait_new(struct exchange *x, void *ctx);

/* Free it and return the exchange, or NULL: nobody waits any more. */
struct exchange *
launch_wait_end(struct launch_wait *w);

/* Ask what can be launched; `then` is called with the list, or NULL: try again. */
void
launch_wait_offer(struct launch_wait *w,
                  void (*then)(struct launch_wait *w, const struct launchables_list *list));

/* Answer 503 because a part of the server is away. */
void
launch_answer_away(struct exchange *x, const char *error);

#endif
