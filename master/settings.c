/* Reading all settings, in the order of the table, and what follows from them. */
#include "master/settings.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>

#include "common/limits.h"
#include "master/settings_value.h"

int
settings_refuse(char ret_error[SETTINGS_ERROR_SIZE], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ret_error, SETTINGS_ERROR_SIZE, format, args);
    va_end(args);
    return -EINVAL;
}

const char *
settings_show(const char *value)
{
    static char shown[84];
    size_t n = 0;

    for (; value[n] != '\0' && n < 80; n++)
        shown[n] = value[n] >= 0x20 && value[n] < 0x7f ? value[n] : '?';
    strcpy(shown + n, value[n] != '\0' ? "..." : "");
    return shown;
}

/* Cores this process may use: in a container with a CPU set, fewer than the machine
 * has. */
static uint32_t
count_cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

    return n < 1 ? 1 : (uint32_t)n;
}

static void
fill_computed(struct settings *s)
{
    uint32_t cores = count_cores();

    if (s->workers == 0) {
        s->workers = cores < 2 ? 2 : cores;
        if (s->workers > LIMIT_WORKERS)
            s->workers = LIMIT_WORKERS;
    }
    if (s->max_launches == 0)
        s->max_launches = 4 * cores;
    if (s->litellm_port != 0 && s->litellm_url[0] == '\0')
        snprintf(s->litellm_url, sizeof(s->litellm_url), "http://127.0.0.1:%u",
                 s->litellm_port);
}

static int
read_token_source(struct settings *s, char *error)
{
    if (s->token_file[0] == '\0')
        return 0;
    if (s->token[0] != '\0')
        return settings_refuse(error,
                               "SSEBENCH_WEBUI_TOKEN and SSEBENCH_WEBUI_TOKEN_FILE are "
                               "both set. Set one of them.");
    return settings_read_token_file(s->token_file, s->token, error);
}

/* What is in files beside: read last, when nothing else is wrong. */
static int
read_files(struct settings *s, char *error)
{
    int status = settings_read_tokens(s->tokens_file, &s->tokens, &s->tokens_there, error);

    s->n_origins_set = s->n_origins;
    if (status == 0 && s->origins_file[0] != '\0')
        status = settings_read_origins_file(s, s->origins, &s->n_origins, error);
    return status;
}

bool
settings_wants_token(const struct settings *s)
{
    return s->token[0] != '\0' || s->tokens_given || s->tokens_there;
}

int
settings_locate(settings_lookup *lookup, struct settings *ret,
                char ret_error[SETTINGS_ERROR_SIZE])
{
    const struct setting *row;
    char cwd[HANDOFF_PATH];
    int status = 0;

    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; status == 0 && (row = settings_row(i)) != NULL; i++)
        if (row->offset == offsetof(struct settings, state_dir) ||
            row->offset == offsetof(struct settings, tokens_file))
            status = settings_read_value(row, lookup(row->name), ret, ret_error);
    if (status == 0)
        status = settings_find_cwd(cwd, ret_error);
    return status != 0 ? status : settings_resolve_state(lookup, ret, cwd, ret_error);
}

int
settings_read(settings_lookup *lookup, struct settings *ret,
              char ret_error[SETTINGS_ERROR_SIZE])
{
    const struct setting *row;
    int status = 0;

    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; status == 0 && (row = settings_row(i)) != NULL; i++)
        status = settings_read_value(row, lookup(row->name), ret, ret_error);
    if (status == 0)
        status = read_token_source(ret, ret_error);
    if (status == 0)
        status = settings_resolve_paths(lookup, ret, ret_error);
    if (status == 0)
        status = read_files(ret, ret_error);
    if (status == 0)
        fill_computed(ret);
    if (status != 0)
        explicit_bzero(ret->token, sizeof(ret->token));
    return status;
}
