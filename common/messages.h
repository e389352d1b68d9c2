/*
 * The whole vocabulary between a worker and the broker: the trust boundary in one file.
 *
 * A worker asks, the broker answers; the broker may also tell (events). Every message is one
 * SOCK_SEQPACKET datagram holding exactly one of the structs below, plus exactly the number
 * of descriptors its row in messages.c allows. A datagram of another length, type, order or
 * descriptor count ends the channel and its worker (design R3). Strings are fixed arrays,
 * NUL-terminated and NUL-padded to the end: a byte after the first NUL is malformed, so
 * nothing of the sender's memory crosses by accident.
 *
 * The worker never names a path or an address. It names a run by its ID, a run directory by
 * a reference that the broker gave out, and a file or port by an enum (design R2).
 */
#ifndef COMMON_MESSAGES_H
#define COMMON_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/launch.h"

#define MESSAGES_VERSION 3u

#define MESSAGE_ID_SIZE 65u     /* run ID: 64 characters and NUL */
#define MESSAGE_NAME_SIZE 129u  /* task, agent: 128 characters and NUL */
#define MESSAGE_MODEL_SIZE 257u /* model: may hold '/' */
#define MESSAGE_ERROR_SIZE 512u /* text for people, never interpreted */
#define MESSAGE_LAUNCH_ID_SIZE 37u /* a UUID and NUL */
#define MESSAGE_URL_SIZE 96u    /* http://host:port, and NUL */
#define MESSAGE_TASK_PATH_SIZE 256u /* relative path below a task's `sse` folder */
#define MESSAGE_COMMAND_SIZE 2048u /* a command line for people, cut with "..." */

/* Requests have an answer of the same type; events have none. */
enum message_type {
    MESSAGE_HELLO = 1,     /* first message both ways; carries the version */
    MESSAGE_RUNS_LIST,     /* the CLI's listing of live runs */
    MESSAGE_RESULTS_SCAN,  /* what changed among the finished runs */
    MESSAGE_RUN_LOCATE,    /* run directory of a live run -> reference */
    MESSAGE_RUN_FILE,      /* read-only descriptor of one known file */
    MESSAGE_RUN_STOP,
    MESSAGE_RUN_REMOVE,
    MESSAGE_RUN_LOGS,      /* pipe with the CLI's `runs logs --follow` */
    MESSAGE_CHILD_END,     /* end a follower this worker started */
    MESSAGE_PEER_UID,      /* who owns the other end of this connection */
    MESSAGE_EVENT_CHILD,   /* event: a follower ended */
    MESSAGE_LAUNCHABLES,   /* what can be launched, as the checkout has it now */
    MESSAGE_CATALOG,       /* the manifest's bytes: a file's descriptor, or fetched */
    MESSAGE_DOCTOR,        /* the CLI's report on its host */
    MESSAGE_LAUNCH,        /* start a run, or queue it */
    MESSAGE_LAUNCH_CANCEL, /* end one that has no run yet */
    MESSAGE_LAUNCH_CLEAR,  /* forget one, or all */
    MESSAGE_LAUNCH_WATCH,  /* tell me of launches; its answer follows what is already due */
    MESSAGE_LAUNCH_OUTPUT, /* read-only descriptor of a launch's output */
    MESSAGE_EVENT_LAUNCH,  /* event: a launch is there, or changed */
    MESSAGE_EVENT_LAUNCH_OUTPUT, /* event: its output grew */
    MESSAGE_ASSISTANT_START, /* which port the assistant has; or start it */
    MESSAGE_RUN_CONNECT,   /* a connection to one of a container's known ports */
    MESSAGE_RUN_WATCH,     /* tell me when a run's dialog grows, appears or is replaced */
    MESSAGE_RUN_UNWATCH,
    MESSAGE_EVENT_FILE,    /* event: look at it again */
    MESSAGE_TASK_FILE,     /* one file of a local task's `sse` folder */
    MESSAGE_TTY_OPEN,      /* start a program on a terminal in a run's container */
    MESSAGE_TTY_JOIN,      /* look at a terminal whose session id the client knows */
    MESSAGE_TTY_TAKE,      /* the terminal's descriptor: this worker reads it from now on */
    MESSAGE_TTY_LEAVE,     /* it does no more */
    MESSAGE_TTY_LIST,      /* terminals, for people who look after them */
    MESSAGE_TTY_END,       /* end one of them */
    MESSAGE_EVENT_TTY,     /* event: another viewer wants it, or its program ended */
    MESSAGE_TOKEN_SHOW,    /* a client brought this token: let me ask in its name */
    MESSAGE_TYPES
};

/* Meaning of `status` in every answer. What an answer names (a follower, a watch, a hold on a
 * terminal) is there whatever the status: then nobody has it, and the worker ends it. */
enum answer_status {
    ANSWER_OK = 0,
    ANSWER_REFUSED,   /* policy says no (hosted, terminal off, role, form of a field) */
    ANSWER_NOT_FOUND, /* no such run, file, reference */
    ANSWER_AMBIGUOUS, /* several runs have this ID (CLI status 4) */
    ANSWER_TOO_LARGE, /* over the file limit */
    ANSWER_BUSY,      /* a bound is reached, or a reference is of another epoch: try again */
    ANSWER_TIMEOUT,   /* the CLI took longer than its limit */
    ANSWER_FAILED,    /* anything else; `error` where there is one */
    ANSWER_STATUSES
};

enum run_file {
    RUN_FILE_SUMMARY = 1,     /* summary.json */
    RUN_FILE_RESULT,          /* result.json */
    RUN_FILE_FINAL_PATCH,     /* final.patch */
    RUN_FILE_REFERENCE_PATCH, /* reference.patch */
    RUN_FILE_REVIEW,          /* post-review.txt */
    RUN_FILE_DIALOG,          /* archive/dialog.jsonl */
    RUN_FILE_AGENT_LOG,       /* agent.log */
    RUN_FILE_EVALUATOR_LOG,   /* evaluator.log */
    RUN_FILES
};

/* Ports of a container that a connection may be asked to. */
enum run_port {
    RUN_PORT_DAEMON = 1, /* 4263: the run's data */
    RUN_PORT_OPENCODE,   /* 4096: an assistant with the user's own key, or the image's own */
    RUN_PORT_ASSISTANT,  /* 4098: an assistant with the run's model */
    RUN_PORTS
};

struct message_head {
    uint16_t type;     /* enum message_type */
    uint16_t as;       /* request: in the name of which token, by its number, once TOKEN_SHOW
                          has proved that a client brought it; 0: the worker itself, which may
                          view. Answers and events: 0 */
    uint32_t seq;      /* the asker's number, echoed in the answer; 0 in events */
};

/* --- requests ---------------------------------------------------------------------- */

struct request_hello {
    struct message_head head;
    uint32_t version; /* MESSAGES_VERSION */
    uint32_t reserved;
};

/* Ask for the live runs. Answered at once from what is known unless nothing fresh is; then
 * within LIMIT_LIST_WAIT_MS. With `no_wait` always at once (health). */
struct request_runs_list {
    struct message_head head;
    uint64_t generation; /* of the listing the worker holds; 0: none */
    uint32_t no_wait;    /* 0 or 1 */
    uint32_t reserved;
};

/* Ask what changed among finished runs since `generation` of `epoch`. */
struct request_results_scan {
    struct message_head head;
    uint64_t epoch;      /* of the broker that gave `generation`; 0: none */
    uint64_t generation; /* 0: everything */
};

/* Find <root>/<task>/<model>/<agent>/<run_id> below a results root. */
struct request_run_locate {
    struct message_head head;
    char run_id[MESSAGE_ID_SIZE];
    char task[MESSAGE_NAME_SIZE];
    char agent[MESSAGE_NAME_SIZE];
    char model[MESSAGE_MODEL_SIZE];
    uint8_t reserved[4];
};

struct request_run_file {
    struct message_head head;
    uint64_t epoch; /* of the reference */
    uint64_t ref;   /* run directory, from a scan or RUN_LOCATE */
    uint32_t file;  /* enum run_file */
    uint32_t reserved;
};

/* RUN_STOP, RUN_REMOVE */
struct request_run {
    struct message_head head;
    char run_id[MESSAGE_ID_SIZE];
    uint8_t reserved[7];
};

struct request_run_logs {
    struct message_head head;
    char run_id[MESSAGE_ID_SIZE];
    uint8_t once; /* 0: follow the log; 1: what there is of it now */
    uint8_t reserved[6];
};

struct request_child_end {
    struct message_head head;
    uint64_t child; /* from answer_run_logs */
};

/* With exactly one descriptor: the accepted connection itself, so that the broker asks the
 * kernel about this socket and not about a four-tuple somebody names. */
struct request_peer_uid {
    struct message_head head;
};

/* LAUNCHABLES */
struct request_launchables {
    struct message_head head;
    uint64_t generation; /* of the names the worker holds; 0: none */
};

/* CATALOG, DOCTOR */
struct request_plain {
    struct message_head head;
};

/* LAUNCH. Nobody's word is taken: every field is checked against what the checkout lists. */
struct request_launch {
    struct message_head head;
    struct launch_fields fields; /* policy/launch.h */
    uint8_t key[32];             /* digest of who it is and its Idempotency-Key; zero: none */
};

/* LAUNCH_CANCEL, LAUNCH_CLEAR ("": all), LAUNCH_OUTPUT */
struct request_launch_ref {
    struct message_head head;
    char launch_id[MESSAGE_LAUNCH_ID_SIZE];
    uint8_t reserved[3];
};

struct request_launch_watch {
    struct message_head head;
    uint32_t full; /* 0: only what was not told yet; 1: every launch */
    uint32_t reserved;
};

/* What is wanted of a run's assistant. Whether it is up only a connection tells (RUN_CONNECT):
 * the broker reads nothing that comes out of a container. */
enum assistant_wish {
    ASSISTANT_CHOOSE = 1, /* which server it is; nothing is started */
    ASSISTANT_BEGIN,      /* it was not up: start it, unless that is under way */
    ASSISTANT_WISHES
};

struct request_assistant {
    struct message_head head;
    char run_id[MESSAGE_ID_SIZE];
    uint8_t reserved[3];
    uint32_t wish; /* enum assistant_wish */
};

struct request_run_connect {
    struct message_head head;
    uint32_t port; /* enum run_port */
    char run_id[MESSAGE_ID_SIZE];
    uint8_t reserved[3];
};

struct request_run_watch {
    struct message_head head;
    uint64_t epoch; /* of the reference */
    uint64_t ref;   /* run directory, from a scan or RUN_LOCATE */
};

/* What an honest worker can make only of the token itself. A wrong proof ends the worker. */
struct request_token_show {
    struct message_head head;
    uint8_t proof[32]; /* SHA-256 of the token */
    uint32_t number;   /* of common/handoff.h */
    uint32_t reserved;
};

struct request_run_unwatch {
    struct message_head head;
    uint64_t watch;
};

/* `path` comes out of a file that the worker has read, so it is a stranger's: relative, no
 * "." or "..", and the kernel refuses links and whatever leads out of `sse`. */
struct request_task_file {
    struct message_head head;
    char task[MESSAGE_NAME_SIZE];
    char path[MESSAGE_TASK_PATH_SIZE];
    uint8_t reserved[7];
};

/* TTY_OPEN. The broker makes the command line; only `message` and `workdir` are words of it. */
enum tty_program { TTY_SHELL = 1, TTY_OPENCODE, TTY_PROGRAMS };

#define MESSAGE_TTY_TEXT 2048u /* a prompt and NUL */
#define MESSAGE_TTY_DIR 256u   /* an absolute path inside the container and NUL */
#define MESSAGE_TTY_SESSION 16u /* bytes of a session id: 128 random bits */

struct request_tty_open {
    struct message_head head;
    uint32_t program; /* enum tty_program */
    uint16_t cols, rows; /* 1..LIMIT_TTY_SIZE */
    char run_id[MESSAGE_ID_SIZE];
    char workdir[MESSAGE_TTY_DIR]; /* "": the container's own */
    char message[MESSAGE_TTY_TEXT]; /* "": none; TTY_OPENCODE only */
    uint8_t passes_env; /* 1: the backend hands variables into the container */
    uint8_t reserved[6];
};

/* TTY_JOIN: who knows the session's id, of this very run, may see it and take it over. */
struct request_tty_join {
    struct message_head head;
    uint8_t session[MESSAGE_TTY_SESSION];
    char run_id[MESSAGE_ID_SIZE];
    uint8_t reserved[7];
};

/* TTY_TAKE, TTY_LEAVE */
struct request_tty_ref {
    struct message_head head;
    uint64_t attachment; /* from answer_tty */
};

/* TTY_END: by its number, or by who knows the session's id. */
struct request_tty_end {
    struct message_head head;
    uint32_t number; /* from tty_record; 0: `session` names it */
    uint32_t reserved;
    uint8_t session[MESSAGE_TTY_SESSION]; /* zero with a number */
};

/* --- answers ------------------------------------------------------------------------- */

struct answer_hello {
    struct message_head head;
    uint32_t status;
    uint32_t version;
    uint64_t epoch; /* changes with every broker process */
};

/* One descriptor (sealed memfd with the CLI's JSON) iff status is OK and the generation
 * differs from the one held. `failing_ms` > 0: the newest attempts failed, since when. */
struct answer_runs_list {
    struct message_head head;
    uint32_t status; /* OK: a listing exists (maybe old); FAILED: none was ever had;
                        BUSY: none yet, the first attempt is still under way */
    uint32_t reserved;
    uint64_t generation;
    uint64_t size;       /* bytes in the memfd */
    uint64_t age_ms;     /* of the listing */
    uint64_t failing_ms; /* since the first failure after the last success; 0: none */
    char error[MESSAGE_ERROR_SIZE]; /* of the newest failure: reason for people */
};

/* Why not all of the results roots was looked into; of several reasons the last. */
enum scan_cut {
    SCAN_CUT_NONE,
    SCAN_CUT_DEPTH,       /* LIMIT_SCAN_DEPTH */
    SCAN_CUT_RUNS,        /* LIMIT_RUNS */
    SCAN_CUT_DIRECTORIES, /* LIMIT_SCAN_NODES */
    SCAN_CUT_MEMORY,
};

/* One descriptor (sealed memfd of scan_record's) iff size > 0. Apply the records, then ask
 * again with `generation` while `more`. */
struct answer_results_scan {
    struct message_head head;
    uint32_t status;
    uint32_t more;       /* 0 or 1: further records wait */
    uint64_t epoch;      /* if it is not the one asked with: forget all, this is everything */
    uint64_t generation; /* ask with this next time */
    uint64_t size;       /* bytes of records */
    uint32_t cut;        /* enum scan_cut: of the last walk */
    uint32_t reserved;
};

struct answer_run_locate {
    struct message_head head;
    uint32_t status;
    uint32_t reserved;
    uint64_t epoch;
    uint64_t ref;
};

/* One descriptor iff OK. */
struct answer_run_file {
    struct message_head head;
    uint32_t status;
    uint32_t reserved;
    uint64_t size;     /* bytes when opened */
    int64_t mtime_ns;  /* since the epoch */
    uint64_t inode;    /* tells a replaced file from a grown one */
};

/* RUN_STOP, RUN_REMOVE */
struct answer_run {
    struct message_head head;
    uint32_t status;
    uint32_t reserved;
    char error[MESSAGE_ERROR_SIZE];
};

/* One descriptor (pipe, read end) iff OK. */
struct answer_run_logs {
    struct message_head head;
    uint32_t status;
    uint32_t reserved;
    uint64_t child; /* names the follower in CHILD_END and EVENT_CHILD */
};

struct answer_plain {
    struct message_head head;
    uint32_t status;
    uint32_t reserved;
};

struct answer_peer_uid {
    struct message_head head;
    uint32_t status; /* OK: uid known; NOT_FOUND: the kernel does not tell;
                        FAILED: the other end was closed meanwhile */
    uint32_t uid;
};

/* One descriptor (sealed memfd of launchable records) iff OK and the generation differs. */
struct answer_launchables {
    struct message_head head;
    uint32_t status;
    uint8_t has_catalog; /* one is configured */
    uint8_t has_local;   /* there are local tasks */
    uint8_t reserved[2];
    uint64_t generation;
    uint64_t size;
};

/* One descriptor iff OK. Bytes are unparsed and hostile. */
struct answer_document {
    struct message_head head;
    uint32_t status; /* NOT_FOUND: no catalog is configured */
    uint32_t reserved;
    uint64_t size;
    char error[MESSAGE_ERROR_SIZE];
};

struct answer_launch {
    struct message_head head;
    uint32_t status;  /* REFUSED: `error` is the exact text for the client */
    uint32_t reserved;
    char launch_id[MESSAGE_LAUNCH_ID_SIZE];
    uint8_t padding[3];
    char error[MESSAGE_ERROR_SIZE];
};

/* One descriptor iff OK. Offsets in it only grow: what is dropped leaves a hole. */
struct answer_launch_output {
    struct message_head head;
    uint32_t status;
    uint32_t reserved;
    uint64_t size; /* bytes so far */
    uint64_t cut;  /* nothing is kept before this offset */
};

/* Keys and addresses never cross: a worker learns a port by name and what people may see. */
struct answer_assistant {
    struct message_head head;
    uint32_t status;    /* FAILED, TIMEOUT, NOT_FOUND, AMBIGUOUS, BUSY: `error` says why */
    uint32_t port;      /* enum run_port: RUN_PORT_OPENCODE or RUN_PORT_ASSISTANT */
    uint32_t running;   /* 0 or 1: a server of our starting has not ended */
    uint32_t uptime_ms; /* of that one */
    char model[MESSAGE_MODEL_SIZE]; /* RUN_PORT_ASSISTANT: the run's model; else "" */
    uint8_t reserved[7];
    char error[MESSAGE_ERROR_SIZE]; /* also with OK: why it is not the run's model, or why the
                                       last server ended */
};

/* One descriptor (a connected, non-blocking stream socket) iff OK. TIMEOUT: nobody answered
 * at the address; FAILED: `error`. `url` is for people, "" when the CLI named none. */
struct answer_run_connect {
    struct message_head head;
    uint32_t status;
    uint32_t reserved;
    char url[MESSAGE_URL_SIZE];
    char error[MESSAGE_ERROR_SIZE];
};

struct answer_run_watch {
    struct message_head head;
    uint32_t status; /* NOT_FOUND: no such directory; BUSY: too many are watched */
    uint32_t reserved;
    uint64_t watch;  /* names it in RUN_UNWATCH and EVENT_FILE */
};

/* TTY_OPEN, TTY_JOIN: one descriptor iff OK, the terminal's ring (common/tty_ring.h).
 * TTY_TAKE: one descriptor iff OK, the terminal itself; its answer waits until the worker that
 * read it before has left. */
struct answer_tty {
    struct message_head head;
    uint32_t status;
    uint32_t reserved;
    uint64_t attachment; /* this worker's hold on the terminal, until TTY_LEAVE */
    uint8_t session[MESSAGE_TTY_SESSION];
    char error[MESSAGE_ERROR_SIZE];
};

/* One descriptor (sealed memfd of tty_record's) iff size > 0. */
struct answer_tty_list {
    struct message_head head;
    uint32_t status;
    uint32_t leftovers; /* process groups inside containers that could not be ended, so far */
    uint64_t size;
};

struct tty_record {
    uint32_t number;
    uint32_t pid;        /* of the CLI on this host; 0: it has ended */
    uint32_t program;    /* enum tty_program */
    uint32_t n_viewers;
    uint64_t uptime_ms;
    uint64_t unseen_ms;  /* without a viewer; 0: there is one */
    char run_id[MESSAGE_ID_SIZE];
    uint8_t ended;       /* its program has ended, nobody has fetched the rest yet */
    uint8_t reserved[6];
};

/* --- events ---------------------------------------------------------------------------- */

/* A follower ended. Bytes may still be in its pipe: read to the end of file first. */
struct event_child {
    struct message_head head;
    uint64_t child;
    int32_t exit_status; /* 0..255, or 128 + signal */
    uint32_t reserved;
};

/* The dialog of a watched run may have changed in any way; several changes are one event. */
struct event_file {
    struct message_head head;
    uint64_t watch;
};

enum launch_state {
    LAUNCH_QUEUED = 1, /* waits for a place; nothing was started */
    LAUNCH_LAUNCHING,  /* the CLI works, the backend does not list its run yet */
    LAUNCH_RUNNING,    /* the backend has listed it once */
    LAUNCH_FAILED,     /* it ended without that, or was cancelled; see `error` */
    LAUNCH_CLEARED,    /* forgotten: the last event of a launch */
    LAUNCH_STATES
};

struct event_launch {
    struct message_head head;
    int64_t start_ms;      /* since 1970 */
    int64_t end_ms;        /* when the CLI ended; 0: it has not */
    uint64_t output_size;
    uint64_t output_cut;   /* nothing is kept before this offset */
    int32_t exit_status;   /* 0..255, 128 + signal; -1: not known */
    uint32_t position;     /* LAUNCH_QUEUED: 1 is next */
    uint32_t output_error; /* errno of the newest attempt to keep output; 0: fine */
    uint8_t state;         /* enum launch_state */
    uint8_t interrupted;   /* FAILED because the machine or its keeper went away */
    uint8_t reserved[2];
    char launch_id[MESSAGE_LAUNCH_ID_SIZE];
    char task[MESSAGE_NAME_SIZE];
    char command[MESSAGE_COMMAND_SIZE];
    char error[MESSAGE_ERROR_SIZE];
    uint8_t padding[2];
};

struct event_launch_output {
    struct message_head head;
    uint64_t size;
    uint64_t cut;
    char launch_id[MESSAGE_LAUNCH_ID_SIZE];
    uint8_t padding[3];
};

enum tty_news {
    TTY_NEWS_TAKEN = 1, /* stop reading the terminal, close it, then TTY_LEAVE */
    TTY_NEWS_ENDED,     /* its program ended; bytes may still be in the terminal */
    TTY_NEWS
};

struct event_tty {
    struct message_head head;
    uint64_t attachment;
    uint32_t news;       /* enum tty_news */
    int32_t exit_status; /* TTY_NEWS_ENDED: 0..255, or 128 + signal */
};

/* A launchables memfd: records without a gap, each a letter and NUL-terminated fields.
 * 'm' name (model), 'a' name (agent), 't' name (local task), 'p' name, enabled "0"/"1", hook,
 * llm "0"/"1" (plugin). */

/* --- what a results memfd holds ----------------------------------------------------------- */

/* One changed run, 8-byte aligned: this head, then the directory's path relative to its
 * root (dir_len bytes, no NUL), then the summary as it stands on disk (summary_len bytes,
 * unparsed, hostile), then zero padding to the next multiple of 8. */
struct scan_record {
    uint32_t gone;        /* 1: the run is no longer there; the lengths are 0 */
    uint32_t root;        /* which results root */
    uint64_t ref;         /* the run directory, for RUN_FILE */
    int64_t mtime_ns;     /* of the summary */
    uint32_t dir_len;
    uint32_t summary_len;
};

/* --- the table ------------------------------------------------------------------------------ */

/* Shape of one message: its exact length and descriptor counts, per direction. */
struct message_shape {
    const char *name;
    size_t request_len; /* 0: the worker may not send it */
    unsigned request_fds;
    size_t answer_len;  /* 0: never answered (or, for an event, its own length is event_len) */
    unsigned answer_fds_max;
    size_t event_len;   /* 0: no event */
    bool before_hello;  /* allowed before HELLO (only HELLO itself) */
};

/* Shape of `type`, or NULL for a type outside the vocabulary. */
const struct message_shape *
message_shape(uint16_t type);

/* Is this fixed array a C string, NUL-padded to its end? */
bool
message_string_valid(const char *array, size_t size);

/* Copy `text` into a fixed array, cut at size - 1 bytes, NUL-padded. */
void
message_string_set(char *array, size_t size, const char *text);

#endif
