/* Every variable the server knows, as data: name, kind, limits, default, meaning. */
#include "master/settings.h"

#include "common/limits.h"

#define AT(field) offsetof(struct settings, field)
#define ROOM(field) (sizeof(((struct settings *)0)->field) - 1)

static const struct setting table[] = {
    {"PORT", SETTING_NUMBER, false, AT(port), 0, 65535, "3001", NULL,
     "TCP port. `0` picks a free one, which is printed."},
    {"SSEBENCH_WEBUI_HOST", SETTING_HOST, false, AT(host), 0, ROOM(host), "127.0.0.1",
     NULL,
     "Address to listen on: an IPv4 or IPv6 address, a name, or `unix:/path` for a "
     "socket "
     "file (mode 0600). Any address that is not loopback needs a token. `HOST` is not "
     "read."},
    {"SSEBENCH_WEBUI_TOKEN", SETTING_TOKEN, true, AT(token), 0, ROOM(token), NULL,
     "none",
     "Access token that every API request and WebSocket must carry: at least 16 "
     "characters "
     "without spaces."},
    {"SSEBENCH_WEBUI_TOKEN_FILE", SETTING_TEXT, false, AT(token_file), 0,
     ROOM(token_file), NULL, "none",
     "File that holds the token, so that it need not stand in an environment. Others "
     "must not "
     "be able to read it. Read again on SIGHUP."},
    {"SSEBENCH_WEBUI_TOKENS", SETTING_TEXT, false, AT(tokens_file), 0,
     ROOM(tokens_file), NULL,
     "`tokens` in the state directory; root's: `/etc/ssebench-webui/tokens`",
     "File of named tokens with a role each, which `ssebench-webui token` writes. Once it is "
     "there, or named here, every request needs a token. Read again on SIGHUP."},
    {"SSEBENCH_WEBUI_CORS_ORIGINS", SETTING_ORIGINS, false, AT(origins), 0,
     HANDOFF_ORIGINS, NULL, "none",
     "Other origins that may call the API, comma-separated, each "
     "`scheme://host[:port]`."},
    {"SSEBENCH_WEBUI_CORS_ORIGINS_FILE", SETTING_TEXT, false, AT(origins_file), 0,
     ROOM(origins_file), NULL, "none",
     "File with further such origins, one a line; `#` begins a comment. Others must not be "
     "able to change it. Read again on SIGHUP."},
    {"SSEBENCH_WEBUI_PEERS", SETTING_PEERS, false, AT(peers_any), 0, 0, "own", NULL,
     "Whom a server without a token answers: `own`, the account that started it and "
     "root; or "
     "`any`, every account of the machine (for a proxy that runs as another account)."},
    {"SSEBENCH_WEBUI_PROXIES", SETTING_PROXIES, false, AT(proxies), 0, HANDOFF_PROXIES,
     NULL, "none",
     "Proxies whose `X-Forwarded-For` is believed, for logs and limits only: addresses, "
     "comma-separated; `unix` for those that come by a socket file."},
    {"SSEBENCH_WEBUI_TERMINAL", SETTING_FLAG, false, AT(terminal), 0, 0, "1", NULL,
     "Allow a shell in a run's container."},
    {"SSEBENCH_WEBUI_RECORD", SETTING_FLAG, false, AT(record), 0, 0, "0", NULL,
     "Record the output of terminals in the state directory."},
    {"SSEBENCH_WEBUI_HOSTED", SETTING_FLAG, false, AT(hosted), 0, 0, "0", NULL,
     "Only show runs: no launch, stop, remove, shell or assistant."},
    {"SSEBENCH_WEBUI_BASE_PATH", SETTING_BASE, false, AT(base_path), 0, ROOM(base_path),
     NULL, "none",
     "Prefix of every path, page included, for example `/bench` behind a proxy."},
    {"SSEBENCH_WEBUI_WORKERS", SETTING_NUMBER, false, AT(workers), 1, LIMIT_WORKERS,
     NULL, "one per core, at least 2", "Confined processes that talk to clients."},
    {"SSEBENCH_WEBUI_MAX_CONNECTIONS", SETTING_NUMBER, false, AT(max_connections), 16,
     1000000, "16384", NULL, "Connections open at once, over all workers."},
    {"SSEBENCH_WEBUI_MAX_LAUNCHES", SETTING_NUMBER, false, AT(max_launches), 1, 10000,
     NULL, "4 per core", "Launched runs at once; further ones wait their turn."},
    {"SSEBENCH_WEBUI_RESULTS", SETTING_TEXT, false, AT(more_results), 0,
     ROOM(more_results), NULL, "none",
     "Further directories with finished runs, separated by `:`. "
     "`$SSEBENCH_PATH/results` is "
     "always the first."},
    {"SSEBENCH_WEBUI_STATE_DIR", SETTING_TEXT, false, AT(state_dir), 0, ROOM(state_dir),
     NULL, "`$XDG_STATE_HOME/ssebench-webui`, else `~/.local/state/ssebench-webui`",
     "Where launches keep their output and outcome. Made on start, mode 0700."},
    {"SSEBENCH_WEBUI_USER", SETTING_WORD, false, AT(user), 0, ROOM(user), NULL,
     "for workers: `ssebench-webui` if there is such an account, else `nobody`",
     "Started as root: the account that workers and broker become. Unset, only the "
     "workers "
     "change account; the broker stays root, since it runs the command and its "
     "Docker."},
    {"SSEBENCH_WEBUI_LITELLM_URL", SETTING_URL, false, AT(litellm_url), 0,
     ROOM(litellm_url), NULL, "`http://127.0.0.1:$LITELLM_PORT`",
     "LiteLLM proxy that makes the assistant's keys, where it is not on loopback."},
    {"SSEBENCH_WEBUI_ACCESS_LOG", SETTING_FLAG, false, AT(access_log), 0, 0, "0", NULL,
     "Log admitted requests and WebSockets of the API too, as `access`; past 100 a second of a "
     "worker they are counted (`access-more`). Changes (`audit`) and refusals (`refused`) are "
     "always logged."},
    {"SSEBENCH_WEBUI_LOG_LEVEL", SETTING_LEVEL, false, AT(log_level), 0, 0, "info",
     NULL, "`error`, `warning`, `info` or `debug`."},
    {"SSEBENCH_CLI", SETTING_TEXT, false, AT(cli), 0, ROOM(cli), "uv run ssebench",
     NULL,
     "The command, as words separated by blanks; there is no shell and no quoting."},
    {"SSEBENCH_PATH", SETTING_TEXT, false, AT(checkout), 0, ROOM(checkout), NULL,
     "the working directory", "The SSEBench checkout; the command runs there."},
    {"SSEBENCH_LOCAL_TASKS", SETTING_TEXT, false, AT(local_tasks), 0, ROOM(local_tasks),
     NULL, "`$SSEBENCH_PATH/datasets/pilot`",
     "Data set with local tasks. A relative path is read from `$SSEBENCH_PATH`."},
    {"SSEBENCH_CATALOG", SETTING_TEXT, false, AT(catalog), 0, ROOM(catalog), NULL,
     "`$SSEBENCH_PATH/datasets/pilot/manifest.json` if it exists",
     "Task catalog: a URL, a manifest file or a directory with one."},
    {"SSEBENCH_CATALOG_URL", SETTING_TEXT, false, AT(catalog_url), 0, ROOM(catalog_url),
     NULL, "none", "Old name of `SSEBENCH_CATALOG`."},
    {"PTY_ENABLE_CLEANUP", SETTING_FLAG, false, AT(pty_cleanup), 0, 0, "1", NULL,
     "End terminals that nobody watches."},
    {"PTY_CLEANUP_INTERVAL", SETTING_NUMBER, false, AT(pty_interval_ms), 100, 86400000,
     "30000", NULL, "Milliseconds between two looks for such terminals."},
    {"PTY_ORPHAN_THRESHOLD", SETTING_NUMBER, false, AT(pty_orphan_ms), 0, 604800000,
     "300000", NULL, "Milliseconds without a viewer after which a terminal is ended."},
    {"SSEBENCH_BACKEND", SETTING_WORD, false, AT(backend), 0, ROOM(backend), NULL,
     "docker", "Back end of the command; shown by the server and passed on."},
    {"LITELLM_PORT", SETTING_NUMBER, false, AT(litellm_port), 1, 65535, NULL,
     "`.env`, else 4000", "Port of the LiteLLM proxy on this machine."},
    {"LITELLM_MASTER_KEY", SETTING_PASSED, true, 0, 0, 0, NULL, "`.env`",
     "Master key of the LiteLLM proxy, for the assistant. Stays in the broker."},
    {"SSEBENCH_PREBUILT", SETTING_PASSED, false, 0, 0, 0, NULL, "none",
     "Passed on to the command: use prebuilt images."},
    {"SSEBENCH_REGISTRY", SETTING_PASSED, false, 0, 0, 0, NULL, "none",
     "Passed on to the command: where images come from."},
    {"SSEBENCH_EGRESS", SETTING_PASSED, false, 0, 0, 0, NULL, "none",
     "Passed on to the command: `restricted` or `open`."},
    {"SSEBENCH_K8S_*", SETTING_PASSED, false, 0, 0, 0, NULL, "none",
     "Passed on to the command: settings of its Kubernetes back end."},
    {"COMPOSE_PROJECT_NAME", SETTING_PASSED, false, 0, 0, 0, NULL, "none",
     "Passed on to the command: name of its Compose project."},
    {"LITELLM_*", SETTING_PASSED, false, 0, 0, 0, NULL, "none",
     "Passed on to the command: settings of its LiteLLM proxy."},
};

const struct setting *
settings_row(size_t index)
{
    return index < sizeof(table) / sizeof(table[0]) ? &table[index] : NULL;
}
