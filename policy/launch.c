/* The contract's validation of a launch (10.5), text by text, in its order. */
#include "policy/launch.h"

#include <string.h>

#include "policy/run_id.h"

bool
policy_launch_is_reference(const struct launch_fields *f)
{
    return strcmp(f->agent, "reference") == 0;
}

static bool
lacks_fields(const struct launch_fields *f)
{
    bool agent = f->agent[0] != '\0' || f->agent_long;
    bool task = f->task[0] != '\0' || f->task_long;
    bool model = f->model[0] != '\0' || f->model_long || policy_launch_is_reference(f);

    return !agent || !task || !model || f->mode == LAUNCH_MODE_ABSENT ||
           f->source == LAUNCH_SOURCE_ABSENT;
}

static bool
knows_plugins(const struct launch_fields *f, const struct launch_offer *offer)
{
    for (unsigned i = 0; i < f->n_plugins; i++)
        if (!offer->has(offer->ctx, 'p', f->plugins[i]))
            return false;
    return true;
}

static const char *
refuse_names(const struct launch_fields *f, const struct launch_offer *offer)
{
    if (f->agent_long || !offer->has(offer->ctx, 'a', f->agent))
        return "Unknown agent";
    if (!policy_launch_is_reference(f) &&
        (f->model_long || !offer->has(offer->ctx, 'm', f->model)))
        return "Unknown model";
    if (f->task_long || !policy_task_id_valid(f->task, strlen(f->task)))
        return "Invalid task ID";
    if (f->source == LAUNCH_SOURCE_LOCAL && !offer->has(offer->ctx, 't', f->task))
        return "Unknown local task";
    if (f->source == LAUNCH_SOURCE_REMOTE && !offer->has_catalog)
        return "Task catalog not configured: set SSEBENCH_CATALOG for the webui server";
    return NULL;
}

static const char *
refuse_options(const struct launch_fields *f, const struct launch_offer *offer)
{
    if (f->egress == LAUNCH_EGRESS_BAD)
        return "Invalid egress: expected restricted or open";
    if (f->plugins_bad)
        return "Invalid plugins: expected a list of plugin names";
    if (!knows_plugins(f, offer))
        return "Unknown plugin";
    if (f->n_plugins > 0 && f->mode != LAUNCH_MODE_SANDBOX)
        return "Plugins apply to sandbox mode only";
    if (f->timeout != LAUNCH_NUMBER_ABSENT &&
        (f->timeout < 1 || f->timeout > LAUNCH_TIMEOUT_MAX))
        return "Invalid timeout: expected whole seconds from 1 to 604800";
    if (f->difficulty != LAUNCH_NUMBER_ABSENT && (f->difficulty < 0 || f->difficulty > 4))
        return "Invalid difficulty: expected 0 to 4";
    return NULL;
}

const char *
policy_launch_refusal(const struct launch_fields *f, const struct launch_offer *offer)
{
    const char *why;

    if (lacks_fields(f))
        return "Missing required fields";
    if (f->source == LAUNCH_SOURCE_BAD)
        return "Invalid source: expected local or remote";
    if (f->mode == LAUNCH_MODE_BAD)
        return "Invalid mode: expected sandbox or sidecar";
    why = refuse_names(f, offer);
    return why != NULL ? why : refuse_options(f, offer);
}

/* A C string that is NUL to the array's end: nothing else crosses the boundary. */
static bool
is_padded(const char *array, size_t size)
{
    size_t len = strnlen(array, size);

    if (len == size)
        return false;
    for (size_t i = len; i < size; i++)
        if (array[i] != '\0')
            return false;
    return true;
}

static bool
are_plugins_padded(const struct launch_fields *f)
{
    if (f->n_plugins > LAUNCH_PLUGINS)
        return false;
    for (unsigned i = 0; i < LAUNCH_PLUGINS; i++)
        if (!is_padded(f->plugins[i], LAUNCH_PLUGIN_SIZE) ||
            (i >= f->n_plugins) != (f->plugins[i][0] == '\0'))
            return false;
    return true;
}

bool
policy_launch_well_formed(const struct launch_fields *f)
{
    static const uint8_t zero[sizeof f->padding];

    return is_padded(f->agent, sizeof f->agent) && is_padded(f->task, sizeof f->task) &&
           is_padded(f->model, sizeof f->model) && are_plugins_padded(f) &&
           f->plugins_bad == 0 && f->agent_long == 0 && f->model_long == 0 &&
           f->task_long == 0 && f->mode < LAUNCH_MODE_BAD && f->source < LAUNCH_SOURCE_BAD &&
           f->egress < LAUNCH_EGRESS_BAD && memcmp(f->padding, zero, sizeof zero) == 0;
}

bool
policy_launch_id_valid(const char *id)
{
    static const char pattern[] = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";

    for (size_t i = 0; i < sizeof pattern; i++) {
        const char *allowed = pattern[i] == 'x'   ? "0123456789abcdef"
                              : pattern[i] == 'y' ? "89ab"
                                                  : NULL;

        if (allowed != NULL ? id[i] == '\0' || strchr(allowed, id[i]) == NULL
                            : id[i] != pattern[i])
            return false;
    }
    return true;
}
