/* Two questions to the broker: the task's configuration, then the file that it names. */
#include "worker/reference_patch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "policy/run_id.h"
#include "worker/file_slice.h"
#include "worker/task_yaml.h"

static void ask(struct reference_patch *r, const char *path);

static void
found(struct reference_patch *r, enum answer_status status)
{
    r->status = status;
    r->fn(r->ctx);
}

static void
take_config(struct reference_patch *r, int fd, uint64_t size)
{
    char path[MESSAGE_TASK_PATH_SIZE];
    size_t len = 0;
    char *bytes = size <= LIMIT_TASK_CONFIG ? file_slice_whole(fd, size, &len) : NULL;
    bool named = bytes != NULL && task_yaml_patch(bytes, len, path, sizeof path) == 0;

    free(bytes);
    close(fd);
    if (named) {
        r->has_path = true;
        ask(r, path);
    } else {
        found(r, ANSWER_NOT_FOUND);
    }
}

static void
on_opened(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_run_file *a = answer;
    struct reference_patch *r = ctx;
    int fd;

    if (r->asking) {
        r->early = true;
        return;
    }
    r->waiting = false;
    if (a == NULL || a->status != ANSWER_OK || n_fds != 1) {
        /* A path that leads out of the folder is no patch. */
        found(r, a == NULL                       ? ANSWER_BUSY
                 : a->status == ANSWER_REFUSED   ? ANSWER_NOT_FOUND
                 : a->status == ANSWER_OK        ? ANSWER_FAILED
                                                 : (enum answer_status)a->status);
        return;
    }
    fd = fds[0];
    fds[0] = -1;
    if (!r->has_path) {
        take_config(r, fd, a->size);
        return;
    }
    r->fd = fd;
    r->size = a->size;
    found(r, ANSWER_OK);
}

static void
ask(struct reference_patch *r, const char *path)
{
    struct request_task_file q = {0};

    message_string_set(q.task, sizeof q.task, r->task);
    message_string_set(q.path, sizeof q.path, path);
    r->asking = r->waiting = true;
    r->early = false;
    r->ticket = broker_ask(MESSAGE_TASK_FILE, &q, NULL, 0, on_opened, r);
    r->asking = false;
    if (r->early)
        on_opened(r, NULL, NULL, 0);
}

void
reference_patch_find(struct reference_patch *r, const char *task, void (*fn)(void *ctx),
                     void *ctx)
{
    *r = (struct reference_patch){.fd = -1, .fn = fn, .ctx = ctx};
    if (task == NULL || !policy_task_id_valid(task, strlen(task))) {
        found(r, ANSWER_NOT_FOUND);
        return;
    }
    message_string_set(r->task, sizeof r->task, task);
    ask(r, "config.yaml");
}

void
reference_patch_done(struct reference_patch *r)
{
    if (r->waiting)
        broker_cancel(r->ticket);
    r->waiting = false;
    if (r->fn != NULL && r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}
