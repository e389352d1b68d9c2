/*
 * The keeper's interface to the broker: descriptors it starts with, its report, its socket.
 *
 * One keeper a launch, in a session of its own: it owns the CLI and its process group, writes
 * what the CLI says into the launch's folder and records how it ended. It needs no other
 * process of ours. The CLI writes into a FIFO that it holds open for reading too, so even a
 * keeper's SIGKILL neither breaks that pipe nor loses what is in it: the next keeper
 * (`rescue`) goes on reading where the first one stopped.
 *
 * ssebench-webui-keeper run WORD...   start this command and keep it
 * ssebench-webui-keeper rescue        keep a command whose keeper was killed
 */
#ifndef BROKER_KEEPER_H
#define BROKER_KEEPER_H

#include <stdint.h>

/* Working directory and environment are the command's. */
enum keeper_fd {
    KEEPER_DIR = 3,    /* the launch's folder, with its FIFO */
    KEEPER_REPORT = 4, /* pipe: one struct keeper_report, then the end */
    KEEPER_LOCK = 5,   /* the open lock file: locked as long as a keeper lives */
};

struct keeper_report {
    int32_t error; /* errno; 0: the command executes and the socket listens */
    int32_t exec;  /* 1: the command itself could not be executed */
};

/* What the broker sends on the socket (SOCK_SEQPACKET): one byte. */
enum keeper_order {
    KEEPER_END = 'T', /* SIGTERM, later SIGKILL to the group */
    KEEPER_KILL = 'K' /* SIGKILL to the group */
};

/* What the keeper sends: when connected, and at each change. The end of the connection is
 * the end of the keeper. */
struct keeper_state {
    int64_t ended_ms;     /* 0: the command has not ended */
    int32_t exit_status;  /* -1: not known */
    int32_t output_error; /* errno of the newest write of output; 0: fine */
    uint64_t lost;        /* bytes of output that found no room */
};

#endif
