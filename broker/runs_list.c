/*
 * One listing for everybody: when to ask the CLI, whom to answer with what.
 * Distrusts: the CLI (slow, hanging, failing); its bytes are passed on unread.
 */
#include "broker/runs_list.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include "broker/assistant.h"
#include "broker/broker.h"
#include "broker/cli.h"
#include "broker/dispatch.h"
#include "broker/launches.h"
#include "broker/listed.h"
#include "common/limits.h"

#define MARGIN_MS 100u  /* be done that much earlier than promised: others need time too */
#define PAUSE_MS 250u   /* between two calls, however slow the CLI is */

/* A request that waits for the call under way. All wait equally long or until that call is
 * overdue, so the list is in the order of deadlines. */
struct waiter {
    STAILQ_ENTRY(waiter) link;
    struct ask ask;
    uint64_t generation_held;
    uint64_t deadline_ms;
};

struct runs_list {
    struct broker *broker;
    /* the newest listing, if there ever was one */
    int fd; /* sealed memfd, or -1 */
    size_t size;
    uint64_t generation;
    uint64_t listed_ms; /* when its call began: nothing in it is newer for sure */
    uint64_t took_ms;
    /* failures since */
    uint64_t failing_since_ms; /* when the first failing call began; 0: none */
    uint64_t failed_ms;        /* when the newest one ended */
    char error[LIMIT_CLI_ERROR];
    /* what is going on */
    bool calling;
    bool look;            /* the broker itself wants to know */
    uint64_t called_ms;
    uint64_t invalid_ms;  /* a call must have begun later than this to count as fresh */
    uint64_t interest_ms; /* last request */
    struct event *refresh, *deadline;
    STAILQ_HEAD(, waiter) waiters;
};

static void
begin_call(struct runs_list *list);

/* The listing that is known is young enough to be the answer. With a slow CLI that is as
 * young as refreshing without pause keeps it: waiting would not make it younger. */
static bool
is_fresh(const struct runs_list *list, uint64_t now)
{
    uint64_t age_ms = 2 * (list->took_ms + PAUSE_MS);

    if (age_ms < LIMIT_LIST_AGE_MS)
        age_ms = LIMIT_LIST_AGE_MS;
    return list->fd >= 0 && list->failing_since_ms == 0 &&
           list->listed_ms >= list->invalid_ms && now - list->listed_ms <= age_ms;
}

/* A failure is an answer too, for as long as a listing is. */
static bool
has_just_failed(const struct runs_list *list, uint64_t now)
{
    return list->failing_since_ms != 0 && list->failed_ms >= list->invalid_ms &&
           now - list->failed_ms <= LIMIT_LIST_AGE_MS;
}

/* When the call under way has taken so much longer than the last one that people should be
 * told. */
static uint64_t
overdue_ms(const struct runs_list *list)
{
    uint64_t patience_ms = 2 * list->took_ms;

    if (patience_ms < LIMIT_LIST_WAIT_MS - MARGIN_MS)
        patience_ms = LIMIT_LIST_WAIT_MS - MARGIN_MS;
    return list->called_ms + patience_ms;
}

static bool
is_overdue(const struct runs_list *list, uint64_t now)
{
    return list->calling && now >= overdue_ms(list);
}

static void
describe_failure(const struct runs_list *list, uint64_t now, struct answer_runs_list *a)
{
    uint64_t since = list->failing_since_ms;

    if (since != 0) {
        message_string_set(a->error, sizeof a->error, list->error);
    } else if (is_overdue(list, now)) {
        since = list->called_ms;
        snprintf(a->error, sizeof a->error, "`ssebench runs list` has not answered for %u s",
                 (unsigned)((now - since + 500) / 1000));
    } else {
        return;
    }
    a->failing_ms = now > since ? now - since : 1;
}

static void
answer(struct runs_list *list, const struct ask *ask, uint64_t generation_held)
{
    uint64_t now = broker_now_ms();
    struct answer_runs_list a = {0};
    int fd = -1;

    describe_failure(list, now, &a);
    if (list->fd < 0) {
        a.status = a.failing_ms != 0 ? ANSWER_FAILED : ANSWER_BUSY;
    } else {
        a.status = ANSWER_OK;
        a.generation = list->generation;
        a.size = list->size;
        a.age_ms = now - list->listed_ms;
        if (generation_held != list->generation) {
            fd = fcntl(list->fd, F_DUPFD_CLOEXEC, 3);
            if (fd < 0) {
                dispatch_answer_status(list->broker->dispatch, ask, ANSWER_BUSY);
                return;
            }
        }
    }
    dispatch_answer(list->broker->dispatch, ask, &a, fd);
}

static void
answer_first(struct runs_list *list)
{
    struct waiter *w = STAILQ_FIRST(&list->waiters);

    STAILQ_REMOVE_HEAD(&list->waiters, link);
    answer(list, &w->ask, w->generation_held);
    free(w);
}

static void
schedule(struct event *timer, uint64_t delay_ms)
{
    struct timeval tv = {(time_t)(delay_ms / 1000), (suseconds_t)(delay_ms % 1000 * 1000)};

    evtimer_add(timer, &tv);
}

static void
schedule_deadline(struct runs_list *list)
{
    struct waiter *w = STAILQ_FIRST(&list->waiters);
    uint64_t now = broker_now_ms();

    if (w == NULL)
        evtimer_del(list->deadline);
    else
        schedule(list->deadline, w->deadline_ms > now ? w->deadline_ms - now : 0);
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct runs_list *list = arg;
    uint64_t now = broker_now_ms();

    (void)fd;
    (void)what;
    while (!STAILQ_EMPTY(&list->waiters) &&
           STAILQ_FIRST(&list->waiters)->deadline_ms <= now)
        answer_first(list);
    schedule_deadline(list);
}

/* The next call ends just before the listing gets too old, if anybody still looks. */
static void
schedule_refresh(struct runs_list *list)
{
    uint64_t now = broker_now_ms(), wait_ms = LIMIT_LIST_AGE_MS, spent;

    if (list->interest_ms == 0 || now - list->interest_ms > LIMIT_LIST_INTEREST_MS)
        return;
    if (list->failing_since_ms == 0) {
        spent = now - list->listed_ms + list->took_ms + MARGIN_MS;
        wait_ms = spent + PAUSE_MS < LIMIT_LIST_AGE_MS ? LIMIT_LIST_AGE_MS - spent : PAUSE_MS;
    }
    schedule(list->refresh, wait_ms);
}

static void
on_refresh(evutil_socket_t fd, short what, void *arg)
{
    struct runs_list *list = arg;

    (void)fd;
    (void)what;
    if (!list->calling && broker_now_ms() - list->interest_ms <= LIMIT_LIST_INTEREST_MS)
        begin_call(list);
}

/* The same bytes again need no new generation: workers keep what they parsed. */
static bool
same_bytes(int a, size_t a_size, int b, size_t b_size)
{
    void *pa, *pb;
    bool same = false;

    if (a < 0 || a_size != b_size || a_size == 0)
        return false;
    pa = mmap(NULL, a_size, PROT_READ, MAP_PRIVATE, a, 0);
    pb = mmap(NULL, b_size, PROT_READ, MAP_PRIVATE, b, 0);
    if (pa != MAP_FAILED && pb != MAP_FAILED)
        same = memcmp(pa, pb, a_size) == 0;
    if (pa != MAP_FAILED)
        munmap(pa, a_size);
    if (pb != MAP_FAILED)
        munmap(pb, b_size);
    return same;
}

static void
take_listing(struct runs_list *list, struct cli_result *result)
{
    if (!same_bytes(list->fd, list->size, result->output_fd, result->size)) {
        if (list->fd >= 0)
            close(list->fd);
        list->fd = result->output_fd;
        list->size = result->size;
        result->output_fd = -1;
        list->generation++;
    }
    list->listed_ms = list->called_ms;
    list->took_ms = broker_now_ms() - list->called_ms;
    list->failing_since_ms = 0;
    list->error[0] = '\0';
}

static void
take_failure(struct runs_list *list, const char *error)
{
    if (list->failing_since_ms == 0)
        list->failing_since_ms = list->called_ms;
    list->failed_ms = broker_now_ms();
    snprintf(list->error, sizeof list->error, "%s", error);
}

/* What the broker itself has to do with runs. */
static void
tell_others(struct runs_list *list)
{
    bool good = list->failing_since_ms == 0;
    struct listed listed = listed_map(good ? list->fd : -1, list->size, list->called_ms);

    if (list->broker->launches != NULL)
        launches_on_listing(list->broker->launches, &listed);
    assistants_on_listing(list->broker->assistants, &listed);
    listed_unmap(&listed);
}

static void
on_listed(void *ctx, struct cli_result *result)
{
    struct runs_list *list = ctx;

    list->calling = false;
    list->look &= list->called_ms < list->invalid_ms;
    if (result->outcome != CLI_EXITED || result->exit_status != 0)
        take_failure(list, result->error);
    else if (result->size == 0)
        take_failure(list, "`ssebench runs list` printed nothing");
    else
        take_listing(list, result);
    /* A run was stopped meanwhile: those who wait want to see that. */
    if (list->called_ms < list->invalid_ms && (list->look || !STAILQ_EMPTY(&list->waiters))) {
        begin_call(list);
        return;
    }
    tell_others(list);
    while (!STAILQ_EMPTY(&list->waiters))
        answer_first(list);
    schedule_deadline(list);
    schedule_refresh(list);
}

static void
begin_call(struct runs_list *list)
{
    static const char *const args[] = {"runs", "list", "--json", NULL};
    struct cli_call call = {.args = args, .own_bound = true, .fn = on_listed, .ctx = list};
    char error[LIMIT_CLI_ERROR];

    list->called_ms = broker_now_ms();
    if (cli_start(list->broker->cli, &call, error) == 0) {
        list->calling = true;
        return;
    }
    take_failure(list, error);
    while (!STAILQ_EMPTY(&list->waiters))
        answer_first(list);
    tell_others(list);
    schedule_refresh(list);
}

static int
wait_for_call(struct runs_list *list, const struct ask *ask, uint64_t generation_held)
{
    struct waiter *w = malloc(sizeof *w);
    uint64_t deadline_ms = broker_now_ms() + LIMIT_LIST_WAIT_MS - MARGIN_MS;

    if (w == NULL)
        return -ENOMEM;
    if (deadline_ms > overdue_ms(list))
        deadline_ms = overdue_ms(list); /* then there is something to say */
    *w = (struct waiter){.ask = *ask, .generation_held = generation_held,
                         .deadline_ms = deadline_ms};
    STAILQ_INSERT_TAIL(&list->waiters, w, link);
    if (STAILQ_FIRST(&list->waiters) == w)
        schedule_deadline(list);
    return 0;
}

/* Safe for any worker: the command is fixed, and the bytes go to whoever may list runs. */
static void
act_runs_list(struct runs_list *list, const struct ask *ask, uint64_t generation_held,
              bool no_wait)
{
    uint64_t now = broker_now_ms();

    list->interest_ms = now;
    if (is_fresh(list, now) || has_just_failed(list, now)) {
        answer(list, ask, generation_held);
        if (!list->calling && !evtimer_pending(list->refresh, NULL))
            schedule_refresh(list);
        return;
    }
    if (!list->calling)
        begin_call(list); /* may fail at once: then there is nothing to wait for */
    if (no_wait || !list->calling || is_overdue(list, now) ||
        wait_for_call(list, ask, generation_held) != 0)
        answer(list, ask, generation_held);
}

int
handle_runs_list(struct broker *b, const struct ask *ask, const void *request,
                 struct channel_packet *packet)
{
    const struct request_runs_list *q = request;

    (void)packet;
    if (q->no_wait > 1 || q->reserved != 0)
        return -EBADMSG;
    act_runs_list(b->runs_list, ask, q->generation, q->no_wait != 0);
    return 0;
}

void
runs_list_invalidate(struct runs_list *list)
{
    /* Later than now: a call that began in this very millisecond may have seen the past. */
    list->invalid_ms = broker_now_ms() + 1;
}

void
runs_list_look(struct runs_list *list)
{
    if (list->calling)
        list->look = true; /* again, if the call under way began too early */
    else if (is_fresh(list, broker_now_ms()))
        tell_others(list);
    else
        begin_call(list);
}

struct runs_list *
runs_list_new(struct broker *b)
{
    struct runs_list *list = calloc(1, sizeof *list);

    if (list == NULL)
        return NULL;
    list->broker = b;
    list->fd = -1;
    /* Another broker's generations mean other bytes. */
    list->generation = b->epoch;
    STAILQ_INIT(&list->waiters);
    list->refresh = evtimer_new(b->base, on_refresh, list);
    list->deadline = evtimer_new(b->base, on_deadline, list);
    if (list->refresh == NULL || list->deadline == NULL) {
        runs_list_free(list);
        return NULL;
    }
    begin_call(list);
    return list;
}

void
runs_list_free(struct runs_list *list)
{
    if (list == NULL)
        return;
    while (!STAILQ_EMPTY(&list->waiters)) {
        struct waiter *w = STAILQ_FIRST(&list->waiters);

        STAILQ_REMOVE_HEAD(&list->waiters, link);
        free(w);
    }
    if (list->refresh != NULL)
        event_free(list->refresh);
    if (list->deadline != NULL)
        event_free(list->deadline);
    if (list->fd >= 0)
        close(list->fd);
    free(list);
}
