/* Reading again what may change while the server runs; a bad file keeps the old state. */
#include "master/reload.h"

#include <string.h>

#include "common/log.h"

static void
log_failure(const char *what, const char *error)
{
    log_event(LOG_LEVEL_ERROR, "reload-failed", "%s=kept reason=%s", what,
              log_quote(error, strlen(error)));
}

static bool
reload_single(const struct settings *s, struct handover *h)
{
    char token[POLICY_TOKEN_MAX], error[SETTINGS_ERROR_SIZE];
    bool changed = false;

    if (s->token_file[0] == '\0')
        return false;
    if (settings_read_token_file(s->token_file, token, error) == 0)
        changed = handover_set_tokens(h, token, NULL);
    else
        log_failure("token", error);
    explicit_bzero(token, sizeof(token));
    return changed;
}

/* One that went away is a fault, not the end of asking for tokens: whoever can read the state
 * directory must not open the server by removing a file. */
static bool
reload_tokens(const struct settings *s, struct handover *h)
{
    static struct token_list list;
    char error[SETTINGS_ERROR_SIZE];
    bool there, changed;

    if (settings_read_tokens(s->tokens_file, &list, &there, error) != 0) {
        log_failure("tokens", error);
        return false;
    }
    if (!there && h->tokens_there) {
        log_failure("tokens", "The file is gone. Revoke tokens with: ssebench-webui token "
                              "revoke NAME");
        return false;
    }
    if (!there)
        return false;
    changed = !h->worker.has_token;
    h->tokens_there = true;
    h->worker.has_token = h->broker.has_token = true;
    return handover_set_tokens(h, NULL, &list) || changed;
}

static bool
reload_origins(const struct settings *s, struct handover *h)
{
    static char origins[HANDOFF_ORIGINS][HANDOFF_ORIGIN_SIZE];
    char error[SETTINGS_ERROR_SIZE];
    uint32_t n = 0;
    bool changed;

    if (s->origins_file[0] == '\0')
        return false;
    memset(origins, 0, sizeof(origins));
    memcpy(origins, s->origins, s->n_origins_set * sizeof(origins[0]));
    if (settings_read_origins_file(s, origins, &n, error) != 0) {
        log_failure("origins", error);
        return false;
    }
    changed = n != h->worker.n_origins ||
              memcmp(origins, h->worker.origins, n * sizeof(origins[0])) != 0;
    h->worker.n_origins = n;
    memcpy(h->worker.origins, origins, sizeof(origins));
    return changed;
}

static const char *
how(bool changed)
{
    return changed ? "changed" : "same";
}

/* Does one of those that were in force stand there no more, or not as it did? */
static bool
any_gone(const struct broker_config *before, const struct broker_config *now)
{
    for (uint32_t i = 0; i < before->n_tokens; i++) {
        uint32_t k = 0;

        while (k < now->n_tokens &&
               memcmp(&before->tokens[i], &now->tokens[k], sizeof(now->tokens[k])) != 0)
            k++;
        if (k == now->n_tokens)
            return true;
    }
    return before->has_token != now->has_token;
}

bool
reload_files(const struct settings *s, struct handover *h)
{
    static struct broker_config before; /* large: not on the stack */
    bool single, named, origins, gone;

    before = h->broker;
    single = reload_single(s, h);
    named = reload_tokens(s, h);
    origins = reload_origins(s, h);
    gone = any_gone(&before, &h->broker);
    explicit_bzero(&before, sizeof(before));
    log_event(LOG_LEVEL_INFO, "reloaded", "token=%s tokens=%s origins=%s", how(single),
              how(named), how(origins));
    return gone;
}
