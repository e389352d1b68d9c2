/* Following brackets, strings and commas of a document that json_line checks. */
#include "worker/body_scan.h"

#include <string.h>

void
body_scan_begin(struct body_scan *s, const char *const *members, unsigned n_members)
{
    *s = (struct body_scan){.members = members, .n_members = n_members};
    json_line_begin(&s->line);
}

static struct body_value *
find_member(struct body_scan *s)
{
    for (unsigned i = 0; i < s->n_members; i++)
        if (strlen(s->members[i]) == s->key_len &&
            memcmp(s->members[i], s->key, s->key_len) == 0)
            return &s->value[i];
    return NULL;
}

static void
begin_value(struct body_scan *s, char c)
{
    if (s->inside || s->want_key)
        return;
    s->inside = true;
    if (s->wanted == NULL)
        return;
    *s->wanted = (struct body_value){c, s->at, s->at};
    if (s->wanted == s->value)
        s->elements_end = s->at + 1;
}

static void
end_value(struct body_scan *s, size_t end)
{
    if (s->inside && s->wanted != NULL)
        s->wanted->end = end;
    s->inside = false;
}

static void
in_string(struct body_scan *s, char c)
{
    if (s->escape) {
        s->escape = false;
    } else if (c == '\\') {
        s->escape = true;
    } else if (c == '"') {
        s->in_string = false;
        if (s->depth != 1)
            return;
        if (s->in_key)
            s->wanted = find_member(s);
        else
            end_value(s, s->at + 1);
        s->in_key = false;
        return;
    }
    if (s->in_key && s->key_len < BODY_KEY)
        s->key[s->key_len++] = c;
}

static void
structure(struct body_scan *s, char c)
{
    switch (c) {
    case '"':
        s->in_string = true;
        s->in_key = s->depth == 1 && s->want_key;
        s->key_len = 0;
        if (s->depth == 1)
            begin_value(s, c);
        break;
    case '{':
    case '[':
        if (s->depth == 1)
            begin_value(s, c);
        s->want_key = s->depth++ == 0;
        break;
    case '}':
    case ']':
        if (s->depth == 1)
            end_value(s, s->at);
        if (s->depth > 0)
            s->depth--;
        if (s->depth == 1)
            end_value(s, s->at + 1);
        else if (s->depth == 2 && s->wanted == s->value && s->wanted->kind == '[')
            s->elements_end = s->at + 1;
        break;
    case ':':
        if (s->depth == 1)
            s->want_key = false;
        break;
    case ',':
        if (s->depth == 1) {
            end_value(s, s->at);
            s->want_key = true;
        }
        break;
    case ' ':
    case '\t':
    case '\r':
    case '\n':
        break;
    default:
        if (s->depth == 1)
            begin_value(s, c);
        break;
    }
}

/* Inside a string nothing but its end and escapes matter: go there at once. */
static size_t
skip_text(const struct body_scan *s, const char *bytes, size_t len)
{
    if (!s->in_string || s->escape || s->in_key)
        return 0;
    return (size_t)(json_line_plain(bytes, bytes + len) - bytes);
}

void
body_scan_feed(struct body_scan *s, const char *bytes, size_t len)
{
    json_line_feed(&s->line, bytes, len);
    for (size_t i = 0; i < len; i++) {
        size_t skip = skip_text(s, bytes + i, len - i);

        i += skip;
        s->at += skip;
        if (i == len)
            return;
        if (s->in_string)
            in_string(s, bytes[i]);
        else
            structure(s, bytes[i]);
        s->at++;
    }
}

bool
body_scan_good(const struct body_scan *s)
{
    return json_line_good(&s->line);
}

bool
body_scan_end(struct body_scan *s)
{
    return json_line_is_object(&s->line);
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',';
}

/* Where the text at hand ends, its quote included, or `stop`. */
static size_t
pass_text(struct body_element *e, const char *bytes, size_t i, size_t stop)
{
    for (; i < stop; i++) {
        if (!e->escape)
            i = (size_t)(json_line_plain(bytes + i, bytes + stop) - bytes);
        if (i == stop)
            break;
        if (e->escape) {
            e->escape = false;
        } else if (bytes[i] == '\\') {
            e->escape = true;
        } else if (bytes[i] == '"') {
            e->in_string = false;
            return i + 1;
        }
    }
    return i;
}

/* Is the element over before this byte? */
static bool
ends_before(struct body_element *e, char c)
{
    if (c == '"')
        e->in_string = true;
    else if (c == '{' || c == '[')
        e->depth++;
    else if (e->depth > 0 && (c == '}' || c == ']'))
        e->depth--;
    else if (e->depth == 0 && (c == ',' || c == ']'))
        return true;
    return false;
}

int
body_element_next(struct body_element *e, const char *bytes, size_t end, size_t most)
{
    size_t i = e->at, stop = end - i < most ? end : i + most;

    while (!e->begun && i < stop && is_blank(bytes[i]))
        i++;
    if (!e->begun) {
        e->begun = i < stop;
        e->start = i;
    }
    while (i < stop) {
        if (e->in_string)
            i = pass_text(e, bytes, i, stop);
        else if (ends_before(e, bytes[i]))
            break;
        else
            i++;
    }
    e->at = e->end = i;
    if (i == stop && i < end)
        return 0;
    if (!e->begun)
        return -1;
    e->begun = false;
    return 1;
}
