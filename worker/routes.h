/* The whole HTTP and WebSocket surface, one row a route. */
#ifndef WORKER_ROUTES_H
#define WORKER_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/exchange.h"

/* Which part of the surface a route is; policy refuses on these, handlers never do. */
enum route_kind { ROUTE_HTTP, ROUTE_WEBSOCKET };

struct route {
    enum request_method method;
    const char *pattern; /* "/api/containers/:id/diff"; ":id" is a run ID, ":x" any segment */
    enum route_kind kind;
    void (*handle)(struct exchange *x);
};

/* All routes, for dispatch and for the tests that walk them. */
const struct route *
routes_table(size_t *ret_n);

/* Print the table on stdout, one row a line: METHOD PATTERN http|websocket ROLE, the
 * least that may use it. Exit status. */
int
routes_dump(void);

/* Find and call the handler of an admitted request; answers 404, 405 (with Allow) and 400
 * `Invalid run ID` itself. Paths outside /api go to the page. */
void
routes_dispatch(struct exchange *x);

#endif
