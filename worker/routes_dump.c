/* Prints the route table, for the tests that walk it: a new route cannot escape them. */
#include "worker/routes.h"

#include <stdio.h>

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

int
routes_dump(void)
{
    size_t n;
    const struct route *table = routes_table(&n);

    for (size_t i = 0; i < n; i++)
        printf("%s %s %s\n", method_name(table[i].method), table[i].pattern,
               table[i].kind == ROUTE_WEBSOCKET ? "websocket" : "http");
    return fflush(stdout) == 0 ? 0 : 1;
}
