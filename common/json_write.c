/* JSON output: escapes, separators, and UTF-8 made valid. */
#include "common/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_read.h"
#include "common/utf8.h"

void
json_begin(struct json_writer *w, struct buf *out)
{
    w->out = out;
    w->comma = false;
}

static void
before_value(struct json_writer *w)
{
    if (w->comma)
        buf_add(w->out, ",", 1);
    w->comma = true;
}

static void
open_with(struct json_writer *w, char c)
{
    before_value(w);
    buf_add(w->out, &c, 1);
    w->comma = false;
}

static void
close_with(struct json_writer *w, char c)
{
    buf_add(w->out, &c, 1);
    w->comma = true;
}

void
json_object_open(struct json_writer *w)
{
    open_with(w, '{');
}

void
json_object_close(struct json_writer *w)
{
    close_with(w, '}');
}

void
json_array_open(struct json_writer *w)
{
    open_with(w, '[');
}

void
json_array_close(struct json_writer *w)
{
    close_with(w, ']');
}

static void
write_key(struct json_writer *w, const char *name, size_t len)
{
    json_string(w, name, len);
    buf_add(w->out, ":", 1);
    w->comma = false;
}

void
json_key(struct json_writer *w, const char *name)
{
    write_key(w, name, strlen(name));
}

/* 0: stands as it is; 1: needs an escape; 2: part of a multi-byte sequence. */
static unsigned
byte_class(unsigned char c)
{
    if (c >= 0x80)
        return 2;
    return c < 0x20 || c == '"' || c == '\\' || c == 0x7f;
}

static void
escape_byte(struct buf *out, unsigned char c)
{
    static const char short_form[] = "btn\0fr"; /* 0x08 .. 0x0d */
    char text[8];

    if (c == '"' || c == '\\')
        snprintf(text, sizeof text, "\\%c", c);
    else if (c >= 0x08 && c <= 0x0d && short_form[c - 0x08] != '\0')
        snprintf(text, sizeof text, "\\%c", short_form[c - 0x08]);
    else
        snprintf(text, sizeof text, "\\u%04x", c);
    buf_add_str(out, text);
}

void
json_escape(struct buf *out, const char *text, size_t len)
{
    size_t from = 0, i = 0;

    while (i < len) {
        unsigned class = byte_class((unsigned char)text[i]);
        size_t n;

        if (class == 0) {
            i++;
            continue;
        }
        if (class == 2 && (n = utf8_sequence(text + i, len - i)) > 0) {
            i += n;
            continue;
        }
        buf_add(out, text + from, i - from);
        if (class == 1) {
            escape_byte(out, (unsigned char)text[i]);
            i++;
        } else {
            buf_add_str(out, UTF8_REPLACEMENT);
            i += utf8_bad_prefix(text + i, len - i);
        }
        from = i;
    }
    buf_add(out, text + from, len - from);
}

void
json_string(struct json_writer *w, const char *text, size_t len)
{
    before_value(w);
    buf_add(w->out, "\"", 1);
    json_escape(w->out, text, len);
    buf_add(w->out, "\"", 1);
}

void
json_cstring(struct json_writer *w, const char *text)
{
    if (text == NULL)
        json_null(w);
    else
        json_string(w, text, strlen(text));
}

void
json_int(struct json_writer *w, int64_t value)
{
    before_value(w);
    buf_add_format(w->out, "%lld", (long long)value);
}

void
json_double(struct json_writer *w, double value)
{
    char text[32];

    if (!isfinite(value)) {
        json_null(w);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    before_value(w);
    buf_add_str(w->out, text);
}

void
json_bool(struct json_writer *w, bool value)
{
    json_raw(w, value ? "true" : "false", value ? 4 : 5);
}

void
json_null(struct json_writer *w)
{
    json_raw(w, "null", 4);
}

void
json_raw(struct json_writer *w, const char *json, size_t len)
{
    before_value(w);
    buf_add(w->out, json, len);
}

void
json_value(struct json_writer *w, const struct json_value *v)
{
    switch (v->type) {
    case JSON_NULL:
        json_null(w);
        return;
    case JSON_BOOL:
        json_bool(w, v->boolean);
        return;
    case JSON_NUMBER:
        json_raw(w, v->text, v->len);
        return;
    case JSON_STRING:
        json_string(w, v->text, v->len);
        return;
    case JSON_ARRAY:
        json_array_open(w);
        for (const struct json_value *m = v->first; m != NULL; m = m->next)
            json_value(w, m);
        json_array_close(w);
        return;
    case JSON_OBJECT:
        json_object_open(w);
        for (const struct json_value *m = v->first; m != NULL; m = m->next) {
            write_key(w, m->key, m->key_len);
            json_value(w, m);
        }
        json_object_close(w);
        return;
    }
}
