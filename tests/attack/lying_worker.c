/* A worker that was taken over, against the real broker: whatever it says, it is refused or
 * ended, and the broker is afterwards what it was before. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/messages.h"
#include "tests/attack/broker_process.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define GROWTH_KIB 24576ul /* what the allocator may keep after the floods */

/* A verdict is an enum answer_status, or one of these. */
enum {
    ENDED = -1,   /* the channel is closed and the master is told to kill */
    CLOSED = -2,  /* at least the channel is closed */
    ANSWERED = -3, /* any answer, nothing more is promised */
    DENIED = -4   /* refused, not found, or ended: never OK, never begun */
};

static struct broker_process broker;
static struct channel_packet packet;
static unsigned n_passed, n_failed;

static void
report(const char *name, const char *fault)
{
    if (fault == NULL)
        fault = broker_process_check(&broker);
    if (fault == NULL)
        fault = broker_process_calls(&broker, NULL);
    if (fault == NULL) {
        printf("PASS %s\n", name);
        n_passed++;
    } else {
        printf("FAIL %s: %s\n", name, fault);
        n_failed++;
    }
    fflush(stdout);
}

/* Take the answer to `seq`; judges every descriptor that came along. */
static const char *
take(int fd, uint32_t seq, int *ret_status)
{
    const struct answer_plain *a = (const struct answer_plain *)packet.bytes;
    const char *fault = NULL;
    int r;

    for (;;) {
        r = broker_process_receive(&broker, fd, &packet);
        if (r == -EPIPE) {
            *ret_status = CLOSED;
            return NULL;
        }
        if (r != 0)
            return "no answer";
        for (unsigned i = 0; i < packet.n_fds && fault == NULL; i++)
            fault = broker_process_judge(&broker, packet.fds[i]);
        channel_packet_done(&packet);
        if (fault != NULL || a->head.seq == seq)
            break;
    }
    *ret_status = (int)a->status;
    return fault;
}

static const char *
compare(int status, int verdict)
{
    static char text[96];

    if (verdict == ENDED) {
        for (uint64_t end = now_ms() + PATIENCE_MS; broker.killed == 0 && now_ms() < end;
             usleep(1000))
            if (!broker_process_listen(&broker))
                return "the broker ended";
        if (status == CLOSED && broker.killed == 1)
            return NULL;
    } else if (verdict == DENIED) {
        if (status == CLOSED || status == ANSWER_REFUSED || status == ANSWER_NOT_FOUND)
            return NULL;
    } else if (verdict == CLOSED ? status == CLOSED
                                 : verdict == ANSWERED ? status >= 0
                                                       : status == verdict) {
        return NULL;
    }
    snprintf(text, sizeof text, "status %d instead of %d, killed %u", status, verdict,
             broker.killed);
    return text;
}

/* One message of a worker that has said HELLO (or not), and what comes of it. */
static const char *
say(bool greet, const void *bytes, size_t len, const int *fds, unsigned n_fds,
    int verdict)
{
    int fd = greet ? broker_process_worker(&broker, 1) : broker_process_channel(&broker, 1);
    int status = ANSWERED, r;
    const char *fault;

    broker.killed = 0;
    r = channel_send(fd, bytes, len, fds, n_fds);
    fault = r == 0 ? take(fd, len >= 8 ? ((const struct message_head *)bytes)->seq : 0, &status)
                   : "not sent";
    close(fd);
    return fault != NULL ? fault : compare(status, verdict);
}

/* --- shapes: for every type of the vocabulary, and some outside --------------------------------- */

static void
try_shape(uint16_t type, const char *how, size_t len, unsigned n_fds, struct message_head head,
          bool greet)
{
    _Alignas(8) unsigned char bytes[CHANNEL_MESSAGE_MAX] = {0};
    const struct message_shape *shape = message_shape(type);
    int fds[] = {0, 0, 0, 0};
    char name[96];

    memcpy(bytes, &head, sizeof head);
    snprintf(name, sizeof name, "shape %s(%u) %s", shape != NULL ? shape->name : "none", type,
             how);
    report(name, say(greet, bytes, len, fds, n_fds, ENDED));
}

static void
try_shapes_of(uint16_t type)
{
    const struct message_shape *shape = message_shape(type);
    size_t len = shape != NULL ? shape->request_len : 0;
    unsigned n = shape != NULL ? shape->request_fds : 0;
    struct message_head head = {.type = type, .seq = 7};

    if (len == 0) { /* none, or only the broker's to say */
        size_t told = shape != NULL ? shape->event_len : sizeof head;

        try_shape(type, "as a request", told, 0, head, true);
        try_shape(type, "as an event", told, 0, (struct message_head){.type = type}, true);
        return;
    }
    if (type != MESSAGE_HELLO)
        try_shape(type, "before hello", len, n, head, false);
    try_shape(type, "one byte short", len - 1, n, head, true);
    try_shape(type, "one byte long", len + 1, n, head, true);
    try_shape(type, "as long as can be", CHANNEL_MESSAGE_MAX, n, head, true);
    if (len != sizeof head)
        try_shape(type, "head only", sizeof head, n, head, true);
    try_shape(type, "half a head", 4, n, head, true);
    try_shape(type, "one byte", 1, n, head, true);
    try_shape(type, "a descriptor more", len, n + 1, head, true);
    try_shape(type, "four descriptors", len, 4, head, true);
    if (n > 0)
        try_shape(type, "a descriptor less", len, n - 1, head, true);
    try_shape(type, "no number", len, n, (struct message_head){.type = type}, true);
    if (type == MESSAGE_HELLO)
        try_shape(type, "in a token's name", len, n, (struct message_head){type, 1, 7}, true);
    if (shape->answer_len != len && shape->answer_len > 0)
        try_shape(type, "its own answer", shape->answer_len, 0, head, true);
}

static void
try_shapes(void)
{
    static const uint16_t outside[] = {0, MESSAGE_TYPES, MESSAGE_TYPES + 1, 255, 256, 32767,
                                       32768, 65535};

    for (uint16_t type = 1; type < MESSAGE_TYPES; type++)
        try_shapes_of(type);
    for (size_t i = 0; i < N(outside); i++)
        try_shapes_of(outside[i]);
}

/* --- fields -------------------------------------------------------------------------------------- */

#define STRING(type, request, field) \
    {type, #request "." #field, offsetof(struct request, field), \
     sizeof(((struct request *)0)->field), true}
#define ZERO(type, request, field) \
    {type, #request "." #field, offsetof(struct request, field), \
     sizeof(((struct request *)0)->field), false}

/* Arrays that must be strings, and bytes that must be zero. */
static const struct {
    uint16_t type;
    const char *name;
    size_t at, size;
    bool string;
} fields[] = {
    ZERO(MESSAGE_HELLO, request_hello, reserved),
    ZERO(MESSAGE_RUNS_LIST, request_runs_list, reserved),
    STRING(MESSAGE_RUN_LOCATE, request_run_locate, run_id),
    STRING(MESSAGE_RUN_LOCATE, request_run_locate, task),
    STRING(MESSAGE_RUN_LOCATE, request_run_locate, agent),
    STRING(MESSAGE_RUN_LOCATE, request_run_locate, model),
    ZERO(MESSAGE_RUN_LOCATE, request_run_locate, reserved),
    ZERO(MESSAGE_RUN_FILE, request_run_file, reserved),
    STRING(MESSAGE_RUN_STOP, request_run, run_id),
    ZERO(MESSAGE_RUN_STOP, request_run, reserved),
    STRING(MESSAGE_RUN_REMOVE, request_run, run_id),
    ZERO(MESSAGE_RUN_REMOVE, request_run, reserved),
    STRING(MESSAGE_RUN_LOGS, request_run_logs, run_id),
    ZERO(MESSAGE_RUN_LOGS, request_run_logs, reserved),
    STRING(MESSAGE_LAUNCH, request_launch, fields.agent),
    STRING(MESSAGE_LAUNCH, request_launch, fields.task),
    STRING(MESSAGE_LAUNCH, request_launch, fields.model),
    STRING(MESSAGE_LAUNCH, request_launch, fields.plugins[0]),
    STRING(MESSAGE_LAUNCH, request_launch, fields.plugins[15]),
    STRING(MESSAGE_LAUNCH_CANCEL, request_launch_ref, launch_id),
    ZERO(MESSAGE_LAUNCH_CANCEL, request_launch_ref, reserved),
    STRING(MESSAGE_LAUNCH_CLEAR, request_launch_ref, launch_id),
    ZERO(MESSAGE_LAUNCH_CLEAR, request_launch_ref, reserved),
    STRING(MESSAGE_LAUNCH_OUTPUT, request_launch_ref, launch_id),
    ZERO(MESSAGE_LAUNCH_OUTPUT, request_launch_ref, reserved),
    ZERO(MESSAGE_LAUNCH_WATCH, request_launch_watch, reserved),
    STRING(MESSAGE_RUN_CONNECT, request_run_connect, run_id),
    ZERO(MESSAGE_RUN_CONNECT, request_run_connect, reserved),
    STRING(MESSAGE_ASSISTANT_START, request_assistant, run_id),
    ZERO(MESSAGE_ASSISTANT_START, request_assistant, reserved),
    STRING(MESSAGE_TASK_FILE, request_task_file, task),
    STRING(MESSAGE_TASK_FILE, request_task_file, path),
    ZERO(MESSAGE_TASK_FILE, request_task_file, reserved),
    STRING(MESSAGE_TTY_OPEN, request_tty_open, run_id),
    STRING(MESSAGE_TTY_OPEN, request_tty_open, workdir),
    STRING(MESSAGE_TTY_OPEN, request_tty_open, message),
    ZERO(MESSAGE_TTY_OPEN, request_tty_open, reserved),
    STRING(MESSAGE_TTY_JOIN, request_tty_join, run_id),
    ZERO(MESSAGE_TTY_JOIN, request_tty_join, reserved),
    ZERO(MESSAGE_TTY_END, request_tty_end, reserved),
    ZERO(MESSAGE_TOKEN_SHOW, request_token_show, reserved),
};

static void
try_field(size_t i, const char *how, size_t at, int value, size_t n)
{
    _Alignas(8) unsigned char bytes[CHANNEL_MESSAGE_MAX] = {0};
    struct message_head head = {.type = fields[i].type, .seq = 7};
    char name[128];

    memcpy(bytes, &head, sizeof head);
    if (fields[i].type == MESSAGE_HELLO)
        ((struct request_hello *)bytes)->version = MESSAGES_VERSION;
    memset(bytes + fields[i].at + at, value, n);
    snprintf(name, sizeof name, "field %s(%u) %s", fields[i].name, fields[i].type, how);
    report(name, say(fields[i].type != MESSAGE_HELLO, bytes,
                     message_shape(fields[i].type)->request_len, NULL, 0, ENDED));
}

static void
try_fields(void)
{
    for (size_t i = 0; i < N(fields); i++) {
        if (fields[i].string) {
            try_field(i, "without an end", 0, 'a', fields[i].size);
            try_field(i, "all ones", 0, 0xff, fields[i].size);
            try_field(i, "a byte after the end", fields[i].size - 1, 'a', 1);
            try_field(i, "a byte after the first", 1, 'a', 1);
        } else {
            try_field(i, "not zero at first", 0, 1, 1);
            try_field(i, "not zero at last", fields[i].size - 1, 0x80, 1);
        }
    }
}

/* --- what policy forbids -------------------------------------------------------------------------- */

static const char *const bad_ids[] = {
    "", ".", "..", "...", "../x", "a/b", "/etc", "latest", "LATEST", "-rf", "--help", ".hidden",
    "_a", "a b", "a;id", "$(id)", "`id`", "a\nb", "a\tb", "a|b", "a&b", "a*", "~root", "a\\b",
    "\xc3\xa9", "\x01", "a\x7f", "a'b", "a\"b", "a=b", "a:b", "a%2e", "@a", "#a", "a,b",
};

static void
try_ids(bool hosted)
{
    static const uint16_t types[] = {MESSAGE_RUN_STOP, MESSAGE_RUN_REMOVE, MESSAGE_RUN_LOGS};
    struct request_run q;
    char name[128];

    for (size_t t = 0; t < N(types); t++)
        for (size_t i = 0; i < N(bad_ids); i++) {
            q = (struct request_run){.head = {.type = types[t], .seq = 7}};
            strcpy(q.run_id, bad_ids[i]);
            snprintf(name, sizeof name, "run ID %zu of %s%s", i, message_shape(types[t])->name,
                     hosted ? " hosted" : "");
            report(name, say(true, &q, sizeof q, NULL, 0, ANSWER_REFUSED));
        }
}

static void
try_hosted(void)
{
    static const uint16_t types[] = {MESSAGE_RUN_STOP, MESSAGE_RUN_REMOVE};
    struct request_run q;
    struct request_launch launch = {.head = {.type = MESSAGE_LAUNCH, .seq = 7}};
    struct request_launch_ref ref = {.head = {.seq = 7}};
    struct request_plain plain = {.head = {.type = MESSAGE_DOCTOR, .seq = 7}};
    unsigned n_before, n_after;

    broker_process_calls(&broker, &n_before);
    for (size_t t = 0; t < N(types); t++) {
        q = (struct request_run){.head = {.type = types[t], .seq = 7}};
        strcpy(q.run_id, "run");
        report(t == 0 ? "hosted RUN_STOP" : "hosted RUN_REMOVE",
               say(true, &q, sizeof q, NULL, 0, ANSWER_REFUSED));
    }
    report("hosted LAUNCH", say(true, &launch, sizeof launch, NULL, 0, ANSWER_REFUSED));
    strcpy(ref.launch_id, "01234567-89ab-4cde-8f01-23456789abcd");
    ref.head.type = MESSAGE_LAUNCH_CANCEL;
    report("hosted LAUNCH_CANCEL", say(true, &ref, sizeof ref, NULL, 0, ANSWER_REFUSED));
    ref.head.type = MESSAGE_LAUNCH_CLEAR;
    report("hosted LAUNCH_CLEAR", say(true, &ref, sizeof ref, NULL, 0, ANSWER_REFUSED));
    report("hosted DOCTOR", say(true, &plain, sizeof plain, NULL, 0, ANSWER_REFUSED));
    broker_process_calls(&broker, &n_after);
    report("hosted: the CLI was not called", n_after == n_before ? NULL : "it was");
}

/* --- in whose name ---------------------------------------------------------------------------------- */

/* HELLO, the proofs of `shown` (0: none), then one message in the name of `as`. */
static const char *
say_as(uint16_t shown, uint16_t as, void *bytes, size_t len, int verdict)
{
    struct request_token_show show = {.head = {.type = MESSAGE_TOKEN_SHOW, .seq = 6},
                                      .number = shown};
    int fd = broker_process_worker(&broker, 1), status = ANSWERED;
    const char *fault = NULL;

    broker.killed = 0;
    memset(show.proof, shown, sizeof show.proof);
    if (shown != 0) {
        channel_send(fd, &show, sizeof show, NULL, 0);
        fault = take(fd, 6, &status);
    }
    ((struct message_head *)bytes)->as = as;
    if (fault == NULL && channel_send(fd, bytes, len, NULL, 0) != 0)
        fault = "not sent";
    if (fault == NULL)
        fault = take(fd, 7, &status);
    close(fd);
    return fault != NULL ? fault : compare(status, verdict);
}

/* A role that the worker's client did not bring: by no token, another one, one that is over, one
 * that does not exist, one whose proof it cannot know. */
static void
try_role(const char *label, void *bytes, size_t len, bool operates)
{
    static const struct {
        const char *how;
        uint16_t shown, as;
        bool operates;
    } ways[] = {
        {"as itself", 0, 0, false},
        {"as itself, full shown", BROKER_TOKEN_FULL, 0, false},
        {"as a full token that was not shown", 0, BROKER_TOKEN_FULL, false},
        {"as a full token, another shown", BROKER_TOKEN_OPERATE, BROKER_TOKEN_FULL, false},
        {"as a viewer", BROKER_TOKEN_VIEW, BROKER_TOKEN_VIEW, false},
        {"as an operator", BROKER_TOKEN_OPERATE, BROKER_TOKEN_OPERATE, true},
        {"as one that is over", BROKER_TOKEN_EXPIRED, BROKER_TOKEN_EXPIRED, false},
        {"as none", 0, 65535, false},
    };
    char name[128];

    for (size_t i = 0; i < N(ways); i++) {
        if (ways[i].operates && operates)
            continue; /* that one may */
        snprintf(name, sizeof name, "role: %s %s", label, ways[i].how);
        report(name, say_as(ways[i].shown, ways[i].as, bytes, len, ANSWER_REFUSED));
    }
}

static void
try_proofs(void)
{
    struct request_token_show q = {.head = {.type = MESSAGE_TOKEN_SHOW, .seq = 7},
                                   .number = BROKER_TOKEN_FULL};
    static const uint32_t numbers[] = {0, 65536 + BROKER_TOKEN_FULL, UINT32_MAX};

    report("proof: zero", say(true, &q, sizeof q, NULL, 0, ENDED));
    memset(q.proof, BROKER_TOKEN_FULL, sizeof q.proof);
    q.proof[0] ^= 0x80;
    report("proof: a wrong bit at first", say(true, &q, sizeof q, NULL, 0, ENDED));
    q.proof[0] ^= 0x80;
    q.proof[31] ^= 1;
    report("proof: a wrong bit at last", say(true, &q, sizeof q, NULL, 0, ENDED));
    memset(q.proof, BROKER_TOKEN_VIEW, sizeof q.proof);
    report("proof: another token's", say(true, &q, sizeof q, NULL, 0, ENDED));
    for (size_t i = 0; i < N(numbers); i++) {
        q.number = numbers[i];
        report("proof: no number of a token", say(true, &q, sizeof q, NULL, 0, ENDED));
    }
    q.number = 77;
    report("proof: of a token that went", say(true, &q, sizeof q, NULL, 0, ANSWER_REFUSED));
}

static void
try_roles(void)
{
    struct request_run run = {.head = {.type = MESSAGE_RUN_STOP, .seq = 7}, .run_id = "run"};
    struct request_launch launch = {.head = {.type = MESSAGE_LAUNCH, .seq = 7}};
    struct request_launch_ref ref = {.head = {.type = MESSAGE_LAUNCH_CANCEL, .seq = 7}};
    struct request_plain plain = {.head = {.type = MESSAGE_DOCTOR, .seq = 7}};
    struct request_tty_open open = {.head = {.type = MESSAGE_TTY_OPEN, .seq = 7},
                                    .program = TTY_SHELL, .cols = 80, .rows = 24,
                                    .run_id = "run"};
    struct request_tty_join join = {.head = {.type = MESSAGE_TTY_JOIN, .seq = 7},
                                    .run_id = "run"};
    struct request_tty_ref terminal = {.head = {.type = MESSAGE_TTY_TAKE, .seq = 7}};
    struct request_tty_end end = {.head = {.type = MESSAGE_TTY_END, .seq = 7}, .number = 1};
    struct request_assistant assistant = {.head = {.type = MESSAGE_ASSISTANT_START, .seq = 7},
                                          .run_id = "run", .wish = ASSISTANT_CHOOSE};
    struct request_run_connect to = {.head = {.type = MESSAGE_RUN_CONNECT, .seq = 7},
                                     .run_id = "run", .port = RUN_PORT_OPENCODE};
    unsigned n_before, n_after;

    broker_process_calls(&broker, &n_before);
    try_role("stop", &run, sizeof run, true);
    run.head.type = MESSAGE_RUN_REMOVE;
    try_role("remove", &run, sizeof run, true);
    try_role("launch", &launch, sizeof launch, true);
    try_role("cancel", &ref, sizeof ref, true);
    ref.head.type = MESSAGE_LAUNCH_CLEAR;
    try_role("clear", &ref, sizeof ref, true);
    try_role("doctor", &plain, sizeof plain, true);
    try_role("shell", &open, sizeof open, false);
    try_role("look at a terminal", &join, sizeof join, false);
    try_role("a terminal itself", &terminal, sizeof terminal, false);
    try_role("end of a terminal", &end, sizeof end, false);
    try_role("assistant", &assistant, sizeof assistant, false);
    try_role("OpenCode's port", &to, sizeof to, false);
    to.port = RUN_PORT_ASSISTANT;
    try_role("the assistant's port", &to, sizeof to, false);
    try_proofs();
    broker_process_calls(&broker, &n_after);
    report("roles: the CLI was not called", n_after == n_before ? NULL : "it was");
}

/* Terminal switched off (both brokers here), assistant and its ports off in hosted mode. */
static void
try_switched_off(bool hosted)
{
    struct request_tty_open open = {.head = {.type = MESSAGE_TTY_OPEN, .seq = 7},
                                    .program = TTY_SHELL, .cols = 80, .rows = 24,
                                    .run_id = "run"};
    struct request_tty_join join = {.head = {.type = MESSAGE_TTY_JOIN, .seq = 7},
                                    .run_id = "run"};
    struct request_tty_ref ref = {.head = {.type = MESSAGE_TTY_TAKE, .seq = 7}};
    struct request_tty_end end = {.head = {.type = MESSAGE_TTY_END, .seq = 7}, .number = 1};
    struct request_assistant start = {.head = {.type = MESSAGE_ASSISTANT_START, .seq = 7},
                                      .run_id = "run", .wish = ASSISTANT_CHOOSE};
    struct request_run_connect to = {.head = {.type = MESSAGE_RUN_CONNECT, .seq = 7},
                                     .run_id = "run", .port = RUN_PORT_OPENCODE};

    report("terminal off: shell", say(true, &open, sizeof open, NULL, 0, ANSWER_REFUSED));
    open.program = TTY_OPENCODE;
    report("terminal off: OpenCode", say(true, &open, sizeof open, NULL, 0, ANSWER_REFUSED));
    report("terminal off: join", say(true, &join, sizeof join, NULL, 0, DENIED));
    report("terminal off: take", say(true, &ref, sizeof ref, NULL, 0, DENIED));
    report("terminal off: end", say(true, &end, sizeof end, NULL, 0, DENIED));
    if (!hosted)
        return;
    report("hosted ASSISTANT_START", say(true, &start, sizeof start, NULL, 0, ANSWER_REFUSED));
    report("hosted: OpenCode's port", say(true, &to, sizeof to, NULL, 0, ANSWER_REFUSED));
    to.port = RUN_PORT_ASSISTANT;
    report("hosted: the assistant's port", say(true, &to, sizeof to, NULL, 0, ANSWER_REFUSED));
}

/* Ports are an enum; what they lead to is the backend's word, for a valid run ID only. */
static void
try_ports(void)
{
    static const uint32_t ports[] = {0, RUN_PORTS, 22, 80, 4096, 4263, 65535, 65536, UINT32_MAX};
    struct request_run_connect q = {.run_id = "run"};
    char name[64];

    for (size_t i = 0; i < N(ports); i++) {
        q.head = (struct message_head){.type = MESSAGE_RUN_CONNECT, .seq = 7};
        q.port = ports[i];
        snprintf(name, sizeof name, "connect to port %u", ports[i]);
        report(name, say(true, &q, sizeof q, NULL, 0, DENIED));
    }
    for (size_t i = 0; i < N(bad_ids); i++) {
        q = (struct request_run_connect){.head = {.type = MESSAGE_RUN_CONNECT, .seq = 7},
                                         .port = RUN_PORT_DAEMON};
        strcpy(q.run_id, bad_ids[i]);
        snprintf(name, sizeof name, "connect to run ID %zu", i);
        report(name, say(true, &q, sizeof q, NULL, 0, ANSWER_REFUSED));
    }
}

static const struct {
    const char *label, *task, *path;
} task_files[] = {
    {"none such", "task", "none"},
    {"up", "task", "../secret"},
    {"up and down", "task", "a/../../../secret/summary.json"},
    {"absolute", "task", "/etc/passwd"},
    {"empty path", "task", ""},
    {"dot", "task", "."},
    {"dots", "task", ".."},
    {"double slash", "task", "a//b"},
    {"task up", "..", "secret/summary.json"},
    {"task absolute", "/etc", "passwd"},
    {"empty task", "", "secret/summary.json"},
    {"task with a path", "a/b", "c"},
    {"a link out of the task", "trap", "link"},
    {"through a link", "trap", "etc/passwd"},
    {"a task that is a link", "away", "summary.json"},
};

static void
try_task_files(void)
{
    char name[96];

    for (size_t i = 0; i < N(task_files); i++) {
        struct request_task_file q = {.head = {.type = MESSAGE_TASK_FILE, .seq = 7}};

        strcpy(q.task, task_files[i].task);
        strcpy(q.path, task_files[i].path);
        snprintf(name, sizeof name, "task file: %s", task_files[i].label);
        report(name, say(true, &q, sizeof q, NULL, 0, DENIED));
    }
}

/* Numbers of watches and references that nobody gave. */
static void
try_watches(void)
{
    static const uint64_t numbers[] = {0, 1, 4, UINT32_MAX, INT64_MAX, UINT64_MAX};

    for (size_t i = 0; i < N(numbers); i++) {
        struct request_run_watch q = {.head = {.type = MESSAGE_RUN_WATCH, .seq = 7},
                                      .epoch = numbers[i], .ref = numbers[i]};
        struct request_run_unwatch u = {.head = {.type = MESSAGE_RUN_UNWATCH, .seq = 7},
                                        .watch = numbers[i]};

        report("watch of nothing", say(true, &q, sizeof q, NULL, 0, DENIED));
        report("unwatch of nothing", say(true, &u, sizeof u, NULL, 0, ANSWERED));
    }
}

static const struct locate_case {
    const char *label, *task, *model, *agent, *run_id;
    int verdict;
} locates[] = {
    {"a run", "task", "model", "agent", "run", ANSWER_OK},
    {"none such", "task", "model", "agent", "none", ANSWER_NOT_FOUND},
    {"dots as task", "..", "model", "agent", "run", ANSWER_REFUSED},
    {"one dot as task", ".", "model", "agent", "run", ANSWER_REFUSED},
    {"empty task", "", "model", "agent", "run", ANSWER_REFUSED},
    {"path as task", "task/model", "agent", "run", "archive", ANSWER_REFUSED},
    {"absolute task", "/etc", "model", "agent", "run", ANSWER_REFUSED},
    {"dots as agent", "task", "model", "..", "agent", ANSWER_REFUSED},
    {"empty agent", "task", "model", "", "run", ANSWER_REFUSED},
    {"path as agent", "task", "model", "agent/run", "archive", ANSWER_REFUSED},
    {"dots as model", "task", "..", "agent", "run", ANSWER_REFUSED},
    {"dots in model", "task", "model/../model", "agent", "run", ANSWER_REFUSED},
    {"up from model", "task", "../../secret", "agent", "run", ANSWER_REFUSED},
    {"absolute model", "task", "/etc", "agent", "run", ANSWER_REFUSED},
    {"double slash in model", "task", "model//x", "agent", "run", ANSWER_REFUSED},
    {"model ends in a slash", "task", "model/", "agent", "run", ANSWER_REFUSED},
    {"empty model", "task", "", "agent", "run", ANSWER_REFUSED},
    {"dots as run", "task", "model", "agent", "..", ANSWER_REFUSED},
    {"path as run", "task", "model", "agent", "run/archive", ANSWER_REFUSED},
    {"run is a link", "task", "model", "agent", "away", ANSWER_NOT_FOUND},
    {"run is a link to /dev", "task", "model", "agent", "dev", ANSWER_NOT_FOUND},
    {"task is a link", "linktask", "agent", "run", "x", ANSWER_NOT_FOUND},
    {"model is a link to /", "task", "linkmodel", "etc", "ssl", ANSWER_NOT_FOUND},
    {"line feed in task: a name like any other", "a\nb", "model", "agent", "run",
     ANSWER_NOT_FOUND},
};

static uint64_t
locate(const struct locate_case *c, const char **ret_fault)
{
    const struct answer_run_locate *a = (const struct answer_run_locate *)packet.bytes;
    struct request_run_locate q = {.head = {.type = MESSAGE_RUN_LOCATE, .seq = 7}};

    strcpy(q.task, c->task);
    strcpy(q.model, c->model);
    strcpy(q.agent, c->agent);
    strcpy(q.run_id, c->run_id);
    *ret_fault = say(true, &q, sizeof q, NULL, 0, c->verdict);
    return a->ref;
}

static void
try_locates(void)
{
    const char *fault;
    char name[96];

    for (size_t i = 0; i < N(locates); i++) {
        locate(&locates[i], &fault);
        snprintf(name, sizeof name, "locate: %s", locates[i].label);
        report(name, fault);
    }
}

static const struct file_case {
    const char *label, *run_id;
    uint32_t file;
    int verdict;
} files[] = {
    {"the file", "run", RUN_FILE_SUMMARY, ANSWER_OK},
    {"the dialog", "run", RUN_FILE_DIALOG, ANSWER_OK},
    {"a link out", "linked", RUN_FILE_SUMMARY, ANSWER_NOT_FOUND},
    {"a link to /proc/version", "linked", RUN_FILE_AGENT_LOG, ANSWER_NOT_FOUND},
    {"a link to a sibling", "linked", RUN_FILE_DIALOG, ANSWER_NOT_FOUND},
    {"absent", "linked", RUN_FILE_RESULT, ANSWER_NOT_FOUND},
    {"a FIFO", "fifo", RUN_FILE_SUMMARY, ANSWER_NOT_FOUND},
    {"a folder", "folder", RUN_FILE_SUMMARY, ANSWER_NOT_FOUND},
    {"file 0", "run", 0, ENDED},
    {"file one too far", "run", RUN_FILES, ENDED},
    {"file -1", "run", UINT32_MAX, ENDED},
    {"file 2^31", "run", 1u << 31, ENDED},
};

static void
try_files(void)
{
    for (size_t i = 0; i < N(files); i++) {
        struct locate_case where = {"", "task", "model", "agent", files[i].run_id, ANSWER_OK};
        struct request_run_file q = {.head = {.type = MESSAGE_RUN_FILE, .seq = 7},
                                     .file = files[i].file};
        const char *fault;
        char name[96];

        q.ref = locate(&where, &fault);
        q.epoch = ((const struct answer_run_locate *)packet.bytes)->epoch;
        if (fault == NULL)
            fault = say(true, &q, sizeof q, NULL, 0, files[i].verdict);
        snprintf(name, sizeof name, "file: %s", files[i].label);
        report(name, fault);
    }
}

/* References that the broker never gave. */
static void
try_references(void)
{
    static const uint64_t refs[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 100, 65535, UINT32_MAX,
                                    UINT64_C(1) << 32, (UINT64_C(1) << 32) + 4, INT64_MAX,
                                    UINT64_MAX, UINT64_MAX - 1};
    struct locate_case where = {"", "task", "model", "agent", "run", ANSWER_OK};
    const char *fault;
    uint64_t known = locate(&where, &fault);
    uint64_t epoch = ((const struct answer_run_locate *)packet.bytes)->epoch;
    char name[96];

    for (size_t i = 0; i < N(refs); i++) {
        struct request_run_file q = {.head = {.type = MESSAGE_RUN_FILE, .seq = 7},
                                     .epoch = epoch, .ref = refs[i], .file = RUN_FILE_SUMMARY};

        snprintf(name, sizeof name, "reference %zu", i);
        report(name, say(true, &q, sizeof q, NULL, 0, ANSWERED)); /* descriptor is judged */
        q.ref = known;
        snprintf(name, sizeof name, "reference of another epoch %zu", i);
        q.epoch = i == 0 ? 0 : epoch ^ (UINT64_C(1) << i);
        report(name, say(true, &q, sizeof q, NULL, 0, ANSWER_BUSY));
    }
}

/* --- descriptors in the wrong place ---------------------------------------------------------------- */

static int
make_fd(unsigned kind)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fds[2], fd;

    switch (kind) {
    case 0: return open("/dev/null", O_RDWR);
    case 1: return open("/", O_RDONLY | O_DIRECTORY);
    case 2: return open("/etc/hostname", O_PATH);
    case 3: return memfd_create("x", 0);
    case 4: return pipe(fds) == 0 ? (close(fds[1]), fds[0]) : -1;
    case 5: return socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0 ? (close(fds[1]), fds[0]) : -1;
    case 6: return socket(AF_INET, SOCK_STREAM, 0);
    case 7: return socket(AF_INET, SOCK_DGRAM, 0);
    case 8: return socket(AF_INET6, SOCK_STREAM, 0);
    case 9: fd = socket(AF_INET, SOCK_STREAM, 0);
        return bind(fd, (void *)&a, sizeof a) == 0 && listen(fd, 1) == 0 ? fd : -1;
    case 10: return socket(AF_NETLINK, SOCK_RAW, 0);
    case 11: return open("/dev/zero", O_RDONLY);
    case 12: return open("/proc/self/mem", O_RDWR);
    default: return -1;
    }
}

static void
try_descriptors(void)
{
    struct request_peer_uid q = {.head = {.type = MESSAGE_PEER_UID, .seq = 7}};
    char name[64];

    for (unsigned kind = 0; kind < 13; kind++) {
        int fd = make_fd(kind);

        if (fd < 0)
            continue;
        snprintf(name, sizeof name, "peer's uid of descriptor %u", kind);
        /* 6, 8, 9: stream sockets without an other end. */
        report(name, say(true, &q, sizeof q, &fd, 1,
                         kind == 5 ? ANSWERED : kind == 6 || kind == 8 || kind == 9
                                                ? ANSWER_FAILED : ANSWER_NOT_FOUND));
        close(fd);
    }
}

/* A channel sent through itself: the kernel's own cycle of descriptors in flight. */
static void
try_cycle(void)
{
    struct request_peer_uid q = {.head = {.type = MESSAGE_PEER_UID}};
    int fd = broker_process_worker(&broker, 1), status;
    const char *fault = NULL;

    for (uint32_t i = 2; i < 40 && fault == NULL; i++) {
        q.head.seq = i;
        channel_send(fd, &q, sizeof q, &fd, 1);
        fault = take(fd, i, &status);
    }
    close(fd);
    report("a channel sent through itself", fault);
}

/* --- many messages ---------------------------------------------------------------------------------- */

/* Sends until the socket is full or `n` are out, never reading. */
static unsigned
flood(int fd, void *request, uint16_t type, unsigned n)
{
    struct message_head *head = request;
    unsigned sent = 0, full = 0;
    int r;

    while (sent < n && full < 50) {
        *head = (struct message_head){.type = type, .seq = sent + 2};
        r = channel_send(fd, request, message_shape(type)->request_len, NULL, 0);
        if (r == -EAGAIN) {
            usleep(2000);
            full++;
            broker_process_listen(&broker);
        } else if (r < 0) {
            break;
        } else {
            sent++;
        }
    }
    return sent;
}

/* While worker 1 floods and reads nothing, worker 2 is served. */
static void
try_flood(const char *name, void *request, uint16_t type)
{
    unsigned long before = process_rss_kib(broker.pid), after;
    int bad = broker_process_worker(&broker, 1), good = broker_process_worker(&broker, 2);
    struct request_runs_list q = {.head = {.type = MESSAGE_RUNS_LIST, .seq = 9}, .no_wait = 1};
    unsigned most_fds, most_children, sent = flood(bad, request, type, 20000);
    static char text[128];
    const char *fault = NULL;
    int status = ANSWERED;

    channel_send(good, &q, sizeof q, NULL, 0);
    fault = take(good, 9, &status);
    most_fds = process_fds(broker.pid);
    most_children = process_children(broker.pid);
    close(bad);
    close(good);
    after = process_rss_kib(broker.pid);
    snprintf(text, sizeof text, "sent %u, %u descriptors, %u children, %lu to %lu KiB, status %d",
             sent, most_fds, most_children, before, after, status);
    if (fault == NULL && (status != ANSWER_OK || most_fds > broker.base_fds + 2600 ||
                          most_children > LIMIT_FOLLOWERS_PER_WORKER + LIMIT_CLI_CALLS ||
                          after > before + GROWTH_KIB))
        fault = text;
    report(name, fault);
}

static void
try_floods(void)
{
    struct request_run run = {.run_id = "run"};
    struct request_runs_list list = {.generation = 0};
    struct request_results_scan scan = {.generation = 0};
    struct locate_case where = {"", "task", "model", "agent", "run", ANSWER_OK};
    struct request_run_file file = {.file = RUN_FILE_SUMMARY};
    struct request_run_locate none = {.run_id = "r", .task = "t", .agent = "a", .model = "m"};
    struct request_child_end end = {.child = 1};
    const char *fault;

    file.ref = locate(&where, &fault);
    file.epoch = ((const struct answer_run_locate *)packet.bytes)->epoch;
    try_flood("flood of RUNS_LIST", &list, MESSAGE_RUNS_LIST);
    try_flood("flood of RESULTS_SCAN", &scan, MESSAGE_RESULTS_SCAN);
    try_flood("flood of RUN_FILE", &file, MESSAGE_RUN_FILE);
    try_flood("flood of RUN_LOCATE", &none, MESSAGE_RUN_LOCATE);
    try_flood("flood of RUN_STOP", &run, MESSAGE_RUN_STOP);
    try_flood("flood of RUN_LOGS", &run, MESSAGE_RUN_LOGS);
    try_flood("flood of CHILD_END", &end, MESSAGE_CHILD_END);
}

/* The same bytes again and again: each is answered for itself, none twice. */
static void
try_replay(void)
{
    struct request_run_locate q = {.head = {.type = MESSAGE_RUN_LOCATE, .seq = 5},
                                   .run_id = "run", .task = "task", .agent = "agent",
                                   .model = "model"};
    int fd = broker_process_worker(&broker, 1), status;
    const char *fault = NULL;

    for (unsigned i = 0; i < 200; i++)
        channel_send(fd, &q, sizeof q, NULL, 0);
    for (unsigned i = 0; i < 200 && fault == NULL; i++)
        fault = take(fd, 5, &status);
    if (fault == NULL && channel_receive(fd, &packet) != -EAGAIN)
        fault = "one answer too many";
    close(fd);
    report("a request replayed", fault);
}

/* Only what this channel started can be ended by it. */
static void
try_foreign_child(void)
{
    struct request_run q = {.head = {.type = MESSAGE_RUN_LOGS, .seq = 3}, .run_id = "run"};
    struct request_child_end end = {.head = {.type = MESSAGE_CHILD_END, .seq = 4}};
    int one = broker_process_worker(&broker, 1), two = broker_process_worker(&broker, 2);
    int status = ANSWERED;
    const char *fault;

    channel_send(one, &q, sizeof q, NULL, 0);
    fault = take(one, 3, &status);
    end.child = ((const struct answer_run_logs *)packet.bytes)->child;
    if (fault == NULL && status != ANSWER_OK)
        fault = "no follower";
    channel_send(two, &end, sizeof end, NULL, 0);
    if (fault == NULL)
        fault = take(two, 4, &status);
    if (fault == NULL && (status != ANSWER_NOT_FOUND || process_children(broker.pid) != 1))
        fault = "the other worker's follower was ended";
    close(one);
    close(two);
    report("another worker's follower", fault);
}

/* Ended in the middle of everything, over and over. */
static void
try_leaving(void)
{
    struct request_run q = {.head = {.type = MESSAGE_RUN_LOGS, .seq = 3}, .run_id = "run"};

    for (unsigned i = 0; i < 50; i++) {
        int fd = broker_process_worker(&broker, 1 + i % 4);

        channel_send(fd, &q, sizeof q, NULL, 0);
        q.head.type = i % 2 ? MESSAGE_RUN_LOGS : MESSAGE_RUN_STOP;
        channel_send(fd, &q, sizeof q, NULL, 0);
        close(fd);
        broker_process_listen(&broker);
    }
    report("fifty workers that leave at once", NULL);
}

/* Nothing at all is a message too, and one that no worker of ours sends: as an empty datagram,
 * with a descriptor, and as an end of file by somebody who lives on. */
static void
say_nothing(int fd, unsigned how)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.align = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct msghdr msg = {.msg_control = control.bytes, .msg_controllen = sizeof control.bytes};

    memcpy(CMSG_DATA(&control.align), &fd, sizeof fd);
    if (how == 0)
        (void)send(fd, "", 0, MSG_NOSIGNAL);
    else if (how == 1)
        (void)sendmsg(fd, &msg, MSG_NOSIGNAL);
    else
        shutdown(fd, SHUT_WR);
}

static void
try_nothing(void)
{
    static const char *const names[] = {"an empty datagram", "an empty datagram with a descriptor",
                                        "a writing side that is shut"};

    for (unsigned greet = 0; greet < 2; greet++)
        for (unsigned how = 0; how < N(names); how++) {
            int fd = greet ? broker_process_worker(&broker, 1) : broker_process_channel(&broker, 1);
            int status = ANSWERED;
            const char *fault;
            char name[96];

            broker.killed = 0;
            say_nothing(fd, how);
            fault = take(fd, 1, &status);
            if (fault == NULL)
                fault = compare(status, ENDED);
            close(fd);
            snprintf(name, sizeof name, "%s%s", names[how], greet ? "" : " before hello");
            report(name, fault);
        }
}

static void
try_versions(void)
{
    static const uint32_t versions[] = {0, MESSAGES_VERSION + 1, MESSAGES_VERSION << 8,
                                        UINT32_MAX};
    struct request_hello q = {.head = {.type = MESSAGE_HELLO, .seq = 7}};

    for (size_t i = 0; i < N(versions); i++) {
        q.version = versions[i];
        report("hello of another version", say(false, &q, sizeof q, NULL, 0, ENDED));
    }
    q.version = MESSAGES_VERSION;
    report("hello a second time", say(true, &q, sizeof q, NULL, 0, ENDED));
}

int
main(int argc, char **argv)
{
    unsigned long before;

    if (argc != 2)
        return 2;
    broker_process_start(&broker, argv[1], false);
    before = process_rss_kib(broker.pid);
    try_versions();
    try_shapes();
    try_fields();
    try_nothing();
    try_ids(false);
    try_switched_off(false);
    try_ports();
    try_task_files();
    try_watches();
    try_locates();
    try_files();
    try_references();
    try_descriptors();
    try_cycle();
    try_replay();
    try_foreign_child();
    try_leaving();
    try_floods();
    report("memory after everything",
           process_rss_kib(broker.pid) < before + GROWTH_KIB ? NULL : "grown");
    broker_process_stop(&broker);

    broker_process_start_with_tokens(&broker, argv[1]);
    try_roles();
    broker_process_stop(&broker);

    broker_process_start(&broker, argv[1], true);
    try_hosted();
    try_switched_off(true);
    try_ids(true);
    broker_process_stop(&broker);
    fprintf(stderr, "%u passed, %u failed\n", n_passed, n_failed);
    return n_failed > 0;
}
