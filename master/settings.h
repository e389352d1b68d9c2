/* The server's settings: what the environment may say, read once at start, every bad
 * value refused with a text that names the way out and never repeats a secret. */
#ifndef MASTER_SETTINGS_H
#define MASTER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/handoff.h"
#include "policy/token.h"
#include "policy/token_list.h"

#define SETTINGS_ERROR_SIZE 1024u /* bytes of one refusal, without "[Server] " */
#define SETTINGS_HOST_SIZE                                                             \
    256u                       /* a DNS name has at most 253; "unix:" and 107 fit too */
#define SETTINGS_WORD_SIZE 64u /* an account's name, a back end's */

/* How a value is read, and how it is shown. */
enum setting_kind {
    SETTING_NUMBER,  /* plain decimal digits between min and max */
    SETTING_FLAG,    /* policy/flag.h */
    SETTING_TEXT,    /* up to max bytes, no control byte */
    SETTING_WORD,    /* text of letters, digits, '.', '_' and '-' */
    SETTING_HOST,    /* an address, a name, or unix:/path */
    SETTING_TOKEN,   /* policy/token.h */
    SETTING_ORIGINS, /* comma list, policy/origin.h */
    SETTING_PEERS,   /* "own" or "any" */
    SETTING_PROXIES, /* comma list of addresses, "unix" among them */
    SETTING_LEVEL,   /* a log level's name */
    SETTING_BASE,    /* a path prefix */
    SETTING_URL,     /* http or https, no query */
    SETTING_PASSED,  /* not ours: the ssebench command finds it in its environment */
};

/* One row of the table. */
struct setting {
    const char *name;
    enum setting_kind kind;
    bool secret;       /* never shown, not even when it is refused */
    uint32_t offset;   /* of its field in struct settings */
    uint32_t min, max; /* numbers: bounds; texts: max bytes without the NUL */
    const char
        *fallback;       /* text of the default; NULL: computed or none (see `shown`) */
    const char *shown;   /* the default for people, where `fallback` does not say it */
    const char *meaning; /* one or two sentences */
};

/* Everything the start decided. Paths are absolute. */
struct settings {
    uint32_t port; /* 0: pick a free one */
    uint32_t workers;
    uint32_t max_connections;
    uint32_t max_launches;
    uint32_t log_level; /* enum log_level */
    uint32_t pty_interval_ms;
    uint32_t pty_orphan_ms;
    bool terminal, hosted, record, access_log, peers_any, pty_cleanup;
    char host[SETTINGS_HOST_SIZE];
    char token[POLICY_TOKEN_MAX]; /* "": none. Wiped by handover_new */
    bool kept_token;              /* it was, of the program before this one; master/takeover.h */
    char token_file[HANDOFF_PATH];
    char tokens_file[HANDOFF_PATH];
    bool tokens_given; /* it was named, so a token is asked for even while it is missing */
    bool tokens_there; /* it was read */
    struct token_list tokens;
    char origins_file[HANDOFF_PATH]; /* "": none */
    uint32_t n_origins_set;          /* of them stand in the environment */
    uint32_t n_origins;
    char origins[HANDOFF_ORIGINS][HANDOFF_ORIGIN_SIZE];
    uint32_t n_proxies;
    char proxies[HANDOFF_PROXIES][HANDOFF_ADDRESS_SIZE];
    char base_path[256]; /* "" or "/a/b" */
    char cli[HANDOFF_PATH];
    char checkout[HANDOFF_PATH];
    char local_tasks[HANDOFF_PATH];
    char catalog[HANDOFF_PATH];
    char catalog_url[HANDOFF_PATH]; /* deprecated spelling of catalog */
    char more_results[HANDOFF_PATH];
    char roots[HANDOFF_PATH]; /* NUL-separated, "" ends */
    char state_dir[HANDOFF_PATH];
    char litellm_url[512]; /* "": the broker asks LITELLM_PORT and .env */
    char backend[SETTINGS_WORD_SIZE];
    char user[SETTINGS_WORD_SIZE]; /* "": not given */
    uint32_t litellm_port;
    bool catalog_deprecated; /* SSEBENCH_CATALOG_URL decided the catalog */
};

/* Looks a variable up; NULL when it is not set. */
typedef const char *settings_lookup(const char *name);

/* The table, in the order of the manual; NULL past the end. */
const struct setting *settings_row(size_t index);

/* Read and check everything. On -EINVAL `ret_error` says what and the way out. The file
 * system is looked at, never changed. */
int settings_read(settings_lookup *lookup, struct settings *ret,
                  char ret_error[SETTINGS_ERROR_SIZE]);

/* Fill what depends on several variables or on the file system (settings_paths.c):
 * checkout, results roots, local tasks, catalog, state directory. Called by
 * settings_read. */
int settings_resolve_paths(settings_lookup *lookup, struct settings *s,
                           char ret_error[SETTINGS_ERROR_SIZE]);

/* Nothing but where the state directory and the tokens file are, for the commands that work on
 * them beside a server. */
int settings_locate(settings_lookup *lookup, struct settings *ret,
                    char ret_error[SETTINGS_ERROR_SIZE]);

/* The parts of settings_resolve_paths that settings_locate needs. */
int settings_find_cwd(char cwd[HANDOFF_PATH], char *error);
int settings_resolve_state(settings_lookup *lookup, struct settings *s, const char *cwd,
                           char *error);

/* Make the state directory (0700, and its missing parents) for `uid`, or check that
 * what is there is a directory of `uid` that nobody else can write or list. 0 or
 * -EINVAL. */
int settings_make_state_dir(const struct settings *s, uint32_t uid, uint32_t gid,
                            char ret_error[SETTINGS_ERROR_SIZE]);

/* The check alone (--check): fine if it is not there yet. */
int settings_check_state_dir(const struct settings *s, uint32_t uid,
                             char ret_error[SETTINGS_ERROR_SIZE]);

/* Read the token file: a regular file of root's or ours that others cannot read. On
 * success the token stands in `ret_token`. Again at every reload. 0 or -EINVAL. */
int settings_read_token_file(const char *path, char ret_token[POLICY_TOKEN_MAX],
                             char ret_error[SETTINGS_ERROR_SIZE]);

/* Read the tokens file. A missing one is no error: `ret_there` is false. 0 or -EINVAL. */
int settings_read_tokens(const char *path, struct token_list *ret, bool *ret_there,
                         char ret_error[SETTINGS_ERROR_SIZE]);

/* Read the file of origins behind the n_origins_set first ones of `origins`; their number in
 * `ret_n`. 0 or -EINVAL; `origins` may be half filled then. */
int settings_read_origins_file(const struct settings *s,
                               char (*origins)[HANDOFF_ORIGIN_SIZE], uint32_t *ret_n,
                               char ret_error[SETTINGS_ERROR_SIZE]);

/* Does every request need a token? */
bool settings_wants_token(const struct settings *s);

/* Compose a refusal; returns -EINVAL, so that a caller can return it. */
__attribute__((format(printf, 2, 3))) int
settings_refuse(char ret_error[SETTINGS_ERROR_SIZE], const char *format, ...);

/* A value made fit to be shown: printable ASCII, at most 80 bytes. Static buffer. */
const char *settings_show(const char *value);

/* The row's meaning with the range of a number behind it. Static buffer. */
const char *settings_meaning(const struct setting *row);

/* Warnings for --check about what the start does not stop for: a directory that is no
 * checkout, a command that is not there. One line each. */
void settings_print_doubts(FILE *out, const struct settings *s);

/* --help, --settings-markdown, --settings-man, --check. */
void settings_print_help(FILE *out);
void settings_print_man(FILE *out);
void settings_print_markdown(FILE *out);
void settings_print_values(FILE *out, const struct settings *s);

#endif
