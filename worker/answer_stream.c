/* Answers whose body is produced as the client takes it: chunked, one slice a turn. */
#include "worker/http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/gzip.h"

struct stream {
    struct body_source source;
    struct buf data;   /* the slice that is going out */
    bool chunked;      /* else the body ends with the connection (HTTP/1.0) */
    bool ended;        /* the source gave its last byte */
    bool waiting;      /* the source has nothing yet: exchange_resume goes on */
    char size_line[20];
    size_t head_len;   /* 0: the head is out */
    char head[HTTP_HEAD_MAX];
};

void
stream_free(struct conn *c)
{
    struct stream *s = c->stream;

    if (!s)
        return;
    c->stream = NULL;
    s->source.done(s->source.ctx);
    buf_done(&s->data);
    free(s);
}

/* The pieces of this turn: head once, then the slice in its frame, then the end. */
static unsigned
pieces_make(struct stream *s, struct iovec iov[CONN_IOVECS])
{
    static const char END[] = "\r\n0\r\n\r\n"; /* from 2 on: the end without a slice before */
    size_t tail_from = s->data.len > 0 ? 0 : 2;
    size_t tail_len = s->ended ? sizeof(END) - 1 - tail_from : 2 - tail_from;
    unsigned n = 0;

    if (s->head_len > 0)
        iov[n++] = (struct iovec){s->head, s->head_len};
    s->head_len = 0;
    if (s->data.len > 0) {
        if (s->chunked)
            iov[n++] = (struct iovec){
                s->size_line, (size_t)snprintf(s->size_line, sizeof(s->size_line),
                                               "%zx\r\n", s->data.len)};
        iov[n++] = (struct iovec){s->data.data, s->data.len};
    }
    if (s->chunked && tail_len > 0)
        iov[n++] = (struct iovec){(void *)(uintptr_t)(END + tail_from), tail_len};
    return n;
}

void
stream_next(struct conn *c)
{
    struct stream *s = c->stream;
    struct iovec iov[CONN_IOVECS];
    int more;
    unsigned n;

    buf_reset(&s->data);
    more = s->source.fill(s->source.ctx, &s->data);
    if ((more < 0 && more != -EAGAIN) || s->data.failed) {
        conn_abort(c); /* a cut chunked body is seen as cut */
        return;
    }
    s->ended = more == 0;
    s->waiting = more == -EAGAIN;
    n = pieces_make(s, iov);
    if (n > 0)
        answer_write(c, iov, n, 0, NULL);
    else
        stream_written(c);
}

void
stream_written(struct conn *c)
{
    int readable = c->eof ? 0 : c->events & EV_READ;

    if (c->stream->ended) {
        conn_watch(c, readable);
        stream_free(c);
        http_answer_done(c);
    } else {
        conn_watch(c, c->stream->waiting ? readable : readable | EV_WRITE);
    }
}

/* The answer to HEAD: what GET would say, without making the body. */
static void
head_only(struct exchange *x, int status, const char *type)
{
    char head[HTTP_HEAD_MAX];
    struct iovec iov = {head, answer_head(x, status, type, -1, !x->request.http10, head)};

    answer_write(x->conn, &iov, 1, 1, NULL);
}

void
exchange_stream(struct exchange *x, int status, const char *type, struct body_source source)
{
    struct conn *c = x->conn;
    struct stream *s = NULL;
    bool wrapped = false;

    if (x->request.method != METHOD_HEAD && gzip_accepted(&x->request))
        source = gzip_source(source, &wrapped);
    if (wrapped) {
        exchange_header(x, "Content-Encoding", "gzip");
        exchange_header(x, "Vary", "Accept-Encoding");
    }
    exchange_header(x, "X-Accel-Buffering", "no"); /* a proxy would hold it all */
    answer_begin(x);
    c->close_after |= x->request.http10;
    if (x->request.method != METHOD_HEAD && (s = calloc(1, sizeof(*s)))) {
        s->source = source;
        s->chunked = !x->request.http10;
        s->head_len = answer_head(x, status, type, -1, s->chunked, s->head);
        buf_init(&s->data, 0);
        c->stream = s;
        stream_next(c);
        return;
    }
    source.done(source.ctx);
    if (x->request.method == METHOD_HEAD)
        head_only(x, status, type);
    else
        conn_abort(c);
}

void
exchange_resume(struct exchange *x)
{
    struct conn *c = x->conn;

    if (!c->stream || !c->stream->waiting)
        return;
    c->stream->waiting = false;
    if (c->out.n == 0)
        stream_next(c);
}
