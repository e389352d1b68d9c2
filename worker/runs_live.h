/* The CLI's `runs list --json` (contract 2.3), read with suspicion. Pure. */
#ifndef WORKER_RUNS_LIVE_H
#define WORKER_RUNS_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum live_state { LIVE_CREATED, LIVE_RUNNING, LIVE_EXITED, LIVE_UNKNOWN };

struct json_doc;

/* Texts belong to the list; NULL where the CLI said null, nothing or no string. */
struct live_run {
    const char *id; /* valid run ID */
    const char *name, *image, *created_at, *task, *model, *agent, *results_dir;
    enum live_state state;
    bool reference_run;
    /* From its result.json, while there is no summary (run_grades.h). */
    uint8_t grade;     /* enum grade */
    int32_t duration;  /* agent's seconds; -1: not told */
    int64_t looked_ms; /* steady clock: when the file was asked for; 0: never */
};

struct live_list {
    struct live_run *runs; /* CLI order; the first of a duplicate ID only */
    size_t n_runs;
    const char *backend; /* NULL: not told */
    bool supports_exec;
    struct json_doc *doc; /* owns the texts */
    uint32_t *index;      /* private: hash of the ID -> position + 1 */
    size_t index_size;    /* private: a power of two */
};

/* Read a listing. 0; -EBADMSG with `ret_reason` (constant text) when it is not one; -ENOMEM. */
int
live_list_parse(const char *bytes, size_t len, struct live_list *ret_list,
                const char **ret_reason);

void
live_list_done(struct live_list *list);

/* Take over what `from` knew of the grades of the same runs. */
void
live_list_carry(struct live_list *list, const struct live_list *from);

/* "running", "exited", ... */
const char *
live_state_name(enum live_state state);

/* The run of this ID, or NULL. */
const struct live_run *
live_list_find(const struct live_list *list, const char *id);

#endif
