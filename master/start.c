/* One child's way into the world: its descriptors gathered, its program started, its
 * lines watched. */
#include "master/start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/channel.h"
#include "master/spawn.h"

extern char **environ;

static void
close_fds(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* What only this start needs: `own` are ours to close when the child has its copies. */
struct start {
    struct spawn spawn;
    int own[4]; /* control, stderr, configuration, /dev/null */
    size_t n_own;
    int control, output; /* our ends */
};

static int
own_fd(struct start *st, unsigned target, int fd)
{
    if (fd < 0)
        return fd;
    st->own[st->n_own++] = fd;
    st->spawn.fds[target] = fd;
    return 0;
}

/* Control channel and stderr pipe, which both roles have. */
static int
open_lines(struct start *st)
{
    int ends[2], status;

    status = channel_pair(ends);
    if (status != 0)
        return status;
    st->control = ends[0];
    status = own_fd(st, HANDOFF_CONTROL, spawn_raise_fd(ends[1]));
    if (status != 0)
        return status;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    st->output = ends[0];
    if (fcntl(st->output, F_SETFL, O_NONBLOCK) != 0)
        return -errno;
    return own_fd(st, STDERR_FILENO, spawn_raise_fd(ends[1]));
}

static int
open_null(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    return fd < 0 ? -errno : spawn_raise_fd(fd);
}

static int
prepare(struct start *st, const struct child *c, const struct handover *h)
{
    int status;

    memset(st, 0, sizeof(*st));
    st->control = st->output = -1;
    for (size_t i = 0; i < SPAWN_FDS; i++)
        st->spawn.fds[i] = -1;
    status = open_lines(st);
    if (status == 0)
        status = own_fd(st, STDIN_FILENO, open_null());
    if (status != 0)
        return status;
    st->spawn.fds[STDOUT_FILENO] = st->spawn.fds[STDIN_FILENO];
    return own_fd(st, HANDOFF_CONFIG,
                  c->role == CHILD_WORKER ? handover_worker_config(h, c->number)
                                          : handover_broker_config(h));
}

static void
prepare_worker(struct start *st, const struct handover *h, const struct listeners *l)
{
    for (size_t i = 0; i < l->n; i++)
        st->spawn.fds[HANDOFF_LISTENER + i] = l->item[i].fd;
    st->spawn.max_fds = handover_worker_fds(h);
}

int
start_child(struct child *c, struct event_base *base, const struct handover *h,
            const struct listeners *l, int channel)
{
    static char *const no_env[] = {NULL};
    char number[16];
    char *const worker_argv[] = {"ssebench-webui-worker", number, NULL};
    char *const broker_argv[] = {"ssebench-webui-broker", number, NULL};
    bool is_worker = c->role == CHILD_WORKER;
    struct start st;
    pid_t pid = 0;
    int status = prepare(&st, c, h);

    snprintf(number, sizeof(number), "%u", c->number);
    st.spawn.fds[HANDOFF_SCOREBOARD] = h->scoreboard;
    if (is_worker)
        prepare_worker(&st, h, l);
    st.spawn.fds[HANDOFF_CHANNEL] = channel;
    st.spawn.program = is_worker ? h->worker_program : h->broker_program;
    st.spawn.argv = is_worker ? worker_argv : broker_argv;
    st.spawn.env = is_worker ? no_env : environ;
    if (status == 0)
        status = spawn_start(&st.spawn, &pid);
    close_fds(st.own, st.n_own);
    if (status != 0) {
        close_fds((int[]){st.control, st.output}, 2);
        return status;
    }
    return child_attach(c, base, pid, st.control, st.output);
}
