/*
 * Sessions that a killed broker left in containers. Each session has a file in the state
 * directory while it may have processes there, locked by its broker: a file that nobody holds
 * is of a broker that is gone, and the next one ends that session. It cannot be resumed: the
 * descriptor of its terminal went with the broker.
 * Distrusts: nobody; the state directory is ours alone (0700). A name that no broker gives is
 * left alone.
 */
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/tty.h"
#include "common/log.h"
#include "policy/run_id.h"

#define FOLDER "terminals"
#define NAME_SIZE (TTY_TAG_SIZE + MESSAGE_ID_SIZE) /* tag, '-', run ID, NUL */
#define TRIES 3u /* the backend may be away, as we were */
#define STATUS_NO_RUN 3 /* of the CLI (contract 2.2) */

struct left {
    STAILQ_ENTRY(left) link;
    int fd; /* holds the lock */
    unsigned tries;
    char name[NAME_SIZE];
};

struct tty_sweep {
    struct ttys *all;
    STAILQ_HEAD(, left) list;
    struct event *timer;
};

static int
open_folder(const struct broker *b, bool make)
{
    int top = open(b->config.state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd;

    if (top < 0)
        return -1;
    if (make)
        mkdirat(top, FOLDER, 0700);
    fd = openat(top, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close(top);
    return fd;
}

static void
remove_file(const struct broker *b, const char *name)
{
    int folder = open_folder(b, false);

    if (folder < 0)
        return;
    unlinkat(folder, name, 0);
    close(folder);
}

static void
make_name(const struct tty *t, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%s-%s", t->tag, t->run_id);
}

void
tty_sweep_keep(struct tty *t)
{
    int folder = open_folder(t->all->broker, true);
    char name[NAME_SIZE];

    make_name(t, name);
    if (folder >= 0)
        t->kept = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (t->kept < 0 || flock(t->kept, LOCK_EX | LOCK_NB) != 0) /* best effort: an orderly end needs none */
        log_event(LOG_LEVEL_WARNING, "tty-not-kept", "terminal=%u errno=%d", t->number, errno);
    if (folder >= 0)
        close(folder);
}

void
tty_sweep_forget(struct tty *t)
{
    char name[NAME_SIZE];

    if (t->kept < 0)
        return;
    make_name(t, name);
    if (t->clear)
        remove_file(t->all->broker, name);
    close(t->kept);
    t->kept = -1;
}

/* --- what others left --------------------------------------------------------------------- */

static void
wait_ms(struct tty_sweep *s, unsigned ms)
{
    struct timeval t = {ms / 1000, ms % 1000 * 1000};

    event_add(s->timer, &t);
}

static void
left_free(struct tty_sweep *s, struct left *l)
{
    STAILQ_REMOVE(&s->list, l, left, link);
    close(l->fd);
    free(l);
}

/* The first one's call is over. A run that does not run has nothing left, but its status is
 * that of a backend that is away as well: such a one is tried again, then counted. */
static void
on_swept(void *ctx, struct cli_result *result)
{
    struct tty_sweep *s = ctx;
    struct left *l = STAILQ_FIRST(&s->list);
    bool gone = result->outcome == CLI_EXITED &&
                (result->exit_status == 0 || result->exit_status == STATUS_NO_RUN);
    bool again = !gone && ++l->tries < TRIES;

    if (again) {
        STAILQ_REMOVE_HEAD(&s->list, link);
        STAILQ_INSERT_TAIL(&s->list, l, link);
    } else {
        log_event(gone ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING,
                  gone ? "tty-swept-inside" : "tty-left-inside", "run=%s status=%d",
                  l->name + TTY_TAG_SIZE, result->exit_status);
        s->all->leftovers += !gone;
        remove_file(s->all->broker, l->name);
        left_free(s, l);
    }
    l = STAILQ_FIRST(&s->list);
    if (l != NULL)
        wait_ms(s, l->tries > 0 ? s->all->broker->config.pty_cleanup_interval_ms : 0);
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
    struct tty_sweep *s = arg;
    struct left *l = STAILQ_FIRST(&s->list);
    char tag[TTY_TAG_SIZE] = "";

    (void)fd;
    (void)what;
    memcpy(tag, l->name, sizeof tag - 1);
    if (tty_inside_end_left(s->all->broker, l->name + TTY_TAG_SIZE, tag, on_swept, s) < 0)
        wait_ms(s, s->all->broker->config.pty_cleanup_interval_ms);
}

static bool
name_valid(const char *name)
{
    size_t len = strlen(name);

    return len > TTY_TAG_SIZE && len < NAME_SIZE &&
           strspn(name, "0123456789abcdef") == TTY_TAG_SIZE - 1 &&
           name[TTY_TAG_SIZE - 1] == '-' &&
           policy_run_id_valid(name + TTY_TAG_SIZE, len - TTY_TAG_SIZE);
}

static bool
take(struct tty_sweep *s, int folder, const char *name)
{
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct left *l = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? calloc(1, sizeof *l) : NULL;

    if (l == NULL) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    l->fd = fd;
    snprintf(l->name, sizeof l->name, "%s", name);
    STAILQ_INSERT_TAIL(&s->list, l, link);
    return true;
}

static void
load(struct tty_sweep *s)
{
    int folder = open_folder(s->all->broker, false);
    DIR *dir = folder < 0 ? NULL : fdopendir(folder);
    const struct dirent *e;
    unsigned n = 0;

    if (dir == NULL) {
        if (folder >= 0)
            close(folder);
        return;
    }
    while ((e = readdir(dir)) != NULL && n < LIMIT_TTYS)
        n += name_valid(e->d_name) && take(s, folder, e->d_name);
    closedir(dir);
}

struct tty_sweep *
tty_sweep_new(struct ttys *all)
{
    struct tty_sweep *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->all = all;
    STAILQ_INIT(&s->list);
    s->timer = event_new(all->broker->base, -1, 0, on_time, s);
    if (s->timer == NULL) {
        free(s);
        return NULL;
    }
    if (!all->broker->config.hosted) /* it calls no program in a container */
        load(s);
    if (!STAILQ_EMPTY(&s->list))
        wait_ms(s, 0);
    return s;
}

void
tty_sweep_free(struct tty_sweep *s)
{
    if (s == NULL)
        return;
    while (!STAILQ_EMPTY(&s->list))
        left_free(s, STAILQ_FIRST(&s->list));
    event_free(s->timer);
    free(s);
}
