/* A whole broker in the test's process, with the test as its master and its one worker. */
#ifndef TESTS_BROKER_FIXTURE_H
#define TESTS_BROKER_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "broker/broker.h"
#include "common/channel.h"
#include "common/messages.h"

struct fixture {
    struct broker b;
    int master;     /* the master's end of the control channel */
    int worker;     /* the worker's end */
    uint32_t seq;
    char dir[64];   /* a fresh folder; results root: dir/results, checkout: dir */
    struct channel_packet packet; /* the newest message to the worker */
};

/* A folder and a configuration; `script`: text of the shell script that plays the CLI, or
 * NULL: none is there. Nothing runs yet. */
void
fixture_prepare(struct fixture *f, const char *script);

/* Start the broker and greet it (unless `greet` is false). */
void
fixture_start(struct fixture *f, bool greet);

void
fixture_stop(struct fixture *f);

/* Another worker 1 with a channel of its own; the old end is closed. */
void
fixture_new_worker(struct fixture *f, bool greet);

/* Let the broker work until a message for the worker is there (in f->packet), or its channel
 * is closed: false. Fails the test after 20 s. */
bool
fixture_receive(struct fixture *f);

/* Send a request of this type (head filled in, length and descriptors from the table) and
 * return its answer, checked for shape. NULL: the channel was closed. */
const void *
fixture_ask(struct fixture *f, uint16_t type, void *request, int fd);

/* The number of the worker that the master was asked to kill, 0: none. */
uint32_t
fixture_killed(struct fixture *f);

/* Let the broker work until `done` says so. Fails the test after 20 s. */
void
fixture_run_until(struct fixture *f, bool (*done)(void *ctx), void *ctx);

/* Make dir/<path> with its parents; a file when `text` is not NULL, else a folder. */
void
fixture_put(struct fixture *f, const char *path, const char *text);

/* dir/<path> in a static buffer. */
const char *
fixture_path(struct fixture *f, const char *path);

#endif
