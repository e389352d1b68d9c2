/* Whose pages may call us: our own host and port, and the listed origins, nothing like
 * them. */
#include "policy/origin.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *prefix;
    int port;
} schemes[] = {
    [ORIGIN_HTTP] = {"http://", 80},
    [ORIGIN_HTTPS] = {"https://", 443},
};

bool
policy_origin_parse(const char *text, size_t len, struct origin *ret_origin)
{
    for (enum origin_scheme s = ORIGIN_HTTP; s <= ORIGIN_HTTPS; s++) {
        size_t skip = strlen(schemes[s].prefix);
        struct origin o = {.scheme = s};

        if (len <= skip || strncasecmp(text, schemes[s].prefix, skip) != 0)
            continue;
        /* The host grammar has no '/', '@', '*' or blank, so a path, a user or a
         * wildcard ends here. */
        if (!policy_host_parse(text + skip, len - skip, &o.host))
            return false;
        if (o.host.port == -1)
            o.host.port = schemes[s].port;
        *ret_origin = o;
        return true;
    }
    return false;
}

static void
format(const struct origin *o, char out[POLICY_ORIGIN_SIZE])
{
    bool brackets = o->host.kind == HOST_IPV6;

    /* Longest: 8 + 254 + 1 + 5 bytes, so it always fits. */
    snprintf(out, POLICY_ORIGIN_SIZE, "%s%s%s%s:%d", schemes[o->scheme].prefix,
             brackets ? "[" : "", o->host.name, brackets ? "]" : "", o->host.port);
}

bool
policy_origin_normalise(const char *text, size_t len, char ret[POLICY_ORIGIN_SIZE])
{
    struct origin o;

    if (len > 0 && text[len - 1] == '/')
        len--;
    if (!policy_origin_parse(text, len, &o))
        return false;
    format(&o, ret);
    return true;
}

bool
policy_origin_same_host(const struct origin *o, const struct host *h)
{
    int port = h->port == -1 ? schemes[o->scheme].port : h->port;

    return o->host.kind == h->kind && o->host.port == port && o->host.len == h->len &&
           memcmp(o->host.name, h->name, h->len) == 0;
}

bool
policy_origin_listed(const struct origin *o, const char (*list)[POLICY_ORIGIN_SIZE],
                     size_t n_list)
{
    char canonical[POLICY_ORIGIN_SIZE];

    format(o, canonical);
    for (size_t i = 0; i < n_list; i++)
        if (strcmp(list[i], canonical) == 0)
            return true;
    return false;
}
