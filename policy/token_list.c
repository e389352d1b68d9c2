/* The tokens file's lines, strictly: what could be read two ways is refused. */
#include "policy/token_list.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "policy/token.h"

#define FIELDS 5u
#define DAY_S 86400

static bool
is_name_byte(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           c == '.' || c == '_' || c == '-';
}

bool
policy_token_name_valid(const char *name)
{
    size_t len = strnlen(name, POLICY_TOKEN_NAME_SIZE);

    if (len == 0 || len == POLICY_TOKEN_NAME_SIZE || strchr("._-", name[0]) != NULL)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_name_byte(name[i]))
            return false;
    return strcmp(name, "token") != 0;
}

/* --- times ------------------------------------------------------------------------------- */

void
policy_token_time(int64_t at_s, char ret_text[POLICY_TOKEN_TIME_SIZE])
{
    time_t t = (time_t)at_s;
    struct tm tm = {0};

    if (at_s < 0 || gmtime_r(&t, &tm) == NULL || tm.tm_year > 9999 - 1900)
        tm = (struct tm){.tm_year = 9999 - 1900, .tm_mon = 11, .tm_mday = 31};
    strftime(ret_text, POLICY_TOKEN_TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* `n` decimal digits at `at`, or -1. */
static int
digits(const char *at, size_t n)
{
    int value = 0;

    for (size_t i = 0; i < n; i++) {
        if (at[i] < '0' || at[i] > '9')
            return -1;
        value = value * 10 + (at[i] - '0');
    }
    return value;
}

/* `text` is a day, or a day and a time; it must be the one spelling of what it says. */
static bool
parse_time(const char *text, size_t len, int64_t *ret_s)
{
    char whole[POLICY_TOKEN_TIME_SIZE] = "0000-00-00T00:00:00Z", again[sizeof whole];
    struct tm tm = {0};

    if (len != 10 && len != sizeof whole - 1)
        return false;
    memcpy(whole, text, len);
    tm.tm_year = digits(whole, 4) - 1900;
    tm.tm_mon = digits(whole + 5, 2) - 1;
    tm.tm_mday = digits(whole + 8, 2);
    tm.tm_hour = digits(whole + 11, 2);
    tm.tm_min = digits(whole + 14, 2);
    tm.tm_sec = digits(whole + 17, 2);
    if (tm.tm_year < 70)
        return false;
    *ret_s = timegm(&tm);
    policy_token_time(*ret_s, again);
    return *ret_s > 0 && memcmp(again, whole, sizeof whole - 1) == 0;
}

/* Seconds of a unit, or 0. */
static int64_t
unit_s(char unit)
{
    return unit == 'm'   ? 60
           : unit == 'h' ? 3600
           : unit == 'd' ? DAY_S
           : unit == 'w' ? 7 * DAY_S
                         : 0;
}

static const char *
parse_lifetime(const char *text, size_t n_digits, int64_t now_s, int64_t *ret_s)
{
    int64_t unit = unit_s(text[n_digits]);
    int64_t n = n_digits <= 7 ? digits(text, n_digits) : -1;

    if (n < 1 || n * unit > (int64_t)POLICY_TOKEN_DAYS_MAX * DAY_S)
        return "a lifetime is at least 1m and at most 3650d";
    *ret_s = now_s + n * unit;
    return NULL;
}

const char *
policy_token_expiry(const char *text, int64_t now_s, int64_t *ret_s)
{
    size_t len = strlen(text), n_digits = strspn(text, "0123456789");
    int64_t at_s = 0;

    if (strcmp(text, "never") == 0) {
        *ret_s = 0;
        return NULL;
    }
    if (n_digits > 0 && len == n_digits + 1 && unit_s(text[n_digits]) > 0)
        return parse_lifetime(text, n_digits, now_s, ret_s);
    if (!parse_time(text, len, &at_s))
        return "write a lifetime (90m, 12h, 30d, 2w), a date in UTC (2027-01-31 or "
               "2027-01-31T12:00:00Z), or never";
    if (at_s <= now_s)
        return "that time is past";
    *ret_s = at_s;
    return NULL;
}

bool
policy_token_expired(int64_t expires_s, int64_t now_s)
{
    return expires_s != 0 && expires_s <= now_s;
}

/* --- lines --------------------------------------------------------------------------------- */

struct field {
    const char *at;
    size_t len;
};

/* Exactly FIELDS of them, one blank between two. */
static bool
split(const char *line, size_t len, struct field ret[FIELDS])
{
    size_t n = 0, start = 0;

    for (size_t i = 0; i <= len; i++) {
        if (i < len && line[i] != ' ')
            continue;
        if (i == start || n == FIELDS)
            return false;
        ret[n++] = (struct field){line + start, i - start};
        start = i + 1;
    }
    return n == FIELDS;
}

/* A field as a string, or "" when it does not fit, which is no valid word of ours. */
static const char *
word(const struct field *f, char out[POLICY_TOKEN_NAME_SIZE])
{
    size_t len = f->len < POLICY_TOKEN_NAME_SIZE ? f->len : 0;

    memset(out, 0, POLICY_TOKEN_NAME_SIZE);
    memcpy(out, f->at, len);
    return out;
}

static int
hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
parse_digest(const struct field *f, uint8_t ret[32])
{
    if (f->len != 64)
        return false;
    for (size_t i = 0; i < 32; i++) {
        int high = hex_value(f->at[2 * i]), low = hex_value(f->at[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* NULL, or why not. */
static const char *
parse_line(const char *line, size_t len, struct token_entry *ret)
{
    char text[POLICY_TOKEN_NAME_SIZE];
    struct field f[FIELDS];

    memset(ret, 0, sizeof *ret);
    if (memchr(line, '\0', len) != NULL || !split(line, len, f))
        return "it has not the five words NAME ROLE DIGEST CREATED EXPIRES";
    if (!policy_token_name_valid(word(&f[0], ret->name)))
        return "the name is not 1 to 32 letters, digits, '.', '_' or '-', or it is `token`";
    ret->role = policy_role_parse(word(&f[1], text));
    if (ret->role == ROLE_NONE)
        return "the role is not view, operate or full";
    if (!parse_digest(&f[2], ret->digest))
        return "the digest is not 64 lower-case hexadecimal digits";
    if (f[3].len == 10 || !parse_time(f[3].at, f[3].len, &ret->created_s))
        return "the time of its making is not like 2027-01-31T12:00:00Z";
    if (f[4].len == 5 && memcmp(f[4].at, "never", 5) == 0)
        return NULL;
    if (f[4].len == 10 || !parse_time(f[4].at, f[4].len, &ret->expires_s))
        return "the end is neither `never` nor like 2027-01-31T12:00:00Z";
    return NULL;
}

struct token_entry *
policy_token_find(struct token_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (strcmp(list->item[i].name, name) == 0)
            return &list->item[i];
    return NULL;
}

static const char *
add(struct token_list *list, const struct token_entry *entry)
{
    if (list->n == POLICY_TOKENS)
        return "there are more than 64 tokens";
    if (policy_token_find(list, entry->name) != NULL)
        return "the name stands there twice";
    for (uint32_t i = 0; i < list->n; i++)
        if (policy_digest_equal(list->item[i].digest, entry->digest))
            return "the digest stands there twice";
    list->item[list->n++] = *entry;
    return NULL;
}

bool
policy_token_list_parse(const char *text, size_t len, struct token_list *ret,
                        unsigned *ret_line, const char **ret_why)
{
    const char *why = len > POLICY_TOKEN_LIST_MAX ? "the file is longer than 32768 bytes" : NULL;
    unsigned line = 0;

    memset(ret, 0, sizeof *ret);
    for (size_t at = 0; why == NULL && at < len;) {
        const char *newline = memchr(text + at, '\n', len - at);
        size_t n = newline != NULL ? (size_t)(newline - (text + at)) : len - at;
        struct token_entry entry;

        line++;
        if (n > 0 && text[at] != '#') {
            why = parse_line(text + at, n, &entry);
            if (why == NULL)
                why = add(ret, &entry);
        }
        at += n + 1;
    }
    if (why == NULL)
        return true;
    memset(ret, 0, sizeof *ret);
    *ret_line = line;
    *ret_why = why;
    return false;
}

size_t
policy_token_line(const struct token_entry *entry, char ret_line[POLICY_TOKEN_LINE])
{
    char hex[65], created[POLICY_TOKEN_TIME_SIZE], expires[POLICY_TOKEN_TIME_SIZE] = "never";
    int n;

    for (size_t i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", entry->digest[i]);
    policy_token_time(entry->created_s, created);
    if (entry->expires_s != 0)
        policy_token_time(entry->expires_s, expires);
    n = snprintf(ret_line, POLICY_TOKEN_LINE, "%s %s %s %s %s\n", entry->name,
                 policy_role_name(entry->role), hex, created, expires);
    return n > 0 ? (size_t)n : 0;
}
