/* One run as a JSON object: the contract's fields, then what our own page shows besides. */
#include "worker/run_render.h"

#include <string.h>

#include "worker/runs_live.h"
#include "worker/runs_results.h"

static const char *
or_unknown(const char *text)
{
    return text != NULL ? text : "unknown";
}

static const char *
or_empty(const char *text)
{
    return text != NULL ? text : "";
}

void
run_view_of(const struct run_row *row, struct run_view *ret)
{
    const struct live_run *live = row->live;
    const struct finished_run *done = row->done;
    struct run_view v = {0};

    if (live != NULL)
        v = (struct run_view){
            .id = live->id,
            .name = or_unknown(live->name),
            .task = or_unknown(live->task),
            .model = or_unknown(live->model),
            .agent = or_unknown(live->agent),
            .status = live_state_name(live->state),
            .image = or_unknown(live->image),
            .created_at = or_empty(live->created_at),
            .source = "container",
            .reference_run = live->reference_run,
        };
    else
        v = (struct run_view){
            .id = done->run_id,
            .name = done->run_id,
            .task = done->task,
            .model = or_unknown(done->model),
            .agent = or_unknown(done->agent),
            .status = "exited",
            .image = "",
            .created_at = or_empty(done->started_at),
            .source = "results",
            .reference_run = done->reference_run,
        };
    v.grade = grade_name((enum grade)(done != NULL ? done->grade : live->grade));
    *ret = v;
}

static void
put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_cstring(w, text);
}

static void
put_count(struct json_writer *w, const char *key, int64_t value)
{
    json_key(w, key);
    if (value < 0)
        json_null(w);
    else
        json_int(w, value);
}

int32_t
run_duration(const struct run_row *row)
{
    return row->done != NULL ? row->done->duration : row->live->duration;
}

/* Fields beyond the contract; all but the grade and the agent's time are null while the run
 * has no summary. */
static void
put_outcome(struct json_writer *w, const struct run_row *row)
{
    const struct finished_run *done = row->done;

    put_text(w, "startedAt", done != NULL ? done->started_at : NULL);
    put_text(w, "mode", done != NULL ? done->mode : NULL);
    json_key(w, "spend");
    if (done == NULL || done->spend < 0)
        json_null(w);
    else
        json_double(w, done->spend);
    put_count(w, "durationSeconds", run_duration(row));
    put_count(w, "difficulty", done != NULL ? done->difficulty : -1);
}

void
run_render(struct json_writer *w, const struct run_row *row)
{
    struct run_view v;

    run_view_of(row, &v);
    json_object_open(w);
    put_text(w, "id", v.id);
    put_text(w, "name", v.name);
    put_text(w, "taskId", v.task);
    put_text(w, "model", v.model);
    put_text(w, "agent", v.agent);
    json_key(w, "referenceRun");
    json_bool(w, v.reference_run);
    put_text(w, "runId", v.id);
    put_text(w, "status", v.status);
    put_text(w, "image", v.image);
    put_text(w, "createdAt", v.created_at);
    put_text(w, "source", v.source);
    put_text(w, "grade", v.grade);
    put_outcome(w, row);
    json_object_close(w);
}
