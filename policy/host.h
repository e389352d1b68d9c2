/* What a Host header names, decided on exact bytes. Pure. */
#ifndef POLICY_HOST_H
#define POLICY_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum host_kind { HOST_NAME, HOST_IPV4, HOST_IPV6 };

/* An authority taken apart. `name` is lower case without brackets and points into `storage`. */
struct host {
    enum host_kind kind;
    char name[256];
    size_t len;
    int port; /* -1: none given */
};

/* Parse `host[:port]` (RFC 9110 7.2): reg-name of letters, digits, '.', '-', '_' up to 253
 * bytes, dotted quad of four plain decimals, or a bracketed IPv6 address without zone; port
 * 1..65535 in plain digits without leading zero. Anything else (userinfo, empty name,
 * percent, trailing dot more than one, "127.1", "0x7f.1", "2130706433" as an all-digit name)
 * is false: two parsers could read it differently. */
bool
policy_host_parse(const char *text, size_t len, struct host *ret_host);

/* localhost (also with one final dot), 127.0.0.0/8, ::1, ::ffff:127.0.0.0/104; not 0.0.0.0. */
bool
policy_host_is_loopback(const struct host *h);

#endif
