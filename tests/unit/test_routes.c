/* The route table: each path finds its row, each refusal its status, and no row is shadowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/connection_report.h"
#include "worker/http.h"
#include "worker/launch.h"
#include "worker/launch_ws.h"
#include "worker/logs_download.h"
#include "worker/logs_ws.h"
#include "worker/opencode.h"
#include "worker/metrics.h"
#include "worker/page.h"
#include "worker/pty.h"
#include "worker/routes.h"
#include "worker/runs.h"
#include "worker/sdk_ws.h"
#include "worker/search.h"
#include "worker/worker.h"

/* What became of the request: a handler's name, "page", or a status. */
static char outcome[64];
static char allow[64];
static struct worker_config config;

const struct worker_config *
worker_config(void)
{
    return &config;
}

void
exchange_header(struct exchange *x, const char *name, const char *value)
{
    if (strcmp(name, "Allow") == 0)
        snprintf(allow, sizeof(allow), "%s", value);
}

void
exchange_error(struct exchange *x, int status, const char *error, const char *hint)
{
    snprintf(outcome, sizeof(outcome), "%d %s", status, error);
}

void
exchange_static(struct exchange *x, int status, const char *type, const void *bytes,
                size_t len)
{
    snprintf(outcome, sizeof(outcome), "%d", status);
}

void
page_handle(struct exchange *x, const char *path)
{
    snprintf(outcome, sizeof(outcome), "page");
}

#define HANDLER(name)                                                                    \
    void handle_##name(struct exchange *x)                                               \
    {                                                                                    \
        snprintf(outcome, sizeof(outcome), "%s(%.40s)", #name, x->params[0]);            \
    }

HANDLER(health)
HANDLER(containers)
HANDLER(container)
HANDLER(container_stop)
HANDLER(container_remove)
HANDLER(project)
HANDLER(diff)
HANDLER(files)
HANDLER(dialog)
HANDLER(result)
HANDLER(review)
HANDLER(reference_patch)
HANDLER(sdk_health)
HANDLER(sdk_version)
HANDLER(logs)
HANDLER(logs_ws)
HANDLER(sdk_ws)
HANDLER(sdk_connections)
HANDLER(launch)
HANDLER(launch_models)
HANDLER(launch_agents)
HANDLER(launch_tasks)
HANDLER(launch_config)
HANDLER(launch_doctor)
HANDLER(launch_cancel)
HANDLER(launch_clear)
HANDLER(launch_status)
HANDLER(launch_logs)
HANDLER(launch_ws)
HANDLER(opencode_health)
HANDLER(opencode_sessions)
HANDLER(opencode_create)
HANDLER(opencode_session)
HANDLER(opencode_delete)
HANDLER(opencode_messages)
HANDLER(opencode_prompt)
HANDLER(opencode_permission)
HANDLER(opencode_abort)
HANDLER(opencode_events_ws)
HANDLER(pty)
HANDLER(pty_debug)
HANDLER(pty_sessions)
HANDLER(pty_session_end)
HANDLER(connection)
HANDLER(search)
HANDLER(healthz)
HANDLER(metrics)

/* Dispatch one request that the reader and policy let through. */
static void
dispatch(enum request_method method, const char *path, bool upgrade)
{
    static struct exchange x;

    memset(&x, 0, sizeof(x));
    x.request.method = method;
    x.request.upgrade = upgrade;
    x.request.path_len = strlen(path);
    memcpy(x.request.path, path, x.request.path_len + 1);
    allow[0] = outcome[0] = '\0';
    routes_dispatch(&x);
}

static void
test_dispatch(void **state)
{
    static const struct {
        enum request_method method;
        const char *path;
        bool upgrade;
        const char *outcome;
    } ROWS[] = {
        {METHOD_GET, "/api/health", false, "health()"},
        {METHOD_HEAD, "/api/health", false, "health()"},
        {METHOD_GET, "/api/connection", false, "connection()"},
        {METHOD_GET, "/api/metrics", false, "metrics()"},
        {METHOD_GET, "/healthz", false, "healthz()"},
        {METHOD_GET, "/healthz/", false, "page"},
        {METHOD_GET, "/api/search", false, "search()"},
        {METHOD_POST, "/api/launch", false, "launch()"},
        {METHOD_POST, "/api/launch/cancel", false, "launch_cancel()"},
        {METHOD_GET, "/api/launch/tasks", false, "launch_tasks()"},
        {METHOD_GET, "/api/launch/ws", true, "launch_ws()"},
        {METHOD_GET, "/api/launch", false, "405 Method not allowed"},
        {METHOD_GET, "/api/containers", false, "containers()"},
        {METHOD_GET, "/api/containers/a.b_c-1", false, "container(a.b_c-1)"},
        {METHOD_POST, "/api/containers/a/stop", false, "container_stop(a)"},
        {METHOD_POST, "/api/containers/a/remove", false, "container_remove(a)"},
        {METHOD_GET, "/api/containers/a/agent/dialog", false, "dialog(a)"},
        {METHOD_GET, "/api/containers/a/reference/patch", false, "reference_patch(a)"},
        {METHOD_GET, "/api/containers/a/sdk/health", false, "sdk_health(a)"},
        {METHOD_GET, "/api/containers/a/sdk-ws", true, "sdk_ws(a)"},
        {METHOD_GET, "/api/containers/a/logs", false, "logs(a)"},
        {METHOD_GET, "/api/containers/a/logs-ws", true, "logs_ws(a)"},
        {METHOD_GET, "/api/pty/a.1", true, "pty(a.1)"},
        {METHOD_GET, "/api/pty-debug/a", true, "pty_debug(a)"},
        {METHOD_GET, "/api/pty/sessions", false, "pty_sessions()"},
        {METHOD_POST, "/api/pty/sessions/7", false, "pty_session_end(7)"},
        {METHOD_DELETE, "/api/pty/sessions/7", false, "pty_session_end(7)"},

        {METHOD_GET, "/api", false, "404 Not found"},
        {METHOD_GET, "/api/", false, "404 Not found"},
        {METHOD_GET, "/api/healthy", false, "404 Not found"},
        {METHOD_GET, "/api/health/", false, "404 Not found"},
        {METHOD_GET, "/api/Health", false, "404 Not found"},
        {METHOD_GET, "/api/containers/a/", false, "404 Not found"},
        {METHOD_GET, "/api/containers/a/agent", false, "404 Not found"},
        {METHOD_GET, "/api/containers/a/diff/b", false, "404 Not found"},
        {METHOD_GET, "/api/containers/", false, "400 Invalid run ID"},
        {METHOD_GET, "/api/containers/-a", false, "400 Invalid run ID"},
        {METHOD_GET, "/api/containers/-a/no/such", false, "400 Invalid run ID"},
        {METHOD_GET, "/api/containers/latest/diff", false, "400 Invalid run ID"},
        {METHOD_GET, "/api/containers/a b", false, "400 Invalid run ID"},
        {METHOD_POST, "/api/containers/--x/stop", false, "400 Invalid run ID"},

        {METHOD_POST, "/api/health", false, "405 Method not allowed"},
        {METHOD_OTHER, "/api/health", false, "405 Method not allowed"},
        {METHOD_OPTIONS, "/api/health", false, "405 Method not allowed"},
        {METHOD_GET, "/api/containers/a/stop", false, "405 Method not allowed"},
        {METHOD_GET, "/api/health", true, "400 This is no WebSocket"},
        {METHOD_GET, "/api/containers/a/sdk-ws", false,
         "426 This is a WebSocket: connect with an Upgrade"},

        {METHOD_GET, "/", false, "page"},
        {METHOD_GET, "/runs/a", false, "page"},
        {METHOD_GET, "/apix", false, "page"},
        {METHOD_POST, "/", false, "page"},
        {METHOD_GET, "/", true, "404 Not found"},
    };

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        dispatch(ROWS[i].method, ROWS[i].path, ROWS[i].upgrade);
        if (strcmp(outcome, ROWS[i].outcome) != 0)
            fail_msg("%s: %s instead of %s", ROWS[i].path, outcome, ROWS[i].outcome);
    }
}

static void
test_allow(void **state)
{
    dispatch(METHOD_DELETE, "/api/health", false);
    assert_string_equal(allow, "GET, HEAD, OPTIONS");
    dispatch(METHOD_GET, "/api/containers/a/stop", false);
    assert_string_equal(allow, "POST, OPTIONS");
}

/* Every row is reached by a path made from its pattern, and lies under /api, so that no route
 * can stand outside the rules of access. */
static void
test_every_row(void **state)
{
    size_t n;
    const struct route *table = routes_table(&n);

    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        char path[256];
        const char *id = strchr(table[i].pattern, ':');
        const char *rest = id ? id + strcspn(id, "/") : "";

        snprintf(path, sizeof(path), "%.*s%s%s",
                 id ? (int)(id - table[i].pattern) : (int)strlen(table[i].pattern),
                 table[i].pattern, id ? "run-1" : "", rest); /* a second ":x" is a segment too */
        dispatch(table[i].method, path, table[i].kind == ROUTE_WEBSOCKET);
        if (!strstr(outcome, id ? "(run-1)" : "()"))
            fail_msg("%s: %s", path, outcome);
        if (strcmp(table[i].pattern, "/healthz") != 0)
            assert_memory_equal(table[i].pattern, "/api/", 5);
    }
}

static void
test_outside(void **state)
{
    static struct exchange x;

    strcpy(config.base_path, "/a/b");
    x.outside = true;
    strcpy(x.request.path, "/a/b");
    routes_dispatch(&x);
    assert_string_equal(outcome, "308");
    strcpy(x.request.path, "/api/health");
    routes_dispatch(&x);
    assert_string_equal(outcome, "404 Not found");
    config.base_path[0] = '\0';
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatch),
        cmocka_unit_test(test_allow),
        cmocka_unit_test(test_every_row),
        cmocka_unit_test(test_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
