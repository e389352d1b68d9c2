/*
 * The names of the keys that are out, one file each: a broker that comes after a killed one
 * can still revoke what that one made. Never a key itself. Several servers may share the
 * folder: the lock on a file tells that the broker that answers for it lives.
 * Distrusts: nobody; the state directory is ours alone (0700).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/assistant.h"
#include "broker/broker.h"
#include "common/log.h"
#include "policy/run_id.h"

#define FOLDER "assistant-keys"
#define PREFIX "webui-assistant-"

static int
open_folder(const struct assistants *all, bool make)
{
    int top = open(all->broker->config.state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd;

    if (top < 0)
        return -errno;
    if (make)
        mkdirat(top, FOLDER, 0700);
    fd = openat(top, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        fd = -errno;
    close(top);
    return fd;
}

int
assistant_alias_keep(const struct assistant *as)
{
    int folder = open_folder(as->all, true), fd;
    size_t len = strlen(as->run_id);

    if (folder < 0)
        return -1; /* best effort: a clean end still revokes */
    fd = openat(folder, as->alias, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 ||
        write(fd, as->run_id, len) != (ssize_t)len)
        log_event(LOG_LEVEL_WARNING, "assistant-alias-not-kept", "run=%s errno=%d", as->run_id,
                  errno);
    close(folder);
    return fd;
}

void
assistant_alias_drop(const struct assistants *all, const char *alias)
{
    int folder = open_folder(all, false);

    if (folder < 0)
        return;
    unlinkat(folder, alias, 0);
    close(folder);
}

static void
load_one(struct assistants *all, int folder, const char *alias)
{
    char run_id[MESSAGE_ID_SIZE] = "";
    int fd = openat(folder, alias, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = -1;
    struct assistant *as = NULL;

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        n = pread(fd, run_id, sizeof run_id - 1, 0);
    if (n > 0 && strlen(alias) < KEYMAKER_ALIAS_SIZE &&
        policy_run_id_valid(run_id, strlen(run_id)))
        as = assistant_find_or_make(all, run_id);
    if (as != NULL && as->old_alias[0] == '\0') {
        message_string_set(as->old_alias, sizeof as->old_alias, alias);
        as->old_alias_fd = fd;
    } else if (fd >= 0) {
        close(fd);
    }
}

void
assistant_aliases_load(struct assistants *all)
{
    int folder = open_folder(all, false);
    DIR *dir = folder < 0 ? NULL : fdopendir(folder);
    const struct dirent *e;

    if (dir == NULL) {
        if (folder >= 0)
            close(folder);
        return;
    }
    while ((e = readdir(dir)) != NULL && all->n < LIMIT_ASSISTANTS)
        if (strncmp(e->d_name, PREFIX, sizeof PREFIX - 1) == 0)
            load_one(all, folder, e->d_name);
    closedir(dir);
}
