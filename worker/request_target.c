/* The target of a request: origin-form only, decoded once, nothing that two readers could
 * take for different paths. */
#include "worker/request_target.h"

#include <errno.h>
#include <string.h>

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The byte that "%XX" at text[0..len) stands for, or -1. */
static int
percent_value(const char *text, size_t len)
{
    if (len < 3 || hex_value(text[1]) < 0 || hex_value(text[2]) < 0)
        return -1;
    return hex_value(text[1]) * 16 + hex_value(text[2]);
}

static bool
is_control(int byte)
{
    return byte < 0x20 || byte == 0x7f;
}

/* Bytes of the UTF-8 sequence at text[0..len), or 0: not well-formed (RFC 3629: no overlong
 * form, no surrogate), or a C1 control character. */
static size_t
utf8_sequence(const unsigned char *text, size_t len)
{
    size_t n = text[0] < 0x80 ? 1 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;

    if (n == 1)
        return 1;
    if (text[0] < 0xc2 || text[0] > 0xf4 || n > len)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f) ||
        (text[0] == 0xc2 && text[1] < 0xa0))
        return 0;
    return n;
}

static bool
utf8_valid(const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text;

    for (size_t n; len > 0; at += n, len -= n)
        if ((n = utf8_sequence(at, len)) == 0)
            return false;
    return true;
}

/* Is the segment one that climbs: "." or "..", alone or with a ";parameter" that some servers
 * cut off first? */
static bool
segment_climbs(const char *segment, size_t len)
{
    size_t dots = 0;

    while (dots < len && segment[dots] == '.')
        dots++;
    return dots > 0 && dots <= 2 && (dots == len || segment[dots] == ';');
}

/* Look at every segment of the decoded path. */
static const char *
segments_check(const char *path, size_t len, int *ret_status)
{
    const char *end = path + len;

    for (const char *at = path + 1; at <= end;) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        size_t n = (size_t)((slash ? slash : end) - at);

        if (slash && n == 0)
            return "The path has an empty segment";
        if (segment_climbs(at, n))
            return "The path has a dot segment";
        if (n > LIMIT_PATH_SEGMENT) {
            *ret_status = 414;
            return "A path segment is longer than 256 bytes";
        }
        at += n + 1;
    }
    return NULL;
}

/* One raw byte of a path that RFC 3986 does not allow there, or that some readers take for
 * another one ('\' for '/', '#' for the end). */
static bool
path_byte_bad(char c)
{
    return strchr("\\#\"<>^`{|}", c) != NULL;
}

static const char *
path_decode(struct span raw, char *path, size_t *ret_len)
{
    size_t n = 0;

    for (size_t i = 0; i < raw.len; n++) {
        int byte = (unsigned char)raw.at[i];

        if (byte != '%') {
            if (path_byte_bad(raw.at[i++]))
                return "The path has a byte that must be percent-encoded";
            path[n] = (char)byte;
            continue;
        }
        byte = percent_value(raw.at + i, raw.len - i);
        if (byte < 0)
            return "The path has a malformed percent-encoding";
        if (is_control(byte))
            return "The path has an encoded control byte";
        /* A proxy may split at it and we not, or the other way round. */
        if (byte == '/' || byte == '\\')
            return "The path has an encoded slash";
        path[n] = (char)byte;
        i += 3;
    }
    path[n] = '\0';
    *ret_len = n;
    return NULL;
}

static const char *
query_check(struct span query)
{
    for (size_t i = 0; i < query.len; i++) {
        int byte = -1;

        if (strchr("\\#\"<>", query.at[i]))
            return "The query has a byte that must be percent-encoded";
        if (query.at[i] != '%')
            continue;
        byte = percent_value(query.at + i, query.len - i);
        if (byte < 0)
            return "The query has a malformed percent-encoding";
        if (byte == 0)
            return "The query has an encoded NUL";
    }
    return NULL;
}

const char *
request_target_parse(struct span target, struct request *ret_request, int *ret_status)
{
    const char *mark;
    const char *error;
    struct span raw = target;

    *ret_status = 400;
    for (size_t i = 0; i < target.len; i++)
        if ((unsigned char)target.at[i] <= 0x20 || (unsigned char)target.at[i] >= 0x7f)
            return "The request target has a byte that must be percent-encoded";
    if (target.len == 0 || target.at[0] != '/')
        return "The request target must be a path";

    ret_request->target = target;
    ret_request->query = (struct span){NULL, 0};
    mark = memchr(target.at, '?', target.len);
    if (mark) {
        raw.len = (size_t)(mark - target.at);
        ret_request->query = (struct span){mark + 1, target.len - raw.len - 1};
        if ((error = query_check(ret_request->query)))
            return error;
    }
    if (raw.len >= sizeof(ret_request->path)) {
        *ret_status = 414;
        return "The path is longer than 8191 bytes";
    }
    if ((error = path_decode(raw, ret_request->path, &ret_request->path_len)))
        return error;
    if (!utf8_valid(ret_request->path, ret_request->path_len))
        return "The path is not UTF-8";
    return segments_check(ret_request->path, ret_request->path_len, ret_status);
}

/* Decode one form-encoded value or name. -EBADMSG: does not fit, malformed, NUL. */
static int
form_decode(struct span raw, char *out, size_t out_size, size_t *ret_len)
{
    size_t n = 0;

    for (size_t i = 0; i < raw.len;) {
        int byte = (unsigned char)raw.at[i];
        size_t used = 1;

        if (byte == '+') {
            byte = ' ';
        } else if (byte == '%') {
            byte = percent_value(raw.at + i, raw.len - i);
            used = 3;
        }
        if (byte <= 0 || n + 1 >= out_size)
            return -EBADMSG;
        out[n++] = (char)byte;
        i += used;
    }
    out[n] = '\0';
    *ret_len = n;
    return 0;
}

/* Is this pair's name, decoded, the one that is looked for? */
static bool
pair_named(struct span pair, const char *name)
{
    const char *equals = memchr(pair.at, '=', pair.len);
    struct span raw = {pair.at, equals ? (size_t)(equals - pair.at) : pair.len};
    char decoded[64];
    size_t n = 0;

    return form_decode(raw, decoded, sizeof(decoded), &n) == 0 && n == strlen(name) &&
           memcmp(decoded, name, n) == 0;
}

int
request_query(const struct request *request, const char *name, char *out, size_t out_size)
{
    struct span rest = request->query;
    struct span found = {NULL, 0};
    size_t n = 0;
    const char *equals;

    while (rest.at && rest.len > 0) {
        const char *amp = memchr(rest.at, '&', rest.len);
        struct span pair = {rest.at, amp ? (size_t)(amp - rest.at) : rest.len};

        if (pair_named(pair, name)) {
            if (found.at)
                return -EBADMSG;
            found = pair;
        }
        rest.at += pair.len + (amp ? 1 : 0);
        rest.len -= pair.len + (amp ? 1 : 0);
    }
    if (!found.at)
        return 0;
    equals = memchr(found.at, '=', found.len);
    if (equals) {
        found.len -= (size_t)(equals + 1 - found.at);
        found.at = equals + 1;
    } else {
        found.len = 0;
    }
    return form_decode(found, out, out_size, &n) < 0 ? -EBADMSG : 1;
}
