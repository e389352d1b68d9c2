/* Settings that are paths: made absolute once, checked against what is there. */
#include "master/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"

static bool
is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* `base`/`tail` (or `tail` itself when absolute) into `ret`, links resolved where the
 * path exists: what is opened later must not depend on a link that somebody moves. */
static int
join_path(const char *base, const char *tail, char ret[HANDOFF_PATH])
{
    char joined[2 * HANDOFF_PATH];
    char *real;
    int n = tail[0] == '/' ? snprintf(joined, sizeof(joined), "%s", tail)
                           : snprintf(joined, sizeof(joined), "%s/%s", base, tail);

    if (n < 0 || (size_t)n >= sizeof(joined))
        return -ENAMETOOLONG;
    real = realpath(joined, NULL);
    n = snprintf(ret, HANDOFF_PATH, "%s", real != NULL ? real : joined);
    free(real);
    return n < 0 || (size_t)n >= HANDOFF_PATH ? -ENAMETOOLONG : 0;
}

static int
refuse_long(char *error, const char *name)
{
    return settings_refuse(error,
                           "%s names a path longer than %u bytes. Use a shorter one.",
                           name, HANDOFF_PATH - 1);
}

static int
resolve_checkout(struct settings *s, const char *cwd, char *error)
{
    char given[HANDOFF_PATH];

    memcpy(given, s->checkout, sizeof(given));
    if (join_path(cwd, given[0] != '\0' ? given : ".", s->checkout) != 0)
        return refuse_long(error, "SSEBENCH_PATH");
    if (!is_directory(s->checkout))
        return settings_refuse(
            error,
            "SSEBENCH_PATH=%s is not a directory. Set it to an SSEBench "
            "checkout, or start the server in one.",
            settings_show(given));
    return 0;
}

/* Append one root to the NUL-separated list, which stays ended by an empty one. */
static int
add_root(struct settings *s, size_t *used, const char *path)
{
    size_t len = strlen(path);

    if (*used + len + 2 > sizeof(s->roots))
        return -ENAMETOOLONG;
    memcpy(s->roots + *used, path, len + 1);
    *used += len + 1;
    s->roots[*used] = '\0';
    return 0;
}

/* A root that was asked for by name and is not there is a mistake to tell; the
 * checkout's own `results` appears with the first run. */
static int
add_more_root(struct settings *s, size_t *used, const char *cwd, const char *item,
              char *error)
{
    char path[HANDOFF_PATH];

    if (join_path(cwd, item, path) != 0 ||
        (is_directory(path) && add_root(s, used, path) != 0))
        return refuse_long(error, "SSEBENCH_WEBUI_RESULTS");
    if (!is_directory(path))
        return settings_refuse(
            error,
            "SSEBENCH_WEBUI_RESULTS: %s is not a directory. List existing "
            "directories, separated by ':'.",
            settings_show(item));
    return 0;
}

static int
resolve_roots(struct settings *s, const char *cwd, char *error)
{
    char list[HANDOFF_PATH], path[HANDOFF_PATH];
    size_t used = 0, n = 1;
    char *rest = NULL;
    int status = 0;

    if (join_path(s->checkout, "results", path) != 0 || add_root(s, &used, path) != 0)
        return refuse_long(error, "SSEBENCH_PATH");
    memcpy(list, s->more_results, sizeof(list));
    for (char *item = strtok_r(list, ":", &rest); status == 0 && item != NULL;
         item = strtok_r(NULL, ":", &rest)) {
        if (++n > LIMIT_ROOTS)
            return settings_refuse(
                error,
                "SSEBENCH_WEBUI_RESULTS lists more than %u directories. "
                "List fewer.",
                LIMIT_ROOTS - 1);
        status = add_more_root(s, &used, cwd, item, error);
    }
    return status;
}

/* Contract 13.15: the original read a relative path against its own working directory
 * but handed it to a command that runs in SSEBENCH_PATH. One meaning: the checkout's.
 */
static int
resolve_local_tasks(struct settings *s, char *error)
{
    char given[HANDOFF_PATH];

    memcpy(given, s->local_tasks, sizeof(given));
    if (join_path(s->checkout, given[0] != '\0' ? given : "datasets/pilot",
                  s->local_tasks) != 0)
        return refuse_long(error, "SSEBENCH_LOCAL_TASKS");
    return 0;
}

/* Contract 8. The location is kept, not the manifest: it is what `--catalog=` gets. */
static int
resolve_catalog(struct settings *s, const char *cwd, char *error)
{
    char given[HANDOFF_PATH];
    bool old = s->catalog[0] == '\0' && s->catalog_url[0] != '\0';

    s->catalog_deprecated = old;
    memcpy(given, old ? s->catalog_url : s->catalog, sizeof(given));
    if (strncasecmp(given, "http://", 7) == 0 ||
        strncasecmp(given, "https://", 8) == 0) {
        memcpy(s->catalog, given, sizeof(given));
        return 0;
    }
    if (given[0] != '\0')
        return join_path(cwd, given, s->catalog) == 0
                   ? 0
                   : refuse_long(error, "SSEBENCH_CATALOG");
    if (join_path(s->checkout, "datasets/pilot/manifest.json", s->catalog) != 0 ||
        access(s->catalog, F_OK) != 0)
        s->catalog[0] = '\0';
    return 0;
}

static const char *
lookup_absolute(settings_lookup *lookup, const char *name)
{
    const char *value = lookup(name);

    return value != NULL && value[0] == '/' ? value : NULL;
}

/* XDG: a value that is not absolute is as good as unset. systemd's STATE_DIRECTORY
 * comes first, because a unit with StateDirectory= means it. */
static int
resolve_state_dir(settings_lookup *lookup, struct settings *s, const char *cwd,
                  char *error)
{
    const char *systemd = lookup_absolute(lookup, "STATE_DIRECTORY");
    const char *xdg = lookup_absolute(lookup, "XDG_STATE_HOME");
    const char *home = lookup_absolute(lookup, "HOME");
    char given[HANDOFF_PATH];
    int n;

    if (s->state_dir[0] != '\0') {
        memcpy(given, s->state_dir, sizeof(given));
        return join_path(cwd, given, s->state_dir) == 0
                   ? 0
                   : refuse_long(error, "SSEBENCH_WEBUI_STATE_DIR");
    }
    if (home == NULL && getpwuid(geteuid()) != NULL)
        home = getpwuid(geteuid())->pw_dir;
    if (systemd != NULL)
        n = snprintf(given, sizeof(given), "%.*s", (int)strcspn(systemd, ":"), systemd);
    else if (xdg != NULL)
        n = snprintf(given, sizeof(given), "%s/ssebench-webui", xdg);
    else if (home != NULL)
        n = snprintf(given, sizeof(given), "%s/.local/state/ssebench-webui", home);
    else
        return settings_refuse(error,
                               "There is no home directory for the server's state. Set "
                               "SSEBENCH_WEBUI_STATE_DIR.");
    if (n < 0 || (size_t)n >= sizeof(given) || join_path(cwd, given, s->state_dir) != 0)
        return refuse_long(error, "SSEBENCH_WEBUI_STATE_DIR");
    return 0;
}

/* Root's own is the system service's, unless a state directory was named. */
static int
resolve_tokens(struct settings *s, const char *cwd, bool own_state, char *error)
{
    static const char system[] = "/etc/ssebench-webui";
    char given[HANDOFF_PATH];
    int n;

    s->tokens_given = s->tokens_file[0] != '\0';
    memcpy(given, s->tokens_file, sizeof(given));
    /* Not join_path: a link that is replaced (a Secret's) must be followed anew each time. */
    if (s->tokens_given)
        n = given[0] == '/' ? snprintf(s->tokens_file, HANDOFF_PATH, "%s", given)
                            : snprintf(s->tokens_file, HANDOFF_PATH, "%s/%s", cwd, given);
    else if (!own_state && geteuid() == 0 && is_directory(system))
        n = snprintf(s->tokens_file, HANDOFF_PATH, "%s/tokens", system);
    else
        n = snprintf(s->tokens_file, HANDOFF_PATH, "%s/tokens", s->state_dir);
    return n > 0 && (size_t)n < HANDOFF_PATH ? 0 : refuse_long(error, "SSEBENCH_WEBUI_TOKENS");
}

int
settings_resolve_state(settings_lookup *lookup, struct settings *s, const char *cwd,
                       char *error)
{
    bool own_state = s->state_dir[0] != '\0' || lookup_absolute(lookup, "STATE_DIRECTORY") ||
                     lookup_absolute(lookup, "XDG_STATE_HOME");
    int status = resolve_state_dir(lookup, s, cwd, error);

    return status != 0 ? status : resolve_tokens(s, cwd, own_state, error);
}

int
settings_find_cwd(char cwd[HANDOFF_PATH], char *error)
{
    if (getcwd(cwd, HANDOFF_PATH) != NULL && cwd[0] == '/')
        return 0;
    return settings_refuse(error,
                           "The working directory cannot be named (%s). Start "
                           "the server in a directory that exists.",
                           strerror(errno));
}

int
settings_resolve_paths(settings_lookup *lookup, struct settings *s,
                       char ret_error[SETTINGS_ERROR_SIZE])
{
    char cwd[HANDOFF_PATH];
    int status;

    status = settings_find_cwd(cwd, ret_error);
    if (status == 0)
        status = resolve_checkout(s, cwd, ret_error);
    if (status == 0)
        status = resolve_roots(s, cwd, ret_error);
    if (status == 0)
        status = resolve_local_tasks(s, ret_error);
    if (status == 0)
        status = resolve_catalog(s, cwd, ret_error);
    if (status == 0)
        status = settings_resolve_state(lookup, s, cwd, ret_error);
    return status;
}
