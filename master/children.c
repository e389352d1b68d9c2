/* The broker and the workers of this server: who they are, and the lines between them. */
#include "master/children.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/channel.h"
#include "master/spawn.h"

int
children_init(struct children *cs, struct event_base *base, uint32_t n_workers,
              event_callback_fn on_restart)
{
    cs->n = 1 + n_workers;
    for (uint32_t i = 0; i < cs->n; i++) {
        struct child *c = &cs->item[i];

        c->role = i == 0 ? CHILD_BROKER : CHILD_WORKER;
        c->number = i;
        c->control = c->output = -1;
        c->on_restart = evtimer_new(base, on_restart, c);
        if (c->on_restart == NULL)
            return -ENOMEM;
        if (i == 0)
            strcpy(c->name, "broker");
        else
            snprintf(c->name, sizeof(c->name), "worker.%u", i % 1000);
    }
    return 0;
}

struct child *
children_broker(struct children *cs)
{
    return &cs->item[0];
}

struct child *
children_find(struct children *cs, pid_t pid)
{
    for (uint32_t i = 0; i < cs->n; i++)
        if (cs->item[i].pid == pid)
            return &cs->item[i];
    return NULL;
}

bool
children_any_worker_alive(const struct children *cs)
{
    for (uint32_t i = 1; i < cs->n; i++)
        if (cs->item[i].pid > 0)
            return true;
    return false;
}

void
children_tell_workers(struct children *cs, enum control_type type)
{
    for (uint32_t i = 1; i < cs->n; i++)
        child_tell(&cs->item[i], type, 0, -1);
}

static void
kill_from(struct children *cs, uint32_t first)
{
    for (uint32_t i = first; i < cs->n; i++)
        if (cs->item[i].pid > 0)
            kill(cs->item[i].pid, SIGKILL);
}

void
children_kill_workers(struct children *cs)
{
    kill_from(cs, 1);
}

void
children_kill(struct children *cs)
{
    kill_from(cs, 0);
}

int
children_link(struct children *cs, struct child *worker, int *ret_worker_end)
{
    int ends[2];
    int status = channel_pair(ends);

    if (status != 0)
        return status;
    child_tell(children_broker(cs), CONTROL_CHANNEL, worker->number, ends[0]);
    /* With no broker alive, the worker's end reads as closed: "try again". */
    close(ends[0]);
    if (ret_worker_end != NULL) {
        *ret_worker_end = spawn_raise_fd(ends[1]);
        return *ret_worker_end < 0 ? *ret_worker_end : 0;
    }
    child_tell(worker, CONTROL_CHANNEL, worker->number, ends[1]);
    close(ends[1]);
    return 0;
}

void
children_link_all(struct children *cs)
{
    for (uint32_t i = 1; i < cs->n; i++)
        if (cs->item[i].pid > 0)
            children_link(cs, &cs->item[i], NULL);
}
