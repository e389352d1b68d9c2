/*
 * LAUNCH, LAUNCH_CANCEL, LAUNCH_CLEAR, LAUNCH_WATCH, LAUNCH_OUTPUT, LAUNCHABLES.
 * Distrusts: the worker: hosted mode and every field are checked again; it names a launch only
 * by an ID that was given out here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/launch.h"
#include "broker/launchables.h"
#include "common/limits.h"
#include "common/log.h"

static int
answer_launch(struct broker *b, const struct ask *ask, enum answer_status status,
              const char *id, const char *error)
{
    struct answer_launch a = {.status = status};

    message_string_set(a.launch_id, sizeof a.launch_id, id);
    message_string_set(a.error, sizeof a.error, error);
    dispatch_answer(b->dispatch, ask, &a, -1);
    return 0;
}

/* --- LAUNCH ----------------------------------------------------------------------------------- */

static void
key_text(const uint8_t key[32], char out[65])
{
    static const uint8_t none[32];

    out[0] = '\0';
    if (memcmp(key, none, sizeof none) == 0)
        return;
    for (unsigned i = 0; i < 32; i++)
        snprintf(out + 2 * (size_t)i, 3, "%02x", key[i]);
}

/* Has this request been made before? A double click, or a client that lost the answer. */
static struct launch *
find_same(struct launches *all, const char *key)
{
    struct launch *l;

    TAILQ_FOREACH(l, &all->list, link)
        if (key[0] != '\0' && !l->doomed && strcmp(l->meta.key, key) == 0)
            return l;
    return NULL;
}

static int
answer_same(struct broker *b, const struct ask *ask, const struct launch *l,
            const struct launch_fields *f)
{
    struct launch_fields before;

    if (launch_meta_get_fields(&l->meta, &before) != 0 || memcmp(&before, f, sizeof before) != 0)
        return answer_launch(b, ask, ANSWER_REFUSED, "",
                             "This Idempotency-Key was used for another launch");
    return answer_launch(b, ask, ANSWER_OK, l->meta.id, "");
}

/* Room for one more: the oldest that is over goes. */
static bool
make_room(struct launches *all)
{
    struct launch *l;

    if (all->n < LIMIT_LAUNCHES)
        return true;
    TAILQ_FOREACH(l, &all->list, link) {
        if (l->alive || l->doomed || l->meta.state <= LAUNCH_LAUNCHING)
            continue;
        launch_set_state(l, LAUNCH_CLEARED, "");
        launch_remove_later(l);
        return true;
    }
    return false;
}

/* Safe: not in hosted mode, and every name is one that the checkout lists now. */
static int
act_submit(struct broker *b, const struct ask *ask, const struct launch_fields *f,
           const char *key)
{
    struct launches *all = b->launches;
    struct launch *l;
    char error[256];
    int r = launches_ready(all);

    if (r < 0)
        return answer_launch(b, ask, ANSWER_FAILED, "", all->why);
    if (!make_room(all))
        return answer_launch(b, ask, ANSWER_BUSY, "", "Too many launches: clear some");
    r = launch_create(all, f, key, &l);
    if (r < 0) {
        snprintf(error, sizeof error, "Cannot record the launch in %.150s: %s",
                 b->config.state_dir, strerror(-r));
        return answer_launch(b, ask, ANSWER_FAILED, "", error);
    }
    l->asked = true;
    l->ask = *ask;
    launches_schedule(all);
    launch_changed(l);
    if (!l->alive && l->asked) { /* it waits, or could not even be begun */
        bool failed = l->meta.state == LAUNCH_FAILED;

        l->asked = false;
        answer_launch(b, ask, failed ? ANSWER_FAILED : ANSWER_OK, l->meta.id, l->meta.error);
        if (failed) {
            launch_set_state(l, LAUNCH_CLEARED, "");
            launch_remove_later(l);
        }
    }
    return 0;
}

int
handle_launch(struct broker *b, const struct ask *ask, const void *request,
              struct channel_packet *packet)
{
    const struct request_launch *q = request;
    struct launch_offer offer = launchables_offer(b->launchables);
    const char *why;
    struct launch *same;
    char key[65];

    (void)packet;
    if (!policy_launch_well_formed(&q->fields))
        return -EBADMSG;
    if (b->config.hosted)
        return answer_launch(b, ask, ANSWER_REFUSED, "", "This server is read-only");
    launchables_refresh(b->launchables, broker_now_ms());
    if (!launchables_known(b->launchables))
        return answer_launch(b, ask, ANSWER_BUSY, "", "The checkout cannot be read now");
    why = policy_launch_refusal(&q->fields, &offer);
    if (why != NULL)
        return answer_launch(b, ask, ANSWER_REFUSED, "", why);
    key_text(q->key, key);
    same = find_same(b->launches, key);
    return same != NULL ? answer_same(b, ask, same, &q->fields)
                        : act_submit(b, ask, &q->fields, key);
}

/* --- LAUNCH_CANCEL, LAUNCH_CLEAR ------------------------------------------------------------------- */

static bool
is_ref_sound(const struct request_launch_ref *q)
{
    static const uint8_t zero[sizeof q->reserved];

    return message_string_valid(q->launch_id, sizeof q->launch_id) &&
           memcmp(q->reserved, zero, sizeof zero) == 0;
}

/* Safe: it ends a process group that a keeper of ours started, and only before its run is
 * listed. What runs is stopped by RUN_STOP, which leaves the backend in order. */
static enum answer_status
act_cancel(struct launch *l)
{
    if (l == NULL || (l->meta.state != LAUNCH_QUEUED && l->meta.state != LAUNCH_LAUNCHING))
        return ANSWER_NOT_FOUND;
    launch_set_state(l, LAUNCH_FAILED, "Cancelled by user");
    launch_end(l);
    return ANSWER_OK;
}

int
handle_launch_cancel(struct broker *b, const struct ask *ask, const void *request,
                     struct channel_packet *packet)
{
    const struct request_launch_ref *q = request;
    enum answer_status status = ANSWER_REFUSED;

    (void)packet;
    if (!is_ref_sound(q))
        return -EBADMSG;
    if (!b->config.hosted)
        status = act_cancel(launch_find(b->launches, q->launch_id));
    dispatch_answer_status(b->dispatch, ask, status);
    launches_schedule(b->launches);
    return 0;
}

/* A run that goes on is left alone: only its entry here goes, and its folder at its end. */
static void
act_clear(struct launch *l)
{
    bool launching = l->meta.state == LAUNCH_LAUNCHING;

    if (l->meta.state == LAUNCH_CLEARED)
        return;
    launch_set_state(l, LAUNCH_CLEARED, "");
    if (launching)
        launch_end(l);
    if (!l->alive)
        launch_remove_later(l);
}

int
handle_launch_clear(struct broker *b, const struct ask *ask, const void *request,
                    struct channel_packet *packet)
{
    const struct request_launch_ref *q = request;
    struct launch *l;

    (void)packet;
    if (!is_ref_sound(q))
        return -EBADMSG;
    if (b->config.hosted) {
        dispatch_answer_status(b->dispatch, ask, ANSWER_REFUSED);
        return 0;
    }
    TAILQ_FOREACH(l, &b->launches->list, link)
        if (q->launch_id[0] == '\0' || strcmp(q->launch_id, l->meta.id) == 0)
            act_clear(l);
    dispatch_answer_status(b->dispatch, ask, ANSWER_OK);
    launches_schedule(b->launches);
    return 0;
}

/* --- LAUNCH_WATCH, LAUNCH_OUTPUT ---------------------------------------------------------------------- */

int
handle_launch_watch(struct broker *b, const struct ask *ask, const void *request,
                    struct channel_packet *packet)
{
    const struct request_launch_watch *q = request;
    int r;

    (void)packet;
    if (q->full > 1 || q->reserved != 0)
        return -EBADMSG;
    r = launch_watch(b->launches, ask->peer, q->full != 0);
    dispatch_answer_status(b->dispatch, ask, r < 0 ? ANSWER_BUSY : ANSWER_OK);
    return 0;
}

/* Safe: launches are for every viewer to see (contract 10.6), and the descriptor only reads. */
int
handle_launch_output(struct broker *b, const struct ask *ask, const void *request,
                     struct channel_packet *packet)
{
    const struct request_launch_ref *q = request;
    struct answer_launch_output a = {.status = ANSWER_NOT_FOUND};
    struct launch *l;
    int fd = -1;

    (void)packet;
    if (!is_ref_sound(q))
        return -EBADMSG;
    l = launch_find(b->launches, q->launch_id);
    if (l != NULL) {
        fd = launch_open_output(l);
        launch_measure(l);
        a.size = l->size;
        a.cut = l->cut;
        a.status = fd >= 0 ? ANSWER_OK : fd == -ENOENT ? ANSWER_NOT_FOUND : ANSWER_BUSY;
    }
    dispatch_answer(b->dispatch, ask, &a, fd >= 0 ? fd : -1);
    return 0;
}

/* --- LAUNCHABLES ------------------------------------------------------------------------------------------ */

int
handle_launchables(struct broker *b, const struct ask *ask, const void *request,
                   struct channel_packet *packet)
{
    const struct request_launchables *q = request;
    struct answer_launchables a = {.status = ANSWER_OK};
    const char *records;
    size_t len;
    int fd = -1;

    (void)packet;
    launchables_refresh(b->launchables, broker_now_ms());
    records = launchables_records(b->launchables, &len, &a.generation);
    a.size = len;
    a.has_catalog = b->config.catalog[0] != '\0';
    a.has_local = launchables_has_local(b->launchables);
    if (!launchables_known(b->launchables))
        a.status = ANSWER_BUSY;
    else if (a.generation != q->generation) {
        fd = handoff_seal("launchables", records, len);
        if (fd < 0)
            a.status = ANSWER_BUSY;
    }
    dispatch_answer(b->dispatch, ask, &a, fd >= 0 ? fd : -1);
    return 0;
}
