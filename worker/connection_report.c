/* GET /api/connection: how this request looks from here, for people behind proxies. */
#include "worker/connection_report.h"

#include <string.h>

#include "common/json_write.h"
#include "policy/token_list.h"
#include "worker/http.h"
#include "worker/tokens.h"
#include "worker/worker.h"

static void
put_span(struct json_writer *w, const char *name, struct span s)
{
    json_key(w, name);
    if (s.at == NULL)
        json_null(w);
    else
        json_string(w, s.at, s.len);
}

static void
put_origins(struct json_writer *w, const struct worker_config *config)
{
    json_key(w, "allowedOrigins");
    json_array_open(w);
    for (uint32_t i = 0; i < config->n_origins; i++)
        json_cstring(w, config->origins[i]);
    json_array_close(w);
}

/* Whose token it is, what it allows, when it ends. */
static void
put_token(struct json_writer *w, const struct exchange *x)
{
    const struct handoff_token *token = tokens_find(x->token);
    char end[POLICY_TOKEN_TIME_SIZE];

    json_key(w, "role");
    json_cstring(w, policy_role_name(exchange_role(x)));
    json_key(w, "tokenName");
    json_cstring(w, token != NULL ? token->name : NULL);
    json_key(w, "tokenExpires");
    if (token != NULL && token->expires_s != 0)
        policy_token_time(token->expires_s, end);
    json_cstring(w, token != NULL && token->expires_s != 0 ? end : NULL);
}

/* What the request said. The scheme is ours: TLS ends before us, in a proxy if at all. */
static void
put_request(struct json_writer *w, const struct exchange *x)
{
    const struct request *r = exchange_request(x);

    put_span(w, "host", r->host);
    put_span(w, "origin", r->origin);
    put_span(w, "forwardedFor", r->forwarded_for);
    json_key(w, "scheme");
    json_cstring(w, "http");
    json_key(w, "peer");
    json_cstring(w, connection_slot_address(x->conn->slot));
    json_key(w, "peerUid");
    if (x->conn->peer == PEER_UID)
        json_int(w, x->conn->peer_uid);
    else
        json_null(w);
    json_key(w, "tokenFrom");
    json_cstring(w, r->authorization.at != NULL ? "header" : "none");
    put_token(w, x);
}

void
handle_connection(struct exchange *x)
{
    const struct worker_config *config = worker_config();
    struct json_writer w;
    struct buf body;

    buf_init(&body, 0);
    json_begin(&w, &body);
    json_object_open(&w);
    put_request(&w, x);
    json_key(&w, "basePath");
    json_cstring(&w, config->base_path[0] != '\0' ? config->base_path : "/");
    json_key(&w, "tokenRequired");
    json_bool(&w, config->has_token);
    json_key(&w, "hosted");
    json_bool(&w, config->hosted);
    json_key(&w, "terminal");
    json_bool(&w, config->terminal && !config->hosted);
    put_origins(&w, config);
    json_key(&w, "version");
    json_cstring(&w, config->server_version);
    json_object_close(&w);
    exchange_json(x, 200, &body);
}
