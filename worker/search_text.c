/* Comparing folded to lower-case ASCII, first on raw lines, then on the parsed entry. */
#include "worker/search_text.h"

#include <stdint.h>
#include <string.h>

#include "common/json_read.h"
#include "common/json_write.h"
#include "common/utf8.h"

#define EXCERPT_BEFORE 60u /* bytes shown on each side of the hit */
#define EXCERPT_AFTER 140u

static unsigned char
fold(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* First place of `needle` in `hay` with ASCII letters in any case, or NULL. */
static const char *
find_folded(const char *hay, size_t len, const char *needle, size_t needle_len)
{
    unsigned char first = fold(needle[0]);

    if (needle_len == 0 || needle_len > len)
        return NULL;
    for (size_t i = 0; i <= len - needle_len; i++) {
        size_t n = 1;

        if (fold(hay[i]) != first)
            continue;
        while (n < needle_len && fold(hay[i + n]) == fold(needle[n]))
            n++;
        if (n == needle_len)
            return hay + i;
    }
    return NULL;
}

static uint32_t
code_point(const char *text, size_t n)
{
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (unsigned char)text[0] & mask[n];

    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)text[i] & 0x3f);
    return c;
}

/* The spelling of a writer that keeps to ASCII. */
static void
add_ascii(struct buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = utf8_sequence(text + i, len - i);
        uint32_t c;

        if (n <= 1) {
            json_escape(out, text + i, 1);
            i++;
            continue;
        }
        c = code_point(text + i, n);
        if (c >= 0x10000)
            buf_add_format(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                           0xdc00 + ((c - 0x10000) & 0x3ff));
        else
            buf_add_format(out, "\\u%04x", c);
        i += n;
    }
}

bool
search_text_init(struct search_text *t, const char *text)
{
    size_t len = strlen(text);

    buf_init(&t->utf8, 0);
    buf_init(&t->ascii, 0);
    t->plain_len = 0;
    if (len == 0 || len > SEARCH_TEXT_MAX)
        return false;
    memcpy(t->plain, text, len + 1);
    t->plain_len = len;
    json_escape(&t->utf8, text, len);
    add_ascii(&t->ascii, text, len);
    return !t->utf8.failed && !t->ascii.failed;
}

void
search_text_done(struct search_text *t)
{
    buf_done(&t->utf8);
    buf_done(&t->ascii);
}

bool
search_text_line(const struct search_text *t, const char *line, size_t len)
{
    if (find_folded(line, len, t->utf8.data, t->utf8.len) != NULL)
        return true;
    return t->ascii.len != t->utf8.len &&
           find_folded(line, len, t->ascii.data, t->ascii.len) != NULL;
}

/* The first string value that holds it; the tree is no deeper than LIMIT_JSON_DEPTH. */
static const char *
find_value(const struct search_text *t, const struct json_value *v,
           const struct json_value **ret_value)
{
    const char *at = NULL;

    if (v->type == JSON_STRING) {
        *ret_value = v;
        return find_folded(v->text, v->len, t->plain, t->plain_len);
    }
    for (const struct json_value *m = v->first; m != NULL && at == NULL; m = m->next)
        at = find_value(t, m, ret_value);
    return at;
}

static bool
continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Some text around the hit, cut between characters. */
static void
put_excerpt(struct json_writer *w, const struct json_value *v, const char *at)
{
    const char *from = at, *end = v->text + v->len, *to = at;

    from = (size_t)(at - v->text) > EXCERPT_BEFORE ? at - EXCERPT_BEFORE : v->text;
    to = (size_t)(end - at) > EXCERPT_AFTER ? at + EXCERPT_AFTER : end;
    while (from < at && continues(*from))
        from++;
    while (to > at && to < end && continues(*to))
        to--;
    json_key(w, "excerpt");
    json_string(w, from, (size_t)(to - from));
}

bool
search_text_entry(const struct search_text *t, const char *line, size_t len,
                  struct buf *out)
{
    struct json_doc *doc = json_parse(line, len, false, NULL);
    const struct json_value *root = json_root(doc), *value = NULL, *seq, *type;
    const char *at = NULL;
    struct json_writer w;

    seq = json_get(root, "seq");
    if (seq != NULL && seq->type == JSON_NUMBER)
        at = find_value(t, root, &value);
    if (at != NULL) {
        type = json_get(root, "type");
        json_begin(&w, out);
        json_key(&w, "seq");
        json_raw(&w, seq->text, seq->len);
        json_key(&w, "type");
        json_cstring(&w, json_text(type) != NULL ? json_text(type) : "unknown");
        put_excerpt(&w, value, at);
    }
    json_doc_free(doc);
    return at != NULL;
}
