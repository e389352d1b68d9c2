/* A run as the API shows it (contract 10.4, object C; front-end 1.3). */
#ifndef WORKER_RUN_RENDER_H
#define WORKER_RUN_RENDER_H

#include "common/json_write.h"
#include "worker/runs.h"

/* The values of a row that lists show, sort and filter by. Missing texts are "unknown", a
 * missing date "". Borrowed from the row. */
struct run_view {
    const char *id, *name, *task, *model, *agent, *status, *image, *created_at, *source;
    const char *grade; /* NULL: none */
    bool reference_run;
};

void
run_view_of(const struct run_row *row, struct run_view *ret);

/* The agent's seconds; -1: not told. */
int32_t
run_duration(const struct run_row *row);

void
run_render(struct json_writer *w, const struct run_row *row);

#endif
