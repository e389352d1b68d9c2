/*
 * The worker's own recv(). libwebsockets reads its sockets with recv(), and the dynamic linker
 * resolves that to the program's definition before the C library's: so every byte of a
 * WebSocket can be looked at on its way, which the library offers no other place for.
 */
#undef _FORTIFY_SOURCE /* its headers wrap the function that is defined here */

#include "worker/ws_recv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

struct watch {
    ws_recv_judge judge;
    void *ctx;
};

/* By descriptor; grows to the highest one watched. */
static struct watch *watches;
static size_t n_watches;

static int
make_room(size_t wanted)
{
    size_t n = n_watches ? n_watches : 64;
    while (n < wanted)
        n *= 2;
    struct watch *grown = realloc(watches, n * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    memset(grown + n_watches, 0, (n - n_watches) * sizeof(*grown));
    watches = grown;
    n_watches = n;
    return 0;
}

int
ws_recv_watch(int fd, ws_recv_judge judge, void *ctx)
{
    if ((size_t)fd >= n_watches) {
        if (!judge)
            return 0;
        if (make_room((size_t)fd + 1) != 0)
            return -ENOMEM;
    }
    watches[fd] = (struct watch){judge, ctx};
    return 0;
}

ssize_t
recv(int fd, void *into, size_t len, int flags)
{
    ssize_t n = recvfrom(fd, into, len, flags, NULL, NULL);
    if (n <= 0 || (size_t)fd >= n_watches || !watches[fd].judge || (flags & MSG_PEEK))
        return n;
    n = watches[fd].judge(watches[fd].ctx, into, (size_t)n);
    if (n == 0) {
        errno = EAGAIN;
        return -1;
    }
    return n > 0 ? n : 0;
}
