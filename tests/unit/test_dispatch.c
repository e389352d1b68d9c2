/* Every malformed or untimely shape of every message ends the worker; no other does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/dispatch.h"
#include "policy/role.h"
#include "broker_fixture.h"
#include "common/limits.h"

static const char script[] = "#!/bin/sh\necho '{\"runs\":[]}'\n";

/* A well-formed request of each type; what follows the head. */
union any_request {
    struct message_head head;
    struct request_hello hello;
    struct request_runs_list runs_list;
    struct request_results_scan results_scan;
    struct request_run_locate run_locate;
    struct request_run_file run_file;
    struct request_run run;
    struct request_run_logs run_logs;
    struct request_child_end child_end;
    struct request_peer_uid peer_uid;
    struct request_run_connect run_connect;
    struct request_task_file task_file;
    struct request_tty_open tty_open;
    struct request_tty_join tty_join;
    struct request_tty_ref tty_ref;
    struct request_tty_end tty_end;
    unsigned char bytes[CHANNEL_MESSAGE_MAX + 64];
};

static void
make_request(uint16_t type, union any_request *q)
{
    memset(q, 0, sizeof *q);
    q->head = (struct message_head){.type = type, .seq = 77};
    switch (type) {
    case MESSAGE_HELLO:
        q->hello.version = MESSAGES_VERSION;
        break;
    case MESSAGE_RUN_LOCATE:
        strcpy(q->run_locate.run_id, "run-1");
        strcpy(q->run_locate.task, "task");
        strcpy(q->run_locate.agent, "agent");
        strcpy(q->run_locate.model, "vendor/model");
        break;
    case MESSAGE_RUN_FILE:
        q->run_file.file = RUN_FILE_SUMMARY;
        break;
    case MESSAGE_RUN_STOP:
    case MESSAGE_RUN_REMOVE:
    case MESSAGE_RUN_LOGS:
        strcpy(q->run.run_id, "run-1");
        break;
    case MESSAGE_RUN_CONNECT:
        strcpy(q->run_connect.run_id, "run-1");
        q->run_connect.port = RUN_PORT_DAEMON;
        break;
    case MESSAGE_TASK_FILE:
        strcpy(q->task_file.task, "task");
        strcpy(q->task_file.path, "config.yaml");
        break;
    case MESSAGE_TTY_OPEN:
        q->tty_open.program = TTY_SHELL;
        q->tty_open.cols = 80;
        q->tty_open.rows = 24;
        strcpy(q->tty_open.run_id, "run-1");
        break;
    case MESSAGE_TTY_JOIN:
        strcpy(q->tty_join.run_id, "run-1");
        break;
    case MESSAGE_TTY_END:
        q->tty_end.number = 1;
        break;
    default:
        break;
    }
}

static void
send_raw(struct fixture *f, const void *bytes, size_t len, unsigned n_fds)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int fds[2] = {null, null};

    assert_int_equal(channel_send(f->worker, bytes, len, fds, n_fds), 0);
    close(null);
}

static void
expect_end(struct fixture *f, const char *label)
{
    if (fixture_receive(f))
        fail_msg("%s: answered", label);
    if (fixture_killed(f) != 1)
        fail_msg("%s: the master was not told", label);
    fixture_new_worker(f, true);
}

enum shape { SHORT, LONG, HEAD_ONLY, EXTRA_FD, MISSING_FD, NO_SEQ, SHAPES };

static const char *const shape_names[] = {"short",      "long",   "a cut head",   "extra fd",
                                          "missing fd", "seq 0"};

/* Shapes that are wrong for every type, from the table of messages itself. */
static void
wrong_shapes_end_the_worker(void **state)
{
    struct fixture *f = *state;

    for (uint16_t type = 1; type < MESSAGE_TYPES; type++) {
        const struct message_shape *shape = message_shape(type);

        if (shape->request_len == 0 || type == MESSAGE_HELLO)
            continue; /* HELLO: below, where it is in turn */
        for (enum shape s = 0; s < SHAPES; s++) {
            union any_request q;
            size_t len = shape->request_len;
            unsigned n_fds = shape->request_fds;
            char label[64];

            if (s == MISSING_FD && n_fds == 0)
                continue;
            make_request(type, &q);
            len = s == SHORT ? len - 1 : s == LONG ? len + 1 : s == HEAD_ONLY ? 7 : len;
            n_fds += s == EXTRA_FD;
            n_fds -= s == MISSING_FD;
            if (s == NO_SEQ)
                q.head.seq = 0;
            snprintf(label, sizeof label, "%s, %s", shape->name, shape_names[s]);
            send_raw(f, &q, len, n_fds);
            expect_end(f, label);
        }
    }
}

static const uint16_t wrong_types[] = {0, MESSAGE_EVENT_CHILD, MESSAGE_TYPES, 0x8000, 0xffff};

static void
types_outside_the_vocabulary_end_the_worker(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof wrong_types / sizeof wrong_types[0]; i++) {
        union any_request q = {.head = {.type = wrong_types[i], .seq = 1}};

        send_raw(f, &q, sizeof q.head, 0);
        expect_end(f, "type");
    }
}

#define AT(member) offsetof(union any_request, member)

/* One byte of a well-formed request changed. */
static const struct {
    const char *label;
    uint16_t type;
    size_t at;
    unsigned char value;
} wrong_bytes[] = {
    {"no_wait is 2", MESSAGE_RUNS_LIST, AT(runs_list.no_wait), 2},
    {"no_wait is 256", MESSAGE_RUNS_LIST, AT(runs_list.no_wait) + 1, 1},
    {"RUNS_LIST reserved", MESSAGE_RUNS_LIST, AT(runs_list.reserved), 1},
    {"RUN_FILE reserved", MESSAGE_RUN_FILE, AT(run_file.reserved) + 3, 1},
    {"file 0", MESSAGE_RUN_FILE, AT(run_file.file), 0},
    {"file past the end", MESSAGE_RUN_FILE, AT(run_file.file), RUN_FILES},
    {"file far past the end", MESSAGE_RUN_FILE, AT(run_file.file) + 3, 0x80},
    {"stop: byte after NUL", MESSAGE_RUN_STOP, AT(run.run_id) + 10, 'x'},
    {"port 0", MESSAGE_RUN_CONNECT, AT(run_connect.port), 0},
    {"port past the end", MESSAGE_RUN_CONNECT, AT(run_connect.port), RUN_PORTS},
    {"port far past the end", MESSAGE_RUN_CONNECT, AT(run_connect.port) + 3, 0x80},
    {"connect: byte after NUL", MESSAGE_RUN_CONNECT, AT(run_connect.run_id) + 10, 'x'},
    {"connect: reserved", MESSAGE_RUN_CONNECT, AT(run_connect.reserved), 1},
    {"task file: path after NUL", MESSAGE_TASK_FILE, AT(task_file.path) + 20, 'x'},
    {"task file: reserved", MESSAGE_TASK_FILE, AT(task_file.reserved) + 6, 1},
    {"stop: last byte", MESSAGE_RUN_STOP, AT(run.run_id) + MESSAGE_ID_SIZE - 1, 'x'},
    {"stop: reserved", MESSAGE_RUN_STOP, AT(run.reserved) + 6, 1},
    {"remove: byte after NUL", MESSAGE_RUN_REMOVE, AT(run.run_id) + 10, 'x'},
    {"remove: reserved", MESSAGE_RUN_REMOVE, AT(run.reserved), 1},
    {"logs: byte after NUL", MESSAGE_RUN_LOGS, AT(run.run_id) + 10, 'x'},
    {"logs: reserved", MESSAGE_RUN_LOGS, AT(run_logs.reserved), 1},
    {"logs: neither once nor for ever", MESSAGE_RUN_LOGS, AT(run_logs.once), 2},
    {"locate: run_id", MESSAGE_RUN_LOCATE, AT(run_locate.run_id) + 20, 'x'},
    {"locate: task", MESSAGE_RUN_LOCATE, AT(run_locate.task) + 20, 'x'},
    {"locate: agent", MESSAGE_RUN_LOCATE, AT(run_locate.agent) + 20, 'x'},
    {"locate: model", MESSAGE_RUN_LOCATE, AT(run_locate.model) + 20, 'x'},
    {"locate: reserved", MESSAGE_RUN_LOCATE, AT(run_locate.reserved) + 3, 1},
    {"terminal: program 0", MESSAGE_TTY_OPEN, AT(tty_open.program), 0},
    {"terminal: program past the end", MESSAGE_TTY_OPEN, AT(tty_open.program), TTY_PROGRAMS},
    {"terminal: program far past", MESSAGE_TTY_OPEN, AT(tty_open.program) + 3, 0x80},
    {"terminal: no columns", MESSAGE_TTY_OPEN, AT(tty_open.cols), 0},
    {"terminal: columns", MESSAGE_TTY_OPEN, AT(tty_open.cols) + 1, 0x80},
    {"terminal: no rows", MESSAGE_TTY_OPEN, AT(tty_open.rows), 0},
    {"terminal: rows", MESSAGE_TTY_OPEN, AT(tty_open.rows) + 1, 4},
    {"terminal: run after NUL", MESSAGE_TTY_OPEN, AT(tty_open.run_id) + 10, 'x'},
    {"terminal: directory after NUL", MESSAGE_TTY_OPEN, AT(tty_open.workdir) + 1, 'x'},
    {"terminal: message after NUL", MESSAGE_TTY_OPEN, AT(tty_open.message) + 1, 'x'},
    {"terminal: last byte", MESSAGE_TTY_OPEN,
     AT(tty_open.message) + MESSAGE_TTY_TEXT - 1, 'x'},
    {"terminal: reserved", MESSAGE_TTY_OPEN, AT(tty_open.reserved), 1},
    {"terminal: last reserved", MESSAGE_TTY_OPEN, AT(tty_open.reserved) + 5, 1},
    {"terminal: environment is no flag", MESSAGE_TTY_OPEN, AT(tty_open.passes_env), 2},
    {"join: run after NUL", MESSAGE_TTY_JOIN, AT(tty_join.run_id) + 10, 'x'},
    {"join: reserved", MESSAGE_TTY_JOIN, AT(tty_join.reserved) + 6, 1},
    {"end: reserved", MESSAGE_TTY_END, AT(tty_end.reserved) + 3, 1},
    {"end: neither a number nor a session", MESSAGE_TTY_END, AT(tty_end.number), 0},
    {"end: a number and a session", MESSAGE_TTY_END, AT(tty_end.session) + 15, 1},
};

static void
wrong_bytes_end_the_worker(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof wrong_bytes / sizeof wrong_bytes[0]; i++) {
        union any_request q;

        make_request(wrong_bytes[i].type, &q);
        q.bytes[wrong_bytes[i].at] = wrong_bytes[i].value;
        send_raw(f, &q, message_shape(wrong_bytes[i].type)->request_len, 0);
        expect_end(f, wrong_bytes[i].label);
    }
}

static void
a_string_without_end_ends_the_worker(void **state)
{
    struct fixture *f = *state;
    union any_request q;

    make_request(MESSAGE_RUN_STOP, &q);
    memset(q.run.run_id, 'a', sizeof q.run.run_id);
    send_raw(f, &q, sizeof q.run, 0);
    expect_end(f, "no NUL");
}

static void
nothing_goes_before_hello(void **state)
{
    struct fixture *f = *state;

    for (uint16_t type = MESSAGE_HELLO + 1; type < MESSAGE_TYPES; type++) {
        const struct message_shape *shape = message_shape(type);
        union any_request q;

        if (shape->request_len == 0)
            continue;
        fixture_new_worker(f, false);
        make_request(type, &q);
        send_raw(f, &q, shape->request_len, shape->request_fds);
        expect_end(f, shape->name);
    }
}

static void
hello_is_exact(void **state)
{
    static const struct {
        const char *label;
        size_t len;
        size_t at;
        unsigned char value;
        unsigned n_fds;
    } rows[] = {
        {"short", sizeof(struct request_hello) - 1, AT(hello.version), MESSAGES_VERSION, 0},
        {"long", sizeof(struct request_hello) + 1, AT(hello.version), MESSAGES_VERSION, 0},
        {"fd", sizeof(struct request_hello), AT(hello.version), MESSAGES_VERSION, 1},
        {"other version", sizeof(struct request_hello), AT(hello.version),
         MESSAGES_VERSION + 1, 0},
        {"reserved", sizeof(struct request_hello), AT(hello.reserved), 1, 0},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        union any_request q;

        fixture_new_worker(f, false);
        make_request(MESSAGE_HELLO, &q);
        q.bytes[rows[i].at] = rows[i].value;
        send_raw(f, &q, rows[i].len, rows[i].n_fds);
        expect_end(f, rows[i].label);
    }
}

static void
a_second_hello_is_untimely(void **state)
{
    struct fixture *f = *state;
    union any_request q;

    make_request(MESSAGE_HELLO, &q);
    send_raw(f, &q, sizeof q.hello, 0);
    expect_end(f, "second hello");
}

static void
a_message_over_the_bound_ends_the_worker(void **state)
{
    struct fixture *f = *state;
    union any_request q;

    make_request(MESSAGE_RUNS_LIST, &q);
    assert_int_equal(write(f->worker, &q, CHANNEL_MESSAGE_MAX + 1), CHANNEL_MESSAGE_MAX + 1);
    expect_end(f, "too long");
}

/* Well-formed, refused or not found: answered, and the worker lives on. */
static const struct {
    const char *label;
    uint16_t type;
    size_t at;
    const char *text; /* put there */
    enum answer_status status;
} refused[] = {
    {"stop, empty ID", MESSAGE_RUN_STOP, AT(run.run_id), "", ANSWER_REFUSED},
    {"stop, option", MESSAGE_RUN_STOP, AT(run.run_id), "--all", ANSWER_REFUSED},
    {"stop, latest", MESSAGE_RUN_STOP, AT(run.run_id), "LaTest", ANSWER_REFUSED},
    {"remove, path", MESSAGE_RUN_REMOVE, AT(run.run_id), "../..", ANSWER_REFUSED},
    {"logs, shell", MESSAGE_RUN_LOGS, AT(run.run_id), "a;b&c", ANSWER_REFUSED},
    {"locate, ..", MESSAGE_RUN_LOCATE, AT(run_locate.task), "..", ANSWER_REFUSED},
    {"locate, agent /", MESSAGE_RUN_LOCATE, AT(run_locate.agent), "a/b", ANSWER_REFUSED},
    {"locate, model //", MESSAGE_RUN_LOCATE, AT(run_locate.model), "vendor//x",
     ANSWER_REFUSED},
    {"locate, model ..", MESSAGE_RUN_LOCATE, AT(run_locate.model), "../../../",
     ANSWER_REFUSED},
    {"locate, nothing there", MESSAGE_RUN_LOCATE, AT(run_locate.task), "task",
     ANSWER_NOT_FOUND},
    {"file, another epoch", MESSAGE_RUN_FILE, AT(run_file.ref), "\1", ANSWER_BUSY},
    {"child_end, nobody's", MESSAGE_CHILD_END, AT(child_end.child), "\5", ANSWER_NOT_FOUND},
};

static void
refusals_are_answered(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        union any_request q;
        const struct answer_plain *a;

        make_request(refused[i].type, &q);
        memset(q.bytes + refused[i].at, 0, 8); /* no text that stood there is longer, but one */
        memcpy(q.bytes + refused[i].at, refused[i].text, strlen(refused[i].text));
        a = fixture_ask(f, refused[i].type, &q, -1);
        if (a == NULL || a->status != refused[i].status)
            fail_msg("%s: %d", refused[i].label, a == NULL ? -1 : (int)a->status);
        assert_int_equal(fixture_killed(f), 0);
    }
}

static void
hosted_refuses_changes(void **state)
{
    static const uint16_t types[] = {MESSAGE_RUN_STOP, MESSAGE_RUN_REMOVE};
    struct fixture *f = *state;

    f->b.config.hosted = 1;
    for (size_t i = 0; i < 2; i++) {
        union any_request q;
        const struct answer_run *a;

        make_request(types[i], &q);
        a = fixture_ask(f, types[i], &q, -1);
        assert_non_null(a);
        assert_int_equal(a->status, ANSWER_REFUSED);
    }
    f->b.config.hosted = 0;
}

/* With the switch on. Each text overwrites what make_request put there. */
static const struct {
    const char *label;
    uint16_t type;
    size_t at;
    const char *text;
    enum answer_status status;
} tty_refused[] = {
    {"no run", MESSAGE_TTY_OPEN, AT(tty_open.run_id), "", ANSWER_REFUSED},
    {"an option as run", MESSAGE_TTY_OPEN, AT(tty_open.run_id), "--all", ANSWER_REFUSED},
    {"a path as run", MESSAGE_TTY_OPEN, AT(tty_open.run_id), "../..", ANSWER_REFUSED},
    {"an option as directory", MESSAGE_TTY_OPEN, AT(tty_open.workdir), "--user", ANSWER_REFUSED},
    {"a relative directory", MESSAGE_TTY_OPEN, AT(tty_open.workdir), "a/b", ANSWER_REFUSED},
    {"a control byte", MESSAGE_TTY_OPEN, AT(tty_open.workdir), "/a\nb", ANSWER_REFUSED},
    {"a shell with words", MESSAGE_TTY_OPEN, AT(tty_open.message), "-c id", ANSWER_REFUSED},
    {"a shell with a prompt", MESSAGE_TTY_OPEN, AT(tty_open.message), "hello", ANSWER_REFUSED},
    {"join, nobody's session", MESSAGE_TTY_JOIN, AT(tty_join.session), "", ANSWER_NOT_FOUND},
    {"take, attachment 0", MESSAGE_TTY_TAKE, AT(tty_ref.attachment), "", ANSWER_NOT_FOUND},
    {"take, not ours", MESSAGE_TTY_TAKE, AT(tty_ref.attachment), "\1", ANSWER_NOT_FOUND},
    {"leave, not ours", MESSAGE_TTY_LEAVE, AT(tty_ref.attachment), "\1", ANSWER_NOT_FOUND},
    {"end, no such", MESSAGE_TTY_END, AT(tty_end.number), "\1", ANSWER_NOT_FOUND},
};

static void
terminals_are_refused_and_answered(void **state)
{
    struct fixture *f = *state;

    f->b.config.terminal = 1;
    for (size_t i = 0; i < sizeof tty_refused / sizeof tty_refused[0]; i++) {
        union any_request q;
        const struct answer_plain *a;

        make_request(tty_refused[i].type, &q);
        if (tty_refused[i].type != MESSAGE_TTY_END)
            memset(q.bytes + tty_refused[i].at, 0, 8);
        memcpy(q.bytes + tty_refused[i].at, tty_refused[i].text, strlen(tty_refused[i].text));
        a = fixture_ask(f, tty_refused[i].type, &q, -1);
        if (a == NULL || a->status != tty_refused[i].status)
            fail_msg("%s: %d", tty_refused[i].label, a == NULL ? -1 : (int)a->status);
        assert_int_equal(fixture_killed(f), 0);
    }
    f->b.config.terminal = 0;
}

static void
no_terminal_when_switched_off_or_hosted(void **state)
{
    static const uint16_t types[] = {MESSAGE_TTY_OPEN, MESSAGE_TTY_JOIN, MESSAGE_TTY_END};
    struct fixture *f = *state;

    for (size_t i = 0; i < 2 * sizeof types / sizeof types[0]; i++) {
        union any_request q;
        const struct answer_plain *a;

        f->b.config.terminal = f->b.config.hosted = i % 2;
        make_request(types[i / 2], &q);
        a = fixture_ask(f, types[i / 2], &q, -1);
        assert_non_null(a);
        assert_int_equal(a->status, ANSWER_REFUSED);
    }
    f->b.config.terminal = f->b.config.hosted = 0;
}

/* A worker that asks and never reads is not read any more; every answer comes in the end. */
static void
unread_answers_wait_in_order(void **state)
{
    struct fixture *f = *state;
    const struct message_head *head = (const struct message_head *)f->packet.bytes;
    uint32_t sent = 0, got = 0;
    union any_request q;

    while (sent < 3000) {
        make_request(MESSAGE_CHILD_END, &q);
        q.head.seq = 1000 + sent;
        if (channel_send(f->worker, &q, sizeof q.child_end, NULL, 0) != 0) {
            if (!fixture_receive(f))
                fail_msg("closed");
            assert_int_equal(head->seq, 1000 + got++);
            continue;
        }
        sent++;
    }
    while (got < sent) {
        assert_true(fixture_receive(f));
        assert_int_equal(head->seq, 1000 + got++);
    }
}

/* --- in whose name ------------------------------------------------------------------------- */

enum { VIEW = 11, OPERATE = 12, FULL = 13, EXPIRED = 14, UNSHOWN = 15, UNKNOWN = 99 };

static void
put_token(struct fixture *f, uint16_t number, enum role role, int64_t expires_s)
{
    struct handoff_token *t = &f->b.config.tokens[f->b.config.n_tokens++];

    *t = (struct handoff_token){.number = number, .role = (uint8_t)role,
                                .expires_s = expires_s};
    memset(t->digest, number, sizeof t->digest);
}

static uint32_t
show(struct fixture *f, uint16_t number)
{
    struct request_token_show q = {.number = number};
    const struct answer_plain *a;

    memset(q.proof, number, sizeof q.proof);
    a = fixture_ask(f, MESSAGE_TOKEN_SHOW, &q, -1);
    assert_non_null(a);
    return a->status;
}

static void
use_tokens(struct fixture *f)
{
    f->b.config.has_token = 1;
    put_token(f, VIEW, ROLE_VIEW, 0);
    put_token(f, OPERATE, ROLE_OPERATE, 0);
    put_token(f, FULL, ROLE_FULL, 0);
    put_token(f, EXPIRED, ROLE_FULL, 1);
    put_token(f, UNSHOWN, ROLE_FULL, 0);
    for (uint16_t number = VIEW; number <= EXPIRED; number++)
        assert_int_equal(show(f, number), ANSWER_OK);
}

static void
forget_tokens(struct fixture *f)
{
    f->b.config.has_token = 0;
    f->b.config.n_tokens = 0;
    fixture_new_worker(f, true);
}

/* Status of one request in the name of a token. */
static uint32_t
ask_as(struct fixture *f, uint16_t type, uint16_t as, uint32_t port)
{
    const struct answer_plain *a;
    union any_request q;

    make_request(type, &q);
    if (type == MESSAGE_RUN_CONNECT)
        q.run_connect.port = port;
    q.head.as = as;
    send_raw(f, &q, message_shape(type)->request_len, 0);
    if (!fixture_receive(f))
        fail_msg("%s as %u: closed", message_shape(type)->name, as);
    a = (const struct answer_plain *)f->packet.bytes;
    return a->status;
}

static void
a_role_is_the_tokens_and_not_the_workers_word(void **state)
{
    static const struct {
        uint16_t type;
        uint32_t port;
        enum role needed;
    } rows[] = {
        {MESSAGE_RUN_STOP, 0, ROLE_OPERATE},       {MESSAGE_RUN_REMOVE, 0, ROLE_OPERATE},
        {MESSAGE_LAUNCH, 0, ROLE_OPERATE},         {MESSAGE_LAUNCH_CANCEL, 0, ROLE_OPERATE},
        {MESSAGE_LAUNCH_CLEAR, 0, ROLE_OPERATE},   {MESSAGE_DOCTOR, 0, ROLE_OPERATE},
        {MESSAGE_ASSISTANT_START, 0, ROLE_FULL},   {MESSAGE_TTY_OPEN, 0, ROLE_FULL},
        {MESSAGE_TTY_JOIN, 0, ROLE_FULL},          {MESSAGE_TTY_TAKE, 0, ROLE_FULL},
        {MESSAGE_TTY_END, 0, ROLE_FULL},
        {MESSAGE_RUN_CONNECT, RUN_PORT_OPENCODE, ROLE_FULL},
        {MESSAGE_RUN_CONNECT, RUN_PORT_ASSISTANT, ROLE_FULL},
    };
    static const uint16_t weak[] = {0, VIEW, EXPIRED, UNSHOWN, UNKNOWN};
    struct fixture *f = *state;

    use_tokens(f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t k = 0; k < sizeof weak / sizeof weak[0]; k++)
            if (ask_as(f, rows[i].type, weak[k], rows[i].port) != ANSWER_REFUSED)
                fail_msg("%s as %u", message_shape(rows[i].type)->name, weak[k]);
        if (rows[i].needed == ROLE_FULL)
            assert_int_equal(ask_as(f, rows[i].type, OPERATE, rows[i].port), ANSWER_REFUSED);
    }
    assert_int_not_equal(ask_as(f, MESSAGE_RUN_STOP, OPERATE, 0), ANSWER_REFUSED);
    assert_int_not_equal(ask_as(f, MESSAGE_RUN_STOP, FULL, 0), ANSWER_REFUSED);
    assert_int_not_equal(ask_as(f, MESSAGE_DOCTOR, OPERATE, 0), ANSWER_REFUSED);
    assert_int_not_equal(ask_as(f, MESSAGE_RUN_CONNECT, FULL, RUN_PORT_OPENCODE),
                         ANSWER_REFUSED);
    /* What anyone may see, a worker asks for itself, and not as what it is not. */
    assert_int_not_equal(ask_as(f, MESSAGE_LAUNCH_WATCH, 0, 0), ANSWER_REFUSED);
    assert_int_equal(ask_as(f, MESSAGE_LAUNCH_WATCH, UNSHOWN, 0), ANSWER_REFUSED);
    forget_tokens(f);
}

static void
a_proof_is_shown_on_each_channel_and_ends_with_its_token(void **state)
{
    struct fixture *f = *state;

    use_tokens(f);
    assert_int_equal(show(f, UNKNOWN), ANSWER_REFUSED);
    fixture_new_worker(f, true);
    assert_int_equal(ask_as(f, MESSAGE_RUN_STOP, FULL, 0), ANSWER_REFUSED);
    assert_int_equal(show(f, FULL), ANSWER_OK);
    assert_int_not_equal(ask_as(f, MESSAGE_RUN_STOP, FULL, 0), ANSWER_REFUSED);
    f->b.config.n_tokens = 0;
    dispatch_tokens_changed(f->b.dispatch);
    assert_int_equal(ask_as(f, MESSAGE_RUN_STOP, FULL, 0), ANSWER_REFUSED);
    put_token(f, FULL, ROLE_FULL, 0); /* the number again is not the proof again */
    assert_int_equal(ask_as(f, MESSAGE_RUN_STOP, FULL, 0), ANSWER_REFUSED);
    forget_tokens(f);
}

static void
a_guessed_proof_ends_the_worker(void **state)
{
    struct fixture *f = *state;
    struct request_token_show q = {.head = {.type = MESSAGE_TOKEN_SHOW, .seq = 5},
                                   .number = FULL};

    use_tokens(f);
    memset(q.proof, FULL, sizeof q.proof);
    q.proof[31] ^= 1;
    send_raw(f, &q, sizeof q, 0);
    expect_end(f, "wrong proof");
    memset(q.proof, FULL, sizeof q.proof);
    q.reserved = 1;
    send_raw(f, &q, sizeof q, 0);
    expect_end(f, "reserved");
    q.reserved = 0;
    q.number = 0;
    send_raw(f, &q, sizeof q, 0);
    expect_end(f, "number 0");
    q.number = 65536 + FULL;
    send_raw(f, &q, sizeof q, 0);
    expect_end(f, "a long number");
    forget_tokens(f);
}

static int
setup(void **state)
{
    static struct fixture f;

    fixture_prepare(&f, script);
    fixture_start(&f, true);
    *state = &f;
    return 0;
}

static int
teardown(void **state)
{
    fixture_stop(*state);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_shapes_end_the_worker),
        cmocka_unit_test(types_outside_the_vocabulary_end_the_worker),
        cmocka_unit_test(wrong_bytes_end_the_worker),
        cmocka_unit_test(a_string_without_end_ends_the_worker),
        cmocka_unit_test(nothing_goes_before_hello),
        cmocka_unit_test(hello_is_exact),
        cmocka_unit_test(a_second_hello_is_untimely),
        cmocka_unit_test(a_message_over_the_bound_ends_the_worker),
        cmocka_unit_test(refusals_are_answered),
        cmocka_unit_test(hosted_refuses_changes),
        cmocka_unit_test(terminals_are_refused_and_answered),
        cmocka_unit_test(no_terminal_when_switched_off_or_hosted),
        cmocka_unit_test(unread_answers_wait_in_order),
        cmocka_unit_test(a_role_is_the_tokens_and_not_the_workers_word),
        cmocka_unit_test(a_proof_is_shown_on_each_channel_and_ends_with_its_token),
        cmocka_unit_test(a_guessed_proof_ends_the_worker),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
