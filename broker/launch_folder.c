/*
 * The state directory's folder of this checkout: made, locked, taken up, found again.
 * Distrusts: whoever else has a hand in it: another server, a clean-up that removed it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/launch.h"
#include "common/limits.h"
#include "common/log.h"

static uint64_t
digest(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a: names a folder, protects nothing */

    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h;
}

static int
open_folder(struct launches *all)
{
    const struct broker_config *c = &all->broker->config;
    char path[HANDOFF_PATH + 64];
    int fd;

    if (c->state_dir[0] != '/')
        return -ENOENT;
    /* The master made it; somebody may have removed it since. */
    mkdir(c->state_dir, 0700);
    snprintf(path, sizeof path, "%s/launches", c->state_dir);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/launches/%016llx", c->state_dir,
             (unsigned long long)digest(c->checkout));
    mkdir(path, 0700);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Is it still the folder of that name? */
static bool
is_in_place(const struct launches *all)
{
    struct stat st;

    return fstat(all->dir_fd, &st) == 0 && st.st_nlink > 0;
}

static void
adopt_all(struct launches *all)
{
    int fd = openat(all->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL && all->n < LIMIT_LAUNCHES)
        if (policy_launch_id_valid(entry->d_name) && launch_find(all, entry->d_name) == NULL)
            launch_adopt(all, entry->d_name);
    if (dir != NULL)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    if (all->n > 0)
        log_event(LOG_LEVEL_INFO, "launches-found", "n=%u", all->n);
    launches_schedule(all);
}

void
launches_unlock(struct launches *all)
{
    if (all->lock_fd >= 0)
        close(all->lock_fd);
    if (all->dir_fd >= 0)
        close(all->dir_fd);
    all->dir_fd = all->lock_fd = -1;
}

int
launches_ready(struct launches *all)
{
    const char *dir = all->broker->config.state_dir;
    int r;

    if (all->dir_fd >= 0 && is_in_place(all))
        return 0;
    launches_unlock(all);
    r = all->dir_fd = open_folder(all);
    if (r >= 0)
        r = all->lock_fd = openat(all->dir_fd, "server.lock",
                                  O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (r < 0 && all->dir_fd >= 0)
        r = -errno;
    if (r < 0)
        snprintf(all->why, sizeof all->why, "Cannot use the state directory %.150s: %s", dir,
                 strerror(-r));
    else if (flock(all->lock_fd, LOCK_EX | LOCK_NB) != 0)
        r = -EBUSY;
    if (r == -EBUSY)
        snprintf(all->why, sizeof all->why,
                 "Another server launches from this checkout: give one of them its own "
                 "SSEBENCH_WEBUI_STATE_DIR");
    if (r < 0) {
        launches_unlock(all);
        return r;
    }
    adopt_all(all);
    return 0;
}
