/* The one place that admits or refuses a request; each rule is a function, in their
 * order. */
#include "policy/access.h"

#include <string.h>

static const char setting_token[] = "SSEBENCH_WEBUI_TOKEN";
static const char setting_origins[] = "SSEBENCH_WEBUI_CORS_ORIGINS";
static const char setting_terminal[] = "SSEBENCH_WEBUI_TERMINAL";
static const char setting_hosted[] = "SSEBENCH_WEBUI_HOSTED";
static const char setting_tokens[] = "SSEBENCH_WEBUI_TOKENS";

/* Fill in a refusal. Returns true, "this rule applies", so that a rule ends with it. */
static bool
refuse(struct access_verdict *v, int status, const char *error, const char *setting)
{
    v->outcome = ACCESS_REFUSE;
    v->status = status;
    v->error = error;
    v->setting = setting;
    return true;
}

/* Is the path `base` itself or below it? Whole segments only. */
static bool
is_at_or_below(const char *path, size_t len, const char *base)
{
    size_t n = strlen(base);

    return len >= n && memcmp(path, base, n) == 0 && (len == n || path[n] == '/');
}

static bool
is_word(const char *at, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(at, word, len) == 0;
}

static bool
path_is(const struct access_request *r, const char *path)
{
    return is_word(r->path, r->path_len, path);
}

static bool
path_below(const struct access_request *r, const char *base)
{
    return is_at_or_below(r->path, r->path_len, base);
}

bool
policy_access_is_api(const char *path, size_t len)
{
    return is_at_or_below(path, len, "/api");
}

/* /api/containers/<x>/opencode and below. Any later segment of that name counts too:
 * the path is decoded, so a %2f inside <x> would otherwise push the word out of its
 * place. */
static bool
path_is_assistant(const struct access_request *r)
{
    static const char base[] = "/api/containers/", word[] = "opencode";
    const char *p = r->path + sizeof(base) - 1, *end = r->path + r->path_len;

    if (r->path_len < sizeof(base) || memcmp(r->path, base, sizeof(base) - 1) != 0)
        return false;
    while (p < end && (p = memchr(p, '/', (size_t)(end - p))) != NULL) {
        p++;
        if (is_at_or_below(p, (size_t)(end - p), word))
            return true;
    }
    return false;
}

/* Rule 1. Without it a page at attacker.example could point that name at 127.0.0.1 and
 * be our own origin (DNS rebinding), so it comes before anything that looks at Origin.
 */
static bool
refused_by_host(const struct access_rules *rules, const struct access_request *r,
                struct access_verdict *v)
{
    struct host h;

    if (rules->has_token)
        return false;
    if (policy_host_parse(r->host, r->host_len, &h) && policy_host_is_loopback(&h))
        return false;
    return refuse(
        v, 403, "Host not allowed: set SSEBENCH_WEBUI_TOKEN to serve other host names",
        setting_token);
}

/* Beyond the public server: other accounts of the machine reach loopback as well. An
 * owner that the kernel does not tell is somebody else. */
static bool
refused_by_peer(const struct access_rules *rules, const struct access_request *r,
                struct access_verdict *v)
{
    if (rules->has_token || rules->peers_any)
        return false;
    if (r->peer == ACCESS_PEER_UID &&
        (r->peer_uid == rules->account_uid || r->peer_uid == 0))
        return false;
    return refuse(
        v, 403,
        "Peer not allowed: this server has no token and answers only the account "
        "that started it; set SSEBENCH_WEBUI_TOKEN",
        setting_token);
}

/* A page's images, frames and links carry no Origin, and some GETs here start a process. Browsers say
 * whose page asks (W3C Fetch Metadata); "none" is the person's own doing. */
static bool
is_foreign_page(const struct access_request *r)
{
    return r->fetch_site != NULL &&
           !is_word(r->fetch_site, r->fetch_site_len, "same-origin") &&
           !is_word(r->fetch_site, r->fetch_site_len, "none");
}

/* Rule 2. "null", an empty value and anything unparsable is a foreign origin. Without one, a
 * foreign page may look, no more. */
static bool
refused_by_origin(const struct access_rules *rules, const struct access_request *r,
                  struct access_verdict *v)
{
    struct origin o;
    struct host h;

    if (r->origin == NULL) {
        if (!is_foreign_page(r) || policy_access_deed(r) == DEED_VIEW)
            return false;
        v->by_fetch_site = true;
    } else if (policy_origin_parse(r->origin, r->origin_len, &o)) {
        if (policy_origin_listed(&o, rules->origins, rules->n_origins)) {
            v->cors = true;
            return false;
        }
        if (policy_host_parse(r->host, r->host_len, &h) &&
            policy_origin_same_host(&o, &h))
            return false;
    }
    return refuse(v, 403, "Origin not allowed", setting_origins);
}

/* Rule 4. No setting admits a request without the token. */
static bool
refused_by_token(const struct access_rules *rules, const struct access_request *r,
                 struct access_verdict *v)
{
    if (!rules->has_token || (r->token_given && r->token_good))
        return false;
    return refuse(v, 401, "Unauthorized", NULL);
}

/* Methods are named that change nothing, so an invented one counts as a change. */
static bool
only_reads(const struct access_request *r)
{
    return strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0 ||
           strcmp(r->method, "OPTIONS") == 0;
}

/* Rule 5. */
static bool
refused_by_hosted(const struct access_rules *rules, const struct access_request *r,
                  struct access_verdict *v)
{
    if (!rules->hosted)
        return false;
    if (!only_reads(r))
        return refuse(v, 403, "This server is read-only", setting_hosted);
    if (path_is_assistant(r) || path_below(r, "/api/pty-debug"))
        return refuse(v, 403, "The assistant is off on a hosted server",
                      setting_hosted);
    if (path_below(r, "/api/launch/doctor"))
        return refuse(v, 403, "This server does not report on its host",
                      setting_hosted);
    return false;
}

/* Rule 6. Only the counts of /api/pty/sessions, a plain read, stay. */
static bool
refused_by_terminal(const struct access_rules *rules, const struct access_request *r,
                    struct access_verdict *v)
{
    if (rules->terminal && !rules->hosted)
        return false;
    if (!path_below(r, "/api/pty") && !path_below(r, "/api/pty-debug"))
        return false;
    if (!r->upgrade && path_is(r, "/api/pty/sessions"))
        return false;
    return refuse(v, 403, "Terminal is disabled on this server",
                  rules->hosted ? setting_hosted : setting_terminal);
}

/* POST /api/containers/<x>/stop and /remove, with one segment in the middle. */
static bool
path_ends_run(const struct access_request *r)
{
    static const char base[] = "/api/containers/";
    const char *id = r->path + sizeof(base) - 1, *end = r->path + r->path_len, *slash;

    if (r->path_len < sizeof(base) || memcmp(r->path, base, sizeof(base) - 1) != 0)
        return false;
    slash = memchr(id, '/', (size_t)(end - id));
    if (slash == NULL)
        return false;
    return (end - slash == 5 && memcmp(slash, "/stop", 5) == 0) ||
           (end - slash == 7 && memcmp(slash, "/remove", 7) == 0);
}

enum deed
policy_access_deed(const struct access_request *r)
{
    if (path_below(r, "/api/pty") || path_below(r, "/api/pty-debug"))
        return only_reads(r) && !r->upgrade && path_is(r, "/api/pty/sessions")
                   ? DEED_VIEW
                   : DEED_TERMINAL;
    if (path_is_assistant(r))
        return DEED_ASSISTANT;
    if (path_below(r, "/api/launch/doctor"))
        return DEED_DOCTOR;
    if (only_reads(r))
        return DEED_VIEW;
    if (strcmp(r->method, "POST") == 0 &&
        (path_is(r, "/api/launch") || path_is(r, "/api/launch/cancel") ||
         path_is(r, "/api/launch/clear") || path_ends_run(r)))
        return DEED_OPERATE;
    return DEED_OTHER;
}

/* Rule 7. Without a token there is but one user, who may do all. */
static bool
refused_by_role(const struct access_rules *rules, const struct access_request *r,
                struct access_verdict *v)
{
    enum deed deed = policy_access_deed(r);

    if (!rules->has_token || policy_role_allows(r->role, deed))
        return false;
    v->needed = policy_role_needed(deed);
    return refuse(v, 403, "This token's role does not allow it", setting_tokens);
}

struct access_verdict
policy_access_decide(const struct access_rules *rules,
                     const struct access_request *request)
{
    struct access_verdict v = {.outcome = ACCESS_ALLOW};

    if (refused_by_host(rules, request, &v) || refused_by_peer(rules, request, &v))
        return v;
    /* A handshake is no page wherever it goes: contract 10.3 names every upgrade. */
    if (!policy_access_is_api(request->path, request->path_len) && !request->upgrade)
        return v;
    if (refused_by_origin(rules, request, &v))
        return v;
    if (strcmp(request->method, "OPTIONS") == 0) {
        v.outcome = ACCESS_PREFLIGHT;
        return v;
    }
    if (refused_by_token(rules, request, &v) || refused_by_hosted(rules, request, &v) ||
        refused_by_terminal(rules, request, &v) || refused_by_role(rules, request, &v))
        return v;
    return v;
}
