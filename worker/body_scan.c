/* Following brackets, strings and commas of a document that json_line checks. */
#include "worker/body_scan.h"

#include <string.h>

void
body_scan_begin(struct body_scan *s, const char *member)
{
    *s = (struct body_scan){.member = member};
    json_line_begin(&s->line);
}

static void
begin_value(struct body_scan *s, char c)
{
    if (s->inside || s->want_key)
        return;
    s->inside = true;
    if (!s->wanted)
        return;
    s->kind = c;
    s->start = s->end = s->at;
}

static void
end_value(struct body_scan *s, size_t end)
{
    if (s->inside && s->wanted)
        s->end = end;
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
            s->wanted = s->key_len == strlen(s->member) &&
                        memcmp(s->key, s->member, s->key_len) == 0;
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
    size_t i = 0;

    if (!s->in_string || s->escape || s->in_key)
        return 0;
    while (i < len && bytes[i] != '"' && bytes[i] != '\\')
        i++;
    return i;
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
body_scan_end(struct body_scan *s)
{
    return json_line_is_object(&s->line);
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',';
}

bool
body_scan_element(const char *bytes, size_t end, size_t *at, const char **ret_element,
                  size_t *ret_len)
{
    size_t i = *at, start;
    unsigned depth = 0;
    bool text = false;

    while (i < end && is_blank(bytes[i]))
        i++;
    start = i;
    for (; i < end; i++) {
        char c = bytes[i];

        if (text) {
            if (c == '\\')
                i++;
            text = c != '"';
        } else if (c == '"') {
            text = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (depth > 0 && (c == '}' || c == ']')) {
            depth--;
        } else if (depth == 0 && (c == ',' || c == ']')) {
            break;
        }
    }
    *at = i;
    *ret_element = bytes + start;
    *ret_len = i - start;
    return i > start;
}
