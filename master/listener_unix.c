/* The socket file of SSEBENCH_WEBUI_HOST=unix:/path: made private, removed only if
 * ours. */
#include "master/listener_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A socket file that nobody listens on is left from a server that was killed: remove
 * it. */
static int
clear_stale_socket(const struct sockaddr_un *a)
{
    struct stat st;
    int probe, status = 0;

    if (lstat(a->sun_path, &st) != 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return -EEXIST;
    probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0)
        return -errno;
    if (connect(probe, (const struct sockaddr *)a, sizeof(*a)) == 0 ||
        errno != ECONNREFUSED)
        status = -EADDRINUSE;
    close(probe);
    if (status == 0 && unlink(a->sun_path) != 0)
        status = -errno;
    return status;
}

int
listener_bind_unix(int fd, const struct sockaddr_un *a, struct listeners *l)
{
    mode_t before;
    struct stat st;
    int status = clear_stale_socket(a);

    if (status != 0)
        return status;
    before = umask(0177); /* 0600 from its first moment on */
    status = bind(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 ? 0 : -errno;
    umask(before);
    if (status == 0 && lstat(a->sun_path, &st) == 0) {
        l->unix_dev = st.st_dev;
        l->unix_ino = st.st_ino;
    }
    return status;
}

void
listener_unlink(const struct listeners *l)
{
    struct stat st;
    const char *path = l->n > 0 ? l->item[0].label + strlen("unix:") : NULL;

    if (l->is_unix && !l->inherited && path != NULL && lstat(path, &st) == 0 &&
        st.st_dev == l->unix_dev && st.st_ino == l->unix_ino)
        unlink(path);
}
