/* A reload's second half: telling the children, the broker first. */
#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "master/drain.h"
#include "master/notify.h"
#include "master/reload.h"

#define RELOAD_WAIT_MS 500u /* for the broker to have taken a reload */

static struct {
    const struct settings *settings;
    struct handover *handover;
    struct children *children;
    struct event *on_late;
    bool under_way; /* the workers are not told yet */
} reload;

static void
tell_config(struct child *c)
{
    int config = c->role == CHILD_WORKER ? handover_worker_config(reload.handover, c->number)
                                         : handover_broker_config(reload.handover);

    if (config < 0) {
        log_event(LOG_LEVEL_ERROR, "reload-failed", "child=%s error=%s", c->name,
                  strerrorname_np(-config));
        return;
    }
    child_tell(c, CONTROL_CONFIG, 0, config);
    close(config);
}

static void
tell_workers(void)
{
    struct children *cs = reload.children;

    reload.under_way = false;
    evtimer_del(reload.on_late);
    for (uint32_t i = 1; i < cs->n; i++)
        if (cs->item[i].pid > 0)
            tell_config(&cs->item[i]);
    log_event(LOG_LEVEL_INFO, "reload-told", "workers=%u", cs->n - 1);
    notify_send("READY=1");
}

void
reload_broker_ready(void)
{
    if (reload.under_way)
        tell_workers();
}

static void
handle_late(int fd, short what, void *arg)
{
    reload_broker_ready();
}

/* The broker first: a token that is new to a worker must not be news to the broker, and one that
 * went is refused there before anybody asks. One that does not answer is not waited for: a
 * revoked token must not live on because of it. */
void
reload_begin(void)
{
    struct timeval limit = {.tv_usec = RELOAD_WAIT_MS * 1000};
    struct child *broker = children_broker(reload.children);

    notify_reloading();
    if (reload_files(reload.settings, reload.handover) && drain_under_way())
        drain_cut(); /* they know other numbers, and cannot be told which token went */
    reload.under_way = true;
    if (broker->pid == 0) { /* the next one starts with it */
        tell_workers();
        return;
    }
    tell_config(broker);
    evtimer_add(reload.on_late, &limit);
}

int
reload_init(struct event_base *base, const struct settings *s, struct handover *h,
            struct children *cs)
{
    reload.settings = s;
    reload.handover = h;
    reload.children = cs;
    reload.on_late = evtimer_new(base, handle_late, NULL);
    return reload.on_late != NULL ? 0 : -ENOMEM;
}
