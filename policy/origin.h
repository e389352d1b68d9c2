/* Origin rules: same host and port as Host, or one of the listed origins. Pure. */
#ifndef POLICY_ORIGIN_H
#define POLICY_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/host.h"

#define POLICY_ORIGIN_SIZE 272u

enum origin_scheme { ORIGIN_HTTP, ORIGIN_HTTPS };

struct origin {
    enum origin_scheme scheme;
    struct host host; /* port filled in with the scheme's default */
};

/* Parse `scheme://host[:port]`, http or https, no path, no userinfo, no wildcard. */
bool
policy_origin_parse(const char *text, size_t len, struct origin *ret_origin);

/* A listed origin from the settings (one trailing '/' tolerated, any case) in canonical form
 * "scheme://host:port". False: not an origin. */
bool
policy_origin_normalise(const char *text, size_t len, char ret[POLICY_ORIGIN_SIZE]);

/* Does `o` name the same host and port as the Host header? A Host without port has the
 * origin's scheme's default port (both 80/http and 443/https normalise). */
bool
policy_origin_same_host(const struct origin *o, const struct host *h);

/* Is `o` among the canonical origins? */
bool
policy_origin_listed(const struct origin *o, const char (*list)[POLICY_ORIGIN_SIZE],
                     size_t n_list);

#endif
