/* The messages of a log socket (contract 10.6). */
#include "worker/log_follower.h"

#include "common/buf.h"
#include "common/json_write.h"
#include "worker/ws.h"

static struct ws_bytes *
finish_message(struct buf *out)
{
    size_t len = 0;
    char *bytes = buf_take(out, &len);
    return bytes ? ws_bytes_take(bytes, len) : NULL;
}

struct ws_bytes *
log_message_line(const char *text, size_t len)
{
    struct buf out;
    struct json_writer w;
    buf_init(&out, 0);
    json_begin(&w, &out);
    json_object_open(&w);
    json_key(&w, "type");
    json_cstring(&w, "log");
    json_key(&w, "data");
    json_string(&w, text, len);
    json_object_close(&w);
    return finish_message(&out);
}

struct ws_bytes *
log_message_end(int exit_status)
{
    struct buf out;
    buf_init(&out, 0);
    buf_add_format(&out, "{\"type\":\"end\",\"data\":{\"exitCode\":%d}}", exit_status);
    return finish_message(&out);
}

struct ws_bytes *
log_message_error(const char *text)
{
    struct buf out;
    struct json_writer w;
    buf_init(&out, 0);
    buf_add_str(&out, "{\"type\":\"error\",\"data\":{\"error\":");
    json_begin(&w, &out);
    json_cstring(&w, text);
    buf_add_str(&out, "}}");
    return finish_message(&out);
}
