/* What a lying worker gets from the broker: every rule of a launch is checked again there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "broker_fixture.h"

static struct fixture f;

static void
start(bool hosted)
{
    fixture_prepare(&f, "sleep 1");
    fixture_put(&f, "models/m.yaml", "- model_name: model\n- model_name: a/b\n");
    fixture_put(&f, "agents/agent", NULL);
    fixture_put(&f, "agents/README.md", "x");
    fixture_put(&f, "runtime/plugins/plugins.yaml", "- name: plug\n  enabled: true\n");
    fixture_put(&f, "tasks/task", NULL);
    snprintf(f.b.config.local_tasks, sizeof(f.b.config.local_tasks), "%s",
             fixture_path(&f, "tasks"));
    f.b.config.hosted = hosted;
    fixture_start(&f, true);
}

static struct request_launch
good(void)
{
    return (struct request_launch){
        .fields = {.timeout = -1, .difficulty = -1, .mode = LAUNCH_MODE_SANDBOX,
                   .source = LAUNCH_SOURCE_LOCAL, .agent = "agent", .task = "task",
                   .model = "model"}};
}

/* Refused with this text, and nothing else. */
static void
refused(struct request_launch q, const char *text)
{
    const struct answer_launch *a = fixture_ask(&f, MESSAGE_LAUNCH, &q, -1);

    assert_non_null(a);
    assert_int_equal(a->status, ANSWER_REFUSED);
    assert_string_equal(a->error, text);
}

static void
test_refusals(void **state)
{
    struct request_launch q;

    start(false);
    q = good();
    strcpy(q.fields.agent, "README.md");
    refused(q, "Unknown agent");
    q = good();
    strcpy(q.fields.agent, "../agents/agent");
    refused(q, "Unknown agent");
    q = good();
    strcpy(q.fields.model, "--help");
    refused(q, "Unknown model");
    q = good();
    strcpy(q.fields.task, "other");
    refused(q, "Unknown local task");
    q = good();
    q.fields.source = LAUNCH_SOURCE_REMOTE;
    refused(q, "Task catalog not configured: set SSEBENCH_CATALOG for the webui server");
    q = good();
    q.fields.n_plugins = 1;
    strcpy(q.fields.plugins[0], "nothing");
    refused(q, "Unknown plugin");
    q = good();
    q.fields.timeout = 0;
    refused(q, "Invalid timeout: expected whole seconds from 1 to 604800");
    q = good();
    q.fields.mode = LAUNCH_MODE_ABSENT;
    refused(q, "Missing required fields");
    assert_int_equal(fixture_killed(&f), 0);
    fixture_stop(&f);
}

/* Fine as it is, but there is no state directory here: said so, and nothing was started. */
static void
test_nowhere_to_keep(void **state)
{
    struct request_launch q = good();
    const struct answer_launch *a;

    start(false);
    a = fixture_ask(&f, MESSAGE_LAUNCH, &q, -1);
    assert_int_equal(a->status, ANSWER_FAILED);
    assert_non_null(strstr(a->error, "Cannot use the state directory"));
    fixture_stop(&f);
}

static void
test_hosted(void **state)
{
    struct request_launch q = good();
    struct request_launch_ref ref = {.launch_id = ""};
    struct request_plain plain = {0};
    const struct answer_plain *a;

    start(true);
    refused(q, "This server is read-only");
    a = fixture_ask(&f, MESSAGE_LAUNCH_CANCEL, &ref, -1);
    assert_int_equal(a->status, ANSWER_REFUSED);
    a = fixture_ask(&f, MESSAGE_LAUNCH_CLEAR, &ref, -1);
    assert_int_equal(a->status, ANSWER_REFUSED);
    a = fixture_ask(&f, MESSAGE_DOCTOR, &plain, -1);
    assert_int_equal(a->status, ANSWER_REFUSED);
    fixture_stop(&f);
}

static void
test_malformed_ends_the_worker(void **state)
{
    for (unsigned i = 0; i < 6; i++) {
        struct request_launch q = good();
        struct request_launch_ref ref = {.launch_id = ""};
        struct request_launch_watch watch = {.full = 2};
        uint16_t type = i < 4 ? MESSAGE_LAUNCH : i == 4 ? MESSAGE_LAUNCH_CLEAR
                                                        : MESSAGE_LAUNCH_WATCH;
        void *request = i < 4 ? (void *)&q : i == 4 ? (void *)&ref : (void *)&watch;

        start(false);
        if (i == 0)
            memset(q.fields.agent, 'a', sizeof(q.fields.agent));
        if (i == 1)
            q.fields.n_plugins = LAUNCH_PLUGINS + 1;
        if (i == 2)
            q.fields.egress = LAUNCH_EGRESS_BAD;
        if (i == 3)
            q.fields.task[60] = 'x';
        ref.launch_id[10] = 'x';
        assert_null(fixture_ask(&f, type, request, -1));
        assert_int_equal(fixture_killed(&f), 1);
        fixture_stop(&f);
    }
}

static void
test_unknown_launch(void **state)
{
    struct request_launch_ref ref = {.launch_id = "8ad31f4b-3e0f-4ec8-8cb8-b2935e00d97d"};
    struct request_launch_ref path = {.launch_id = "../../../../../../etc/passwd"};
    const struct answer_launch_output *a;
    const struct answer_plain *b;

    start(false);
    a = fixture_ask(&f, MESSAGE_LAUNCH_OUTPUT, &ref, -1);
    assert_int_equal(a->status, ANSWER_NOT_FOUND);
    a = fixture_ask(&f, MESSAGE_LAUNCH_OUTPUT, &path, -1);
    assert_int_equal(a->status, ANSWER_NOT_FOUND);
    b = fixture_ask(&f, MESSAGE_LAUNCH_CANCEL, &path, -1);
    assert_int_equal(b->status, ANSWER_NOT_FOUND);
    fixture_stop(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_nowhere_to_keep),
        cmocka_unit_test(test_hosted),         cmocka_unit_test(test_malformed_ends_the_worker),
        cmocka_unit_test(test_unknown_launch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
