/* One short call of the command line interface: output kept in memory, time limited. */
#ifndef BROKER_CLI_H
#define BROKER_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "common/limits.h"
#include "common/messages.h"

struct broker;
struct cli;

enum cli_outcome {
    CLI_EXITED,    /* by itself; see exit_status */
    CLI_TIMEOUT,   /* ended by us */
    CLI_TOO_LARGE, /* printed more than LIMIT_CLI_OUTPUT; ended by us */
    CLI_FAILED,    /* our own side: memory, descriptors */
};

struct cli_result {
    enum cli_outcome outcome;
    int exit_status; /* 0..255, or 128 + signal */
    int output_fd;   /* sealed memfd with stdout, or -1; take it by setting -1 */
    size_t size;     /* bytes in it */
    /* Why it did not work, for people: the last line of stderr, or our own words; "" after
     * status 0. */
    char error[LIMIT_CLI_ERROR];
};

typedef void (*cli_done_fn)(void *ctx, struct cli_result *result);

struct cli_call {
    const char *const *args; /* NULL-terminated, after SSEBENCH_CLI's words */
    char *const *program;    /* another command line in place of the CLI; args[0] names it */
    int in_fd;               /* its stdin */
    unsigned timeout_ms;     /* 0: LIMIT_CLI_MS */
    bool own_bound;          /* the caller bounds itself: not counted in LIMIT_CLI_CALLS */
    cli_done_fn fn;
    void *ctx;
};

struct cli *
cli_new(struct broker *b);
void
cli_free(struct cli *cli); /* after children_free: no callback runs */

/* Start a call; `fn` is called once, later. 0; -EBUSY: LIMIT_CLI_CALLS are running; another
 * -errno: it could not be started. With an error, `error` (LIMIT_CLI_ERROR bytes) has the
 * reason and `fn` is never called. */
int
cli_start(struct cli *cli, const struct cli_call *call, char *error);

/* What a call about one run came to, by its exit status: OK, NOT_FOUND, AMBIGUOUS, TIMEOUT or
 * FAILED. */
enum answer_status
cli_answer_status(const struct cli_result *result);

#endif
