/* Answers with a body of known length: heads, JSON, errors, page assets, and writing. */
#include "worker/http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "common/log.h"
#include "worker/audit.h"
#include "worker/gzip.h"
#include "worker/worker.h"

#define WRITE_SLICE (512u * 1024u) /* bytes in one system call: a turn for the others */
#define WRITE_PROGRESS 16384u /* bytes that a slow reader must take in each stall limit */

/* Headers that every answer carries (security model; contract attacks.md 24, 29, 37). */
static const char COMMON[] = "X-Content-Type-Options: nosniff\r\n"
                             "Referrer-Policy: no-referrer\r\n"
                             "Cross-Origin-Resource-Policy: same-origin\r\n"
                             "X-Frame-Options: DENY\r\n";

static const char POLICY[] =
    "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'; sandbox\r\n";

static const char NO_STORE[] = "Cache-Control: no-store\r\n";

static const struct {
    int status;
    const char *reason;
} REASONS[] = {
    {200, "OK"},
    {204, "No Content"},
    {206, "Partial Content"},
    {304, "Not Modified"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

static const char *
reason_of(int status)
{
    for (size_t i = 0; i < sizeof(REASONS) / sizeof(REASONS[0]); i++)
        if (REASONS[i].status == status)
            return REASONS[i].reason;
    return "Unknown";
}

/* --- heads ------------------------------------------------------------------------ */

/* Where the next bytes of a head go; callers keep within HTTP_HEAD_MAX by construction. */
static char *
put(char *at, const char *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

static char *
put_text(char *at, const char *text)
{
    return put(at, text, strlen(text));
}

static char *
put_number(char *at, uint64_t number)
{
    char digits[20];
    size_t n = sizeof(digits);

    do {
        digits[--n] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return put(at, digits + n, sizeof(digits) - n);
}

/* "Date: ...\r\n", made once a second. */
static char *
put_date(char *at)
{
    static char text[64];
    static time_t made;
    time_t now = (time_t)ev_now(worker_loop());
    struct tm tm;

    if (now != made) {
        /* UTC: reads no zone file, which the sandbox would not survive. */
        gmtime_r(&now, &tm);
        strftime(text, sizeof(text), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
        made = now;
    }
    return put_text(at, text);
}

static char *
put_connection(char *at, const struct exchange *x, int status)
{
    /* An Upgrade field is hop by hop: it goes with its name in Connection (RFC 9110 7.8). */
    if (status == 426)
        return put_text(at, x->conn->close_after ? "Connection: upgrade, close\r\n"
                                                 : "Connection: upgrade\r\n");
    if (x->request.upgrade || x->conn->close_after)
        return put_text(at, "Connection: close\r\n");
    return x->request.http10 ? put_text(at, "Connection: keep-alive\r\n") : at;
}

size_t
answer_head(struct exchange *x, int status, const char *type, int64_t content_len,
            bool chunked, char *out)
{
    char *at = put_text(out, "HTTP/1.1 ");

    audit_answer(x, status);
    at = put_number(at, (uint64_t)status);
    at = put(at, " ", 1);
    at = put_text(at, reason_of(status));
    at = put(at, "\r\n", 2);
    at = put_date(at);
    if (type) {
        at = put_text(at, "Content-Type: ");
        at = put_text(at, type);
        at = put(at, "\r\n", 2);
    }
    if (content_len >= 0) {
        at = put_text(at, "Content-Length: ");
        at = put_number(at, (uint64_t)content_len);
        at = put(at, "\r\n", 2);
    } else if (chunked) {
        at = put_text(at, "Transfer-Encoding: chunked\r\n");
    }
    at = put_connection(at, x, status);
    at = put(at, COMMON, sizeof(COMMON) - 1);
    if (!x->has_csp)
        at = put(at, POLICY, sizeof(POLICY) - 1);
    if (!x->has_cache)
        at = put(at, NO_STORE, sizeof(NO_STORE) - 1);
    at = put(at, x->headers, x->headers_len);
    at = put(at, "\r\n", 2);
    return (size_t)(at - out);
}

void
answer_begin(struct exchange *x)
{
    struct conn *c = x->conn;

    x->answered = true;
    x->gone = NULL;
    c->state = CONN_ANSWER;
    c->progress = 0;
    c->close_after = !x->request.keep_alive || worker_stopping() || x->request.upgrade;
    if (!x->body_whole && x->request.content_length > 0) {
        /* Refused before its body came: what follows is no request. */
        c->close_after = true;
        c->linger = true;
    }
    if (x->request.upgrade)
        c->linger = true;
}

void
exchange_header(struct exchange *x, const char *name, const char *value)
{
    int n = snprintf(x->headers + x->headers_len, sizeof(x->headers) - x->headers_len,
                     "%s: %s\r\n", name, value);

    if (n < 0 || (size_t)n >= sizeof(x->headers) - x->headers_len) {
        log_event(LOG_LEVEL_ERROR, "header-too-long", "name=%s", name);
        return;
    }
    x->headers_len += (size_t)n;
    if (strcmp(name, "Content-Security-Policy") == 0)
        x->has_csp = true;
    if (strcmp(name, "Cache-Control") == 0)
        x->has_cache = true;
}

/* --- writing ---------------------------------------------------------------------- */

void
answer_out_free(struct out *out)
{
    free(out->spill);
    free(out->owned);
    *out = (struct out){0};
}

static void
out_advance(struct out *out, size_t n)
{
    while (out->at < out->n && n >= out->iov[out->at].iov_len)
        n -= out->iov[out->at++].iov_len;
    if (out->at < out->n) {
        out->iov[out->at].iov_base = (char *)out->iov[out->at].iov_base + n;
        out->iov[out->at].iov_len -= n;
    }
}

/* Write once. 1: all is out; 0: more to go; -errno. */
static int
out_write(struct conn *c)
{
    struct out *out = &c->out;
    struct iovec slice[CONN_IOVECS];
    size_t left = WRITE_SLICE;
    int n_slice = 0;
    ssize_t n;

    for (unsigned i = out->at; i < out->n && left > 0; i++) {
        slice[n_slice] = out->iov[i];
        if (slice[n_slice].iov_len > left)
            slice[n_slice].iov_len = left;
        left -= slice[n_slice++].iov_len;
    }
    n = writev(c->io.fd, slice, n_slice);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    c->progress += (size_t)n;
    out_advance(out, (size_t)n);
    return out->at == out->n;
}

static void
out_finished(struct conn *c)
{
    answer_out_free(&c->out);
    server_deadline_clear(&c->deadline);
    if (c->events & EV_WRITE)
        conn_watch(c, c->eof ? 0 : EV_READ);
    if (c->stream)
        stream_written(c);
    else
        http_answer_done(c);
}

/* Copy the pieces that live on the caller's stack. */
static int
out_spill(struct out *out, unsigned n_volatile)
{
    size_t len = 0;
    char *at;

    for (unsigned i = out->at; i < n_volatile; i++)
        len += out->iov[i].iov_len;
    if (len == 0)
        return 0;
    at = out->spill = malloc(len);
    if (!at)
        return -ENOMEM;
    for (unsigned i = out->at; i < n_volatile; i++) {
        memcpy(at, out->iov[i].iov_base, out->iov[i].iov_len);
        out->iov[i].iov_base = at;
        at += out->iov[i].iov_len;
    }
    return 0;
}

void
answer_write(struct conn *c, const struct iovec *iov, unsigned n, unsigned n_volatile,
             char *owned)
{
    int done;

    c->out = (struct out){.n = n, .owned = owned};
    memcpy(c->out.iov, iov, n * sizeof(*iov));
    done = out_write(c);
    if (done == 0 && out_spill(&c->out, n_volatile) < 0)
        done = -ENOMEM;
    if (done < 0) {
        conn_abort(c);
    } else if (done == 1) {
        out_finished(c);
    } else {
        server_deadline_set(&c->deadline, LIMIT_WRITE_STALL_MS);
        c->progress = 0;
        conn_watch(c, c->events | EV_WRITE);
    }
}

void
answer_flush(struct conn *c)
{
    int done = out_write(c);

    if (done < 0) {
        conn_abort(c);
    } else if (done == 1) {
        out_finished(c);
    } else if (c->progress >= WRITE_PROGRESS) {
        /* A minimum rate: a byte now and then does not move the deadline. */
        c->progress = 0;
        server_deadline_set(&c->deadline, LIMIT_WRITE_STALL_MS);
    }
}

/* --- answers ---------------------------------------------------------------------- */

/* Head and body in one system call. `owned` is freed when sent. */
static void
answer_bytes(struct exchange *x, int status, const char *type, const void *bytes,
             size_t len, char *owned)
{
    char head[HTTP_HEAD_MAX];
    struct iovec iov[2] = {{head, 0}, {(void *)(uintptr_t)bytes, len}};
    bool bodiless = status == 204 || status == 304;

    answer_begin(x);
    iov[0].iov_len =
        answer_head(x, status, bodiless ? NULL : type,
                    bodiless && len == 0 ? -1 : (int64_t)len, false, head);
    answer_write(x->conn, iov, x->request.method == METHOD_HEAD || len == 0 ? 1 : 2, 1,
                 owned);
}

void
exchange_json(struct exchange *x, int status, struct buf *body)
{
    size_t len = 0;
    char *bytes = buf_take(body, &len);

    if (!bytes) {
        exchange_error(x, 500, "The server is out of memory: try again", NULL);
        return;
    }
    if (len <= GZIP_FROM || !gzip_accepted(&x->request)) {
        answer_bytes(x, status, "application/json", bytes, len, bytes);
        return;
    }
    if (len > GZIP_AT_ONCE) {
        gzip_answer(x, status, bytes, len);
        return;
    }
    exchange_header(x, "Vary", "Accept-Encoding");
    bytes = gzip_bytes(bytes, &len);
    if (gzip_is(bytes, len))
        exchange_header(x, "Content-Encoding", "gzip");
    answer_bytes(x, status, "application/json", bytes, len, bytes);
}

void
exchange_text(struct exchange *x, int status, const char *type, struct buf *body)
{
    size_t len = 0;
    char *bytes = buf_take(body, &len);

    if (bytes)
        answer_bytes(x, status, type, bytes, len, bytes);
    else
        exchange_error(x, 500, "The server is out of memory: try again", NULL);
}

void
exchange_error(struct exchange *x, int status, const char *error, const char *hint)
{
    static const char no_memory[] = "{\"error\":\"The server is out of memory: try again\"}";
    struct json_writer w;
    struct buf body;
    size_t len = 0;
    char *bytes;

    buf_init(&body, 0);
    json_begin(&w, &body);
    json_object_open(&w);
    json_key(&w, "error");
    json_cstring(&w, error);
    if (hint) {
        json_key(&w, "hint");
        json_cstring(&w, hint);
    }
    json_object_close(&w);
    bytes = buf_take(&body, &len);
    if (bytes)
        answer_bytes(x, status, "application/json", bytes, len, bytes);
    else
        exchange_static(x, 503, "application/json", no_memory, sizeof(no_memory) - 1);
}

void
exchange_static(struct exchange *x, int status, const char *type, const void *bytes,
                size_t len)
{
    answer_bytes(x, status, type, bytes, len, NULL);
}
