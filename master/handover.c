/* What the children are given: their programs, their configurations, the scoreboard. */
#include "master/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/messages.h"
#include "common/scoreboard.h"
#include "master/spawn.h"

#define SPARE_FDS                                                                      \
    64u /* of a worker: loop, channels, listeners, brokered descriptors                \
         */

const char *
handover_version(void)
{
    return SSEBENCH_WEBUI_VERSION;
}

/* A role program: in the build tree beside our own executable, in an installed tree that
 * was moved as a whole, or where it was installed. */
static int
find_program(const char *own_dir, const char *tree_dir, const char *name,
             char ret[HANDOFF_PATH])
{
    snprintf(ret, HANDOFF_PATH, "%s/%s/%s", own_dir, tree_dir, name);
    if (access(ret, X_OK) == 0)
        return 0;
    snprintf(ret, HANDOFF_PATH, "%s/../libexec/ssebench-webui/%s", own_dir, name);
    if (access(ret, X_OK) == 0)
        return 0;
    snprintf(ret, HANDOFF_PATH, "%s/%s", SSEBENCH_WEBUI_LIBEXECDIR, name);
    return access(ret, X_OK) == 0 ? 0 : -ENOENT;
}

/* Where our own executable lies; "" if that cannot be told. */
static void
find_own_dir(char own[HANDOFF_PATH / 2])
{
    ssize_t n = readlink("/proc/self/exe", own, HANDOFF_PATH / 2 - 1);
    char *slash;

    own[n > 0 ? n : 0] = '\0';
    slash = strrchr(own, '/');
    if (slash != NULL)
        *slash = '\0';
}

int
handover_find_program(const char *tree_dir, const char *name, char ret[HANDOFF_PATH])
{
    char own[HANDOFF_PATH / 2], found[HANDOFF_PATH];
    int error;

    find_own_dir(own);
    error = find_program(own, tree_dir, name, found);
    if (error == 0)
        memcpy(ret, found, sizeof(found));
    return error;
}

static int
find_programs(struct handover *h, char *error)
{
    static const char keeper[] = "/ssebench-webui-keeper";
    char own[HANDOFF_PATH / 2];
    ssize_t n;
    char *slash;

    find_own_dir(own);
    if (find_program(own, "worker", "ssebench-webui-worker", h->worker_program) != 0 ||
        find_program(own, "broker", "ssebench-webui-broker", h->broker_program) != 0)
        return settings_refuse(
            error,
            "The programs of the server are neither beside %s nor in "
            "%s. Build all of it (ninja -C build), or install it.",
            settings_show(own), SSEBENCH_WEBUI_LIBEXECDIR);
    slash = strrchr(h->broker_program, '/');
    n = slash - h->broker_program;
    if ((size_t)n + sizeof(keeper) > sizeof(h->broker.keeper))
        return settings_refuse(error, "The path of the server's programs is too long.");
    memcpy(h->broker.keeper, h->broker_program, (size_t)n);
    memcpy(h->broker.keeper + n, keeper, sizeof(keeper));
    return 0;
}

/* Each worker's page, fixed in size for good: a worker cannot shrink it under the
 * others. */
static int
make_scoreboard(uint32_t n_pages)
{
    int fd = memfd_create("scoreboard", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)n_pages * SCOREBOARD_PAGE_SIZE) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        close(fd);
        return -errno;
    }
    return spawn_raise_fd(fd);
}

/* Every worker needs a descriptor per connection; what the hard limit cannot give must
 * not be promised, or a full worker would spin on EMFILE. */
static uint32_t
share_connections(const struct settings *s)
{
    uint32_t share = (s->max_connections + s->workers - 1) / s->workers;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY &&
        share + SPARE_FDS > limit.rlim_max)
        share = limit.rlim_max > 2 * SPARE_FDS ? (uint32_t)limit.rlim_max - SPARE_FDS
                                               : SPARE_FDS;
    return share;
}

static void
fill_worker(const struct settings *s, const struct account *a,
            const struct listeners *l, struct worker_config *c)
{
    c->version = HANDOFF_VERSION;
    c->n_workers = s->workers;
    c->n_listeners = (uint32_t)l->n;
    c->max_connections = share_connections(s);
    c->max_per_address = (LIMIT_CONNECTIONS_PER_ADDRESS + s->workers - 1) / s->workers;
    c->account_uid = a->own_uid;
    c->drop_uid = a->worker_uid;
    c->drop_gid = a->worker_gid;
    c->hosted = s->hosted;
    c->terminal = s->terminal && !s->hosted;
    c->peers_any = s->peers_any;
    c->access_log = s->access_log;
    c->listens_unix = l->is_unix;
    c->log_level = (uint8_t)s->log_level;
    c->n_origins = s->n_origins;
    memcpy(c->origins, s->origins, sizeof(c->origins));
    c->n_proxies = s->n_proxies;
    memcpy(c->proxies, s->proxies, sizeof(c->proxies));
    message_string_set(c->base_path, sizeof(c->base_path), s->base_path);
    message_string_set(c->backend, sizeof(c->backend), s->backend);
    message_string_set(c->server_version, sizeof(c->server_version),
                       handover_version());
}

static void
fill_broker(const struct settings *s, const struct account *a, struct broker_config *c)
{
    c->version = HANDOFF_VERSION;
    c->n_workers = s->workers;
    c->hosted = s->hosted;
    c->terminal = s->terminal && !s->hosted;
    c->record = s->record;
    c->log_level = (uint8_t)s->log_level;
    c->drop_uid = a->broker_uid;
    c->drop_gid = a->broker_gid;
    message_string_set(c->cli, sizeof(c->cli), s->cli);
    message_string_set(c->checkout, sizeof(c->checkout), s->checkout);
    memcpy(c->roots, s->roots, sizeof(c->roots));
    message_string_set(c->local_tasks, sizeof(c->local_tasks), s->local_tasks);
    message_string_set(c->catalog, sizeof(c->catalog), s->catalog);
    message_string_set(c->state_dir, sizeof(c->state_dir), s->state_dir);
    message_string_set(c->litellm_url, sizeof(c->litellm_url), s->litellm_url);
    c->pty_cleanup = s->pty_cleanup;
    c->pty_cleanup_interval_ms = s->pty_interval_ms;
    c->pty_orphan_threshold_ms = s->pty_orphan_ms;
    c->max_launches = s->max_launches;
}

/* The environment block stays readable in /proc for whoever may read it there, so the
 * token's bytes are overwritten where they stand before the variable is removed. */
static void
wipe_token_variable(const char *token_file)
{
    char *value = getenv("SSEBENCH_WEBUI_TOKEN");
    const char *credentials = getenv("CREDENTIALS_DIRECTORY"); /* systemd's LoadCredential= */

    if (value != NULL)
        explicit_bzero(value, strlen(value));
    unsetenv("SSEBENCH_WEBUI_TOKEN");
    unsetenv("SSEBENCH_WEBUI_TOKEN_FILE"); /* where they lie is no concern of a child
                                              either */
    unsetenv("SSEBENCH_WEBUI_TOKENS");
    if (credentials != NULL && strncmp(token_file, credentials, strlen(credentials)) == 0)
        unsetenv("CREDENTIALS_DIRECTORY");
}

int
handover_new(struct settings *s, const struct account *a, const struct listeners *l,
             struct handover *ret, char ret_error[SETTINGS_ERROR_SIZE])
{
    int status;

    memset(ret, 0, sizeof(*ret));
    fill_worker(s, a, l, &ret->worker);
    fill_broker(s, a, &ret->broker);
    ret->tokens_there = s->tokens_there;
    ret->worker.has_token = ret->broker.has_token = settings_wants_token(s);
    status = find_programs(ret, ret_error);
    if (status == 0 && getrandom(ret->worker.token_key, sizeof(ret->worker.token_key),
                                 0) != (ssize_t)sizeof(ret->worker.token_key))
        status = settings_refuse(ret_error, "The kernel gives no random bytes: %s.",
                                 strerror(errno));
    if (status == 0)
        handover_set_tokens(ret, s->token, &s->tokens);
    explicit_bzero(s->token, sizeof(s->token));
    wipe_token_variable(s->token_file);
    if (status != 0)
        return status;
    ret->scoreboard = make_scoreboard(s->workers + 1);
    if (ret->scoreboard < 0)
        return settings_refuse(ret_error, "No memory file for the counters: %s.",
                               strerror(-ret->scoreboard));
    return 0;
}

static int
seal_raised(const char *name, const void *bytes, size_t size)
{
    int fd = handoff_seal(name, bytes, size);

    return fd < 0 ? fd : spawn_raise_fd(fd);
}

int
handover_worker_config(const struct handover *h, uint32_t number)
{
    struct worker_config config = h->worker;

    config.number = number;
    return seal_raised("worker-config", &config, sizeof(config));
}

int
handover_broker_config(const struct handover *h)
{
    return seal_raised("broker-config", &h->broker, sizeof(h->broker));
}

uint32_t
handover_worker_fds(const struct handover *h)
{
    return h->worker.max_connections + SPARE_FDS;
}
