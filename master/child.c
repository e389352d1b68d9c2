/* Reading what a child says to the master: ready, fences, log lines; nothing else is
 * known. */
#include "master/child.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/channel.h"
#include "common/log.h"
#include "common/monotonic.h"

#define MESSAGES_PER_WAKE                                                              \
    64 /* so that one chatty child cannot keep the master from others */

static void
tell_dropped(struct child *c)
{
    if (c->log.dropped > 0)
        log_event(LOG_LEVEL_WARNING, "log-dropped", "child=%s lines=%u", c->name,
                  c->log.dropped);
    c->log.dropped = 0;
}

/* The child says no more, and nothing else would tell. */
static void
tell_dropped_late(int fd, short what, void *arg)
{
    tell_dropped(arg);
}

/* What no other line may take the place of, however many a client provokes. */
static bool
is_audit(const char *text, size_t len)
{
    static const char event[] = "audit ";

    return len >= sizeof(event) - 1 && memcmp(text, event, sizeof(event) - 1) == 0;
}

/* A child that was taken over may try to fill the disk or to hide one line among
 * millions. */
static void
relay_line(struct child *c, uint32_t level, const char *text, size_t len)
{
    uint64_t second = monotonic_ms() / 1000;

    if (second != c->log.second) {
        tell_dropped(c);
        c->log.second = second;
        c->log.lines = c->log.audits = 0;
    }
    if ((is_audit(text, len) ? c->log.audits++ : c->log.lines++) < CHILD_LOG_RATE)
        log_relay(c->name, level, text, len);
    else if (c->log.dropped++ == 0)
        event_add(c->on_dropped, &(struct timeval){.tv_sec = 1});
}

static void
become_ready(struct child *c)
{
    if (c->ready && c->role == CHILD_WORKER)
        return;
    if (!c->ready)
        c->ready_ms = monotonic_ms();
    c->ready = true;
    c->on_ready(c); /* the broker's further ones: it has taken a new configuration */
}

/* 0, or -EBADMSG for anything a child does not say. */
static int
handle_message(struct child *c, const struct channel_packet *packet)
{
    struct control_head head;

    if (packet->len < sizeof(head) || packet->n_fds != 0)
        return -EBADMSG;
    memcpy(&head, packet->bytes, sizeof(head));
    if (head.type == CONTROL_LOG) {
        size_t len = packet->len - sizeof(head);

        if (len == 0 || len > LIMIT_LOG_LINE)
            return -EBADMSG;
        relay_line(c, head.value, (const char *)packet->bytes + sizeof(head), len);
        return 0;
    }
    if (packet->len != sizeof(head))
        return -EBADMSG;
    if (head.type == CONTROL_FENCES)
        c->fences = head.value;
    else if (head.type == CONTROL_READY)
        become_ready(c);
    else if (head.type == CONTROL_ALIVE)
        ; /* said with any word */
    else if (head.type == CONTROL_KILL && c->on_kill != NULL)
        c->on_kill(head.value);
    else
        return -EBADMSG;
    return 0;
}

static void
watch_silence(struct child *c)
{
    c->silent = false;
    event_add(c->on_silence, &(struct timeval){.tv_sec = LIMIT_SILENT_MS / 1000});
}

static void
handle_silence(int fd, short what, void *arg)
{
    struct child *c = arg;

    if (!c->silent) {
        c->silent = true;
        event_add(c->on_silence,
                  &(struct timeval){.tv_sec = LIMIT_SILENT_MORE_MS / 1000});
        return;
    }
    log_event(LOG_LEVEL_ERROR, "child-hung", "child=%s silent_ms=%u action=kill", c->name,
              LIMIT_SILENT_MS + LIMIT_SILENT_MORE_MS);
    kill(c->pid, SIGKILL);
}

static void
read_control(int fd, short what, void *arg)
{
    struct child *c = arg;
    static struct channel_packet
        packet; /* 4 kB that need no stack; the master has one thread */
    int status = 0;

    watch_silence(c);
    for (int i = 0; i < MESSAGES_PER_WAKE && status == 0; i++) {
        status = channel_receive(fd, &packet);
        if (status != 0)
            break;
        status = handle_message(c, &packet);
        channel_packet_done(&packet);
    }
    if (status == 0 || status == -EAGAIN)
        return;
    event_del(c->on_control);
    if (status ==
        -EPIPE) /* it is dying: SIGCHLD says how. Or it lives without us: not that */
        log_event(LOG_LEVEL_DEBUG, "control-closed", "child=%s", c->name);
    else
        log_event(LOG_LEVEL_ERROR, "control-malformed", "child=%s error=%d action=kill",
                  c->name, -status);
    if (status != -EPIPE && c->pid > 0)
        kill(c->pid, SIGKILL);
}

/* Lines of a child's stderr; the length is capped by the buffer, the rest by log_relay.
 */
static void
read_output(int fd, short what, void *arg)
{
    struct child *c = arg;
    char text[LIMIT_LOG_LINE];
    ssize_t n = read(fd, text, sizeof(text));

    if (n <= 0) {
        if (n == 0 || errno != EAGAIN)
            event_del(c->on_output);
        return;
    }
    for (char *at = text, *end = text + n; at < end;) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop != NULL ? stop : end) - at);

        if (len > 0)
            relay_line(c, LOG_LEVEL_WARNING, at, len);
        at += len + 1;
    }
}

int
child_attach(struct child *c, struct event_base *base, pid_t pid, int control,
             int output)
{
    c->pid = pid;
    c->control = control;
    c->output = output;
    c->ready = false;
    c->fences = 0;
    memset(&c->log, 0, sizeof(c->log));
    c->on_control = event_new(base, control, EV_READ | EV_PERSIST, read_control, c);
    c->on_output = event_new(base, output, EV_READ | EV_PERSIST, read_output, c);
    c->on_dropped = evtimer_new(base, tell_dropped_late, c);
    c->on_silence = evtimer_new(base, handle_silence, c);
    if (c->on_control == NULL || c->on_output == NULL || c->on_dropped == NULL ||
        c->on_silence == NULL || event_add(c->on_control, NULL) != 0 ||
        event_add(c->on_output, NULL) != 0)
        return -ENOMEM;
    watch_silence(c);
    return 0;
}

static void
drop_event(struct event **event)
{
    if (*event != NULL)
        event_free(*event);
    *event = NULL;
}

static void
drop_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void
child_detach(struct child *c)
{
    if (c->on_control != NULL)
        read_control(c->control, EV_READ, c); /* its last lines say why it ended */
    if (c->on_output != NULL)
        read_output(c->output, EV_READ, c);
    tell_dropped(c);
    drop_event(&c->on_control);
    drop_event(&c->on_output);
    drop_event(&c->on_dropped);
    drop_event(&c->on_silence);
    drop_fd(&c->control);
    drop_fd(&c->output);
    c->pid = 0;
    c->ready = false;
}

void
child_tell(struct child *c, enum control_type type, uint32_t value, int fd)
{
    struct control_head head = {.type = type, .value = value};
    int status;

    if (c->pid == 0)
        return;
    status = channel_send(c->control, &head, sizeof(head), &fd, fd >= 0 ? 1 : 0);
    if (status == 0 || status == -EPIPE) /* gone: SIGCHLD is on its way */
        return;
    log_event(LOG_LEVEL_ERROR, "control-unsent",
              "child=%s message=%d error=%d action=kill", c->name, (int)type, -status);
    kill(c->pid, SIGKILL);
}
