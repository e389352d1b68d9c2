/* Where policy is applied: the request's facts are gathered, policy/access.h decides, and a
 * refusal says what was received and which one setting admits it. */
#include "worker/access_gate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/limits.h"
#include "common/log.h"
#include "common/scoreboard.h"
#include "policy/access.h"
#include "policy/token.h"
#include "worker/audit.h"
#include "worker/broker_link.h"
#include "worker/http.h"
#include "worker/peers.h"
#include "worker/tokens.h"
#include "worker/worker.h"

#define HINT_VALUE 100u     /* bytes of a received value that a hint repeats */
#define REFUSALS_LOGGED 5u  /* lines in each interval; the rest is counted */
#define REFUSALS_INTERVAL_S 10.0
#define BAD_TOKENS_LEAST 5u /* a minute, however many workers share the limit */

/* --- the token --------------------------------------------------------------------------- */

/* The token that the request carries, hashed and looked up. An Authorization header, if there
 * is one, alone decides (contract 10.3). */
static void
token_examine(struct exchange *x, struct access_request *ret)
{
    const struct request *r = &x->request;
    const struct handoff_token *known;
    char decoded[POLICY_TOKEN_MAX];
    const char *token = NULL;
    size_t len = 0;

    if (r->authorization.at) {
        ret->token_given = true;
        if (!policy_token_from_bearer(r->authorization.at, r->authorization.len, &token,
                                      &len))
            return;
    } else if (r->ws_protocols.at &&
               policy_token_from_subprotocols(r->ws_protocols.at, r->ws_protocols.len,
                                              decoded, &len)) {
        ret->token_given = true;
        token = decoded;
    } else {
        return;
    }
    known = tokens_match(token, len);
    explicit_bzero(decoded, sizeof(decoded));
    if (known == NULL || tokens_expired(known))
        return;
    ret->token_good = true;
    ret->role = (enum role)known->role;
    x->token = known->number;
}

/* --- saying no ------------------------------------------------------------------------------ */

void
access_gate_log_refusal(const struct exchange *x, int status, const char *reason,
                        bool understood)
{
    char from[AUDIT_TEXT], who[AUDIT_WHO];
    static double since_s;
    static unsigned n_logged, n_left_out;
    double now_s = worker_now_s();

    if (now_s - since_s > REFUSALS_INTERVAL_S) {
        if (n_left_out > 0)
            log_event(LOG_LEVEL_WARNING, "refused-more", "count=%u", n_left_out);
        since_s = now_s;
        n_logged = n_left_out = 0;
    }
    if (n_logged++ >= REFUSALS_LOGGED) {
        n_left_out++;
        return;
    }
    if (!understood) {
        log_event(LOG_LEVEL_WARNING, "refused", "status=%d peer=%s reason=\"%s\"", status,
                  connection_slot_address(x->conn->slot), reason);
        return;
    }
    audit_client(x, from);
    audit_who(x, who);
    log_event(LOG_LEVEL_WARNING, "refused",
              "status=%d peer=%s %s method=%s path=%s reason=\"%s\"", status, from,
              status == 401 ? "who=unknown" : who, x->request.method_name,
              log_quote(x->request.path, x->request.path_len), reason);
}

/* A received value that may stand in a hint: printable ASCII, cut. */
static const char *
hint_value(struct span value, char out[HINT_VALUE + 1])
{
    size_t n = value.len < HINT_VALUE ? value.len : HINT_VALUE;

    for (size_t i = 0; i < n; i++)
        out[i] = value.at[i] >= 0x20 && value.at[i] < 0x7f ? value.at[i] : '?';
    out[n] = '\0';
    return out;
}

/* What was received and the one setting that admits it. NULL: no setting does. */
static const char *
hint_make(const struct exchange *x, const struct access_verdict *v, char *out, size_t size)
{
    char host[HINT_VALUE + 1], origin[HINT_VALUE + 1];
    int n;

    if (!v->setting)
        return NULL;
    if (v->needed != ROLE_NONE) {
        snprintf(out, size, "The token has the role %s; this needs %s.",
                 policy_role_name(exchange_role(x)), policy_role_name(v->needed));
        return out;
    }
    n = snprintf(out, size, "Received Host \"%s\"", hint_value(x->request.host, host));
    if (x->request.origin.at)
        n += snprintf(out + n, size - (size_t)n, " and Origin \"%s\"",
                      hint_value(x->request.origin, origin));
    else if (v->by_fetch_site)
        n += snprintf(out + n, size - (size_t)n, " and Sec-Fetch-Site \"%s\"",
                      hint_value(x->request.fetch_site, origin));
    if (x->conn->peer == PEER_UID && v->status == 403)
        n += snprintf(out + n, size - (size_t)n, " from user %u",
                      (unsigned)x->conn->peer_uid);
    snprintf(out + n, size - (size_t)n, ". The setting that decides this is %s.",
             v->setting);
    return out;
}

static void
cors_headers(struct exchange *x, bool preflight)
{
    char origin[POLICY_ORIGIN_SIZE + 1];
    struct span o = x->request.origin;

    if (o.len >= sizeof(origin))
        return;
    memcpy(origin, o.at, o.len);
    origin[o.len] = '\0';
    exchange_header(x, "Access-Control-Allow-Origin", origin);
    exchange_header(x, "Access-Control-Expose-Headers", "Content-Type, Cache-Control");
    if (!preflight)
        return;
    exchange_header(x, "Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    exchange_header(x, "Access-Control-Allow-Headers",
                    "Content-Type, Cache-Control, Authorization");
    exchange_header(x, "Access-Control-Max-Age", "600");
}

/* The limit is the server's; a worker sees its share of an address's connections. */
static bool
over_bad_tokens(struct exchange *x)
{
    unsigned share = LIMIT_BAD_TOKENS_PER_MINUTE / worker_config()->n_workers;
    double now_s = worker_now_s();
    char client[AUDIT_TEXT];

    if (share < BAD_TOKENS_LEAST)
        share = BAD_TOKENS_LEAST;
    audit_client(x, client);
    if (strcmp(client, connection_slot_address(x->conn->slot)) != 0)
        return peers_bad_token_behind(client, now_s, share);
    return peers_bad_token(x->conn->slot, now_s, share);
}

static void
refuse(struct exchange *x, const struct access_request *r, const struct access_verdict *v)
{
    char hint[512];
    bool bad_token = v->status == 401 && r->token_given;

    scoreboard_add(SCORE_REFUSED, 1);
    access_gate_log_refusal(x, v->status, v->error, true);
    if (bad_token)
        scoreboard_add(SCORE_BAD_TOKENS, 1);
    if (bad_token && over_bad_tokens(x)) {
        exchange_header(x, "Retry-After", "60");
        exchange_error(x, 429, "Too many bad tokens from this address: try again in a minute",
                       NULL);
        return;
    }
    if (v->status == 401)
        exchange_header(x, "WWW-Authenticate", "Bearer");
    exchange_error(x, v->status, v->error, hint_make(x, v, hint, sizeof(hint)));
}

/* --- deciding --------------------------------------------------------------------------------- */

static struct access_rules
rules_now(void)
{
    const struct worker_config *c = worker_config();

    _Static_assert(HANDOFF_ORIGIN_SIZE == POLICY_ORIGIN_SIZE, "one list of origins");
    return (struct access_rules){
        .hosted = c->hosted,
        .terminal = c->terminal,
        .has_token = c->has_token,
        .peers_any = c->peers_any,
        .account_uid = c->account_uid,
        .origins = c->origins,
        .n_origins = c->n_origins,
    };
}

static void
decide(struct exchange *x)
{
    const struct request *r = &x->request;
    const struct access_rules rules = rules_now();
    struct access_request facts = {
        .method = r->method_name,
        .path = r->path,
        .path_len = r->path_len,
        .upgrade = r->upgrade,
        .host = r->host.at,
        .host_len = r->host.len,
        .origin = r->origin.at,
        .origin_len = r->origin.len,
        .fetch_site = r->fetch_site.at,
        .fetch_site_len = r->fetch_site.len,
        .peer = x->conn->peer == PEER_UID ? ACCESS_PEER_UID : ACCESS_PEER_UNKNOWN,
        .peer_uid = x->conn->peer_uid,
    };
    struct access_verdict verdict;

    if (rules.has_token)
        token_examine(x, &facts);
    else
        x->token = TOKENS_NONE;
    verdict = policy_access_decide(&rules, &facts);
    if (rules.n_origins > 0)
        exchange_header(x, "Vary", "Origin");
    if (verdict.cors)
        cors_headers(x, verdict.outcome == ACCESS_PREFLIGHT);
    switch (verdict.outcome) {
    case ACCESS_ALLOW:
        x->let_in = true;
        if (policy_access_is_api(r->path, r->path_len) || r->upgrade)
            x->conn->token = x->token;
        x->admitted(x);
        break;
    case ACCESS_PREFLIGHT:
        exchange_static(x, 204, NULL, NULL, 0);
        break;
    case ACCESS_REFUSE:
        refuse(x, &facts, &verdict);
        break;
    }
}

/* --- the peer's account --------------------------------------------------------------------------- */

static void
on_peer_uid(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_peer_uid *a = answer;
    struct exchange *x = ctx;

    x->ticket = 0;
    exchange_on_gone(x, NULL, NULL);
    if (a && a->status == ANSWER_FAILED) { /* no refusal: nobody reads it, and whose it was is lost */
        exchange_error(x, 503, "The connection was closed before it was known whose it is", NULL);
        return;
    }
    if (!a || (a->status != ANSWER_OK && a->status != ANSWER_NOT_FOUND)) {
        exchange_header(x, "Retry-After", "1");
        exchange_error(x, 503, "The server is restarting a part of itself: try again", NULL);
        return;
    }
    x->conn->peer = a->status == ANSWER_OK ? PEER_UID : PEER_UNKNOWN;
    x->conn->peer_uid = a->uid;
    decide(x);
}

static void
on_gone(struct exchange *x, void *ctx)
{
    broker_cancel(x->ticket);
}

void
access_gate_enter(struct exchange *x, void (*admitted)(struct exchange *x))
{
    const struct worker_config *c = worker_config();
    broker_ticket ticket;
    struct conn *conn = x->conn;

    x->admitted = admitted;
    if (c->has_token || c->peers_any || conn->peer != PEER_NOT_ASKED) {
        decide(x);
        return;
    }
    exchange_on_gone(x, on_gone, NULL);
    ticket = broker_ask_peer_uid(conn->io.fd, on_peer_uid, x);
    /* The answer may have come already, and with it the end of the exchange. */
    if (ticket != 0)
        x->ticket = ticket;
}
