/*
 * TASK_FILE: one file of a local task's `sse` folder, as a read-only descriptor.
 * Distrusts: the worker, whose path comes out of a file that anybody may have written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/dispatch.h"
#include "common/limits.h"
#include "common/open_beneath.h"
#include "policy/run_id.h"

/* Components separated by single slashes, none of them "." or "..". */
static bool
path_is_plain(const char *path)
{
    for (;;) {
        size_t len = strcspn(path, "/");

        if (!policy_component_valid(path, len))
            return false;
        if (path[len] == '\0')
            return true;
        path += len + 1;
    }
}

/* The task's own folder may be a link: the user puts tasks there that way (contract 7.4).
 * Below it nothing is followed. Safe: the path is plain, the kernel keeps it below `sse`, and
 * what is handed out is a regular file opened for reading. */
static int
act_task_file(const char *local_tasks, const char *task, const char *path,
              struct stat *ret_stat)
{
    int sse_fd, task_fd = -1, fd;
    int tasks_fd = open(local_tasks, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (tasks_fd < 0)
        return -ENOENT;
    task_fd = openat(tasks_fd, task, O_PATH | O_DIRECTORY | O_CLOEXEC);
    close(tasks_fd);
    if (task_fd < 0)
        return -ENOENT;
    sse_fd = open_beneath(task_fd, "sse", O_PATH | O_DIRECTORY);
    close(task_fd);
    if (sse_fd < 0)
        return -ENOENT;
    fd = open_beneath_file(sse_fd, path, LIMIT_RUN_FILE, ret_stat);
    close(sse_fd);
    return fd;
}

int
handle_task_file(struct broker *b, const struct ask *ask, const void *request,
                 struct channel_packet *packet)
{
    const struct request_task_file *q = request;
    static const uint8_t zero[sizeof q->reserved];
    struct answer_run_file a = {.status = ANSWER_OK};
    struct stat st;
    int fd = -1;

    (void)packet;
    if (!message_string_valid(q->task, sizeof q->task) ||
        !message_string_valid(q->path, sizeof q->path) ||
        memcmp(q->reserved, zero, sizeof zero) != 0)
        return -EBADMSG;
    if (!policy_task_id_valid(q->task, strlen(q->task)) || !path_is_plain(q->path)) {
        a.status = ANSWER_REFUSED;
    } else {
        fd = act_task_file(b->config.local_tasks, q->task, q->path, &st);
        if (fd >= 0) {
            a.size = (uint64_t)st.st_size;
            a.mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
            a.inode = st.st_ino;
        } else {
            a.status = fd == -ENOENT  ? ANSWER_NOT_FOUND
                       : fd == -EFBIG ? ANSWER_TOO_LARGE
                                      : ANSWER_BUSY;
        }
    }
    dispatch_answer(b->dispatch, ask, &a, fd < 0 ? -1 : fd);
    return 0;
}
