/*
 * The text of the tokens file: one named token a line, its SHA-256 in place of itself.
 *
 *     NAME ROLE DIGEST CREATED EXPIRES
 *
 * single blanks between; DIGEST 64 lower-case hexadecimal digits; times as 2027-01-31T12:00:00Z,
 * EXPIRES also `never`. Empty lines and lines that begin with `#` say nothing. Tokens are 256
 * random bits of our making, so a plain hash is enough: there is nothing to guess. Pure.
 */
#ifndef POLICY_TOKEN_LIST_H
#define POLICY_TOKEN_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/role.h"

#define POLICY_TOKENS 64u          /* named tokens: each request is compared with all */
#define POLICY_TOKEN_NAME_SIZE 33u /* 32 characters and NUL */
#define POLICY_TOKEN_TIME_SIZE 21u /* 2027-01-31T12:00:00Z and NUL */
#define POLICY_TOKEN_LINE 160u     /* bytes of one line, its newline and NUL */
#define POLICY_TOKEN_LIST_MAX (32u * 1024u) /* bytes of the file, comments included */
#define POLICY_TOKEN_DAYS_MAX 3650u /* of a lifetime that is given */

struct token_entry {
    char name[POLICY_TOKEN_NAME_SIZE];
    enum role role;
    uint8_t digest[32];
    int64_t created_s; /* since 1970 */
    int64_t expires_s; /* 0: never */
};

struct token_list {
    uint32_t n;
    struct token_entry item[POLICY_TOKENS];
};

/* Letters, digits, '.', '_' and '-', a letter or digit first, 1 to 32 of them. `token` is what
 * logs call the one of SSEBENCH_WEBUI_TOKEN, so it names no other. */
bool
policy_token_name_valid(const char *name);

/* Read a whole file's text. False: `ret_line` (from 1) and `ret_why`, a constant, tell where and
 * why; `ret` is then empty. */
bool
policy_token_list_parse(const char *text, size_t len, struct token_list *ret,
                        unsigned *ret_line, const char **ret_why);

/* One line with its newline. Returns its length. */
size_t
policy_token_line(const struct token_entry *entry, char ret_line[POLICY_TOKEN_LINE]);

/* The entry of that name, or NULL. */
struct token_entry *
policy_token_find(struct token_list *list, const char *name);

/* 2027-01-31T12:00:00Z, of 1970 to 9999. */
void
policy_token_time(int64_t at_s, char ret_text[POLICY_TOKEN_TIME_SIZE]);

/* When a token ends: `never` (0), a lifetime such as 90m, 12h, 30d, 2w, or a time in UTC,
 * 2027-01-31 (its first second) or 2027-01-31T12:00:00Z. NULL, or why not: a constant. */
const char *
policy_token_expiry(const char *text, int64_t now_s, int64_t *ret_s);

/* Is it over at this time? */
bool
policy_token_expired(int64_t expires_s, int64_t now_s);

#endif
