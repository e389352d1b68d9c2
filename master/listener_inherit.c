/* Socket activation: listening sockets that systemd opened, held to the same rules. */
#include "master/listener_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_FD 3 /* SD_LISTEN_FDS_START */

static long
read_number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long n;

    if (text == NULL || *text == '\0')
        return -1;
    n = strtol(text, &end, 10);
    return *end == '\0' ? n : -1;
}

static int
socket_option(int fd, int option)
{
    int value = -1;
    socklen_t len = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

/* What was handed is somebody's configuration, not ours: trust its kind no more than an
 * address in a setting. */
int
listener_take(const struct settings *s, struct listeners *l, int fd, char *error)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    char label[LISTENER_LABEL_SIZE];
    bool loopback;
    int status;

    memset(&address, 0, sizeof(address));
    if (socket_option(fd, SO_TYPE) != SOCK_STREAM ||
        socket_option(fd, SO_ACCEPTCONN) != 1 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0 ||
        (address.ss_family != AF_INET && address.ss_family != AF_INET6 &&
         address.ss_family != AF_UNIX))
        return settings_refuse(
            error,
            "Descriptor %d from LISTEN_FDS is not a listening stream "
            "socket. Use ListenStream= in the socket unit, with "
            "Accept=no.",
            fd);
    loopback = listener_address_is_loopback((struct sockaddr *)&address);
    listener_format((struct sockaddr *)&address, len, label);
    status = listener_check_token(s, label, loopback, error);
    if (status != 0)
        return status;
    if (l->n > 0 && l->is_unix != (address.ss_family == AF_UNIX))
        return settings_refuse(
            error, "LISTEN_FDS holds a Unix socket beside a TCP one. Use one "
                   "kind in the socket unit.");
    l->is_unix = address.ss_family == AF_UNIX;
    l->loopback = l->loopback && loopback;
    status = listener_add(l, fd);
    return status == 0 ? 0
                       : settings_refuse(error, "Descriptor %d from LISTEN_FDS: %s.",
                                         fd, strerror(-status));
}

int
listener_inherit(const struct settings *s, struct listeners *l, char *error)
{
    long pid = read_number("LISTEN_PID"), n = read_number("LISTEN_FDS");

    if (pid != (long)getpid() || n <= 0)
        return 0;
    if (n > (long)HANDOFF_LISTENERS)
        return settings_refuse(
            error,
            "LISTEN_FDS=%ld: the server takes at most %u sockets. Use "
            "fewer in the socket unit.",
            n, HANDOFF_LISTENERS);
    l->inherited = true;
    l->loopback = true;
    for (int fd = FIRST_FD; fd < FIRST_FD + n; fd++) {
        int status = listener_take(s, l, fd, error);

        if (status != 0)
            return status;
    }
    return 1;
}
