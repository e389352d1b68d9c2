/*
 * The only way in which what lies below a results root is opened.
 * Distrusts: the tree itself; the agent writes in it while we look.
 */
#include "common/open_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RENAME_RETRIES 8 /* the kernel says EAGAIN when a rename disturbs the lookup */

int
open_beneath(int root_fd, const char *path, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    for (int i = 0;; i++) {
        long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof how);

        if (fd >= 0)
            return (int)fd;
        if ((errno != EAGAIN && errno != EINTR) || i >= RENAME_RETRIES)
            return -errno;
    }
}

bool
open_beneath_is_missing(int error)
{
    return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EXDEV ||
           error == -EACCES || error == -EPERM || error == -ENAMETOOLONG;
}

int
open_beneath_file(int root_fd, const char *path, size_t max_size, struct stat *ret_stat)
{
    char self[sizeof "/proc/self/fd/" + 3 * sizeof(int)];
    struct stat st;
    int fd, handle = open_beneath(root_fd, path, O_PATH | O_NOFOLLOW);
    int r = 0;

    if (handle < 0)
        return open_beneath_is_missing(handle) ? -ENOENT : handle;
    if (fstat(handle, &st) != 0)
        r = -errno;
    else if (!S_ISREG(st.st_mode))
        r = -ENOENT;
    else if ((uint64_t)st.st_size > max_size)
        r = -EFBIG;
    if (r < 0) {
        close(handle);
        return r;
    }
    /* The handle is this very regular file; opening through it cannot meet another. Opening
     * by name would open a device that the agent swaps in after a check, and that alone can
     * have effects. */
    snprintf(self, sizeof self, "/proc/self/fd/%d", handle);
    fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    r = fd < 0 ? -errno : fd;
    close(handle);
    if (r >= 0)
        *ret_stat = st;
    return r == -EACCES || r == -EPERM ? -ENOENT : r;
}
