/* One line, one JSON object: the grammar of RFC 8259 as a small machine. */
#include "worker/json_line.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

enum state {
    START,        /* blanks, then the object */
    VALUE,        /* a value must come */
    VALUE_OR_END, /* after '[' */
    KEY_OR_END,   /* after '{' */
    KEY,          /* after ',' in an object */
    COLON,
    AFTER, /* a value is complete inside a container */
    STRING,
    ESCAPE,
    HEX,
    LITERAL,
    MINUS,
    ZERO,
    DIGITS,
    POINT,
    FRACTION,
    EXPONENT,
    EXPONENT_SIGN,
    EXPONENT_DIGITS,
    DONE,
    BAD,
};

static const char *const literals[] = {"true", "false", "null"};

_Static_assert(LIMIT_JSON_DEPTH <= 64, "one bit a level");

void
json_line_begin(struct json_line *s)
{
    s->state = START;
    s->depth = 0;
    s->is_object = 0;
    s->has_seq = false;
    s->key_is_seq = false;
    s->array_too = false;
}

void
json_line_begin_any(struct json_line *s)
{
    json_line_begin(s);
    s->array_too = true;
}

static bool
in_object(const struct json_line *s)
{
    return s->depth > 0 && (s->is_object >> (s->depth - 1) & 1) != 0;
}

static uint8_t
open_container(struct json_line *s, bool object)
{
    if (s->depth == LIMIT_JSON_DEPTH)
        return BAD;
    s->is_object &= ~((uint64_t)1 << s->depth);
    s->is_object |= (uint64_t)object << s->depth;
    s->depth++;
    return object ? KEY_OR_END : VALUE_OR_END;
}

static uint8_t
close_container(struct json_line *s, bool object)
{
    if (s->depth == 0 || in_object(s) != object)
        return BAD;
    s->depth--;
    return s->depth == 0 ? DONE : AFTER;
}

static uint8_t
open_string(struct json_line *s, bool key)
{
    s->in_key = key;
    s->key_level = key && s->depth == 1;
    s->key_len = 0;
    return STRING;
}

static void
add_to_key(struct json_line *s, char c)
{
    if (s->key_level && s->key_len < sizeof s->key)
        s->key[s->key_len++] = c;
}

/* The first byte of a value. The last `seq` counts, so a new one forgets the one before. */
static uint8_t
open_value(struct json_line *s, char c)
{
    bool seq = s->depth == 1 && s->key_is_seq;

    if (seq)
        s->has_seq = false;
    s->number_len = 0;
    if (c == '-' || (c >= '0' && c <= '9')) {
        s->number[s->number_len++] = c;
        return c == '-' ? MINUS : c == '0' ? ZERO : DIGITS;
    }
    for (uint8_t i = 0; i < 3; i++)
        if (c == literals[i][0]) {
            s->literal = i;
            s->hex = 1;
            return LITERAL;
        }
    switch (c) {
    case '{':
        return open_container(s, true);
    case '[':
        return open_container(s, false);
    case '"':
        return open_string(s, false);
    default:
        return BAD;
    }
}

static uint8_t
close_number(struct json_line *s)
{
    if (s->depth == 1 && s->key_is_seq && s->number_len <= JSON_LINE_NUMBER) {
        s->number[s->number_len] = '\0';
        s->seq = strtod(s->number, NULL);
        s->has_seq = true;
    }
    return AFTER;
}

/* The next state of a number, or AFTER when `c` is none of its characters. */
static uint8_t
step_number(uint8_t state, char c)
{
    bool digit = c >= '0' && c <= '9';

    switch (state) {
    case MINUS:
        return c == '0' ? ZERO : digit ? DIGITS : BAD;
    case POINT:
        return digit ? FRACTION : BAD;
    case EXPONENT:
        return c == '+' || c == '-' ? EXPONENT_SIGN : digit ? EXPONENT_DIGITS : BAD;
    case EXPONENT_SIGN:
        return digit ? EXPONENT_DIGITS : BAD;
    case EXPONENT_DIGITS:
        return digit ? EXPONENT_DIGITS : AFTER;
    case ZERO:
    case DIGITS:
        if (digit)
            return state == DIGITS ? DIGITS : BAD;
        if (c == '.')
            return POINT;
        break;
    default: /* FRACTION */
        if (digit)
            return FRACTION;
        break;
    }
    return c == 'e' || c == 'E' ? EXPONENT : AFTER;
}

static uint8_t
step_hex(struct json_line *s, char c)
{
    unsigned value;

    if (c >= '0' && c <= '9')
        value = (unsigned)(c - '0');
    else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
        value = (unsigned)((c | 0x20) - 'a') + 10;
    else
        return BAD;
    s->code = (uint16_t)(s->code << 4 | value);
    if (--s->hex > 0)
        return HEX;
    add_to_key(s, s->code < 0x80 ? (char)s->code : '\x7f');
    return STRING;
}

static uint8_t
step_escape(struct json_line *s, char c)
{
    if (c == 'u') {
        s->hex = 4;
        s->code = 0;
        return HEX;
    }
    if (c == '\0' || strchr("\"\\/bfnrt", c) == NULL)
        return BAD;
    add_to_key(s, '\x7f'); /* none of them is in "seq" */
    return STRING;
}

static uint8_t
close_string(struct json_line *s)
{
    if (!s->in_key)
        return AFTER;
    if (s->key_level)
        s->key_is_seq = s->key_len == 3 && memcmp(s->key, "seq", 3) == 0;
    return COLON;
}

static uint8_t
step_after(struct json_line *s, char c)
{
    switch (c) {
    case ',':
        return in_object(s) ? KEY : VALUE;
    case '}':
        return close_container(s, true);
    case ']':
        return close_container(s, false);
    default:
        return BAD;
    }
}

/* Between tokens, blanks already skipped. */
static uint8_t
step_structure(struct json_line *s, char c)
{
    switch (s->state) {
    case START:
        return c == '{' || (c == '[' && s->array_too) ? open_container(s, c == '{') : BAD;
    case VALUE:
        return open_value(s, c);
    case VALUE_OR_END:
        return c == ']' ? close_container(s, false) : open_value(s, c);
    case KEY_OR_END:
        if (c == '}')
            return close_container(s, true);
        return c == '"' ? open_string(s, true) : BAD;
    case KEY:
        return c == '"' ? open_string(s, true) : BAD;
    case COLON:
        return c == ':' ? VALUE : BAD;
    case AFTER:
        return step_after(s, c);
    default: /* DONE: nothing but blanks may follow */
        return BAD;
    }
}

/* A byte inside a token that is not a string's plain text. */
static uint8_t
step_token(struct json_line *s, char c)
{
    switch (s->state) {
    case ESCAPE:
        return step_escape(s, c);
    case HEX:
        return step_hex(s, c);
    default: /* LITERAL */
        if (literals[s->literal][s->hex] != c)
            return BAD;
        s->hex++;
        return literals[s->literal][s->hex] == '\0' ? AFTER : LITERAL;
    }
}

#define EACH_BYTE(c) (0x0101010101010101u * (uint64_t)(c))
#define HIGH_BITS EACH_BYTE(0x80)

/* Is one of these eight bytes a quote, a backslash or a control byte? Where it is, the loop that
 * looks at each finds out. */
static bool
has_end(const char *at)
{
    uint64_t v, quote, backslash;

    memcpy(&v, at, sizeof v);
    quote = v ^ EACH_BYTE('"');
    backslash = v ^ EACH_BYTE('\\');
    return (((quote - EACH_BYTE(1)) & ~quote) | ((backslash - EACH_BYTE(1)) & ~backslash) |
            ((v - EACH_BYTE(0x20)) & ~v)) &
           HIGH_BITS;
}

const char *
json_line_plain(const char *at, const char *end)
{
    while (end - at >= 8 && !has_end(at))
        at += 8;
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20)
        at++;
    return at;
}

/* Plain text of a string up to a quote, a backslash or the end; returns where it stopped. */
static const char *
skip_text(struct json_line *s, const char *at, const char *end)
{
    if (s->key_level) {
        while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20)
            add_to_key(s, *at++);
        return at;
    }
    return json_line_plain(at, end);
}

static const char *
step_string(struct json_line *s, const char *at, const char *end)
{
    at = skip_text(s, at, end);
    if (at == end)
        return at;
    if (*at == '"')
        s->state = close_string(s);
    else
        s->state = *at == '\\' ? ESCAPE : BAD;
    return at + 1;
}

/* One byte of a number; the byte behind it is left for the structure. */
static const char *
take_number(struct json_line *s, const char *at)
{
    uint8_t next = step_number(s->state, *at);

    if (next == AFTER) {
        s->state = close_number(s);
        return at;
    }
    if (s->number_len < JSON_LINE_NUMBER)
        s->number[s->number_len++] = *at;
    else
        s->number_len = JSON_LINE_NUMBER + 1; /* too long to be looked at */
    s->state = next;
    return at + 1;
}

void
json_line_feed(struct json_line *s, const char *bytes, size_t len)
{
    const char *at = bytes, *end = bytes + len;

    while (at < end && s->state != BAD) {
        if (s->state == STRING) {
            at = step_string(s, at, end);
        } else if (s->state >= MINUS && s->state <= EXPONENT_DIGITS) {
            at = take_number(s, at);
        } else if (s->state >= ESCAPE && s->state <= LITERAL) {
            s->state = step_token(s, *at++);
        } else {
            if (*at != ' ' && *at != '\t' && *at != '\r' && *at != '\n')
                s->state = step_structure(s, *at);
            at++;
        }
    }
}

bool
json_line_good(const struct json_line *s)
{
    return s->state != BAD;
}

bool
json_line_is_object(const struct json_line *s)
{
    return s->state == DONE;
}

bool
json_line_end(struct json_line *s, double *ret_seq)
{
    if (s->state != DONE || !s->has_seq)
        return false;
    *ret_seq = s->seq;
    return true;
}
