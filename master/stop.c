/* The end of the server, in order: the workers, then the broker that they asked. */
#include "master/stop.h"

#include <errno.h>
#include <event2/event.h>

#include "common/log.h"
#include "master/drain.h"
#include "master/notify.h"

enum phase { PHASE_NONE, PHASE_WORKERS, PHASE_BROKER };

static struct {
    struct event_base *base;
    struct children *children;
    struct listeners *listeners;
    struct event *on_deadline;
    enum phase phase;
    int exit_status;
} stop;

bool
stop_under_way(void)
{
    return stop.phase != PHASE_NONE;
}

int
stop_exit_status(void)
{
    return stop.exit_status;
}

void
stop_kill(void)
{
    children_kill(stop.children);
    drain_kill();
}

static void
set_deadline(void)
{
    struct timeval limit = {.tv_sec = LIMIT_STOP_MS / 1000};

    evtimer_add(stop.on_deadline, &limit);
}

static void
handle_deadline(int fd, short what, void *arg)
{
    log_event(LOG_LEVEL_WARNING, "stop-slow", "limit_ms=%u action=kill", LIMIT_STOP_MS);
    if (stop.phase == PHASE_WORKERS) {
        children_kill_workers(stop.children);
        drain_kill();
    } else {
        stop_kill();
    }
}

void
stop_continue(void)
{
    if (stop.phase == PHASE_WORKERS && !children_any_worker_alive(stop.children) &&
        !drain_under_way()) {
        stop.phase = PHASE_BROKER; /* nobody asks it anything any more */
        child_tell(children_broker(stop.children), CONTROL_STOP, 0, -1);
        set_deadline();
    }
    if (stop.phase == PHASE_BROKER && children_broker(stop.children)->pid == 0)
        event_base_loopbreak(stop.base);
}

void
stop_begin(int exit_status)
{
    if (stop_under_way())
        return;
    stop.phase = PHASE_WORKERS;
    stop.exit_status = exit_status;
    notify_send("STOPPING=1");
    children_tell_workers(stop.children, CONTROL_STOP);
    drain_stop();
    for (uint32_t i = 0; i < stop.children->n; i++)
        evtimer_del(stop.children->item[i].on_restart);
    listener_close(stop.listeners); /* closed for good with the workers' copies */
    set_deadline();
    stop_continue();
}

int
stop_init(struct event_base *base, struct children *cs, struct listeners *l)
{
    stop.base = base;
    stop.children = cs;
    stop.listeners = l;
    stop.on_deadline = evtimer_new(base, handle_deadline, NULL);
    return stop.on_deadline != NULL ? 0 : -ENOMEM;
}
