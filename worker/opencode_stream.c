/* Lines to events, events to sessions. */
#include "worker/opencode_stream.h"

#include <string.h>

#include "common/limits.h"

void
opencode_stream_init(struct opencode_stream *s)
{
    *s = (struct opencode_stream){0};
    buf_init(&s->line, LIMIT_OPENCODE_EVENT);
    buf_init(&s->event, LIMIT_OPENCODE_EVENT);
}

void
opencode_stream_done(struct opencode_stream *s)
{
    buf_done(&s->line);
    buf_done(&s->event);
}

static bool
end_event(struct opencode_stream *s, bool (*event)(void *ctx, const char *data, size_t len),
          void *ctx)
{
    bool more = true;

    if (s->too_long || s->event.failed)
        more = event(ctx, NULL, 0);
    else if (s->event.len > 0)
        more = event(ctx, s->event.data, s->event.len);
    buf_reset(&s->event);
    s->too_long = false;
    return more;
}

static bool
end_line(struct opencode_stream *s, bool (*event)(void *ctx, const char *data, size_t len),
         void *ctx)
{
    const char *at = s->line.data;
    size_t len = s->line.len;
    bool more = true;

    if (s->line.failed) {
        s->too_long = true;
    } else {
        if (len > 0 && at[len - 1] == '\r')
            len--;
        if (len == 0) {
            more = end_event(s, event, ctx);
        } else if (len >= 5 && memcmp(at, "data:", 5) == 0) {
            size_t skip = len > 5 && at[5] == ' ' ? 6 : 5;

            if (s->event.len > 0)
                buf_add_str(&s->event, "\n");
            buf_add(&s->event, at + skip, len - skip);
        }
    }
    buf_reset(&s->line);
    return more;
}

void
opencode_stream_feed(struct opencode_stream *s, const char *bytes, size_t len,
                     bool (*event)(void *ctx, const char *data, size_t len), void *ctx)
{
    const char *end = bytes + len;

    while (bytes < end) {
        const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));

        buf_add(&s->line, bytes, (size_t)((stop != NULL ? stop : end) - bytes));
        if (stop == NULL)
            return;
        if (!end_line(s, event, ctx))
            return;
        bytes = stop + 1;
    }
}

/* --- sessions ------------------------------------------------------------------------------ */

bool
opencode_filter_has(const struct opencode_filter *f, const char *session)
{
    if (strcmp(f->session, session) == 0)
        return true;
    for (unsigned i = 0; i < f->n_children; i++)
        if (strcmp(f->children[i], session) == 0)
            return true;
    return false;
}

void
opencode_filter_add_child(struct opencode_filter *f, const char *session)
{
    if (f->n_children < OPENCODE_CHILDREN && !opencode_filter_has(f, session))
        message_string_set(f->children[f->n_children++], sizeof f->children[0], session);
}

/* Every place in which an event names its session. */
static const char *const places[][2] = {
    {NULL, "sessionID"},      {"part", "sessionID"},    {"message", "sessionID"},
    {"info", "sessionID"},    {"session", "id"},        {"permission", "sessionID"},
};

bool
opencode_filter_passes(struct opencode_filter *f, const struct json_value *event)
{
    const struct json_value *p = json_get(event, "properties"), *info = json_get(p, "info");
    const char *type = json_text(json_get(event, "type"));
    const char *id, *parent;

    if (*f->session == '\0')
        return true;
    if (type != NULL && strncmp(type, "session.", 8) == 0 && info != NULL) {
        id = json_text(json_get(info, "id"));
        parent = json_text(json_get(info, "parentID"));
        if (id != NULL && parent != NULL && opencode_filter_has(f, parent))
            opencode_filter_add_child(f, id);
        if (id != NULL && !opencode_filter_has(f, id))
            return false;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        id = json_text(
            json_get(places[i][0] != NULL ? json_get(p, places[i][0]) : p, places[i][1]));
        if (id != NULL && !opencode_filter_has(f, id))
            return false;
    }
    return true;
}
