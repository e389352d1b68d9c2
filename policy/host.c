/* Takes an authority apart so that no other parser can read another host out of it. */
#include "policy/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define NAME_MAX_LEN 253u /* RFC 1035: a name in text form */

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* Plain digits without leading zero, at most `max`. */
static bool
parse_decimal(const char *text, size_t len, int max, int *ret_value)
{
    int value = 0;

    if (len == 0 || len > 5 || (len > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(text[i]))
            return false;
        value = value * 10 + (text[i] - '0');
    }
    if (value > max)
        return false;
    *ret_value = value;
    return true;
}

/* Four plain decimals. Leading zeros are refused: some read them as octal. */
static bool
is_dotted_quad(const char *text, size_t len)
{
    for (int part = 0; part < 4; part++) {
        const char *dot = len > 0 ? memchr(text, '.', len) : NULL;
        size_t part_len = dot != NULL ? (size_t)(dot - text) : len;
        int value;

        if ((dot != NULL) != (part < 3) || !parse_decimal(text, part_len, 255, &value))
            return false;
        if (dot != NULL) {
            text = dot + 1;
            len -= part_len + 1;
        }
    }
    return true;
}

/* Would the URL standard hand a name with this last label to its IPv4 parser ("1",
 * "0x7f")? Then a browser reads an address where we read a name. */
static bool
is_numeric_label(const char *label, size_t len)
{
    bool hex = len >= 2 && label[0] == '0' && label[1] == 'x';

    for (size_t i = hex ? 2 : 0; i < len; i++)
        if (hex ? !is_hex(label[i]) : !is_digit(label[i]))
            return false;
    return true;
}

/* Labels of letters, digits, '-' and '_', none empty, one final dot allowed. `text` is
 * lower case. */
static bool
is_name(const char *text, size_t len)
{
    const char *label = text;
    size_t label_len = 0;

    if (len > 1 && text[len - 1] == '.')
        len--;
    if (len == 0 || len > NAME_MAX_LEN)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (c == '.') {
            if (label_len == 0)
                return false;
            label = text + i + 1;
            label_len = 0;
            continue;
        }
        if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '_')
            return false;
        label_len++;
    }
    return label_len > 0 && !is_numeric_label(label, label_len);
}

static void
lower(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] - 'A' + 'a');
}

/* An address between brackets, into its one canonical spelling. inet_pton() takes no
 * zone. */
static bool
parse_ipv6(const char *text, size_t len, struct host *h)
{
    char copy[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (len >= sizeof(copy) || memchr(text, '\0', len) != NULL)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (inet_pton(AF_INET6, copy, &address) != 1 ||
        inet_ntop(AF_INET6, &address, h->name, sizeof(h->name)) == NULL)
        return false;
    h->kind = HOST_IPV6;
    h->len = strlen(h->name);
    return true;
}

static bool
parse_name(const char *text, size_t len, struct host *h)
{
    if (len == 0 || len >= sizeof(h->name))
        return false;
    memcpy(h->name, text, len);
    h->name[len] = '\0';
    h->len = len;
    lower(h->name, len);
    h->kind = is_dotted_quad(h->name, len) ? HOST_IPV4 : HOST_NAME;
    return h->kind == HOST_IPV4 || is_name(h->name, len);
}

bool
policy_host_parse(const char *text, size_t len, struct host *ret_host)
{
    struct host h = {.port = -1};
    const char *end = text + len, *rest;

    if (len > 0 && text[0] == '[') {
        rest = memchr(text, ']', len);
        if (rest == NULL || !parse_ipv6(text + 1, (size_t)(rest - text - 1), &h))
            return false;
        rest++;
    } else {
        rest = len > 0 ? memchr(text, ':', len) : NULL;
        if (rest == NULL)
            rest = end;
        if (!parse_name(text, (size_t)(rest - text), &h))
            return false;
    }
    if (rest < end) {
        if (*rest != ':' ||
            !parse_decimal(rest + 1, (size_t)(end - rest - 1), 65535, &h.port) ||
            h.port == 0)
            return false;
    }
    *ret_host = h;
    return true;
}

static bool
is_loopback_ipv6(const char *name)
{
    static const uint8_t mapped_127[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    struct in6_addr address;

    if (inet_pton(AF_INET6, name, &address) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&address) ||
           memcmp(address.s6_addr, mapped_127, sizeof(mapped_127)) == 0;
}

bool
policy_host_is_loopback(const struct host *h)
{
    switch (h->kind) {
    case HOST_NAME:
        return strcmp(h->name, "localhost") == 0 || strcmp(h->name, "localhost.") == 0;
    case HOST_IPV4:
        return strncmp(h->name, "127.", 4) == 0;
    case HOST_IPV6:
        return is_loopback_ipv6(h->name);
    }
    return false;
}
