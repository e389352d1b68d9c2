/* From a body to launch fields: nothing is judged here, only told apart. */
#include "worker/launch_request.h"

#include <stdio.h>
#include <string.h>

#include "common/json_read.h"

/* Absent for the original's rules: null, "", 0, false. */
static bool
is_nothing(const struct json_value *v)
{
    if (v == NULL || v->type == JSON_NULL)
        return true;
    return (v->type == JSON_STRING && v->len == 0) || (v->type == JSON_BOOL && !v->boolean) ||
           (v->type == JSON_NUMBER && v->number == 0);
}

/* *ret_odd: there is a value that no name can be. */
static void
take_name(const struct json_value *v, char *out, size_t size, uint8_t *ret_odd)
{
    const char *text = json_text(v);

    if (is_nothing(v))
        return;
    if (text == NULL || v->len >= size)
        *ret_odd = 1;
    else
        memcpy(out, text, v->len);
}

static uint8_t
take_word(const struct json_value *v, const char *first, const char *second, uint8_t bad)
{
    const char *text = json_text(v);

    if (text != NULL && strcmp(text, first) == 0)
        return 1;
    if (text != NULL && strcmp(text, second) == 0)
        return 2;
    return bad;
}

static int32_t
take_number(const struct json_value *v)
{
    if (v == NULL || v->type == JSON_NULL)
        return LAUNCH_NUMBER_ABSENT;
    if (v->type != JSON_NUMBER || !v->is_integer || v->integer < 0 || v->integer > INT32_MAX)
        return LAUNCH_NUMBER_BAD;
    return (int32_t)v->integer;
}

static bool
has_plugin(const struct launch_fields *f, const char *name)
{
    for (unsigned i = 0; i < f->n_plugins; i++)
        if (strcmp(f->plugins[i], name) == 0)
            return true;
    return false;
}

static void
take_plugins(const struct json_value *v, struct launch_fields *f)
{
    if (v == NULL || v->type == JSON_NULL)
        return;
    f->plugins_bad = v->type != JSON_ARRAY;
    for (const struct json_value *p = f->plugins_bad ? NULL : v->first; p != NULL; p = p->next) {
        const char *name = json_text(p);

        if (name == NULL || f->n_plugins == LAUNCH_PLUGINS) {
            f->plugins_bad = 1;
            return;
        }
        /* No listed name is empty, longer, or begins like this. */
        if (p->len == 0 || p->len >= LAUNCH_PLUGIN_SIZE)
            name = "?";
        if (!has_plugin(f, name))
            snprintf(f->plugins[f->n_plugins++], LAUNCH_PLUGIN_SIZE, "%s", name);
    }
}

bool
launch_request_read(const char *body, size_t len, struct launch_fields *ret_fields)
{
    struct json_doc *doc = json_parse(body, len, true, NULL);
    const struct json_value *root = doc != NULL ? json_root(doc) : NULL;
    struct launch_fields f = {0};
    const struct json_value *mode, *source, *egress;

    if (root == NULL || root->type != JSON_OBJECT) {
        json_doc_free(doc);
        return false;
    }
    take_name(json_get(root, "agent"), f.agent, sizeof f.agent, &f.agent_long);
    take_name(json_get(root, "task"), f.task, sizeof f.task, &f.task_long);
    take_name(json_get(root, "model"), f.model, sizeof f.model, &f.model_long);
    mode = json_get(root, "mode");
    source = json_get(root, "source");
    egress = json_get(root, "egress");
    if (!is_nothing(mode))
        f.mode = take_word(mode, "sandbox", "sidecar", LAUNCH_MODE_BAD);
    if (!is_nothing(source))
        f.source = take_word(source, "local", "remote", LAUNCH_SOURCE_BAD);
    if (egress != NULL && egress->type != JSON_NULL)
        f.egress = take_word(egress, "restricted", "open", LAUNCH_EGRESS_BAD);
    take_plugins(json_get(root, "plugins"), &f);
    f.timeout = take_number(json_get(root, "timeout"));
    f.difficulty = take_number(json_get(root, "difficulty"));
    if (policy_launch_is_reference(&f)) { /* it needs none, and gets none (contract 1.1) */
        memset(f.model, 0, sizeof f.model);
        f.model_long = 0;
    }
    json_doc_free(doc);
    *ret_fields = f;
    return true;
}

bool
launch_request_read_id(const char *body, size_t len, char out[37], bool *ret_given)
{
    struct json_doc *doc = json_parse(body, len, true, NULL);
    const struct json_value *root = doc != NULL ? json_root(doc) : NULL;
    const struct json_value *id;
    const char *text;

    out[0] = '\0';
    *ret_given = false;
    if (root == NULL || root->type != JSON_OBJECT) {
        json_doc_free(doc);
        return false;
    }
    id = json_get(root, "launch_id");
    text = json_text(id);
    *ret_given = !is_nothing(id);
    if (text != NULL && policy_launch_id_valid(text))
        memcpy(out, text, 37);
    json_doc_free(doc);
    return true;
}
