/* Who did what from where with what result: the facts of log lines about requests. */
#include "worker/audit.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "policy/access.h"
#include "worker/http.h"
#include "worker/tokens.h"
#include "worker/worker.h"

#define READS_LOGGED 100u /* lines in a second */

static bool
is_proxy(const char *address)
{
    const struct worker_config *c = worker_config();

    for (uint32_t i = 0; i < c->n_proxies; i++)
        if (strcmp(c->proxies[i], address) == 0)
            return true;
    return false;
}

/* The last entry is what our own proxy wrote; those before it may be anyone's. */
static struct span
last_entry(struct span list)
{
    const char *comma = memrchr(list.at, ',', list.len);
    struct span s = list;

    if (comma) {
        s.at = comma + 1;
        s.len = (size_t)(list.at + list.len - s.at);
    }
    while (s.len > 0 && (*s.at == ' ' || *s.at == '\t'))
        s.at++, s.len--;
    while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* Only what is an address, written the one way. */
static bool
address_from(struct span s, char ret_text[AUDIT_TEXT])
{
    char text[INET6_ADDRSTRLEN];
    uint8_t bytes[16];
    int family;

    if (s.len == 0 || s.len >= sizeof(text) || memchr(s.at, '\0', s.len))
        return false;
    memcpy(text, s.at, s.len);
    text[s.len] = '\0';
    family = strchr(text, ':') ? AF_INET6 : AF_INET;
    return inet_pton(family, text, bytes) == 1 &&
           inet_ntop(family, bytes, ret_text, AUDIT_TEXT) != NULL;
}

void
audit_client(const struct exchange *x, char ret_text[AUDIT_TEXT])
{
    const char *own = connection_slot_address(x->conn->slot);
    struct span list = x->request.forwarded_for;

    if (list.at && is_proxy(own) && address_from(last_entry(list), ret_text))
        return;
    snprintf(ret_text, AUDIT_TEXT, "%s", own);
}

void
audit_who(const struct exchange *x, char ret_text[AUDIT_WHO])
{
    const struct handoff_token *token = tokens_find(x->token);

    if (token)
        snprintf(ret_text, AUDIT_WHO, "who=%s role=%s", token->name,
                 policy_role_name((enum role)token->role));
    else if (worker_config()->has_token)
        snprintf(ret_text, AUDIT_WHO, "who=unknown");
    else if (x->conn->peer == PEER_UID)
        snprintf(ret_text, AUDIT_WHO, "who=uid:%u", (unsigned)x->conn->peer_uid);
    else
        snprintf(ret_text, AUDIT_WHO, "who=anyone");
}

/* A terminal opens with GET, but is the largest change of all. */
static bool
may_change(const struct exchange *x, int status)
{
    enum request_method m = x->request.method;

    if (status == 101)
        return strncmp(x->request.path, "/api/pty", 8) == 0;
    return m != METHOD_GET && m != METHOD_HEAD && m != METHOD_OPTIONS;
}

/* Reads come by the thousand; their lines must leave room on the way to the master for those of
 * changes. What is left out is counted. */
static bool
may_log_read(void)
{
    static double since_s;
    static unsigned n_logged, n_left_out;
    double now_s = worker_now_s();

    if (now_s - since_s >= 1.0) {
        if (n_left_out > 0)
            log_event(LOG_LEVEL_INFO, "access-more", "count=%u", n_left_out);
        since_s = now_s;
        n_logged = n_left_out = 0;
    }
    if (n_logged < READS_LOGGED)
        n_logged++;
    else
        n_left_out++;
    return n_left_out == 0;
}

void
audit_answer(const struct exchange *x, int status)
{
    char from[AUDIT_TEXT], who[AUDIT_WHO];

    bool changes = may_change(x, status);

    if (!x->let_in || (!changes && (!worker_config()->access_log ||
                                    !policy_access_is_api(x->request.path, x->request.path_len))))
        return;
    if (!changes && !may_log_read())
        return;
    audit_client(x, from);
    audit_who(x, who);
    log_event(LOG_LEVEL_INFO, changes ? "audit" : "access", "%s from=%s method=%s path=%s result=%d", who, from,
              x->request.method_name, log_quote(x->request.path, x->request.path_len),
              status);
}
