/* The strict reader of a request's head: size first, then bytes, then structure; whatever
 * two parsers could read differently is refused. */
#include "worker/request.h"

#include <string.h>
#include <strings.h>

#include "worker/request_target.h"

/* What the fields of one head said, before they are held against each other. */
struct head_fields {
    struct span connection;
    struct span length;
    struct span coding;
    struct span expect;
    struct span upgrade;
    struct span version;
};

/* The first thing that was wrong. */
struct head_error {
    int status;
    const char *reason;
};

static struct head_error
refused(int status, const char *reason)
{
    return (struct head_error){status, reason};
}

static const struct head_error NO_ERROR = {0, NULL};

static bool
is_token_byte(unsigned char c)
{
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return true;
    return c > 0x20 && c < 0x7f && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static bool
span_is(struct span s, const char *text)
{
    return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}

/* Does a comma-separated list hold this token, in any case? */
static bool
list_has(struct span list, const char *token)
{
    const char *at = list.at;
    const char *end = list.at ? list.at + list.len : NULL;

    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        const char *next = stop + 1;

        while (at < stop && (*at == ' ' || *at == '\t'))
            at++;
        while (stop > at && (stop[-1] == ' ' || stop[-1] == '\t'))
            stop--;
        if (span_is((struct span){at, (size_t)(stop - at)}, token))
            return true;
        at = next;
    }
    return false;
}

/* --- the request line ------------------------------------------------------------------ */

static const struct {
    const char *name;
    enum request_method method;
} METHODS[] = {
    {"GET", METHOD_GET},     {"HEAD", METHOD_HEAD},     {"POST", METHOD_POST},
    {"PUT", METHOD_PUT},     {"PATCH", METHOD_PATCH},   {"DELETE", METHOD_DELETE},
    {"OPTIONS", METHOD_OPTIONS},
};

static struct head_error
method_parse(struct span method, struct request *request)
{
    if (method.len == 0)
        return refused(400, "The request line has no method");
    for (size_t i = 0; i < method.len; i++)
        if (!is_token_byte((unsigned char)method.at[i]))
            return refused(400, "The method has a byte that is not allowed there");
    if (method.len >= sizeof(request->method_name))
        return refused(501, "The method is not known");
    memcpy(request->method_name, method.at, method.len);
    request->method_name[method.len] = '\0';
    request->method = METHOD_OTHER;
    for (size_t i = 0; i < sizeof(METHODS) / sizeof(METHODS[0]); i++)
        if (strcmp(METHODS[i].name, request->method_name) == 0)
            request->method = METHODS[i].method;
    return NO_ERROR;
}

static struct head_error
version_parse(struct span version, struct request *request)
{
    const char *v = version.at;

    if (version.len != 8 || memcmp(v, "HTTP/", 5) != 0 || v[5] < '0' || v[5] > '9' ||
        v[6] != '.' || v[7] < '0' || v[7] > '9')
        return refused(400, "The request line must end with HTTP/1.1");
    if (v[5] != '1' || v[7] > '1')
        return refused(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here");
    request->http10 = v[7] == '0';
    return NO_ERROR;
}

/* `line` is without its CRLF: method SP target SP version, single blanks. */
static struct head_error
request_line_parse(struct span line, struct request *request)
{
    const char *end = line.at + line.len;
    const char *one = memchr(line.at, ' ', line.len);
    const char *two = one ? memchr(one + 1, ' ', (size_t)(end - one - 1)) : NULL;
    struct head_error error;
    struct span target;
    int status = 400;
    const char *reason;

    if (line.len == 0)
        return refused(400, "The request begins with an empty line");
    if (!two)
        return refused(400, "The request line must be a method, a path and HTTP/1.1");
    error = method_parse((struct span){line.at, (size_t)(one - line.at)}, request);
    if (error.status)
        return error;
    error = version_parse((struct span){two + 1, (size_t)(end - two - 1)}, request);
    if (error.status)
        return error;
    if (strcmp(request->method_name, "CONNECT") == 0)
        return refused(405, "CONNECT is not served: this is no proxy");
    target = (struct span){one + 1, (size_t)(two - one - 1)};
    reason = request_target_parse(target, request, &status);
    return reason ? refused(status, reason) : NO_ERROR;
}

/* --- fields ------------------------------------------------------------------------------- */

/* Where a field's value belongs, and whether a second one is refused or takes its place. */
struct field_rule {
    const char *name;
    bool in_request; /* else in struct head_fields */
    bool once;
    size_t offset;
};

#define IN_REQUEST(member) true, true, offsetof(struct request, member)
#define IN_FIELDS(member) false, true, offsetof(struct head_fields, member)

static const struct field_rule FIELD_RULES[] = {
    {"host", IN_REQUEST(host)},
    {"origin", IN_REQUEST(origin)},
    {"sec-fetch-site", IN_REQUEST(fetch_site)},
    {"authorization", IN_REQUEST(authorization)},
    {"content-type", IN_REQUEST(content_type)},
    {"if-none-match", IN_REQUEST(if_none_match)},
    {"idempotency-key", IN_REQUEST(idempotency_key)},
    {"sec-websocket-key", IN_REQUEST(ws_key)},
    {"sec-websocket-protocol", IN_REQUEST(ws_protocols)},
    {"content-length", IN_FIELDS(length)},
    {"transfer-encoding", IN_FIELDS(coding)},
    {"connection", IN_FIELDS(connection)},
    {"expect", IN_FIELDS(expect)},
    {"upgrade", IN_FIELDS(upgrade)},
    {"sec-websocket-version", IN_FIELDS(version)},
    /* Proxies may split these two; nothing is decided by them. */
    {"accept-encoding", true, false, offsetof(struct request, accept_encoding)},
    {"x-forwarded-for", true, false, offsetof(struct request, forwarded_for)},
};

static struct head_error
field_store(struct span name, struct span value, struct request *r, struct head_fields *f)
{
    for (size_t i = 0; i < sizeof(FIELD_RULES) / sizeof(FIELD_RULES[0]); i++) {
        const struct field_rule *rule = &FIELD_RULES[i];
        struct span *place;

        if (rule->name[0] != (name.at[0] | 0x20) || !span_is(name, rule->name))
            continue;
        place = (struct span *)((rule->in_request ? (char *)r : (char *)f) + rule->offset);
        if (place->at && rule->once)
            return refused(400, "A header field that may stand once is there twice");
        *place = value;
        break;
    }
    return NO_ERROR;
}

static struct head_error
field_parse(struct span line, struct request *request, struct head_fields *fields)
{
    const char *colon = memchr(line.at, ':', line.len);
    const char *end = line.at + line.len;
    const char *at;

    if (line.at[0] == ' ' || line.at[0] == '\t')
        return refused(400, "A header field is folded over two lines");
    if (!colon || colon == line.at)
        return refused(400, "A header line is not `name: value`");
    for (const char *c = line.at; c < colon; c++)
        if (!is_token_byte((unsigned char)*c))
            return refused(400, "A header name has a byte that is not allowed there");
    at = colon + 1;
    for (const char *c = at; c < end; c++)
        if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f)
            return refused(400, "A header value has a control byte");
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return field_store((struct span){line.at, (size_t)(colon - line.at)},
                       (struct span){at, (size_t)(end - at)}, request, fields);
}

/* --- what the fields mean together ----------------------------------------------------------- */

static struct head_error
host_check(const struct request *request)
{
    if (!request->host.at)
        return refused(400, "The Host header is missing");
    if (request->host.len == 0 || request->host.len > 262)
        return refused(400, "The Host header is empty or too long");
    for (size_t i = 0; i < request->host.len; i++) {
        unsigned char c = (unsigned char)request->host.at[i];

        if (!is_token_byte(c) && c != ':' && c != '[' && c != ']')
            return refused(400, "The Host header has a byte that is not allowed there");
    }
    return NO_ERROR;
}

/* How long the body is: one way to say it, plain digits, nothing to guess. */
static struct head_error
framing_check(struct request *request, const struct head_fields *fields)
{
    bool sends = request->method == METHOD_POST || request->method == METHOD_PUT ||
                 request->method == METHOD_PATCH || request->method == METHOD_DELETE;

    if (fields->coding.at) {
        if (fields->length.at || request->http10 || !sends ||
            !span_is(fields->coding, "chunked"))
            return refused(400, "Transfer-Encoding is not accepted in a request");
        return refused(411, "A chunked body is not accepted: send Content-Length");
    }
    if (!fields->length.at) {
        if (sends && request->method != METHOD_DELETE)
            return refused(411, "Content-Length is missing (0 for an empty body)");
        return NO_ERROR;
    }
    if (fields->length.len == 0 || fields->length.len > 9)
        return refused(400, "Content-Length must be one to nine digits");
    for (size_t i = 0; i < fields->length.len; i++) {
        if (fields->length.at[i] < '0' || fields->length.at[i] > '9')
            return refused(400, "Content-Length must be one to nine digits");
        request->content_length =
            request->content_length * 10 + (uint64_t)(fields->length.at[i] - '0');
    }
    request->has_length = true;
    if (request->content_length > LIMIT_BODY)
        return refused(413, "The body is longer than 65536 bytes");
    return NO_ERROR;
}

/* 16 bytes of base64: 22 digits of which the last has no stray bits, and "==". */
static bool
websocket_key_valid(struct span key)
{
    if (!key.at || key.len != 24 || key.at[22] != '=' || key.at[23] != '=')
        return false;
    for (size_t i = 0; i < 22; i++) {
        char c = key.at[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              c == '+' || c == '/'))
            return false;
    }
    return strchr("AQgw", key.at[21]) != NULL;
}

/* RFC 6455 4.2.1, all of it; any other upgrade is refused rather than ignored. */
static struct head_error
upgrade_check(struct request *request, const struct head_fields *fields)
{
    if (!fields->upgrade.at)
        return NO_ERROR;
    if (!span_is(fields->upgrade, "websocket"))
        return refused(400, "The only Upgrade is websocket");
    if (!list_has(fields->connection, "upgrade"))
        return refused(400, "A WebSocket handshake needs `Connection: Upgrade`");
    if (request->method != METHOD_GET || request->http10)
        return refused(400, "A WebSocket handshake is a GET of HTTP/1.1");
    if (request->content_length > 0)
        return refused(400, "A WebSocket handshake has no body");
    if (!fields->version.at || !span_is(fields->version, "13"))
        return refused(426, "The WebSocket version must be 13");
    if (!websocket_key_valid(request->ws_key))
        return refused(400, "Sec-WebSocket-Key must be 16 bytes of base64");
    request->upgrade = true;
    return NO_ERROR;
}

static struct head_error
fields_check(struct request *request, const struct head_fields *fields)
{
    struct head_error error = host_check(request);

    if (error.status == 0)
        error = framing_check(request, fields);
    if (error.status == 0)
        error = upgrade_check(request, fields);
    if (error.status)
        return error;
    if (fields->expect.at && !request->http10) {
        if (!span_is(fields->expect, "100-continue"))
            return refused(417, "The only expectation is 100-continue");
        request->expect_continue = request->content_length > 0;
    }
    request->keep_alive = request->http10 ? list_has(fields->connection, "keep-alive")
                                          : !list_has(fields->connection, "close");
    return NO_ERROR;
}

/* --- lines ------------------------------------------------------------------------------------- */

/* A line that has not ended yet: is there already something no head may hold? */
static struct head_error
partial_check(const char *bytes, size_t len, bool first_line)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (c == '\r' && i + 1 == len)
            break;
        if (c == '\r')
            return refused(400, "A line ends with a bare CR");
        if ((c < 0x20 && c != '\t') || c == 0x7f || (first_line && (c > 0x7f || c == '\t')))
            return refused(400, "The head has a byte that is not allowed in HTTP");
    }
    return NO_ERROR;
}

/* Take the next line off bytes[*at..len). 1: `ret_line` without CRLF; 0: not whole yet. */
static int
line_next(const char *bytes, size_t len, size_t *at, struct span *ret_line,
          struct head_error *ret_error)
{
    const char *start = bytes + *at;
    const char *lf = memchr(start, '\n', len - *at);
    size_t n;

    if (!lf) {
        *ret_error = partial_check(start, len - *at, *at == 0);
        return 0;
    }
    n = (size_t)(lf - start);
    if (n == 0 || start[n - 1] != '\r')
        *ret_error = refused(400, "A line ends with a bare LF");
    else if (memchr(start, '\r', n - 1))
        *ret_error = refused(400, "A line ends with a bare CR");
    else if (memchr(start, '\0', n))
        *ret_error = refused(400, "The head has a NUL byte");
    if (ret_error->status)
        return 0;
    *ret_line = (struct span){start, n - 1};
    *at += n + 1;
    return 1;
}

static struct head_error
sizes_check(size_t at, size_t len, unsigned n_lines)
{
    if (n_lines == 0 && len - at > LIMIT_REQUEST_LINE)
        return refused(414, "The request line is longer than 8192 bytes");
    if (len > LIMIT_HEAD)
        return refused(431, "The head is longer than 16384 bytes");
    return NO_ERROR;
}

static void
request_clear(struct request *r)
{
    /* Not the 8 KiB of the path: its first byte is enough. */
    char *path = r->path;

    memset(r, 0, offsetof(struct request, path));
    memset(path + sizeof(r->path), 0, sizeof(*r) - offsetof(struct request, path) -
                                          sizeof(r->path));
    path[0] = '\0';
}

/* Go through the lines. Whole: `*ret_head_len` > 0. */
static struct head_error
head_parse(const char *bytes, size_t len, struct request *r, size_t *ret_head_len)
{
    struct head_fields fields = {{0}};
    struct head_error error = NO_ERROR;
    struct span line;
    size_t at = 0;
    unsigned n_lines = 0;

    while (line_next(bytes, len, &at, &line, &error) == 1) {
        error = n_lines == 0 && line.len + 2 > LIMIT_REQUEST_LINE
                    ? refused(414, "The request line is longer than 8192 bytes")
                    : sizes_check(0, at, 1);
        if (error.status)
            return error;
        if (n_lines > 0 && line.len == 0) {
            error = fields_check(r, &fields);
            *ret_head_len = at;
            return error;
        }
        if (n_lines > LIMIT_FIELDS)
            return refused(431, "The head has more than 64 header fields");
        error = n_lines == 0 ? request_line_parse(line, r) : field_parse(line, r, &fields);
        if (error.status)
            return error;
        n_lines++;
    }
    return error.status ? error : sizes_check(at, len, n_lines);
}

struct request_result
request_parse(const char *bytes, size_t len, struct request *ret_request)
{
    struct request_result result = {.verdict = REQUEST_MORE};
    struct head_error error;

    request_clear(ret_request);
    error = head_parse(bytes, len, ret_request, &result.head_len);
    result.status = error.status;
    result.reason = error.reason;
    if (error.status)
        result.verdict = REQUEST_BAD;
    else if (result.head_len > 0)
        result.verdict = REQUEST_WHOLE;
    return result;
}
