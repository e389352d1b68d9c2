/*
 * RUN_FILE: one of a run directory's known files, as a read-only descriptor.
 * Distrusts: the worker (a number and an enum is all it may say) and the run directory.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/dispatch.h"
#include "broker/run_dirs.h"
#include "common/limits.h"
#include "common/open_beneath.h"

/* What can be read of a run directory is what stands here, up to this many bytes. */
static const struct {
    const char *name;
    uint64_t max;
} files[RUN_FILES] = {
    [RUN_FILE_SUMMARY] = {"summary.json", LIMIT_RUN_FILE},
    [RUN_FILE_RESULT] = {"result.json", LIMIT_RUN_FILE},
    [RUN_FILE_FINAL_PATCH] = {"final.patch", LIMIT_RUN_FILE},
    [RUN_FILE_REFERENCE_PATCH] = {"reference.patch", LIMIT_RUN_FILE},
    [RUN_FILE_REVIEW] = {"post-review.txt", LIMIT_RUN_FILE},
    [RUN_FILE_DIALOG] = {"archive/dialog.jsonl", LIMIT_DIALOG_FILE},
    [RUN_FILE_AGENT_LOG] = {"agent.log", LIMIT_RUN_FILE},
    [RUN_FILE_EVALUATOR_LOG] = {"evaluator.log", LIMIT_RUN_FILE},
};

/* Safe: the path is made of what the broker found and a constant; the kernel refuses links
 * on the way; what is handed out is a regular file opened for reading. */
static int
act_run_file(struct run_dirs *rd, const struct request_run_file *q, struct stat *ret_stat)
{
    uint32_t dir = run_dirs_by_ref(rd, q->epoch, q->ref);
    char path[RUN_DIRS_PATH + sizeof "/archive/dialog.jsonl"];
    int len, root_fd;

    if (q->epoch != rd->epoch)
        return -ESTALE;
    if (dir == RUN_DIR_NONE)
        return -ENOENT;
    len = run_dirs_path(rd, dir, path);
    root_fd = rd->root_fds[rd->dirs[dir].root];
    if (len < 0 || root_fd < 0)
        return -ENOENT;
    snprintf(path + len, sizeof path - (size_t)len, "/%s", files[q->file].name);
    return open_beneath_file(root_fd, path, files[q->file].max, ret_stat);
}

int
handle_run_file(struct broker *b, const struct ask *ask, const void *request,
                struct channel_packet *packet)
{
    const struct request_run_file *q = request;
    struct answer_run_file a = {.status = ANSWER_OK};
    struct stat st;
    int fd;

    (void)packet;
    if (q->file == 0 || q->file >= RUN_FILES || q->reserved != 0)
        return -EBADMSG;
    fd = act_run_file(b->run_dirs, q, &st);
    if (fd >= 0) {
        a.size = (uint64_t)st.st_size;
        a.mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
        a.inode = st.st_ino;
    } else if (fd == -ENOENT) {
        a.status = ANSWER_NOT_FOUND;
    } else if (fd == -EFBIG) {
        a.status = ANSWER_TOO_LARGE;
    } else if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -EAGAIN ||
               fd == -ESTALE) {
        a.status = ANSWER_BUSY;
    } else {
        a.status = ANSWER_FAILED;
    }
    dispatch_answer(b->dispatch, ask, &a, fd);
    return 0;
}
