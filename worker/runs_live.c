/* The CLI's listing of live runs as a table. */
#include "worker/runs_live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_read.h"
#include "policy/run_id.h"

static uint32_t
hash_text(const char *text)
{
    uint32_t h = 2166136261u;

    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

/* The slot that holds `id`, or the free one where it belongs. */
static uint32_t *
find_slot(const struct live_list *list, const char *id)
{
    size_t at = hash_text(id);

    for (;; at++) {
        uint32_t *slot = &list->index[at & (list->index_size - 1)];

        if (*slot == 0 || strcmp(list->runs[*slot - 1].id, id) == 0)
            return slot;
    }
}

static enum live_state
parse_state(const char *text)
{
    if (text != NULL && strcmp(text, "created") == 0)
        return LIVE_CREATED;
    if (text != NULL && strcmp(text, "running") == 0)
        return LIVE_RUNNING;
    if (text != NULL && strcmp(text, "exited") == 0)
        return LIVE_EXITED;
    return LIVE_UNKNOWN;
}

const char *
live_state_name(enum live_state state)
{
    switch (state) {
    case LIVE_CREATED:
        return "created";
    case LIVE_RUNNING:
        return "running";
    case LIVE_EXITED:
        return "exited";
    case LIVE_UNKNOWN:
        break;
    }
    return "unknown";
}

static void
add_run(struct live_list *list, const struct json_value *v)
{
    const struct json_value *reference = json_get(v, "reference_run");
    const char *id = json_text(json_get(v, "run_id"));
    uint32_t *slot;

    if (id == NULL || !policy_run_id_valid(id, strlen(id)))
        return;
    slot = find_slot(list, id);
    if (*slot != 0)
        return;
    list->runs[list->n_runs] = (struct live_run){
        .id = id,
        .name = json_text(json_get(v, "name")),
        .image = json_text(json_get(v, "image")),
        .created_at = json_text(json_get(v, "created_at")),
        .task = json_text(json_get(v, "task")),
        .model = json_text(json_get(v, "model")),
        .agent = json_text(json_get(v, "agent")),
        .results_dir = json_text(json_get(v, "results_dir")),
        .state = parse_state(json_text(json_get(v, "state"))),
        .reference_run = reference != NULL && reference->type == JSON_BOOL &&
                         reference->boolean,
        .duration = -1,
    };
    *slot = (uint32_t)++list->n_runs;
}

int
live_list_parse(const char *bytes, size_t len, struct live_list *ret_list,
                const char **ret_reason)
{
    struct live_list list = {.doc = json_parse(bytes, len, false, ret_reason)};
    const struct json_value *root = json_root(list.doc);
    const struct json_value *runs = json_get(root, "runs");
    const struct json_value *exec = json_get(root, "supports_exec");

    if (list.doc == NULL)
        return -EBADMSG;
    if (runs == NULL || runs->type != JSON_ARRAY) {
        *ret_reason = "no list of runs in it";
        live_list_done(&list);
        return -EBADMSG;
    }
    for (list.index_size = 16; list.index_size < 2 * runs->len;)
        list.index_size *= 2;
    list.runs = calloc(runs->len + 1, sizeof *list.runs);
    list.index = calloc(list.index_size, sizeof *list.index);
    if (list.runs == NULL || list.index == NULL) {
        live_list_done(&list);
        return -ENOMEM;
    }
    for (const struct json_value *v = runs->first; v != NULL; v = v->next)
        add_run(&list, v);
    list.backend = json_text(json_get(root, "backend"));
    list.supports_exec = exec == NULL || exec->type != JSON_BOOL || exec->boolean;
    *ret_list = list;
    return 0;
}

void
live_list_carry(struct live_list *list, const struct live_list *from)
{
    for (size_t i = 0; i < list->n_runs; i++) {
        struct live_run *now = &list->runs[i];
        const struct live_run *before = live_list_find(from, now->id);

        if (before == NULL || before->results_dir == NULL || now->results_dir == NULL ||
            strcmp(before->results_dir, now->results_dir) != 0)
            continue;
        now->grade = before->grade;
        now->duration = before->duration;
        now->looked_ms = before->looked_ms;
    }
}

void
live_list_done(struct live_list *list)
{
    free(list->runs);
    free(list->index);
    json_doc_free(list->doc);
    *list = (struct live_list){0};
}

const struct live_run *
live_list_find(const struct live_list *list, const char *id)
{
    uint32_t slot = list->index != NULL ? *find_slot(list, id) : 0;

    return slot != 0 ? &list->runs[slot - 1] : NULL;
}
