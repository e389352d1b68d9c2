/*
 * The terminal's side: output with back-pressure, input that waits for nothing but the
 * terminal, and the end. Output is written to the ring before it is sent (broker/tty.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "common/limits.h"
#include "worker/pty.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define QUIET_S 0.1 /* after the end: bytes may still be on their way through the kernel */
#define LOST_S 5.0  /* the terminal is gone and nobody says why */
#define VIEW_S 0.05 /* between two looks of one who only looks on */
#define GATHER_S 0.002      /* output of a flood waits so long for more of it */
#define GATHER_LEAST 1024u  /* bytes of a read that may be part of a flood */
#define GATHER_FULL (LIMIT_TTY_QUEUE / 2) /* bytes that need not wait */
#define CTRL_C 0x03

static void
on_view(struct pty *p);

/* Bytes that may be read now. */
static size_t
room(const struct pty *p)
{
    size_t queued = ws_queued(p->ws) + p->gathered.len;
    size_t n = queued < LIMIT_TTY_QUEUE ? LIMIT_TTY_QUEUE - queued : 0;

    if (p->counts && p->unshown + p->gathered.len >= LIMIT_TTY_CREDIT)
        return 0;
    return n;
}

static void
set_timer(struct pty *p, double seconds)
{
    ev_timer_stop(worker_loop(), &p->timer);
    ev_timer_set(&p->timer, seconds, 0.);
    ev_timer_start(worker_loop(), &p->timer);
}

/* What was gathered is in the ring already: it is lost to nobody if this process dies now. */
static void
send_gathered(struct pty *p)
{
    ev_timer_stop(worker_loop(), &p->gather);
    p->sent_at = ev_now(worker_loop());
    if (p->gathered.len > 0)
        pty_send_output(p, p->gathered.data, p->gathered.len);
    buf_reset(&p->gathered);
}

static void
on_gathered(struct ev_loop *loop, ev_timer *w, int events)
{
    struct pty *p = w->data;

    if (p->ws != NULL && !p->over)
        send_gathered(p);
    buf_done(&p->gathered); /* the flood is over, or rests */
}

/* A terminal gives 4 KiB a call. In a flood each of them as a frame would cost more than all
 * the rest; a keystroke's echo waits for nothing. */
static void
pass_on(struct pty *p, const char *bytes, size_t len)
{
    bool flood = len >= GATHER_LEAST &&
                 ev_now(worker_loop()) - p->sent_at < 2 * GATHER_S;

    if (p->gathered.len == 0 && !flood) {
        p->sent_at = ev_now(worker_loop());
        pty_send_output(p, bytes, len);
        return;
    }
    buf_add(&p->gathered, bytes, len);
    if (p->gathered.failed) { /* a hole in the output must not look like none */
        p->over = true;
        pty_finish(p, 1011, "Out of memory");
    } else if (p->gathered.len >= GATHER_FULL || !flood) {
        send_gathered(p);
    } else if (!ev_is_active(&p->gather)) {
        ev_timer_set(&p->gather, GATHER_S, 0.);
        ev_timer_start(worker_loop(), &p->gather);
    }
}

static void
tell_end(struct pty *p)
{
    if (p->over)
        return;
    send_gathered(p);
    p->over = true;
    pty_send_exit(p, p->exit_status);
    pty_finish(p, 1000, "The command ended");
}

static void
reach_end(struct pty *p)
{
    p->at_end = true;
    send_gathered(p);
    ev_io_stop(worker_loop(), &p->readable);
    if (p->ended)
        tell_end(p);
    else
        set_timer(p, LOST_S);
}

/* A short read has emptied the terminal. */
static void
read_output(struct pty *p)
{
    static char bytes[LIMIT_TTY_QUEUE];
    size_t most = room(p), len = 0;
    ssize_t n = 1;
    int error;

    while (len < most && (n = read(p->master, bytes + len, most - len)) > 0) {
        len += (size_t)n;
        if (n < GATHER_LEAST)
            break;
    }
    error = errno;
    if (len > 0) {
        tty_ring_append(p->ring, &p->head, bytes, len);
        pass_on(p, bytes, len);
    }
    if (p->over)
        return;
    if (n == 0 || (n < 0 && error != EAGAIN && error != EINTR))
        reach_end(p);
    else if (room(p) == 0)
        ev_io_stop(worker_loop(), &p->readable); /* pty_io_resume starts it */
    else if (p->ended)
        set_timer(p, QUIET_S);
}

static void
on_readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct pty *p = w->data;

    if (p->ws != NULL)
        read_output(p);
}

void
pty_io_resume(struct pty *p)
{
    if (p->ws != NULL && p->master >= 0 && !p->at_end && room(p) > 0)
        ev_io_start(worker_loop(), &p->readable);
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
    struct pty *p = w->data;

    if (p->ws == NULL || p->over)
        return;
    if (p->view) {
        on_view(p);
    } else if (p->ended) {
        if (ev_is_active(&p->readable) || p->at_end)
            tell_end(p);
    } else if (p->at_end) {
        p->over = true;
        pty_send_error(p, "The terminal is gone");
        pty_finish(p, 1011, "The terminal is gone");
    }
}

void
pty_io_ended(struct pty *p, int exit_status)
{
    p->ended = true;
    p->exit_status = exit_status;
    if (p->at_end)
        tell_end(p);
    else if (p->master >= 0 && ev_is_active(&p->readable))
        set_timer(p, QUIET_S);
}

/* --- looking on ---------------------------------------------------------------------------- */

/* At most one queue full each time. Who is too slow misses what the ring has lost: only the
 * one that reads can slow the program down. */
static void
on_view(struct pty *p)
{
    static char bytes[LIMIT_TTY_QUEUE];
    size_t most = room(p);
    struct tty_ring_size size;
    long n = 1;

    while (most > 0 && (n = tty_ring_read_sized(p->ring, &p->position, bytes, most, &size)) >= 0) {
        pty_send_size(p, size);
        if (n == 0)
            break;
        pty_send_output(p, bytes, (size_t)n);
        most -= (size_t)n;
    }
    if (n <= 0 && p->ended)
        tell_end(p);
    else
        set_timer(p, VIEW_S);
}

void
pty_io_view(struct pty *p)
{
    struct tty_ring_head head;

    p->position = 0;
    if (tty_ring_head(p->ring, &head) < 0)
        head.written = 0;
    pty_send_session(p, head.written < LIMIT_TTY_RING ? head.written : LIMIT_TTY_RING);
    on_view(p);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* A cut ring begins somewhere in a line: start with a whole one. */
static uint64_t
first_whole_line(const struct pty *p)
{
    uint64_t position = p->head.written > LIMIT_TTY_RING ? p->head.written - LIMIT_TTY_RING : 0;
    uint64_t after = position;
    char bytes[4096];
    long n = position > 0 ? tty_ring_read(p->ring, &after, bytes, sizeof bytes) : 0;
    const char *line = n > 0 ? memchr(bytes, '\n', (size_t)n) : NULL;

    return line != NULL ? position + (uint64_t)(line + 1 - bytes) : position;
}

/* Nobody writes to the ring meanwhile: its writer is this. */
static void
replay(struct pty *p)
{
    static char bytes[LIMIT_TTY_QUEUE];
    uint64_t position = first_whole_line(p);
    struct tty_ring_size size;
    long n;

    pty_send_session(p, (size_t)(p->head.written - position));
    while ((n = tty_ring_read_sized(p->ring, &position, bytes, sizeof bytes, &size)) > 0) {
        pty_send_size(p, size);
        pty_send_output(p, bytes, (size_t)n);
    }
}

void
pty_io_begin(struct pty *p, int master)
{
    p->master = master;
    if (tty_ring_head(p->ring, &p->head) < 0)
        p->head = (struct tty_ring_head){0};
    ev_io_set(&p->readable, master, EV_READ);
    ev_io_set(&p->writable, master, EV_WRITE);
    replay(p);
    if (p->ws == NULL)
        return;
    pty_io_resize(p, p->cols, p->rows);
    if (p->input.len > 0)
        ev_io_start(worker_loop(), &p->writable);
    pty_io_resume(p);
    if (p->ended && ev_is_active(&p->readable))
        set_timer(p, QUIET_S);
}

/* --- input ---------------------------------------------------------------------------------------- */

static void
write_input(struct pty *p)
{
    while (p->input.len > 0) {
        ssize_t n = write(p->master, p->input.data, p->input.len);

        if (n <= 0)
            break;
        buf_consume(&p->input, (size_t)n);
    }
    if (p->input.len > 0) {
        ev_io_start(worker_loop(), &p->writable);
    } else {
        ev_io_stop(worker_loop(), &p->writable);
        buf_done(&p->input);
        buf_init(&p->input, LIMIT_TTY_INPUT);
    }
}

static void
on_writable(struct ev_loop *loop, ev_io *w, int events)
{
    write_input(w->data);
}

void
pty_io_input(struct pty *p, const char *bytes, size_t len)
{
    if (p->view || p->over || p->at_end || p->ws == NULL)
        return;
    /* As in a terminal itself: an interrupt throws away what was typed before it. */
    if (len == 1 && bytes[0] == CTRL_C)
        buf_reset(&p->input);
    buf_add(&p->input, bytes, len);
    if (p->input.failed)
        pty_finish(p, 1009, "More input than the program takes");
    else if (p->master >= 0)
        write_input(p);
}

void
pty_io_resize(struct pty *p, int64_t cols, int64_t rows)
{
    struct winsize size = {.ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows};

    if (cols < 1 || rows < 1 || cols > LIMIT_TTY_SIZE || rows > LIMIT_TTY_SIZE || p->view)
        return;
    p->cols = (uint16_t)cols;
    p->rows = (uint16_t)rows;
    if (p->master < 0)
        return;
    ioctl(p->master, TIOCSWINSZ, &size);
    tty_ring_resize(p->ring, &p->head, (struct tty_ring_size){p->cols, p->rows});
}

/* --- beginning and end -------------------------------------------------------------------------------- */

void
pty_io_init(struct pty *p)
{
    p->master = p->ring = -1;
    buf_init(&p->input, LIMIT_TTY_INPUT);
    ev_io_init(&p->readable, on_readable, -1, EV_READ);
    ev_io_init(&p->writable, on_writable, -1, EV_WRITE);
    ev_timer_init(&p->timer, on_timer, 0., 0.);
    ev_timer_init(&p->gather, on_gathered, 0., 0.);
    buf_init(&p->gathered, 0);
    p->readable.data = p->writable.data = p->timer.data = p->gather.data = p;
}

void
pty_io_close(struct pty *p)
{
    ev_io_stop(worker_loop(), &p->readable);
    ev_io_stop(worker_loop(), &p->writable);
    ev_timer_stop(worker_loop(), &p->timer);
    ev_timer_stop(worker_loop(), &p->gather);
    buf_done(&p->gathered);
    buf_done(&p->input);
    if (p->master >= 0)
        close(p->master);
    if (p->ring >= 0)
        close(p->ring);
    p->master = p->ring = -1;
}
