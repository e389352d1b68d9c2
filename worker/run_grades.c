/* For each live run without a grade: its directory, the file in it, the grade in that. */
#include "worker/run_grades.h"

#include <stdlib.h>

#include "worker/file_slice.h"
#include "worker/iso_time.h"
#include "worker/run_source.h"
#include "worker/runs.h"
#include "worker/runs_live.h"
#include "worker/summary_read.h"

#define LOOK_MS 1000       /* between two looks at the same run */
#define LOOKS 64u          /* runs asked for at once; others have their turn next time */
#define LOOK_SIZE (1u << 20) /* a larger result.json counts when the summary is there */

struct look {
    struct run_source source;
    char id[MESSAGE_ID_SIZE];
};

static struct {
    unsigned n_pending;
    void (*ready)(void);
} grades;

static void
end_one(void)
{
    if (--grades.n_pending == 0)
        grades.ready();
}

static void
end_look(struct look *k)
{
    run_source_done(&k->source);
    free(k);
    end_one();
}

static void
on_result(void *ctx)
{
    struct look *k = ctx;
    size_t len = 0;
    char *bytes = NULL;
    int32_t duration;

    if (k->source.status == ANSWER_OK && k->source.size <= LOOK_SIZE)
        bytes = file_slice_whole(k->source.fd, k->source.size, &len);
    if (bytes != NULL) {
        enum grade grade = summary_read_result(bytes, len, &duration);

        if (grade != GRADE_NONE)
            runs_set_grade(k->id, grade, duration);
    }
    free(bytes);
    end_look(k);
}

static void
on_directory(void *ctx)
{
    struct look *k = ctx;

    if (k->source.place == PLACE_FILES)
        run_source_open(&k->source, RUN_FILE_RESULT, on_result, k);
    else
        end_look(k);
}

static void
look_at(struct live_run *live, int64_t now)
{
    const struct run_row row = {.live = live};
    struct look *k = calloc(1, sizeof *k);

    if (k == NULL)
        return;
    live->looked_ms = now;
    message_string_set(k->id, sizeof k->id, live->id);
    grades.n_pending++;
    run_source_directory(&k->source, &row, on_directory, k);
}

static bool
is_missing(const struct live_run *live, int64_t now)
{
    struct run_row row;

    if (live->grade != GRADE_NONE || live->results_dir == NULL ||
        live->state == LIVE_CREATED || (live->looked_ms != 0 && now - live->looked_ms < LOOK_MS))
        return false;
    return runs_find(live->id, &row) && row.done == NULL;
}

void
run_grades_ask(struct live_list *list, void (*ready)(void))
{
    int64_t now = iso_time_steady_ms();
    unsigned n = 0;

    if (grades.n_pending > 0)
        return; /* the one who asked before is told */
    grades.ready = ready;
    grades.n_pending = 1; /* an answer that is there at once is not the last one */
    for (size_t i = 0; i < list->n_runs && n < LOOKS; i++)
        if (is_missing(&list->runs[i], now)) {
            look_at(&list->runs[i], now);
            n++;
        }
    grades.n_pending--;
    if (n > 0 && grades.n_pending == 0)
        ready();
}

bool
run_grades_pending(void)
{
    return grades.n_pending > 0;
}
