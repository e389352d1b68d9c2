/*
 * From checked fields to an argument vector.
 * Distrusts: the fields once more: a value stands behind its own `--name=`, so that whatever
 * it is it can be no option.
 */
#include "broker/launch_argv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
add_borrowed(struct launch_argv *v, char *word)
{
    if (v->n >= LAUNCH_ARGV_MAX)
        return -E2BIG;
    v->at[v->n++] = word;
    v->at[v->n] = NULL;
    v->n_borrowed = v->n;
    return 0;
}

/* The first error stays: one check at the end. */
static void __attribute__((format(printf, 3, 4)))
add(struct launch_argv *v, int *r, const char *format, ...)
{
    va_list args;
    char *word = NULL;

    if (*r < 0)
        return;
    if (v->n >= LAUNCH_ARGV_MAX) {
        *r = -E2BIG;
        return;
    }
    va_start(args, format);
    if (vasprintf(&word, format, args) < 0)
        *r = -ENOMEM;
    va_end(args);
    if (*r < 0)
        return;
    v->at[v->n++] = word;
    v->at[v->n] = NULL;
}

int
launch_argv_build(struct launch_argv *v, char *const *before, const struct launch_fields *f,
                  const char *run_id, const char *local, const char *catalog)
{
    int r = 0;

    *v = (struct launch_argv){0};
    while (r == 0 && *before != NULL)
        r = add_borrowed(v, *before++);
    add(v, &r, "run");
    if (!policy_launch_is_reference(f))
        add(v, &r, "--model=%s", f->model);
    add(v, &r, "--agent=%s", f->agent);
    add(v, &r, "--task=%s", f->task);
    add(v, &r, "--mode=%s", f->mode == LAUNCH_MODE_SIDECAR ? "sidecar" : "sandbox");
    add(v, &r, "--run-id=%s", run_id);
    add(v, &r, "--keep-container");
    if (f->source == LAUNCH_SOURCE_LOCAL)
        add(v, &r, "--local=%s", local);
    else
        add(v, &r, "--catalog=%s", catalog);
    if (f->timeout != LAUNCH_NUMBER_ABSENT)
        add(v, &r, "--timeout=%d", f->timeout);
    if (f->difficulty != LAUNCH_NUMBER_ABSENT)
        add(v, &r, "--difficulty=%d", f->difficulty);
    if (f->egress != LAUNCH_EGRESS_ABSENT)
        add(v, &r, "--egress=%s", f->egress == LAUNCH_EGRESS_OPEN ? "open" : "restricted");
    for (unsigned i = 0; i < f->n_plugins; i++)
        add(v, &r, "--plugin=%s", f->plugins[i]);
    return r;
}

void
launch_argv_done(struct launch_argv *v)
{
    for (size_t i = v->n_borrowed; i < v->n; i++)
        free(v->at[i]);
    *v = (struct launch_argv){0};
}

void
launch_argv_join(const struct launch_argv *v, size_t from, char *out, size_t size)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = from; i < v->n; i++) {
        int n = snprintf(out + len, size - len, "%s%s", i > from ? " " : "", v->at[i]);

        if (n < 0 || (size_t)n >= size - len) {
            memcpy(out + size - 4, "...", 4);
            return;
        }
        len += (size_t)n;
    }
}
