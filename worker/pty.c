/* One client of a terminal: what it asks for, the contract's refusals in their order, and the
 * terminal it gets. */
#include "worker/pty.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_read.h"
#include "common/limits.h"
#include "common/scoreboard.h"
#include "worker/broker_as.h"
#include "worker/broker_ends.h"
#include "worker/daemon.h"
#include "worker/exchange.h"
#include "worker/runs_live.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define FALLBACK_DIR "/src"
#define RESTARTED "A part of the server was restarted: try again"

static struct pty *all_ptys;

static void
pty_free(struct pty *p)
{
    *p->link = p->next;
    if (p->next != NULL)
        p->next->link = p->link;
    free(p);
}

static void
leave(struct pty *p)
{
    pty_io_close(p);
    if (p->attachment != 0)
        broker_end(MESSAGE_TTY_LEAVE, p->attachment);
    p->attachment = 0;
}

void
pty_finish(struct pty *p, uint16_t code, const char *reason)
{
    p->over = true;
    leave(p);
    if (p->ws != NULL)
        ws_close(p->ws, code, reason);
}

/* --- what the broker tells ------------------------------------------------------------------- */

static void
on_news(const void *event)
{
    const struct event_tty *e = event;
    struct pty *p = all_ptys;

    while (p != NULL && (p->attachment != e->attachment || e->attachment == 0))
        p = p->next;
    if (p == NULL)
        return;
    if (e->news == TTY_NEWS_TAKEN)
        pty_finish(p, 4001, "Taken over by another viewer");
    else if (e->news == TTY_NEWS_ENDED)
        pty_io_ended(p, e->exit_status);
}

/* The terminals of the broker before went with it. */
static void
on_broker_up(void)
{
    for (struct pty *p = all_ptys; p != NULL; p = p->next) {
        if (p->attachment == 0 || p->over)
            continue;
        p->attachment = 0;
        pty_send_error(p, "%s", RESTARTED);
        pty_finish(p, 1012, RESTARTED);
    }
}

/* --- getting the terminal ------------------------------------------------------------------------ */

static void
fail(struct pty *p, const char *why)
{
    pty_send_error(p, "Failed to start terminal: %s", why);
    p->over = true;
    leave(p);
}

/* An answer came. False: it is dealt with, `p` may be gone. */
static bool
answered(struct pty *p, const struct answer_tty *a)
{
    p->asking = false;
    if (a != NULL && a->status == ANSWER_OK && p->attachment == 0)
        p->attachment = a->attachment;
    if (p->ws == NULL) {
        leave(p);
        pty_free(p);
        return false;
    }
    if (p->over) {
        leave(p);
        return false;
    }
    if (a != NULL && a->status == ANSWER_OK)
        return true;
    if (a == NULL)
        fail(p, RESTARTED);
    else if (a->status == ANSWER_NOT_FOUND)
        fail(p, "this session has ended");
    else if (a->status == ANSWER_REFUSED)
        fail(p, "refused by the server");
    else
        fail(p, a->error[0] != '\0' ? a->error : "the terminal is busy: try again");
    return false;
}

static void
on_taken(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    struct pty *p = ctx;
    int master;

    if (!answered(p, answer))
        return;
    if (n_fds != 1) {
        fail(p, "no descriptor came");
        return;
    }
    master = fds[0];
    fds[0] = -1;
    pty_io_begin(p, master);
}

/* The ring is there: now the terminal, or only a look at the ring. */
static void
on_joined(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_tty *a = answer;
    struct request_tty_ref q = {0};
    struct pty *p = ctx;

    if (!answered(p, a))
        return;
    if (n_fds != 1) {
        fail(p, "no descriptor came");
        return;
    }
    p->ring = fds[0];
    fds[0] = -1;
    memcpy(p->session, a->session, sizeof p->session);
    if (p->view) {
        pty_io_view(p);
        return;
    }
    q.attachment = p->attachment;
    p->asking = true;
    broker_ask_as(p->token, MESSAGE_TTY_TAKE, &q, on_taken, p);
}

static void
ask_open(struct pty *p)
{
    struct request_tty_open q = {.program = p->program, .cols = p->cols, .rows = p->rows};
    const char *backend = runs_listing().backend;

    q.passes_env = backend != NULL && strcmp(backend, "docker") == 0; /* contract 2.9 */
    message_string_set(q.run_id, sizeof q.run_id, p->run_id);
    message_string_set(q.workdir, sizeof q.workdir, p->workdir);
    message_string_set(q.message, sizeof q.message, p->message);
    p->asking = true;
    broker_ask_as(p->token, MESSAGE_TTY_OPEN, &q, on_joined, p);
}

static void
ask_join(struct pty *p)
{
    struct request_tty_join q = {0};

    memcpy(q.session, p->session, sizeof q.session);
    message_string_set(q.run_id, sizeof q.run_id, p->run_id);
    p->asking = true;
    broker_ask_as(p->token, MESSAGE_TTY_JOIN, &q, on_joined, p);
}

/* --- may there be one ------------------------------------------------------------------------------ */

/* The project's folder is the container's word: absolute and printable, or the usual one. */
static void
on_project(void *ctx, struct daemon_answer *a)
{
    struct pty *p = ctx;
    struct json_doc *doc = NULL;
    const char *dir = NULL;

    p->project = NULL;
    if (a->error == 0 && a->status == 200 && a->kind == '"') {
        doc = json_parse(a->body.data + a->start, a->end - a->start, false, NULL);
        dir = doc != NULL ? json_text(json_root(doc)) : NULL;
    }
    if (dir == NULL || dir[0] != '/' || strlen(dir) >= sizeof p->workdir)
        dir = FALLBACK_DIR;
    for (const char *c = dir; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            dir = FALLBACK_DIR;
            break;
        }
    snprintf(p->workdir, sizeof p->workdir, "%s", dir);
    json_doc_free(doc);
    ask_open(p);
}

static void
start_debug(struct pty *p)
{
    struct daemon_question q = {.run_id = p->run_id, .target = "/project", .member = "source",
                                .timeout_ms = LIMIT_UPSTREAM_HEALTH_MS};

    if (p->message[0] == '-') {
        fail(p, "a message may not begin with '-'");
        return;
    }
    p->project = daemon_get(&q, on_project, p);
    if (p->project == NULL) {
        snprintf(p->workdir, sizeof p->workdir, "%s", FALLBACK_DIR);
        ask_open(p);
    }
}

/* The contract's refusals, in its order (10.7); the socket stays open after each. */
static bool
refuse(struct pty *p)
{
    struct runs_listing listing = runs_listing();
    struct run_row row = {0};

    if (!runs_find(p->run_id, &row) || row.live == NULL) {
        if (!listing.known && listing.error != NULL)
            pty_send_error(p, "Failed to start terminal: %s", listing.error);
        else
            pty_send_error(p, "Run %s has no container", p->run_id);
    } else if (row.live->state != LIVE_RUNNING) {
        pty_send_error(p, "The run is not running (status: %s)",
                       live_state_name(row.live->state));
    } else if (!listing.supports_exec) {
        pty_send_error(p,
                       "Terminal unavailable: the %s backend cannot run commands in a run",
                       listing.backend != NULL ? listing.backend : "configured");
    } else {
        return false;
    }
    p->over = true;
    return true;
}

static void
on_listing(void *ctx)
{
    struct pty *p = ctx;

    if (refuse(p))
        return;
    if (p->program == TTY_OPENCODE)
        start_debug(p);
    else
        ask_open(p);
}

/* --- the socket ---------------------------------------------------------------------------------------- */

static void
on_opened(struct ws *ws, void *ctx)
{
    struct pty *p = ctx;

    p->ws = ws;
    scoreboard_add(SCORE_TERMINALS, 1);
    if (p->resumes)
        ask_join(p);
    else
        runs_wait(&p->wait, LIMIT_LIST_WAIT_MS, on_listing, p);
}

static void
on_received(struct ws *ws, void *ctx, const char *bytes, size_t len, bool binary)
{
    pty_receive(ctx, bytes, len, binary);
}

static void
on_emptied(struct ws *ws, void *ctx)
{
    pty_io_resume(ctx);
}

static void
on_closed(struct ws *ws, void *ctx)
{
    struct pty *p = ctx;

    if (p->ws != NULL)
        scoreboard_add(SCORE_TERMINALS, -1);
    p->ws = NULL;
    runs_wait_cancel(&p->wait);
    if (p->project != NULL)
        daemon_cancel(p->project);
    leave(p);
    if (!p->asking)
        pty_free(p);
}

static const struct ws_handler pty_handler = {
    .name = "terminal",
    .opened = on_opened,
    .received = on_received,
    .emptied = on_emptied,
    .closed = on_closed,
};

/* --- what the client asks for --------------------------------------------------------------------------- */

static bool
read_size(const struct request *request, const char *name, uint16_t *ret_size)
{
    char text[16];
    int r = request_query(request, name, text, sizeof text);
    unsigned size = 0;

    if (r == 0)
        return true;
    if (r < 0 || text[0] == '\0' || strspn(text, "0123456789") != strlen(text) ||
        strlen(text) > 4)
        return false;
    for (const char *c = text; *c != '\0'; c++)
        size = size * 10 + (unsigned)(*c - '0');
    *ret_size = (uint16_t)size;
    return size >= 1 && size <= LIMIT_TTY_SIZE;
}

bool
pty_session_parse(const char *text, uint8_t ret_session[MESSAGE_TTY_SESSION])
{
    static const char digits[] = "0123456789abcdef";

    if (strlen(text) != 2 * MESSAGE_TTY_SESSION || strspn(text, digits) != strlen(text))
        return false;
    for (size_t i = 0; i < MESSAGE_TTY_SESSION; i++)
        ret_session[i] = (uint8_t)((strchr(digits, text[2 * i]) - digits) << 4 |
                                   (strchr(digits, text[2 * i + 1]) - digits));
    return true;
}

static bool
read_session(const struct request *request, struct pty *p)
{
    char text[2 * MESSAGE_TTY_SESSION + 2];
    int r = request_query(request, "session", text, sizeof text);

    if (r == 0)
        return true;
    p->resumes = r > 0 && pty_session_parse(text, p->session);
    return p->resumes;
}

static const char *
read_wishes(const struct request *request, struct pty *p)
{
    char text[16];
    int r = request_query(request, "mode", text, sizeof text);

    p->binary = r == 1 && strcmp(text, "binary") == 0;
    if (r < 0 || (r == 1 && !p->binary && strcmp(text, "json") != 0))
        return "Invalid mode: binary or json";
    r = request_query(request, "view", text, sizeof text);
    p->view = r == 1 && strcmp(text, "1") == 0;
    if (!read_size(request, "cols", &p->cols) || !read_size(request, "rows", &p->rows))
        return "Invalid terminal size: 1 to 1000";
    if (!read_session(request, p) || r < 0 || (p->view && !p->resumes))
        return "Invalid session";
    if (p->program == TTY_OPENCODE &&
        request_query(request, "message", p->message, sizeof p->message) < 0)
        return "Invalid message";
    return NULL;
}

static void
begin(struct exchange *x, enum tty_program program)
{
    static bool listening;
    struct pty *p = calloc(1, sizeof *p);
    const char *wrong;

    if (!listening) {
        broker_on_event(MESSAGE_EVENT_TTY, on_news);
        broker_on_up(on_broker_up);
        listening = true;
    }
    if (p == NULL) {
        exchange_error(x, 503, "Try again", NULL);
        return;
    }
    p->program = program;
    p->token = exchange_token(x);
    p->cols = 80;
    p->rows = 24;
    wrong = read_wishes(exchange_request(x), p);
    if (wrong != NULL) {
        free(p);
        exchange_error(x, 400, wrong, NULL);
        return;
    }
    snprintf(p->run_id, sizeof p->run_id, "%s", exchange_param(x, 0));
    pty_io_init(p);
    p->next = all_ptys;
    p->link = &all_ptys;
    if (p->next != NULL)
        p->next->link = &p->next;
    all_ptys = p;
    ws_accept(x, &pty_handler, p);
}

void
handle_pty(struct exchange *x)
{
    begin(x, TTY_SHELL);
}

void
handle_pty_debug(struct exchange *x)
{
    begin(x, TTY_OPENCODE);
}
