/* Keeping up with the broker: its events, its restarts. */
#include "worker/launches.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json_write.h"
#include "worker/iso_time.h"
#include "worker/launch_ws.h"

static struct launch_entry *entries;

struct launch_entry *
launches_first(void)
{
    return entries;
}

struct launch_entry *
launches_find(const char *id)
{
    for (struct launch_entry *e = entries; e; e = e->next)
        if (strcmp(e->e.launch_id, id) == 0)
            return e;
    return NULL;
}

static void
entry_remove(struct launch_entry *entry)
{
    struct launch_entry **at = &entries;

    launch_ws_cleared(entry);
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    broker_cancel(entry->ticket);
    if (entry->fd >= 0)
        close(entry->fd);
    free(entry);
}

static struct launch_entry *
entry_new(const struct event_launch *e)
{
    struct launch_entry **at = &entries, *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return NULL;
    entry->fd = -1;
    while (*at && (*at)->e.start_ms <= e->start_ms)
        at = &(*at)->next;
    entry->next = *at;
    *at = entry;
    return entry;
}

/* Do two events say the same of the launch itself? */
static bool
same_status(const struct event_launch *a, const struct event_launch *b)
{
    struct event_launch copy = *b;

    copy.head = a->head;
    copy.output_size = a->output_size;
    copy.output_cut = a->output_cut;
    return memcmp(a, &copy, sizeof(copy)) == 0;
}

static void
on_launch(const void *event)
{
    const struct event_launch *e = event;
    struct launch_entry *entry = launches_find(e->launch_id);
    bool same;

    if (e->state == LAUNCH_CLEARED) {
        if (entry)
            entry_remove(entry);
        return;
    }
    if (!entry)
        entry = entry_new(e);
    if (!entry)
        return; /* no memory: the next event of it tries again */
    same = same_status(&entry->e, e);
    entry->e = *e;
    entry->seen = true;
    if (!same)
        launch_ws_changed(entry);
    launch_ws_grown(entry);
}

static void
on_output(const void *event)
{
    const struct event_launch_output *e = event;
    struct launch_entry *entry = launches_find(e->launch_id);

    if (!entry)
        return;
    entry->e.output_size = e->size;
    entry->e.output_cut = e->cut;
    launch_ws_grown(entry);
}

/* Everything was told: what was not is gone. */
static void
on_synced(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_plain *a = answer;
    struct launch_entry *next;

    if (!a || a->status != ANSWER_OK)
        return;
    for (struct launch_entry *e = entries; e; e = next) {
        next = e->next;
        if (!e->seen)
            entry_remove(e);
    }
}

static void
on_up(void)
{
    struct request_launch_watch q = {.full = 1};

    for (struct launch_entry *e = entries; e; e = e->next)
        e->seen = false;
    broker_ask(MESSAGE_LAUNCH_WATCH, &q, NULL, 0, on_synced, NULL);
}

void
launches_init(void)
{
    broker_on_event(MESSAGE_EVENT_LAUNCH, on_launch);
    broker_on_event(MESSAGE_EVENT_LAUNCH_OUTPUT, on_output);
    broker_on_up(on_up);
}

broker_ticket
launches_sync(broker_answer_fn fn, void *ctx)
{
    struct request_launch_watch q = {0};

    return broker_ask(MESSAGE_LAUNCH_WATCH, &q, NULL, 0, fn, ctx);
}

static void
on_descriptor(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_launch_output *a = answer;
    struct launch_entry *entry = ctx;

    entry->ticket = 0;
    if (!a || a->status != ANSWER_OK || n_fds != 1)
        return; /* asked again with the next growth */
    entry->fd = fds[0];
    fds[0] = -1;
    if (a->size > entry->e.output_size)
        entry->e.output_size = a->size;
    entry->e.output_cut = a->cut;
    launch_ws_grown(entry);
}

void
launches_want_output(struct launch_entry *entry)
{
    struct request_launch_ref q = {0};
    broker_ticket ticket;

    if (entry->fd >= 0 || entry->ticket != 0)
        return;
    message_string_set(q.launch_id, sizeof(q.launch_id), entry->e.launch_id);
    ticket = broker_ask(MESSAGE_LAUNCH_OUTPUT, &q, NULL, 0, on_descriptor, entry);
    entry->ticket = ticket;
}

/* --- rendering --------------------------------------------------------------------------- */

static void
put_time(struct json_writer *w, const char *key, int64_t ms)
{
    char text[ISO_TIME_SIZE];

    iso_time_format(ms, text);
    json_key(w, key);
    json_cstring(w, text);
}

static void
put_extras(struct json_writer *w, const struct event_launch *e)
{
    if (e->state == LAUNCH_QUEUED && e->position > 0) {
        json_key(w, "queuePosition");
        json_int(w, e->position);
    }
    if (e->interrupted) {
        json_key(w, "interrupted");
        json_bool(w, true);
    }
    if (e->output_error) {
        json_key(w, "outputError");
        json_cstring(w, strerror((int)e->output_error));
    }
    if (e->end_ms == 0)
        return;
    put_time(w, "endTime", e->end_ms);
    json_key(w, "exitCode");
    if (e->exit_status < 0)
        json_null(w);
    else
        json_int(w, e->exit_status);
}

void
launches_render(struct json_writer *w, const struct event_launch *e)
{
    bool running = e->state == LAUNCH_RUNNING;

    json_object_open(w);
    json_key(w, "launch_id");
    json_cstring(w, e->launch_id);
    json_key(w, "status");
    json_cstring(w, running ? "running" : e->state == LAUNCH_FAILED ? "failed" : "launching");
    if (running) {
        json_key(w, "containerId");
        json_cstring(w, e->launch_id);
    }
    if (e->error[0] != '\0') {
        json_key(w, "error");
        json_cstring(w, e->error);
    }
    json_key(w, "command");
    json_cstring(w, e->command);
    json_key(w, "taskId");
    json_cstring(w, e->task);
    put_time(w, "startTime", e->start_ms);
    put_extras(w, e);
    json_object_close(w);
}
