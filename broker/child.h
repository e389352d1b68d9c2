/* A child process in a session and process group of its own, ended as a group. */
#ifndef BROKER_CHILD_H
#define BROKER_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct event_base;
struct children; /* all of them, and what each is started with */
struct child;    /* one; freed after its exit was told */

#define CHILD_ARGS_MAX 64u /* words of one command line, SSEBENCH_CLI's included */

/* `exit_status` is 0..255, or 128 + signal. The child is gone and its whole group was ended;
 * `child` is freed when this returns. */
typedef void (*child_exit_fn)(void *ctx, int exit_status);

/* `cli`: words split on white space, no quoting, no shell. `checkout`: where children run.
 * Their environment is ours without the token's variables, plus NO_COLOR=1 FORCE_COLOR=0.
 * NULL: no memory, no descriptor, or no word in `cli`. */
struct children *
children_new(struct event_base *base, const char *cli, const char *checkout);

/* SIGKILL every group and free, without waiting: for the end of the process. */
void
children_free(struct children *all);

/* End all (see child_end), start no more, and call `done` when the last one is gone, at once if
 * none is. */
void
children_end_all(struct children *all, void (*done)(void *ctx), void *ctx);

/* Start the CLI with these further arguments (NULL-terminated). stdin is /dev/null;
 * `out_fd` and `err_fd` stay the caller's. 0, or -errno: nothing was started and `error`
 * holds the reason for people. */
int
child_start(struct children *all, const char *const *args, int out_fd, int err_fd,
            child_exit_fn fn, void *ctx, struct child **ret_child, char *error,
            size_t error_size);

/* The CLI's own words (NULL-terminated) and the environment of every child; both live as long
 * as `all`. */
char *const *
children_words(const struct children *all);
char *const *
children_environment(const struct children *all);

/* Start another program (found in PATH) in place of the CLI: `argv` is its whole command line,
 * `in_fd` its stdin. Otherwise like child_start. */
int
child_start_program(struct children *all, char *const *argv, int in_fd, int out_fd, int err_fd,
                    child_exit_fn fn, void *ctx, struct child **ret_child, char *error,
                    size_t error_size);

/* The general form: also with an environment of its own (NULL: that of every child). All of
 * it is borrowed for the call. */
struct child_spec {
    char *const *argv;
    char *const *env;
    int in_fd, out_fd, err_fd;
    bool terminal; /* in_fd becomes its controlling terminal */
    child_exit_fn fn;
    void *ctx;
};
int
child_start_spec(struct children *all, const struct child_spec *spec,
                 struct child **ret_child, char *error, size_t error_size);

/* SIGTERM to the group now, SIGKILL after LIMIT_CLI_GRACE_MS. Its exit is still told. */
void
child_end(struct child *child);

/* SIGHUP to the group now, as when a terminal goes away; SIGKILL after LIMIT_CLI_GRACE_MS. */
void
child_hang_up(struct child *child);

/* Its process ID on this host, for people. */
pid_t
child_pid(const struct child *child);

/* SIGKILL to the group now. Its exit is still told, later. */
void
child_kill(struct child *child);

#endif
