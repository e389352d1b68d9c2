/* Reading one value of each kind. */
#include "master/settings_value.h"

#include <arpa/inet.h>
#include <string.h>

#include "common/control.h"
#include "policy/flag.h"
#include "policy/origin.h"

#define BLANKS " \t\r\n\v\f"

/* A value on its way in: blanks around it already gone, never empty. */
struct reading {
    const struct setting *row;
    struct settings *s;
    char *error;
    const char *value;
    size_t len;
};

static void *
field(const struct reading *r)
{
    return (char *)r->s + r->row->offset;
}

static const char *
shown_default(const struct setting *row)
{
    return row->shown != NULL ? row->shown : row->fallback;
}

static int
read_number(const struct reading *r)
{
    uint64_t n = 0;
    bool good = r->len <= 10;

    for (size_t i = 0; good && i < r->len; i++) {
        good = r->value[i] >= '0' && r->value[i] <= '9';
        n = n * 10 + (uint64_t)(r->value[i] - '0');
    }
    if (!good || n < r->row->min || n > r->row->max)
        return settings_refuse(
            r->error,
            "%s=%s is not a whole number from %u to %u. Correct it, or "
            "leave it unset (default: %s).",
            r->row->name, settings_show(r->value), r->row->min, r->row->max,
            shown_default(r->row));
    *(uint32_t *)field(r) = (uint32_t)n;
    return 0;
}

static int
read_flag(const struct reading *r)
{
    enum flag flag = policy_flag_parse(r->value);

    if (flag != FLAG_ON && flag != FLAG_OFF)
        return settings_refuse(
            r->error,
            "%s=%s cannot be read. Set 1 or 0 (also true, false, yes, no, "
            "on, off), or leave it unset (default: %s).",
            r->row->name, settings_show(r->value), shown_default(r->row));
    *(bool *)field(r) = flag == FLAG_ON;
    return 0;
}

/* Bytes that could not be typed on purpose, or that would break a line of the log. */
static bool
has_control_byte(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return true;
    return false;
}

static int
read_text(const struct reading *r)
{
    if (r->len > r->row->max)
        return settings_refuse(
            r->error, "%s=%s is %zu bytes long; the limit is %u. Shorten it.",
            r->row->name, settings_show(r->value), r->len, r->row->max);
    if (has_control_byte(r->value))
        return settings_refuse(r->error, "%s=%s holds a control character. Remove it.",
                               r->row->name, settings_show(r->value));
    memcpy(field(r), r->value, r->len + 1);
    return 0;
}

static const char word_bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789._-";

static int
read_word(const struct reading *r)
{
    if (strspn(r->value, word_bytes) != r->len)
        return settings_refuse(
            r->error,
            "%s=%s is not a name. Use letters, digits, '.', '_' and '-', "
            "or leave it unset (default: %s).",
            r->row->name, settings_show(r->value), shown_default(r->row));
    return read_text(r);
}

static int
read_host(const struct reading *r)
{
    /* 107: what sun_path holds beside its NUL. */
    if (strncmp(r->value, "unix:", 5) == 0) {
        if (r->value[5] != '/' || r->len - 5 > 107)
            return settings_refuse(
                r->error,
                "%s=%s does not name a socket file. Write unix:/absolute/path "
                "of at most 107 bytes.",
                r->row->name, settings_show(r->value));
        return read_text(r);
    }
    if (strpbrk(r->value, "/[] \t,") != NULL)
        return settings_refuse(
            r->error,
            "%s=%s is not an address. Set one address or name without "
            "scheme, port or brackets (127.0.0.1, ::1, localhost), or "
            "unix:/path.",
            r->row->name, settings_show(r->value));
    return read_text(r);
}

/* The value is a secret: only its form is spoken of. */
static int
read_token(const struct reading *r)
{
    if (r->len >= POLICY_TOKEN_MAX)
        return settings_refuse(r->error, "%s is longer than %u bytes. Shorten it.",
                               r->row->name, POLICY_TOKEN_MAX - 1);
    if (!policy_token_valid(r->value, r->len))
        return settings_refuse(
            r->error,
            "%s must be at least 16 characters without spaces. Make one "
            "with: openssl rand -hex 32",
            r->row->name);
    memcpy(field(r), r->value, r->len + 1);
    return 0;
}

static int
read_origin(const struct reading *r, const char *item)
{
    if (r->s->n_origins == HANDOFF_ORIGINS)
        return settings_refuse(r->error, "%s lists more than %u origins. List fewer.",
                               r->row->name, HANDOFF_ORIGINS);
    if (!policy_origin_normalise(item, strlen(item), r->s->origins[r->s->n_origins]))
        return settings_refuse(
            r->error,
            "%s: %s is not an origin. List each as scheme://host[:port], "
            "comma-separated, without a path or wildcard.",
            r->row->name, settings_show(item));
    r->s->n_origins++;
    return 0;
}

/* A comma list, item by item, without the blanks around each. */
static int
read_list(const struct reading *r, int (*read_item)(const struct reading *r, const char *item))
{
    const char *at = r->value;
    int status = 0;

    while (status == 0 && *at != '\0') {
        char item[2048];
        size_t len;

        at += strspn(at, BLANKS ",");
        len = strcspn(at, ",");
        if (len == 0)
            break;
        if (len >= sizeof(item)) /* cut: far over any origin, so it is refused below */
            memcpy(item, at, sizeof(item) - 1), item[sizeof(item) - 1] = '\0';
        else
            memcpy(item, at, len), item[len] = '\0';
        for (size_t n = strlen(item); n > 0 && strchr(BLANKS, item[n - 1]) != NULL; n--)
            item[n - 1] = '\0';
        status = read_item(r, item);
        at += len;
    }
    return status;
}

static int
read_origins(const struct reading *r)
{
    return read_list(r, read_origin);
}

/* One address in the form that a connection's peer is shown in, so that they compare. */
static int
read_proxy(const struct reading *r, const char *item)
{
    char *to = r->s->proxies[r->s->n_proxies % HANDOFF_PROXIES];
    int family = strchr(item, ':') != NULL ? AF_INET6 : AF_INET;
    uint8_t bytes[16];

    if (r->s->n_proxies == HANDOFF_PROXIES)
        return settings_refuse(r->error, "%s lists more than %u addresses. List fewer.",
                               r->row->name, HANDOFF_PROXIES);
    if (strcmp(item, "unix") == 0)
        strcpy(to, item);
    else if (inet_pton(family, item, bytes) != 1 ||
             inet_ntop(family, bytes, to, HANDOFF_ADDRESS_SIZE) == NULL)
        return settings_refuse(r->error,
                               "%s: %s is not an address. List IPv4 or IPv6 addresses, "
                               "comma-separated, or unix.",
                               r->row->name, settings_show(item));
    r->s->n_proxies++;
    return 0;
}

static int
read_proxies(const struct reading *r)
{
    return read_list(r, read_proxy);
}

static int
read_peers(const struct reading *r)
{
    bool any = strcasecmp(r->value, "any") == 0;

    if (!any && strcasecmp(r->value, "own") != 0)
        return settings_refuse(r->error,
                               "%s=%s cannot be read. Set own or any (default: own).",
                               r->row->name, settings_show(r->value));
    *(bool *)field(r) = any;
    return 0;
}

static int
read_level(const struct reading *r)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};

    for (uint32_t i = 0; i < 4; i++)
        if (strcasecmp(r->value, names[i]) == 0) {
            *(uint32_t *)field(r) = LOG_LEVEL_ERROR + i;
            return 0;
        }
    return settings_refuse(r->error,
                           "%s=%s is not a level. Set error, warning, info or debug "
                           "(default: info).",
                           r->row->name, settings_show(r->value));
}

/* Segments of unreserved bytes only: the prefix is compared with decoded paths and
 * pasted into the page, so nothing in it may need escaping anywhere. */
static bool
base_valid(const char *path, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t n;

        if (path[at] != '/')
            return false;
        n = strspn(path + at + 1, word_bytes);
        if (n == 0 ||
            (path[at + 1] == '.' && (n == 1 || (n == 2 && path[at + 2] == '.'))))
            return false;
        at += 1 + n;
    }
    return true;
}

static int
read_base(const struct reading *r)
{
    size_t len = r->len;

    while (len > 0 && r->value[len - 1] == '/')
        len--;
    if (len > r->row->max || !base_valid(r->value, len))
        return settings_refuse(
            r->error,
            "%s=%s is not a prefix. Write /one/or/more segments of letters, "
            "digits, '.', '_' and '-', at most %u bytes, or leave it unset.",
            r->row->name, settings_show(r->value), r->row->max);
    memcpy(field(r), r->value, len);
    ((char *)field(r))[len] = '\0';
    return 0;
}

static int
read_url(const struct reading *r)
{
    size_t scheme = strncasecmp(r->value, "http://", 7) == 0    ? 7
                    : strncasecmp(r->value, "https://", 8) == 0 ? 8
                                                                : 0;
    size_t host = scheme == 0 ? 0 : strcspn(r->value + scheme, "/");
    struct origin origin;

    if (scheme == 0 || strpbrk(r->value, " ?#@\\") != NULL ||
        !policy_origin_parse(r->value, scheme + host, &origin))
        /* It may hold a password before an '@', so it is not repeated. */
        return settings_refuse(
            r->error,
            "%s is not a plain URL. Write http://host[:port] or "
            "https://host[:port], without account, query or fragment.",
            r->row->name);
    return read_text(r);
}

static int
read_passed(const struct reading *r)
{
    return 0;
}

static int (*const readers[])(const struct reading *r) = {
    [SETTING_NUMBER] = read_number,   [SETTING_FLAG] = read_flag,
    [SETTING_TEXT] = read_text,       [SETTING_WORD] = read_word,
    [SETTING_HOST] = read_host,       [SETTING_TOKEN] = read_token,
    [SETTING_ORIGINS] = read_origins, [SETTING_PEERS] = read_peers,
    [SETTING_PROXIES] = read_proxies,
    [SETTING_LEVEL] = read_level,     [SETTING_BASE] = read_base,
    [SETTING_URL] = read_url,         [SETTING_PASSED] = read_passed,
};

/* Trim, fall back when blank, read. */
int
settings_read_value(const struct setting *row, const char *value, struct settings *s,
                    char error[SETTINGS_ERROR_SIZE])
{
    char text[2 * HANDOFF_PATH + 1];
    struct reading r = {.row = row, .s = s, .error = error, .value = text};
    int status;

    value = value != NULL ? value + strspn(value, BLANKS) : "";
    if (*value == '\0')
        value = row->fallback != NULL ? row->fallback : "";
    if (*value == '\0' || row->kind == SETTING_PASSED)
        return 0;
    r.len = strlen(value);
    if (r.len >= sizeof(text))
        return settings_refuse(error, "%s is longer than %zu bytes. Shorten it.",
                               row->name, sizeof(text) - 1);
    memcpy(text, value, r.len + 1);
    while (r.len > 0 && strchr(BLANKS, text[r.len - 1]) != NULL)
        text[--r.len] = '\0';
    status = readers[row->kind](&r);
    if (row->secret)
        explicit_bzero(text, sizeof(text));
    return status;
}
