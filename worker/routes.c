/* The whole HTTP and WebSocket surface in one table, and how a path finds its row. */
#include "worker/routes.h"

#include <stdio.h>
#include <string.h>

#include "policy/access.h"
#include "policy/run_id.h"
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
#include "worker/runs.h"
#include "worker/sdk_ws.h"
#include "worker/search.h"
#include "worker/worker.h"

#define RUN "/api/containers/:id"
#define ASSISTANT RUN "/opencode"
#define SESSION ASSISTANT "/sessions/:x"

static const struct route ROUTES[] = {
    {METHOD_GET, "/api/health", ROUTE_HTTP, handle_health},
    {METHOD_GET, "/healthz", ROUTE_HTTP, handle_healthz},
    {METHOD_GET, "/api/metrics", ROUTE_HTTP, handle_metrics},
    {METHOD_GET, "/api/connection", ROUTE_HTTP, handle_connection},
    {METHOD_GET, "/api/search", ROUTE_HTTP, handle_search},
    {METHOD_GET, "/api/containers", ROUTE_HTTP, handle_containers},
    {METHOD_GET, RUN, ROUTE_HTTP, handle_container},
    {METHOD_POST, RUN "/stop", ROUTE_HTTP, handle_container_stop},
    {METHOD_POST, RUN "/remove", ROUTE_HTTP, handle_container_remove},
    {METHOD_GET, RUN "/project", ROUTE_HTTP, handle_project},
    {METHOD_GET, RUN "/diff", ROUTE_HTTP, handle_diff},
    {METHOD_GET, RUN "/files", ROUTE_HTTP, handle_files},
    {METHOD_GET, RUN "/agent/dialog", ROUTE_HTTP, handle_dialog},
    {METHOD_GET, RUN "/result", ROUTE_HTTP, handle_result},
    {METHOD_GET, RUN "/review", ROUTE_HTTP, handle_review},
    {METHOD_GET, RUN "/reference/patch", ROUTE_HTTP, handle_reference_patch},
    {METHOD_GET, RUN "/sdk/health", ROUTE_HTTP, handle_sdk_health},
    {METHOD_GET, RUN "/sdk/version", ROUTE_HTTP, handle_sdk_version},
    {METHOD_POST, "/api/launch", ROUTE_HTTP, handle_launch},
    {METHOD_GET, "/api/launch/models", ROUTE_HTTP, handle_launch_models},
    {METHOD_GET, "/api/launch/agents", ROUTE_HTTP, handle_launch_agents},
    {METHOD_GET, "/api/launch/tasks", ROUTE_HTTP, handle_launch_tasks},
    {METHOD_GET, "/api/launch/config", ROUTE_HTTP, handle_launch_config},
    {METHOD_GET, "/api/launch/doctor", ROUTE_HTTP, handle_launch_doctor},
    {METHOD_POST, "/api/launch/cancel", ROUTE_HTTP, handle_launch_cancel},
    {METHOD_POST, "/api/launch/clear", ROUTE_HTTP, handle_launch_clear},
    {METHOD_GET, "/api/launch/status", ROUTE_HTTP, handle_launch_status},
    {METHOD_GET, "/api/launch/logs", ROUTE_HTTP, handle_launch_logs},
    {METHOD_GET, "/api/launch/ws", ROUTE_WEBSOCKET, handle_launch_ws},
    {METHOD_GET, ASSISTANT "/health", ROUTE_HTTP, handle_opencode_health},
    {METHOD_GET, ASSISTANT "/sessions", ROUTE_HTTP, handle_opencode_sessions},
    {METHOD_POST, ASSISTANT "/sessions", ROUTE_HTTP, handle_opencode_create},
    {METHOD_GET, SESSION, ROUTE_HTTP, handle_opencode_session},
    {METHOD_DELETE, SESSION, ROUTE_HTTP, handle_opencode_delete},
    {METHOD_GET, SESSION "/messages", ROUTE_HTTP, handle_opencode_messages},
    {METHOD_POST, SESSION "/messages", ROUTE_HTTP, handle_opencode_prompt},
    {METHOD_POST, SESSION "/permissions/:x", ROUTE_HTTP, handle_opencode_permission},
    {METHOD_POST, SESSION "/abort", ROUTE_HTTP, handle_opencode_abort},
    {METHOD_GET, ASSISTANT "/events-ws", ROUTE_WEBSOCKET, handle_opencode_events_ws},
    {METHOD_GET, "/api/pty/sessions", ROUTE_HTTP, handle_pty_sessions},
    {METHOD_POST, "/api/pty/sessions/:session", ROUTE_HTTP, handle_pty_session_end},
    {METHOD_DELETE, "/api/pty/sessions/:session", ROUTE_HTTP, handle_pty_session_end},
    {METHOD_GET, "/api/pty/:id", ROUTE_WEBSOCKET, handle_pty},
    {METHOD_GET, "/api/pty-debug/:id", ROUTE_WEBSOCKET, handle_pty_debug},
    {METHOD_GET, RUN "/logs", ROUTE_HTTP, handle_logs},
    {METHOD_GET, RUN "/logs-ws", ROUTE_WEBSOCKET, handle_logs_ws},
    {METHOD_GET, "/api/sdk/connections", ROUTE_HTTP, handle_sdk_connections},
    {METHOD_GET, RUN "/sdk-ws", ROUTE_WEBSOCKET, handle_sdk_ws},
};

#define N_ROUTES (sizeof(ROUTES) / sizeof(ROUTES[0]))

const struct route *
routes_table(size_t *ret_n)
{
    *ret_n = N_ROUTES;
    return ROUTES;
}

/* --- matching ------------------------------------------------------------------------- */

/* Length of the segment that begins at `at`. */
static size_t
segment_len(const char *at)
{
    return strcspn(at, "/");
}

/* Does the path match segment by segment? Parameters go to params[0..HTTP_PARAMS). The reader
 * has seen to it that no segment is longer than one fits. */
static bool
pattern_matches(const char *pattern, const char *path,
                char params[HTTP_PARAMS][LIMIT_PATH_SEGMENT + 1])
{
    unsigned n_params = 0;

    while (*pattern == '/' && *path == '/') {
        size_t n_pattern = segment_len(++pattern);
        size_t n_path = segment_len(++path);

        if (*pattern == ':') {
            if (n_path == 0 || n_params == HTTP_PARAMS)
                return false;
            memcpy(params[n_params], path, n_path);
            params[n_params++][n_path] = '\0';
        } else if (n_pattern != n_path || memcmp(pattern, path, n_path) != 0) {
            return false;
        }
        pattern += n_pattern;
        path += n_path;
    }
    return *pattern == '\0' && *path == '\0';
}

static const char *
method_text(enum request_method method)
{
    return method == METHOD_GET ? "GET, HEAD" : method == METHOD_POST ? "POST" : "DELETE";
}

/* Every path below /api/containers/<x> names a run first, whether the rest exists or not. */
static bool
names_no_run(const char *path)
{
    static const char PREFIX[] = "/api/containers/";
    const char *id = path + sizeof(PREFIX) - 1;

    return strncmp(path, PREFIX, sizeof(PREFIX) - 1) == 0 &&
           !policy_run_id_valid(id, segment_len(id));
}

/* --- dispatch --------------------------------------------------------------------------- */

static void
call(struct exchange *x, const struct route *route)
{
    if (route->kind == ROUTE_WEBSOCKET && !x->request.upgrade) {
        exchange_header(x, "Upgrade", "websocket");
        exchange_error(x, 426, "This is a WebSocket: connect with an Upgrade", NULL);
    } else if (route->kind == ROUTE_HTTP && x->request.upgrade) {
        exchange_error(x, 400, "This is no WebSocket", NULL);
    } else {
        route->handle(x);
    }
}

/* A path of the API, or /healthz, which is outside it because it needs no token. */
static void
dispatch_api(struct exchange *x)
{
    enum request_method method = x->request.method;
    char allow[64] = "";

    if (names_no_run(x->request.path)) {
        exchange_error(x, 400, "Invalid run ID", NULL);
        return;
    }
    if (method == METHOD_HEAD)
        method = METHOD_GET;
    for (size_t i = 0; i < N_ROUTES; i++) {
        const struct route *route = &ROUTES[i];

        if (!pattern_matches(route->pattern, x->request.path, x->params))
            continue;
        if (route->method == method) {
            call(x, route);
            return;
        }
        snprintf(allow + strlen(allow), sizeof(allow) - strlen(allow), "%s, ",
                 method_text(route->method));
    }
    if (allow[0] == '\0') {
        exchange_error(x, 404, "Not found", NULL);
        return;
    }
    snprintf(allow + strlen(allow), sizeof(allow) - strlen(allow), "OPTIONS");
    exchange_header(x, "Allow", allow);
    exchange_error(x, 405, "Method not allowed", NULL);
}

/* Outside the base path: its own name without the slash leads in, the rest is not ours. */
static void
dispatch_outside(struct exchange *x)
{
    const char *base = worker_config()->base_path;
    char location[sizeof(worker_config()->base_path) + 1];

    if (strcmp(x->request.path, base) != 0 || x->request.upgrade) {
        exchange_error(x, 404, "Not found", NULL);
        return;
    }
    snprintf(location, sizeof(location), "%s/", base);
    exchange_header(x, "Location", location);
    exchange_static(x, 308, "text/plain", NULL, 0);
}

void
routes_dispatch(struct exchange *x)
{
    if (x->outside)
        dispatch_outside(x);
    else if (policy_access_is_api(x->request.path, x->request.path_len) ||
             strcmp(x->request.path, "/healthz") == 0)
        dispatch_api(x);
    else if (x->request.upgrade)
        exchange_error(x, 404, "Not found", NULL);
    else
        page_handle(x, x->request.path);
}
