/* An HTTP answer from a container, which may be anything: bounds around http-parser. */
#include "worker/upstream_parse.h"

#include <errno.h>
#include <http_parser.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/limits.h"

struct upstream_parser {
    http_parser parser;
    struct upstream_sink sink;
    uint64_t max_body, body;
    size_t head; /* bytes before the body, trailers and chunk heads too */
    bool begun, complete, keeps, endless, in_type, type_done;
    int error;
    size_t field_len, type_len;
    char field[16]; /* enough to know the one field that is kept */
    char type[UPSTREAM_TYPE_SIZE];
};

static int
fail(struct upstream_parser *p, int error)
{
    if (p->error == 0)
        p->error = error;
    return -1;
}

static int
on_field(http_parser *parser, const char *at, size_t len)
{
    struct upstream_parser *p = parser->data;

    if (p->in_type) { /* a value came before: this is another field */
        p->in_type = false;
        p->field_len = 0;
    }
    for (size_t i = 0; i < len && p->field_len < sizeof p->field; i++)
        p->field[p->field_len++] = at[i];
    return 0;
}

static int
on_value(http_parser *parser, const char *at, size_t len)
{
    static const char name[] = "content-type";
    struct upstream_parser *p = parser->data;

    p->in_type = true;
    if (p->field_len != sizeof name - 1 || strncasecmp(p->field, name, sizeof name - 1) != 0)
        return 0;
    for (size_t i = 0; i < len && p->type_len < sizeof p->type - 1; i++)
        p->type[p->type_len++] = at[i];
    return 0;
}

static int
on_head(http_parser *parser)
{
    struct upstream_parser *p = parser->data;

    p->type[p->type_len] = '\0';
    if (parser->status_code < 200 || parser->status_code > 599 || parser->upgrade)
        return fail(p, -EBADMSG);
    if (!p->endless && parser->content_length != UINT64_MAX &&
        parser->content_length > p->max_body)
        return fail(p, -EMSGSIZE);
    if (!p->sink.head(p->sink.ctx, (int)parser->status_code, p->type))
        return fail(p, -ECANCELED);
    return 0;
}

static int
on_body(http_parser *parser, const char *at, size_t len)
{
    struct upstream_parser *p = parser->data;

    p->body += len;
    if (!p->endless && p->body > p->max_body)
        return fail(p, -EMSGSIZE);
    if (!p->sink.data(p->sink.ctx, at, len))
        return fail(p, -ECANCELED);
    return 0;
}

static int
on_complete(http_parser *parser)
{
    struct upstream_parser *p = parser->data;

    p->complete = true;
    p->keeps = http_should_keep_alive(parser) != 0;
    http_parser_pause(parser, 1);
    return 0;
}

static const http_parser_settings settings = {
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

struct upstream_parser *
upstream_parser_new(struct upstream_sink sink, uint64_t max_body, bool endless)
{
    struct upstream_parser *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    http_parser_init(&p->parser, HTTP_RESPONSE);
    http_parser_set_max_header_size(LIMIT_UPSTREAM_HEAD);
    p->parser.data = p;
    p->sink = sink;
    p->max_body = max_body;
    p->endless = endless;
    return p;
}

void
upstream_parser_free(struct upstream_parser *p)
{
    free(p);
}

int
upstream_parser_feed(struct upstream_parser *p, const char *bytes, size_t len)
{
    size_t used;

    if (len == 0)
        return 0;
    p->begun = true;
    used = http_parser_execute(&p->parser, &settings, bytes, len);
    if (p->error != 0)
        return p->error;
    if (p->complete) {
        /* Bytes behind it answer nothing that was asked: that connection is not used again. */
        p->keeps = p->keeps && used == len;
        return 1;
    }
    if (HTTP_PARSER_ERRNO(&p->parser) == HPE_HEADER_OVERFLOW)
        return -EMSGSIZE;
    return HTTP_PARSER_ERRNO(&p->parser) == HPE_OK ? 0 : -EBADMSG;
}

int
upstream_parser_end(struct upstream_parser *p)
{
    http_parser_execute(&p->parser, &settings, NULL, 0);
    p->keeps = false;
    return p->complete ? 1 : -EPIPE;
}

bool
upstream_parser_keeps(const struct upstream_parser *p)
{
    return p->keeps;
}

bool
upstream_parser_begun(const struct upstream_parser *p)
{
    return p->begun;
}
