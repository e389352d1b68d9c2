/*
 * Every rule that admits or refuses a request, in the order of the contract (10.3), as one
 * pure function. The worker asks it before routing, for every request of a connection, HTTP
 * and WebSocket alike; nothing else in the server refuses access.
 */
#ifndef POLICY_ACCESS_H
#define POLICY_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/host.h"
#include "policy/origin.h"
#include "policy/role.h"

/* What the server was told at start. Borrowed. */
struct access_rules {
    bool hosted;
    bool terminal;
    bool has_token;
    bool peers_any; /* SSEBENCH_WEBUI_PEERS=any */
    uint32_t account_uid;
    const char (*origins)[POLICY_ORIGIN_SIZE];
    size_t n_origins;
};

enum access_peer {
    ACCESS_PEER_UNKNOWN, /* the kernel does not tell: refused where it matters */
    ACCESS_PEER_UID,
};

/* What one request says, already taken apart by the strict reader. Borrowed. */
struct access_request {
    const char *method;
    const char *path; /* percent-decoded once, below the base path; starts with '/' */
    size_t path_len;
    bool upgrade; /* a WebSocket handshake */
    const char *host; /* header value; never NULL (the reader refuses its absence) */
    size_t host_len;
    const char *origin; /* NULL: no header */
    size_t origin_len;
    const char *fetch_site; /* Sec-Fetch-Site; NULL: no header */
    size_t fetch_site_len;
    bool token_given; /* a token stood in Authorization or in a subprotocol */
    bool token_good;  /* and its keyed hash is one of the server's, not expired */
    enum role role;   /* of that token */
    enum access_peer peer;
    uint32_t peer_uid;
};

enum access_outcome {
    ACCESS_ALLOW,
    ACCESS_PREFLIGHT, /* answer 204 with the CORS headers */
    ACCESS_REFUSE,
};

struct access_verdict {
    enum access_outcome outcome;
    int status;           /* 401 or 403 when refused */
    const char *error;    /* exact text of the security model or contract */
    const char *setting;  /* the one setting that admits it, or NULL */
    enum role needed;     /* refused for the token's role: the least that may; else ROLE_NONE */
    bool by_fetch_site;   /* refused for Sec-Fetch-Site: there was no Origin */
    bool cors;            /* the Origin is a listed one: CORS headers belong on the answer */
};

/* Decide. Rules, first that applies: host name (token-less), peer's account (token-less),
 * origin (or, without one, Sec-Fetch-Site), preflight, token, hosted, terminal, the token's role. Paths outside /api meet only the host and peer
 * rules, unless they ask for an upgrade. */
struct access_verdict
policy_access_decide(const struct access_rules *rules, const struct access_request *request);

/* What the request amounts to, by method, path and upgrade. */
enum deed
policy_access_deed(const struct access_request *request);

/* Is this decoded path under /api (exactly "/api" or below)? */
bool
policy_access_is_api(const char *path, size_t len);

#endif
