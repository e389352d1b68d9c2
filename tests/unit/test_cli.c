/* Calls of the CLI: what comes back, what the child sees, and that its whole group ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/child.h"
#include "broker/cli.h"
#include "broker_fixture.h"

static const char script[] =
    "#!/bin/sh\n"
    "case $1 in\n"
    "runs) echo '{}' ;;\n"
    "hello) printf hello; echo noise >&2 ;;\n"
    "status7) echo first >&2; printf 'the reason\\n\\n' >&2; exit 7 ;;\n"
    "silent5) exit 5 ;;\n"
    "signal) kill -USR1 $$ ;;\n"
    "control) printf 'a\\033[31mb\\001\\n' >&2; exit 1 ;;\n"
    "longline) head -c 9000 /dev/zero | tr '\\0' x >&2; exit 1 ;;\n"
    "flood) exec head -c 40000000 /dev/zero ;;\n"
    "full) exec head -c 33554432 /dev/zero ;;\n"
    "env) env ;;\n"
    "pwd) pwd -P ;;\n"
    "stdin) cat ;;\n"
    "args) for a; do echo \"[$a]\"; done ;;\n"
    "fds) exec ls /proc/self/fd ;;\n"
    "group) sleep 600 & echo $! ;;\n"
    "escape) setsid sleep 600 & echo $! ;;\n"
    "hang) echo $$; exec sleep 600 ;;\n"
    "deaf) trap '' TERM; echo $$; while :; do sleep 600; done ;;\n"
    "esac\n";

struct called {
    bool done;
    struct cli_result result;
    char output[4096];
};

static void
on_done(void *ctx, struct cli_result *result)
{
    struct called *c = ctx;
    ssize_t n = pread(result->output_fd, c->output, sizeof c->output - 1, 0);

    c->output[n > 0 ? n : 0] = '\0';
    c->result = *result;
    c->done = true;
}

static bool
is_done(void *ctx)
{
    return ((struct called *)ctx)->done;
}

static struct called *
call(struct fixture *f, const char *const *args, unsigned timeout_ms)
{
    static struct called c;
    struct cli_call q = {.args = args, .timeout_ms = timeout_ms, .fn = on_done, .ctx = &c};
    char error[LIMIT_CLI_ERROR];

    memset(&c, 0, sizeof c);
    assert_int_equal(cli_start(f->b.cli, &q, error), 0);
    fixture_run_until(f, is_done, &c);
    return &c;
}

static const struct {
    const char *word;
    enum cli_outcome outcome;
    int exit_status;
    const char *output; /* NULL: not compared */
    const char *error;
} rows[] = {
    {"hello", CLI_EXITED, 0, "hello", ""},
    {"status7", CLI_EXITED, 7, "", "the reason"},
    {"silent5", CLI_EXITED, 5, "", "`ssebench silent5` ended with status 5"},
    {"signal", CLI_EXITED, 128 + SIGUSR1, "",
     "`ssebench signal` ended with status 138"},
    {"control", CLI_EXITED, 1, "", "a [31mb"},
    {"flood", CLI_TOO_LARGE, 128 + SIGKILL, NULL, "`ssebench flood` printed more than 32 MiB"},
    {"full", CLI_EXITED, 0, NULL, ""},
    {"stdin", CLI_EXITED, 0, "", ""},
};

static void
results_are_told(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const args[] = {rows[i].word, NULL};
        struct called *c = call(*state, args, 0);

        print_message("row %s\n", rows[i].word);
        assert_int_equal(c->result.outcome, rows[i].outcome);
        assert_int_equal(c->result.exit_status, rows[i].exit_status);
        if (rows[i].output != NULL)
            assert_string_equal(c->output, rows[i].output);
        assert_string_equal(c->result.error, rows[i].error);
    }
}

static void
a_full_listing_is_whole(void **state)
{
    static const char *const args[] = {"full", NULL};

    assert_int_equal(call(*state, args, 0)->result.size, LIMIT_CLI_OUTPUT);
}

static void
a_long_line_is_cut(void **state)
{
    static const char *const args[] = {"longline", NULL};
    struct called *c = call(*state, args, 0);

    assert_int_equal(strlen(c->result.error), LIMIT_CLI_ERROR - 1);
}

static void
the_environment_is_ours_without_the_token(void **state)
{
    static const char *const args[] = {"env", NULL};
    struct called *c = call(*state, args, 0);

    assert_non_null(strstr(c->output, "NO_COLOR=1\n"));
    assert_non_null(strstr(c->output, "FORCE_COLOR=0\n"));
    assert_non_null(strstr(c->output, "KEPT=kept\n"));
    assert_null(strstr(c->output, "SSEBENCH_WEBUI_TOKEN"));
}

static void
words_and_arguments_are_a_vector(void **state)
{
    static const char *const args[] = {"args", "a b", "$(id)", "", "*", NULL};
    struct called *c = call(*state, args, 0);

    assert_string_equal(c->output, "[args]\n[a b]\n[$(id)]\n[]\n[*]\n");
}

static void
it_runs_in_the_checkout(void **state)
{
    static const char *const args[] = {"pwd", NULL};
    struct fixture *f = *state;
    struct called *c = call(f, args, 0);

    assert_memory_equal(c->output, f->dir, strlen(f->dir));
}

/* 3 is the folder that ls reads. */
static void
it_inherits_no_descriptor(void **state)
{
    static const char *const args[] = {"fds", NULL};
    struct called *c = call(*state, args, 0);

    assert_string_equal(c->output, "0\n1\n2\n3\n");
}

static bool
is_gone(void *ctx)
{
    return kill(*(pid_t *)ctx, 0) != 0 && errno == ESRCH;
}

static const struct {
    const char *word;
    unsigned timeout_ms;
    enum cli_outcome outcome;
    int exit_status;
} ends[] = {
    {"group", 0, CLI_EXITED, 0},
    {"hang", 200, CLI_TIMEOUT, 128 + SIGTERM},
    {"deaf", 200, CLI_TIMEOUT, 128 + SIGKILL},
};

static void
the_whole_group_ends(void **state)
{
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const char *const args[] = {ends[i].word, NULL};
        struct called *c = call(*state, args, ends[i].timeout_ms);
        pid_t pid = (pid_t)atoi(c->output);

        print_message("row %s\n", ends[i].word);
        assert_int_equal(c->result.outcome, ends[i].outcome);
        assert_int_equal(c->result.exit_status, ends[i].exit_status);
        assert_true(pid > 1);
        fixture_run_until(*state, is_gone, &pid); /* its new parent reaps it */
    }
}

/* A daemon that the CLI leaves behind (kubectl port-forward) may hold the pipe open. */
static void
an_escaped_holder_is_not_waited_for(void **state)
{
    static const char *const args[] = {"escape", NULL};
    struct called *c = call(*state, args, 0);
    pid_t pid = (pid_t)atoi(c->output);

    assert_int_equal(c->result.outcome, CLI_EXITED);
    assert_true(pid > 1);
    kill(pid, SIGKILL);
}

static void
the_output_is_sealed(void **state)
{
    struct fixture *f = *state;
    struct request_runs_list list = {0};
    const struct answer_runs_list *a;

    /* Through the listing, whose memfd a worker gets. */
    a = fixture_ask(f, MESSAGE_RUNS_LIST, &list, -1);
    assert_non_null(a);
    assert_int_equal(a->status, ANSWER_OK);
    assert_int_equal(f->packet.n_fds, 1);
    assert_int_equal(fcntl(f->packet.fds[0], F_GET_SEALS),
                     F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

static void
calls_are_bounded(void **state)
{
    static const char *const args[] = {"hang", NULL};
    static struct called calls[LIMIT_CLI_CALLS], one_more;
    struct fixture *f = *state;
    char error[LIMIT_CLI_ERROR];

    for (unsigned i = 0; i < LIMIT_CLI_CALLS; i++) {
        struct cli_call q = {.args = args, .timeout_ms = 500, .fn = on_done,
                             .ctx = &calls[i]};

        assert_int_equal(cli_start(f->b.cli, &q, error), 0);
    }
    struct cli_call q = {.args = args, .fn = on_done, .ctx = &one_more};

    assert_int_equal(cli_start(f->b.cli, &q, error), -EBUSY);
    assert_non_null(strstr(error, "try again"));
    for (unsigned i = 0; i < LIMIT_CLI_CALLS; i++)
        fixture_run_until(f, is_done, &calls[i]);
    assert_false(one_more.done);
}

static void
what_cannot_start_is_said_at_once(void **state)
{
    static const struct {
        const char *cli, *checkout, *part;
    } bad[] = {
        {"/nonexistent/ssebench", "/", "Cannot run `/nonexistent/ssebench` (SSEBENCH_CLI): No such"},
        {"no-such-program-at-all run", "/", "Cannot run `no-such-program-at-all` (SSEBENCH_CLI)"},
        {"/dev/null", "/", "Permission denied"},
        {"/bin/true", "/nonexistent", "Cannot enter the checkout /nonexistent (SSEBENCH_PATH)"},
    };
    static const char *const args[] = {"x", NULL};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct children *all = children_new(f->b.base, bad[i].cli, bad[i].checkout);
        struct child *child;
        char error[LIMIT_CLI_ERROR];

        assert_non_null(all);
        assert_true(child_start(all, args, 1, 2, NULL, NULL, &child, error, sizeof error) < 0);
        if (strstr(error, bad[i].part) == NULL)
            fail_msg("%s", error);
        children_free(all);
    }
    assert_null(children_new(f->b.base, " \t\n", "/"));
}

static int
setup(void **state)
{
    static struct fixture f;

    close_range(3, ~0u, CLOSE_RANGE_CLOEXEC); /* what whoever runs the tests left open */
    setenv("SSEBENCH_WEBUI_TOKEN", "do-not-show-this-token", 1);
    setenv("SSEBENCH_WEBUI_TOKEN_FILE", "/nowhere", 1);
    setenv("NO_COLOR", "0", 1);
    setenv("KEPT", "kept", 1);
    fixture_prepare(&f, script);
    fixture_start(&f, true);
    *state = &f;
    return 0;
}

static int
teardown(void **state)
{
    fixture_stop(*state);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_told),
        cmocka_unit_test(a_full_listing_is_whole),
        cmocka_unit_test(a_long_line_is_cut),
        cmocka_unit_test(the_environment_is_ours_without_the_token),
        cmocka_unit_test(words_and_arguments_are_a_vector),
        cmocka_unit_test(it_runs_in_the_checkout),
        cmocka_unit_test(it_inherits_no_descriptor),
        cmocka_unit_test(the_whole_group_ends),
        cmocka_unit_test(an_escaped_holder_is_not_waited_for),
        cmocka_unit_test(the_output_is_sealed),
        cmocka_unit_test(calls_are_bounded),
        cmocka_unit_test(what_cannot_start_is_said_at_once),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
