/* Launch fields: the contract's texts in their order, and what crosses the boundary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/launch.h"
#include "worker/launch_request.h"

static bool
is_x(const void *ctx, char kind, const char *name)
{
    const char own[] = {kind, '\0'}; /* a name that is listed in one kind alone */

    return strcmp(name, "x") == 0 || strcmp(name, "reference") == 0 || strcmp(name, own) == 0;
}

static const struct launch_offer offer = {is_x, true, NULL};
static const struct launch_offer no_catalog = {is_x, false, NULL};

#define X "\"task\":\"x\",\"agent\":\"x\",\"model\":\"x\""
#define LOCAL X ",\"mode\":\"sandbox\",\"source\":\"local\""

static void
test_refusals(void **state)
{
    static const struct {
        const char *label, *body, *refusal;
        const struct launch_offer *offer; /* NULL: `offer` */
    } ROWS[] = {
        {"fine", "{" LOCAL "}", NULL},
        {"nulls are absent", "{" LOCAL ",\"egress\":null,\"plugins\":null,\"timeout\":null}", NULL},
        {"others are ignored", "{" LOCAL ",\"more\":[1,{}]}", NULL},
        {"reference without a model",
         "{\"task\":\"x\",\"agent\":\"reference\",\"mode\":\"sidecar\",\"source\":\"local\"}", NULL},
        {"reference with any model",
         "{\"task\":\"x\",\"agent\":\"reference\",\"model\":\"no\",\"mode\":\"sidecar\","
         "\"source\":\"local\"}", NULL},
        {"nothing", "{}", "Missing required fields"},
        {"no task", "{\"agent\":\"x\",\"model\":\"x\",\"mode\":\"sandbox\",\"source\":\"local\"}",
         "Missing required fields"},
        {"no mode", "{" X ",\"source\":\"local\"}", "Missing required fields"},
        {"a number as agent",
         "{\"task\":\"x\",\"agent\":7,\"model\":\"x\",\"mode\":\"sandbox\",\"source\":\"local\"}",
         "Unknown agent"},
        {"source before mode", "{" X ",\"mode\":\"a\",\"source\":\"b\"}",
         "Invalid source: expected local or remote"},
        {"mode before agent",
         "{\"task\":\"-\",\"agent\":\"-\",\"model\":\"-\",\"mode\":\"a\",\"source\":\"local\"}",
         "Invalid mode: expected sandbox or sidecar"},
        {"agent before model",
         "{\"task\":\"-\",\"agent\":\"-\",\"model\":\"-\",\"mode\":\"sandbox\",\"source\":\"local\"}",
         "Unknown agent"},
        {"model before task",
         "{\"task\":\"-\",\"agent\":\"x\",\"model\":\"-\",\"mode\":\"sandbox\",\"source\":\"local\"}",
         "Unknown model"},
        {"task's form", "{\"task\":\"-\",\"agent\":\"x\",\"model\":\"x\",\"mode\":\"sandbox\","
                        "\"source\":\"local\"}", "Invalid task ID"},
        {"task", "{\"task\":\"y\",\"agent\":\"x\",\"model\":\"x\",\"mode\":\"sandbox\","
                 "\"source\":\"local\"}", "Unknown local task"},
        {"each in its own kind", "{\"task\":\"t\",\"agent\":\"a\",\"model\":\"m\","
                                 "\"mode\":\"sandbox\",\"source\":\"local\","
                                 "\"plugins\":[\"p\"]}", NULL},
        {"a model is no agent", "{\"task\":\"x\",\"agent\":\"m\",\"model\":\"x\","
                                "\"mode\":\"sandbox\",\"source\":\"local\"}", "Unknown agent"},
        {"an agent is no model", "{\"task\":\"x\",\"agent\":\"x\",\"model\":\"a\","
                                 "\"mode\":\"sandbox\",\"source\":\"local\"}", "Unknown model"},
        {"a plugin is no task", "{\"task\":\"p\",\"agent\":\"x\",\"model\":\"x\","
                                "\"mode\":\"sandbox\",\"source\":\"local\"}",
         "Unknown local task"},
        {"a task is no plugin", "{" LOCAL ",\"plugins\":[\"t\"]}", "Unknown plugin"},
        {"a remote task is not looked up",
         "{\"task\":\"y\",\"agent\":\"x\",\"model\":\"x\",\"mode\":\"sandbox\","
         "\"source\":\"remote\"}", NULL},
        {"no catalog", "{" X ",\"mode\":\"sandbox\",\"source\":\"remote\",\"egress\":1}",
         "Task catalog not configured: set SSEBENCH_CATALOG for the webui server", &no_catalog},
        {"egress before plugins", "{" LOCAL ",\"egress\":\"\",\"plugins\":1}",
         "Invalid egress: expected restricted or open"},
        {"plugins", "{" LOCAL ",\"plugins\":{}}",
         "Invalid plugins: expected a list of plugin names"},
        {"plugin", "{" LOCAL ",\"plugins\":[\"y\"]}", "Unknown plugin"},
        {"plugin twice", "{" LOCAL ",\"plugins\":[\"x\",\"x\"]}", NULL},
        {"plugin in sidecar", "{" X ",\"mode\":\"sidecar\",\"source\":\"local\",\"plugins\":[\"x\"]}",
         "Plugins apply to sandbox mode only"},
        {"no plugin in sidecar", "{" X ",\"mode\":\"sidecar\",\"source\":\"local\",\"plugins\":[]}",
         NULL},
        {"timeout", "{" LOCAL ",\"timeout\":1.0}",
         "Invalid timeout: expected whole seconds from 1 to 604800"},
        {"timeout, large", "{" LOCAL ",\"timeout\":99999999999999999999}",
         "Invalid timeout: expected whole seconds from 1 to 604800"},
        {"timeout, most", "{" LOCAL ",\"timeout\":604800,\"difficulty\":0}", NULL},
        {"difficulty", "{" LOCAL ",\"difficulty\":true}", "Invalid difficulty: expected 0 to 4"},
    };

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        struct launch_fields f;
        const char *why;

        print_message("%s\n", ROWS[i].label);
        assert_true(launch_request_read(ROWS[i].body, strlen(ROWS[i].body), &f));
        why = policy_launch_refusal(&f, ROWS[i].offer ? ROWS[i].offer : &offer);
        if (ROWS[i].refusal)
            assert_string_equal(why ? why : "(none)", ROWS[i].refusal);
        else
            assert_null(why);
        if (!why)
            assert_true(policy_launch_well_formed(&f));
    }
}

static void
test_no_request(void **state)
{
    static const char *const BODIES[] = {"", "[]", "1", "{", "{}{}", "{\"a\":1,\"a\":1}", "{\"a\"}",
                                         "{\"a\":1}x", "nul"};

    for (size_t i = 0; i < sizeof(BODIES) / sizeof(BODIES[0]); i++) {
        struct launch_fields f;

        print_message("%s\n", BODIES[i]);
        assert_false(launch_request_read(BODIES[i], strlen(BODIES[i]), &f));
    }
}

/* A lying worker's fields. */
static void
test_well_formed(void **state)
{
    struct launch_fields good = {.timeout = -1, .difficulty = -1, .mode = 1, .source = 1,
                                 .agent = "x", .task = "x", .model = "x"};
    struct launch_fields f;

    assert_true(policy_launch_well_formed(&good));
#define BAD(change)                                                                        \
    f = good;                                                                              \
    change;                                                                                \
    assert_false(policy_launch_well_formed(&f))
    BAD(memset(f.agent, 'a', sizeof(f.agent)));
    BAD(f.task[100] = 'x');
    BAD(f.model[256] = 'x');
    BAD(f.n_plugins = 1);
    BAD(f.n_plugins = 200);
    BAD(f.plugins[3][0] = 'x');
    BAD(f.plugins_bad = 1);
    BAD(f.agent_long = 1);
    BAD(f.mode = LAUNCH_MODE_BAD);
    BAD(f.source = 200);
    BAD(f.egress = LAUNCH_EGRESS_BAD);
    BAD(f.padding[4] = 1);
}

static void
test_ids(void **state)
{
    static const struct {
        const char *id;
        bool good;
    } ROWS[] = {
        {"8ad31f4b-3e0f-4ec8-8cb8-b2935e00d97d", true},
        {"8ad31f4b-3e0f-1ec8-8cb8-b2935e00d97d", false},
        {"8ad31f4b-3e0f-4ec8-7cb8-b2935e00d97d", false},
        {"8AD31f4b-3e0f-4ec8-8cb8-b2935e00d97d", false},
        {"8ad31f4b-3e0f-4ec8-8cb8-b2935e00d97", false},
        {"8ad31f4b-3e0f-4ec8-8cb8-b2935e00d97d0", false},
        {"../d31f4b-3e0f-4ec8-8cb8-b2935e00d97d", false},
        {"", false},
    };
    char id[37];
    bool given;

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
        assert_int_equal(policy_launch_id_valid(ROWS[i].id), ROWS[i].good);
    assert_true(launch_request_read_id("{\"launch_id\":\"../x\"}", 20, id, &given));
    assert_true(given && id[0] == '\0');
    assert_true(launch_request_read_id("{\"launch_id\":null}", 18, id, &given));
    assert_false(given);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_request),
        cmocka_unit_test(test_well_formed),
        cmocka_unit_test(test_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
