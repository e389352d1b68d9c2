/* The end of an assistant whose run was removed by somebody else, and of many at once. The
 * test plays the CLI and the key maker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/assistant.h"
#include "broker/runs_list.h"
#include "broker_fixture.h"
#include "common/limits.h"

static const char script[] = "#!/bin/sh\n"
                             "case \"$1 $2\" in\n"
                             "'runs list')\n"
                             "  case $(cat mode) in\n"
                             "  fail) echo x > failed; exit 1 ;;\n"
                             "  cut) printf '{\"runs\":[{\"run_id\":\"oth' ;;\n"
                             "  *) cat listing ;;\n"
                             "  esac ;;\n"
                             "'runs exec')\n"
                             "  case \"$*\" in\n"
                             "  *'opencode serve'*) exec sleep 600 ;;\n"
                             "  esac ;;\n"
                             "esac\n";

/* One answer for every order; what was ordered is one byte of a file. */
static const char maker[] = "#!/bin/sh\n"
                            "head -c 1 >> orders\n"
                            "cat answer\n";

static struct fixture fx;

static void
start(void)
{
    struct keymaker_answer answer = {.done = 1, .base_url = "http://proxy/", .model = "m",
                                     .key = "sk-key-of-the-run", .config = "{}"};
    int fd;

    fixture_prepare(&fx, script);
    fixture_put(&fx, "ssebench-webui-keymaker", maker);
    fixture_put(&fx, ".env", "LITELLM_MASTER_KEY=sk-master-of-the-test\n");
    fixture_put(&fx, "mode", "well");
    fixture_put(&fx, "listing", "{\"runs\":[{\"run_id\":\"kept\"}]}\n");
    fixture_put(&fx, "orders", "");
    fixture_put(&fx, "answer", "");
    fd = open(fixture_path(&fx, "answer"), O_WRONLY | O_NOFOLLOW);
    assert_int_equal(write(fd, &answer, sizeof answer), sizeof answer);
    close(fd);
    fixture_put(&fx, "state", NULL);
    snprintf(fx.b.config.state_dir, sizeof fx.b.config.state_dir, "%s",
             fixture_path(&fx, "state"));
    snprintf(fx.b.config.keeper, sizeof fx.b.config.keeper, "%s", fixture_path(&fx, "keeper"));
}

/* Keys of a broker that was killed, of the runs prefix0, prefix1 ... */
static void
leave_keys(const char *prefix, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char path[96], run_id[32];

        snprintf(run_id, sizeof run_id, "%s%u", prefix, i);
        snprintf(path, sizeof path, "state/assistant-keys/webui-assistant-%s-0000000a", run_id);
        fixture_put(&fx, path, run_id);
    }
}

static enum answer_status
begin(const char *run_id)
{
    struct request_assistant q = {.wish = ASSISTANT_BEGIN};
    const struct answer_assistant *a;

    snprintf(q.run_id, sizeof q.run_id, "%s", run_id);
    a = fixture_ask(&fx, MESSAGE_ASSISTANT_START, &q, -1);
    assert_non_null(a);
    return (enum answer_status)a->status;
}

static unsigned
n_orders(enum keymaker_task task)
{
    char bytes[2048];
    int fd = open(fixture_path(&fx, "orders"), O_RDONLY | O_NOFOLLOW);
    ssize_t len = read(fd, bytes, sizeof bytes);
    unsigned n = 0;

    close(fd);
    for (ssize_t i = 0; i < len; i++)
        n += bytes[i] == (char)task;
    return n;
}

/* A call of the listing that begins now. */
static void
list_anew(void)
{
    struct request_runs_list q = {0};

    runs_list_invalidate(fx.b.runs_list);
    assert_non_null(fixture_ask(&fx, MESSAGE_RUNS_LIST, &q, -1));
}

static bool
none_left(void *ctx)
{
    (void)ctx;
    return fx.b.assistants->n == 0;
}

static bool
has_failed(void *ctx)
{
    (void)ctx;
    return access(fixture_path(&fx, "failed"), F_OK) == 0;
}

/* Are so many names of keys left on disk? One goes when its key is revoked. */
static bool
are_left(void *ctx)
{
    DIR *dir = opendir(fixture_path(&fx, "state/assistant-keys"));
    const struct dirent *e;
    unsigned n = 0;

    assert_non_null(dir);
    while ((e = readdir(dir)) != NULL)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n == *(const unsigned *)ctx;
}

/* Only a whole listing that lacks the run says that it is gone; then the key is revoked, and
 * the server's client ends though it would stay. */
static void
test_removed_outside(void **state)
{
    unsigned none = 0;

    (void)state;
    start();
    fixture_start(&fx, true);
    assert_int_equal(begin("kept"), ANSWER_OK);
    assert_int_equal(n_orders(KEYMAKER_MAKE), 1);
    list_anew();
    fixture_put(&fx, "mode", "cut");
    list_anew();
    fixture_put(&fx, "mode", "fail");
    list_anew();
    fixture_put(&fx, "mode", "well");
    fixture_put(&fx, "listing", "{\"runs\":[{\"run_id\":\"kept\",\"state\":\"exited\"}]}\n");
    list_anew();
    assert_int_equal(fx.b.assistants->n, 1);
    assert_int_equal(n_orders(KEYMAKER_REVOKE), 0);
    fixture_put(&fx, "listing", "{\"runs\":[{\"run_id\":\"kept-not\"}]}\n");
    list_anew();
    fixture_run_until(&fx, none_left, NULL);
    fixture_run_until(&fx, are_left, &none);
    assert_int_equal(n_orders(KEYMAKER_REVOKE), 1);
    fixture_stop(&fx);
}

/* A table full of runs that are gone makes room, as fast as keys can be revoked; the key of a
 * run that is there stays. */
static void
test_full_table(void **state)
{
    unsigned two = 2;

    (void)state;
    start();
    leave_keys("kept", 1); /* kept0 */
    leave_keys("gone", LIMIT_ASSISTANTS - 1);
    fixture_put(&fx, "listing", "{\"runs\":[{\"run_id\":\"kept0\"},{\"run_id\":\"new\"}]}\n");
    fixture_put(&fx, "mode", "fail");
    fixture_start(&fx, true);
    assert_int_equal(fx.b.assistants->n, LIMIT_ASSISTANTS);
    fixture_run_until(&fx, has_failed, NULL); /* the broker's own first call */
    assert_int_equal(begin("new"), ANSWER_BUSY);
    assert_int_equal(n_orders(KEYMAKER_REVOKE), 0);
    fixture_put(&fx, "mode", "well");
    /* Nobody lists runs: that there is no room is reason enough to look. */
    for (unsigned i = 0; begin("new") == ANSWER_BUSY; i++) {
        assert_true(i < 1000);
        usleep(10000);
    }
    while (fx.b.assistants->n > 2)
        list_anew();
    fixture_run_until(&fx, are_left, &two); /* that of kept0, and new's */
    assert_int_equal(n_orders(KEYMAKER_REVOKE), LIMIT_ASSISTANTS - 1);
    assert_int_equal(access(fixture_path(&fx, "state/assistant-keys/"
                                              "webui-assistant-kept0-0000000a"), F_OK), 0);
    fixture_stop(&fx);
}

static void
on_stopped(void *ctx)
{
    *(bool *)ctx = true;
}

static bool
is_set(void *ctx)
{
    return *(bool *)ctx;
}

/* The broker's end revokes more keys than there are key makers. */
static void
test_stop(void **state)
{
    bool stopped = false;
    uint64_t began_ms;

    (void)state;
    start();
    leave_keys("kept", 3 * LIMIT_KEYMAKERS);
    fixture_put(&fx, "mode", "fail");
    fixture_start(&fx, true);
    assert_int_equal(fx.b.assistants->n, 3 * LIMIT_KEYMAKERS);
    began_ms = broker_now_ms();
    assistants_stop(fx.b.assistants, on_stopped, &stopped);
    fixture_run_until(&fx, is_set, &stopped);
    if (broker_now_ms() - began_ms < LIMIT_REVOKE_MS) /* else its time was up: a slow machine */
        assert_int_equal(n_orders(KEYMAKER_REVOKE), 3 * LIMIT_KEYMAKERS);
    assert_true(n_orders(KEYMAKER_REVOKE) > LIMIT_KEYMAKERS);
    fixture_stop(&fx);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removed_outside),
        cmocka_unit_test(test_full_table),
        cmocka_unit_test(test_stop),
    };

    unsetenv("LITELLM_MASTER_KEY");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
