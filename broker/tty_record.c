/*
 * The recording of a terminal: its output as an asciicast v2 file, for audit; off by default.
 *
 * It is made from the ring, at a pace of its own, so that it never slows a terminal: what was
 * overwritten before it was read is left out, and the gap marked. Bytes are escaped, never
 * interpreted. Input is not in it, since passwords are typed without an echo.
 * Distrusts: the ring's writer. It may make a recording wrong, as it may make the screen
 * wrong; it cannot make it longer than its limit, and it reaches no other file.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/tty.h"
#include "common/buf.h"
#include "common/log.h"
#include "common/utf8.h"

#define FOLDER "recordings"
#define PIECE (64u * 1024u) /* bytes of output in one event at most */
#define TAIL 3u             /* bytes of a sequence that is not complete yet, at most */

/* The writer puts bytes before it says so, LIMIT_TTY_QUEUE at once at most: what is older may
 * change while it is read. */
#define SAFE (LIMIT_TTY_RING - LIMIT_TTY_QUEUE)

struct recording {
    int fd; /* -1: it is over before the terminal is */
    uint64_t position, started_ms, size;
    struct winsize window;
    char bytes[TAIL + PIECE];
    size_t n_tail; /* of them, held back */
    struct event *timer;
};

/* --- lines ---------------------------------------------------------------------------------- */

/* Any bytes as the inside of a JSON string; what is no UTF-8 becomes U+FFFD. */
static void
escape(struct buf *out, const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        unsigned char c = (unsigned char)text[at];
        size_t n = utf8_sequence(text + at, len - at);

        if (n == 0) {
            buf_add_str(out, UTF8_REPLACEMENT);
            n = utf8_bad_prefix(text + at, len - at);
        } else if (c == '"' || c == '\\') {
            buf_add_format(out, "\\%c", c);
        } else if (c < 0x20 || c == 0x7f) {
            buf_add_format(out, "\\u%04x", c);
        } else {
            buf_add(out, text + at, n);
        }
        at += n;
    }
}

static void
give_up(struct recording *r, const char *reason)
{
    log_event(LOG_LEVEL_WARNING, "tty-recording-ended", "reason=%s", reason);
    close(r->fd);
    r->fd = -1;
}

/* A line is there whole or not at all. */
static void
put(struct recording *r, const struct buf *line)
{
    ssize_t n;

    if (r->fd < 0)
        return;
    n = line->failed ? -1 : write(r->fd, line->data, line->len);
    if (n == (ssize_t)line->len) {
        r->size += line->len;
        return;
    }
    if (ftruncate(r->fd, (off_t)r->size) < 0)
        log_event(LOG_LEVEL_WARNING, "tty-recording-torn", "errno=%d", errno);
    give_up(r, line->failed ? "memory" : "disk");
}

static void
make_event(struct recording *r, char code, const char *text, size_t len, struct buf *line)
{
    uint64_t ms = broker_now_ms() - r->started_ms;

    buf_add_format(line, "[%llu.%03llu, \"%c\", \"", (unsigned long long)(ms / 1000),
                   (unsigned long long)(ms % 1000), code);
    escape(line, text, len);
    buf_add_str(line, "\"]\n");
}

static void
put_event(struct recording *r, char code, const char *text, size_t len)
{
    static const char over[] = "the recording ends here: it has reached its limit";
    struct buf line;
    bool full;

    buf_init(&line, 0);
    make_event(r, code, text, len, &line);
    full = r->size + line.len > LIMIT_TTY_RECORDING && r->fd >= 0;
    if (full) {
        buf_reset(&line);
        make_event(r, 'm', over, strlen(over), &line);
    }
    put(r, &line);
    if (full && r->fd >= 0)
        give_up(r, "limit");
    buf_done(&line);
}

/* --- from the ring ---------------------------------------------------------------------------- */

static void
put_output(struct recording *r, size_t len, bool last)
{
    size_t tail = last ? 0 : utf8_incomplete_tail(r->bytes, len);

    if (len > tail)
        put_event(r, 'o', r->bytes, len - tail);
    memmove(r->bytes, r->bytes + len - tail, tail);
    r->n_tail = tail;
}

static void
put_gap(struct recording *r, uint64_t lost)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%llu bytes lost", (unsigned long long)lost);

    put_output(r, r->n_tail, true);
    put_event(r, 'm', text, (size_t)n);
}

/* One piece. Is there more? */
static bool
put_piece(struct tty *t, struct recording *r)
{
    struct tty_ring_head head;
    uint64_t before = r->position;
    long n;

    if (tty_ring_head(t->ring, &head) < 0 || head.written == before)
        return false;
    if (head.written < before) { /* a lie */
        r->position = head.written;
        return false;
    }
    if (head.written - before > SAFE) {
        r->position = head.written - PIECE;
        put_gap(r, r->position - before);
        before = r->position;
    }
    n = tty_ring_read(t->ring, &r->position, r->bytes + r->n_tail, PIECE);
    if (n <= 0 || tty_ring_head(t->ring, &head) < 0)
        return false;
    if (head.written - before > SAFE) { /* overwritten while it was read */
        put_gap(r, r->position - before);
        return true;
    }
    put_output(r, r->n_tail + (size_t)n, false);
    return true;
}

static void
put_size(struct tty *t, struct recording *r)
{
    struct winsize now;
    char text[32];
    int n;

    if (ioctl(t->master, TIOCGWINSZ, &now) < 0 ||
        (now.ws_col == r->window.ws_col && now.ws_row == r->window.ws_row))
        return;
    r->window = now;
    n = snprintf(text, sizeof text, "%ux%u", now.ws_col, now.ws_row);
    put_event(r, 'r', text, (size_t)n);
}

static void
put_news(struct tty *t, struct recording *r)
{
    unsigned n = 0;

    put_size(t, r);
    while (r->fd >= 0 && n++ < LIMIT_TTY_RING / PIECE && put_piece(t, r))
        ;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct tty *t = arg;

    (void)fd;
    (void)what;
    put_news(t, t->recording);
    if (t->recording->fd < 0)
        event_del(t->recording->timer);
}

/* --- beginning and end -------------------------------------------------------------------------- */

static int
open_folder(const struct broker *b)
{
    int top = open(b->config.state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd, saved;

    if (top < 0)
        return -errno;
    mkdirat(top, FOLDER, 0700);
    fd = openat(top, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    saved = errno;
    close(top);
    return fd < 0 ? -saved : fd;
}

/* Safe: the name is a time, a checked run ID (no slash) and a number; no file is replaced. */
static int
open_file(const struct tty *t)
{
    char when[32], name[sizeof when + MESSAGE_ID_SIZE + 16];
    time_t now = time(NULL);
    struct tm tm;
    int folder = open_folder(t->all->broker), fd = -1, saved;

    if (folder < 0)
        return folder;
    strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    for (unsigned n = 1; n <= LIMIT_TTYS && fd < 0; n++) {
        char more[12] = "";

        if (n > 1)
            snprintf(more, sizeof more, "-%u", n);
        snprintf(name, sizeof name, "%s-%s%s.cast", when, t->run_id, more);
        fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    saved = errno;
    close(folder);
    return fd < 0 ? -saved : fd;
}

static void
put_header(struct tty *t, struct recording *r)
{
    struct buf line;

    buf_init(&line, 0);
    buf_add_format(&line, "{\"version\": 2, \"width\": %u, \"height\": %u, \"timestamp\": %lld, ",
                   r->window.ws_col, r->window.ws_row, (long long)time(NULL));
    buf_add_format(&line, "\"command\": \"%s\", \"title\": \"",
                   t->program == TTY_SHELL ? "bash" : "opencode");
    escape(&line, t->run_id, strlen(t->run_id));
    buf_add_str(&line, "\", \"env\": {\"TERM\": \"xterm-256color\"}}\n");
    put(r, &line);
    buf_done(&line);
}

int
tty_record_start(struct tty *t, unsigned cols, unsigned rows)
{
    struct timeval every = {0, LIMIT_TTY_RECORD_MS * 1000};
    struct recording *r = calloc(1, sizeof *r);

    if (r == NULL)
        return -ENOMEM;
    t->recording = r;
    r->started_ms = broker_now_ms();
    r->window = (struct winsize){.ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows};
    r->fd = open_file(t);
    if (r->fd < 0)
        return r->fd;
    put_header(t, r);
    r->timer = event_new(t->all->broker->base, -1, EV_PERSIST, on_timer, t);
    if (r->timer == NULL)
        return -ENOMEM;
    event_add(r->timer, &every);
    return r->fd < 0 ? -EIO : 0;
}

void
tty_record_end(struct tty *t)
{
    struct recording *r = t->recording;
    char text[32];

    if (r == NULL)
        return;
    if (r->fd >= 0 && r->timer != NULL) {
        put_news(t, r);
        put_output(r, r->n_tail, true);
        if (t->exited)
            put_event(r, 'm', text,
                      (size_t)snprintf(text, sizeof text, "exit %d", t->exit_status));
    }
    if (r->fd >= 0)
        close(r->fd);
    if (r->timer != NULL)
        event_free(r->timer);
    free(r);
    t->recording = NULL;
}
