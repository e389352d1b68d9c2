/* POST /api/launch, cancel, clear: checked here for the answer, in the broker for safety. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/json_write.h"
#include "worker/audit.h"
#include "worker/broker_as.h"
#include "worker/exchange.h"
#include "worker/iso_time.h"
#include "worker/launch.h"
#include "worker/launch_offer.h"
#include "worker/launch_request.h"
#include "worker/launches.h"

/* --- launch -------------------------------------------------------------------------------- */

/* The launch may be one that was cleared meanwhile (a repeated request): then what is known. */
static void
answer_launched(struct exchange *x, const struct answer_launch *a, const char *task)
{
    const struct launch_entry *entry = launches_find(a->launch_id);
    struct event_launch e = {.state = LAUNCH_RUNNING, .start_ms = iso_time_now_ms()};
    struct json_writer w;
    struct buf body;

    message_string_set(e.launch_id, sizeof(e.launch_id), a->launch_id);
    message_string_set(e.task, sizeof(e.task), task);
    buf_init(&body, 0);
    json_begin(&w, &body);
    launches_render(&w, entry ? &entry->e : &e);
    exchange_json(x, 200, &body);
}

/* No text: the broker heard before us that the token went. */
static void
answer_refused(struct exchange *x, const char *error)
{
    if (*error == '\0')
        exchange_error(x, 403, "This token's role does not allow it", NULL);
    else
        exchange_error(x, strcmp(error, "This server is read-only") == 0 ? 403 : 400, error,
                       NULL);
}

static void
on_launched(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    struct launch_wait *w = ctx;
    const struct answer_launch *a = answer;
    struct request_launch *q = w->ctx;
    char task[MESSAGE_NAME_SIZE];
    struct exchange *x;

    memcpy(task, q->fields.task, sizeof(task));
    x = launch_wait_end(w);
    if (!x)
        return;
    if (!a)
        launch_answer_away(x, "Failed to launch");
    else if (a->status == ANSWER_OK)
        answer_launched(x, a, task);
    else if (a->status == ANSWER_REFUSED)
        answer_refused(x, a->error);
    else if (a->status == ANSWER_BUSY)
        exchange_error(x, 503, a->error[0] != '\0' ? a->error : "Failed to launch",
                       "Too much is under way: try again");
    else
        exchange_error(x, 500, a->error[0] != '\0' ? a->error : "Failed to launch", NULL);
}

static void
on_offer(struct launch_wait *w, const struct launchables_list *list)
{
    struct request_launch *q = w->ctx;
    struct launch_offer offer;
    const char *why = NULL;

    if (!w->x) {
        launch_wait_end(w);
        return;
    }
    if (!list) {
        launch_answer_away(launch_wait_end(w), "Failed to launch");
        return;
    }
    offer = launch_offer_of(list);
    why = policy_launch_refusal(&q->fields, &offer);
    if (why)
        exchange_error(launch_wait_end(w), 400, why, NULL);
    else
        broker_ask_as(exchange_token(w->x), MESSAGE_LAUNCH, q, on_launched, w);
}

/* The key counts for who sent it: two people's launches of one key are two. A digest has one
 * length, whatever the client made of its key. */
static void
digest_key(const struct exchange *x, uint8_t ret_key[HASH_SIZE])
{
    const struct span *key = &exchange_request(x)->idempotency_key;
    struct {
        char who[AUDIT_WHO];
        uint8_t key[HASH_SIZE];
    } whose = {0};

    if (!key->at)
        return;
    audit_who(x, whose.who);
    hash_sha256(key->at, key->len, whose.key);
    hash_sha256(&whose, sizeof(whose), ret_key);
}

void
handle_launch(struct exchange *x)
{
    struct request_launch *q = calloc(1, sizeof(*q));
    struct launch_wait *w;
    size_t len;
    const char *body = exchange_body(x, &len);

    if (!q) {
        exchange_error(x, 503, "Out of memory: try again", NULL);
        return;
    }
    digest_key(x, q->key);
    if (!launch_request_read(body, len, &q->fields)) {
        bool want = errno == ENOMEM;

        free(q);
        exchange_error(x, want ? 503 : 400,
                       want ? "Out of memory: try again" : "Invalid launch request", NULL);
        return;
    }
    w = launch_wait_new(x, q);
    if (w)
        launch_wait_offer(w, on_offer);
}

/* --- cancel, clear ------------------------------------------------------------------------------ */

static void
answer_json(struct exchange *x, const char *json)
{
    struct buf body;

    buf_init(&body, 0);
    buf_add_str(&body, json);
    exchange_json(x, 200, &body);
}

static void
on_cancelled(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_plain *a = answer;
    struct exchange *x = launch_wait_end(ctx);

    if (!x)
        return;
    if (!a)
        launch_answer_away(x, "Failed to cancel");
    else if (a->status == ANSWER_REFUSED)
        exchange_error(x, 403, "This server is read-only", NULL);
    else
        answer_json(x, a->status == ANSWER_OK ? "{\"cancelled\":true}" : "{\"cancelled\":false}");
}

void
handle_launch_cancel(struct exchange *x)
{
    struct request_launch_ref q = {0};
    struct launch_wait *w;
    bool given;
    size_t len;
    const char *body = exchange_body(x, &len);

    if (!launch_request_read_id(body, len, q.launch_id, &given) || !given) {
        exchange_error(x, 400, "Missing required field: launch_id", NULL);
        return;
    }
    if (q.launch_id[0] == '\0') { /* nothing was ever called that */
        answer_json(x, "{\"cancelled\":false}");
        return;
    }
    w = launch_wait_new(x, NULL);
    if (w)
        broker_ask_as(exchange_token(x), MESSAGE_LAUNCH_CANCEL, &q, on_cancelled, w);
}

static void
on_cleared(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_plain *a = answer;
    struct exchange *x = launch_wait_end(ctx);

    if (!x)
        return;
    if (!a)
        launch_answer_away(x, "Failed to clear");
    else if (a->status == ANSWER_REFUSED)
        exchange_error(x, 403, "This server is read-only", NULL);
    else
        answer_json(x, "{\"cleared\":true}");
}

void
handle_launch_clear(struct exchange *x)
{
    struct request_launch_ref q = {0};
    struct launch_wait *w;
    bool given = false;
    size_t len;
    const char *body = exchange_body(x, &len);

    /* No body at all clears all, like one without an ID. */
    if (len > 0 && !launch_request_read_id(body, len, q.launch_id, &given)) {
        exchange_error(x, 400, "Invalid launch request", NULL);
        return;
    }
    if (given && q.launch_id[0] == '\0') { /* unknown: it must not mean "all" */
        answer_json(x, "{\"cleared\":true}");
        return;
    }
    w = launch_wait_new(x, NULL);
    if (w)
        broker_ask_as(exchange_token(x), MESSAGE_LAUNCH_CLEAR, &q, on_cleared, w);
}
