/* The messages of a log socket (contract 10.6). */
#include "worker/log_follower.h"

#include "common/buf.h"
#include "common/json_write.h"
#include "worker/ws.h"

/* Where they are written; what is kept of each is no longer than it is. */
static struct buf text_buf;

static struct ws_bytes *
finish_message(struct buf *out)
{
    return out->failed ? NULL : ws_bytes_new(out->data, out->len);
}

struct ws_bytes *
log_message_line(const char *text, size_t len)
{
    struct buf *out = &text_buf;
    struct json_writer w;
    buf_reset(out);
    json_begin(&w, out);
    json_object_open(&w);
    json_key(&w, "type");
    json_cstring(&w, "log");
    json_key(&w, "data");
    json_string(&w, text, len);
    json_object_close(&w);
    return finish_message(out);
}

struct ws_bytes *
log_message_end(int exit_status)
{
    struct buf *out = &text_buf;
    buf_reset(out);
    buf_add_format(out, "{\"type\":\"end\",\"data\":{\"exitCode\":%d}}", exit_status);
    return finish_message(out);
}

struct ws_bytes *
log_message_error(const char *text)
{
    struct buf *out = &text_buf;
    struct json_writer w;
    buf_reset(out);
    buf_add_str(out, "{\"type\":\"error\",\"data\":{\"error\":");
    json_begin(&w, out);
    json_cstring(&w, text);
    buf_add_str(out, "}}");
    return finish_message(out);
}
