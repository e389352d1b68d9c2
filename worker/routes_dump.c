/* Prints the route table, for the tests that walk it: a new route cannot escape them. */
#include "worker/routes.h"

#include <stdio.h>
#include <string.h>

#include "policy/access.h"

static const char *
method_name(enum request_method method)
{
    static const char *const NAMES[] = {
        [METHOD_GET] = "GET",         [METHOD_HEAD] = "HEAD",   [METHOD_POST] = "POST",
        [METHOD_PUT] = "PUT",         [METHOD_PATCH] = "PATCH", [METHOD_DELETE] = "DELETE",
        [METHOD_OPTIONS] = "OPTIONS", [METHOD_OTHER] = "OTHER",
    };

    return NAMES[method];
}

/* The least role that may use it. */
static const char *
needed(const struct route *route)
{
    struct access_request r = {.method = method_name(route->method), .path = route->pattern,
                               .path_len = strlen(route->pattern),
                               .upgrade = route->kind == ROUTE_WEBSOCKET};

    return policy_role_name(policy_role_needed(policy_access_deed(&r)));
}

int
routes_dump(void)
{
    size_t n;
    const struct route *table = routes_table(&n);

    for (size_t i = 0; i < n; i++)
        printf("%s %s %s %s\n", method_name(table[i].method), table[i].pattern,
               table[i].kind == ROUTE_WEBSOCKET ? "websocket" : "http", needed(&table[i]));
    return fflush(stdout) == 0 ? 0 : 1;
}
