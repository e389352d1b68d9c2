/*
 * libyaml as a stream of events; no document is built, so no alias can make one grow.
 * Distrusts: no more than broker/launchables.h says; the bounds are for mistakes.
 */
#include "broker/launchables_yaml.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "common/limits.h"

#define DEPTH_MAX 32
#define EVENTS_MAX 200000u

/* Depth 1 is the top list, 2 an entry. Keys and values alternate inside the entry. */
struct reading {
    const char *name_key;
    void (*fn)(void *ctx, const struct yaml_entry *entry);
    void *ctx;
    struct yaml_entry entry;
    bool top_is_list, in_entry, at_value;
    char key[64];
    int depth;
};

static void
take_text(char *into, size_t size, const char *text)
{
    if (strlen(text) < size)
        snprintf(into, size, "%s", text);
}

static void
take_value(struct reading *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    bool whole = strlen(text) == event->data.scalar.length;
    bool yes = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(text, "true") == 0;

    if (!whole) /* a NUL inside: no name of ours */
        return;
    if (strcmp(r->key, r->name_key) == 0)
        take_text(r->entry.name, sizeof r->entry.name, text);
    else if (strcmp(r->key, "hook") == 0)
        take_text(r->entry.hook, sizeof r->entry.hook, text);
    else if (strcmp(r->key, "enabled") == 0)
        r->entry.enabled = yes;
    else if (strcmp(r->key, "llm") == 0)
        r->entry.llm = yes;
}

/* A node at the entry's own level: key or value, by turns. */
static void
take_node(struct reading *r, const yaml_event_t *event)
{
    bool scalar = event->type == YAML_SCALAR_EVENT;

    if (!r->in_entry || r->depth != 2)
        return;
    if (r->at_value && scalar)
        take_value(r, event);
    else if (!r->at_value) {
        r->key[0] = '\0';
        if (scalar)
            take_text(r->key, sizeof r->key, (const char *)event->data.scalar.value);
    }
    r->at_value = !r->at_value;
}

static void
open_node(struct reading *r, bool list)
{
    r->depth++;
    if (r->depth == 1)
        r->top_is_list = list;
    if (r->depth != 2 || !r->top_is_list || list)
        return;
    r->in_entry = true;
    r->at_value = false;
    memset(&r->entry, 0, sizeof r->entry);
}

static void
close_node(struct reading *r)
{
    if (r->depth == 2 && r->in_entry) {
        r->in_entry = false;
        if (r->entry.name[0] != '\0')
            r->fn(r->ctx, &r->entry);
    }
    r->depth--;
}

/* False: the end. */
static bool
take_event(struct reading *r, const yaml_event_t *event)
{
    switch ((int)event->type) {
    case YAML_SCALAR_EVENT:
    case YAML_ALIAS_EVENT:
        take_node(r, event);
        return true;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        take_node(r, event);
        open_node(r, event->type == YAML_SEQUENCE_START_EVENT);
        return r->depth <= DEPTH_MAX;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_node(r);
        return true;
    case YAML_DOCUMENT_END_EVENT:
    case YAML_STREAM_END_EVENT:
        return false;
    default:
        return true;
    }
}

bool
launchables_yaml_read(const char *bytes, size_t len, const char *name_key,
                      void (*fn)(void *ctx, const struct yaml_entry *entry), void *ctx)
{
    struct reading r = {.name_key = name_key, .fn = fn, .ctx = ctx};
    yaml_parser_t parser;
    bool more = true, good;

    if (!yaml_parser_initialize(&parser))
        return false;
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, len);
    for (unsigned i = 0; more && i < EVENTS_MAX; i++) {
        yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event))
            break;
        more = take_event(&r, &event);
        yaml_event_delete(&event);
    }
    good = parser.error != YAML_MEMORY_ERROR;
    yaml_parser_delete(&parser);
    return good;
}
