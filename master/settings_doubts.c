/* --check: what the server starts with, and what then lists nothing or launches nothing. */
#include "master/settings.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
has(const struct settings *s, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", s->checkout, name);

    return n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool
can_run(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As the broker's exec looks for it: a name in PATH, a relative path in the checkout. */
static bool
can_find(const struct settings *s, const char *program)
{
    const char *dirs = getenv("PATH");
    char path[2 * PATH_MAX];
    size_t len;

    if (strchr(program, '/') != NULL) {
        snprintf(path, sizeof path, "%s%s%s", program[0] == '/' ? "" : s->checkout,
                 program[0] == '/' ? "" : "/", program);
        return can_run(path);
    }
    for (const char *at = dirs != NULL ? dirs : "/bin:/usr/bin"; at != NULL;
         at = at[len] == ':' ? at + len + 1 : NULL) {
        len = strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)(len < PATH_MAX ? len : PATH_MAX),
                 len > 0 ? at : s->checkout, program);
        if (can_run(path))
            return true;
    }
    return false;
}

void
settings_print_doubts(FILE *out, const struct settings *s)
{
    char program[HANDOFF_PATH];

    snprintf(program, sizeof program, "%.*s", (int)strcspn(s->cli, " \t"), s->cli);
    if (!has(s, "agents") && !has(s, "models"))
        fprintf(out,
                "[Server] Warning: SSEBENCH_PATH=%s has neither agents/ nor models/, so nothing "
                "can be launched. Set it to an SSEBench checkout.\n",
                s->checkout);
    if (!can_find(s, program))
        fprintf(out,
                "[Server] Warning: SSEBENCH_CLI: %s is not there, so no run is listed but "
                "finished ones, and nothing can be launched. Set it to the ssebench command.\n",
                settings_show(program));
}
