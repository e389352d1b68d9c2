/* What a role program finds open when it starts: fixed descriptor numbers, one sealed
 * configuration. Everything else is closed; a worker's environment is empty. */
#ifndef COMMON_HANDOFF_H
#define COMMON_HANDOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum handoff_fd {
    HANDOFF_CONTROL = 3,    /* channel to the master */
    HANDOFF_CONFIG = 4,     /* sealed memfd: struct worker_config or broker_config */
    HANDOFF_CHANNEL = 5,    /* worker: channel to the broker */
    HANDOFF_SCOREBOARD = 6, /* shared counters: n_workers pages and the broker's */
    HANDOFF_LISTENER = 7,   /* worker: listening socket(s), n_listeners of them, 7, 8, ... */
};

#ifdef SSEBENCH_PRISONER /* tests/attack/prisoner.c in the worker's place */
#define HANDOFF_VERSION 0x80000001u
#else
#define HANDOFF_VERSION 1u
#endif
#define HANDOFF_ORIGINS 32u
#define HANDOFF_ORIGIN_SIZE 272u /* scheme://host:port */
#define HANDOFF_PROXIES 16u
#define HANDOFF_ADDRESS_SIZE 46u /* INET6_ADDRSTRLEN */
#define HANDOFF_LISTENERS 4u
#define HANDOFF_PATH 4096u
#define HANDOFF_TOKENS 65u       /* policy/token_list.h's and SSEBENCH_WEBUI_TOKEN's */
#define HANDOFF_TOKEN_NAME 40u

/* One token as a role knows it. The proof is SHA-256(token): who has seen the token can make it,
 * who has only what a worker was handed cannot. */
struct handoff_token {
    uint8_t digest[32];  /* worker: HMAC-SHA256(token_key, proof); broker: the proof */
    int64_t expires_s;   /* since 1970; 0: never */
    uint16_t number;     /* 1..; another secret, name or role is another number */
    uint8_t role;        /* enum role */
    uint8_t reserved[5];
    char name[HANDOFF_TOKEN_NAME]; /* "token": the one of SSEBENCH_WEBUI_TOKEN */
};

/* All that a worker knows. The token itself is not in it (design R4). */
struct worker_config {
    uint32_t version; /* HANDOFF_VERSION */
    uint32_t number;  /* 1.. */
    uint32_t n_workers;
    uint32_t n_listeners;
    uint32_t max_connections;  /* of this worker */
    uint32_t max_per_address;  /* of this worker */
    uint32_t account_uid;      /* who started the server: the peer a token-less one answers */
    uint32_t drop_uid, drop_gid; /* started as root: the account to become; else (uint32_t)-1 */
    uint8_t hosted, terminal, peers_any;
    uint8_t has_token; /* every request needs one, even if none is left */
    uint8_t listens_unix;      /* the listener is a Unix socket */
    uint8_t log_level;         /* enum log_level */
    uint8_t exec_helper_missing; /* reserved for terminalHint */
    uint8_t access_log;          /* reads too */
    uint8_t token_key[32];    /* random per start: key of the tokens' hashes */
    uint32_t n_tokens;
    uint32_t padding;
    struct handoff_token tokens[HANDOFF_TOKENS];
    uint32_t n_origins;
    char origins[HANDOFF_ORIGINS][HANDOFF_ORIGIN_SIZE]; /* normalised, policy/origin.h */
    uint32_t n_proxies; /* peers whose X-Forwarded-For is believed, for logs and limits */
    char proxies[HANDOFF_PROXIES][HANDOFF_ADDRESS_SIZE]; /* inet_ntop's form, or "unix" */
    char base_path[256];      /* "" or "/a/b": no slash at the end */
    char backend[64];         /* SSEBENCH_BACKEND, or "" */
    char server_version[32];
};

/* All that the broker is told. Its environment is the server's without the token. */
struct broker_config {
    uint32_t version;
    uint32_t n_workers;
    uint8_t hosted, terminal, log_level;
    uint8_t record; /* terminals, into the state directory */
    uint32_t drop_uid, drop_gid;   /* (uint32_t)-1: stay who we are */
    char cli[HANDOFF_PATH];        /* SSEBENCH_CLI, words split on white space */
    char checkout[HANDOFF_PATH];   /* SSEBENCH_PATH, absolute */
    char roots[HANDOFF_PATH];      /* results roots, absolute, NUL-separated, "" ends */
    char local_tasks[HANDOFF_PATH];
    char catalog[HANDOFF_PATH];    /* resolved location (contract 8), or "" */
    char state_dir[HANDOFF_PATH];  /* absolute, exists, ours, 0700 */
    char litellm_url[512];
    uint32_t pty_cleanup, pty_cleanup_interval_ms, pty_orphan_threshold_ms;
    uint32_t max_launches;         /* at once; further ones wait */
    char keeper[HANDOFF_PATH];     /* path of the keeper program */
    uint8_t has_token;             /* else a worker acts for the one user there is */
    uint8_t padding[3];
    uint32_t n_tokens;
    struct handoff_token tokens[HANDOFF_TOKENS];
};

/* Read a configuration of exactly `size` bytes from HANDOFF_CONFIG-like `fd`, check that it
 * is sealed against writing and of our version, close it. 0 or -errno (-EBADMSG: not what we
 * expect). */
int
handoff_read_config(int fd, void *ret_config, size_t size);

/* The same for any struct that begins with a uint32_t, which has to be `version`. */
int
handoff_read_sealed(int fd, uint32_t version, void *ret, size_t size);

/* A sealed memfd with these bytes, CLOEXEC. Descriptor or -errno. */
int
handoff_seal(const char *name, const void *bytes, size_t size);

/* The one of `n` tokens with that number, or NULL; a number of 0 names none. */
const struct handoff_token *
handoff_token_by_number(const struct handoff_token *tokens, uint32_t n, uint32_t number);

#endif
