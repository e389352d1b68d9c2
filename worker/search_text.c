/* Comparing folded to lower-case ASCII, first on raw lines, then on the parsed entry. */
#include "worker/search_text.h"

#include <stdint.h>
#include <string.h>

#include "common/buf.h"
#include "common/json_read.h"
#include "common/json_write.h"
#include "common/utf8.h"

#define EXCERPT_BEFORE 60u /* bytes shown on each side of the hit */
#define EXCERPT_AFTER 140u

static char
fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool
spell(struct search_spelling *s, const char *text, size_t len)
{
    size_t k = 0;

    if (len == 0 || len > SEARCH_SPELLING_MAX)
        return false;
    s->len = len;
    for (size_t i = 0; i < len; i++)
        s->text[i] = fold(text[i]);
    s->border[0] = 0;
    for (size_t i = 1; i < len; i++) {
        while (k > 0 && s->text[i] != s->text[k])
            k = s->border[k - 1];
        k += s->text[i] == s->text[k];
        s->border[i] = (uint16_t)k;
    }
    return true;
}

/* First place of it in `hay` with ASCII letters in any case, or NULL. */
static const char *
find(const struct search_spelling *s, const char *hay, size_t len)
{
    size_t k = 0; /* so much of it ends here */

    for (size_t i = 0; i < len; i++) {
        char c = fold(hay[i]);

        if (k == 0 && c != s->text[0])
            continue; /* most of a line */
        while (k > 0 && c != s->text[k])
            k = s->border[k - 1];
        k += c == s->text[k];
        if (k == s->len)
            return hay + i + 1 - k;
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
    struct buf utf8, ascii;
    bool good;

    if (len > SEARCH_TEXT_MAX)
        return false;
    buf_init(&utf8, 0);
    buf_init(&ascii, 0);
    json_escape(&utf8, text, len);
    add_ascii(&ascii, text, len);
    good = !utf8.failed && !ascii.failed && spell(&t->plain, text, len) &&
           spell(&t->utf8, utf8.data, utf8.len) && spell(&t->ascii, ascii.data, ascii.len);
    buf_done(&utf8);
    buf_done(&ascii);
    return good;
}

bool
search_text_line(const struct search_text *t, const char *line, size_t len)
{
    if (find(&t->utf8, line, len) != NULL)
        return true;
    return t->ascii.len != t->utf8.len && find(&t->ascii, line, len) != NULL;
}

/* The first string value that holds it; the tree is no deeper than LIMIT_JSON_DEPTH. */
static const char *
find_value(const struct search_text *t, const struct json_value *v,
           const struct json_value **ret_value)
{
    const char *at = NULL;

    if (v->type == JSON_STRING) {
        *ret_value = v;
        return find(&t->plain, v->text, v->len);
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
