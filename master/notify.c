/* Telling the service manager how it stands (sd_notify's protocol, without its
 * library). */
#include "master/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/monotonic.h"

static struct sockaddr_un manager;
static socklen_t manager_len; /* 0: nobody listens */
static uint32_t watchdog_ms;
static char given_socket[sizeof(((struct sockaddr_un *)0)->sun_path) + 1], given_watchdog[24];

static void
read_socket(const char *path)
{
    size_t len = path != NULL ? strlen(path) : 0;

    /* "/path", or "@name" for the abstract name space */
    if (len < 2 || len >= sizeof(manager.sun_path) ||
        (path[0] != '/' && path[0] != '@'))
        return;
    manager.sun_family = AF_UNIX;
    memcpy(manager.sun_path, path, len);
    memcpy(given_socket, path, len); /* shorter than sun_path: its NUL stays */
    if (path[0] == '@')
        manager.sun_path[0] = '\0';
    manager_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static void
read_watchdog(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

    if (usec == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()))
        return;
    snprintf(given_watchdog, sizeof(given_watchdog), "%.23s", usec);
    watchdog_ms = (uint32_t)(strtoull(usec, NULL, 10) / 2000); /* twice per interval */
}

void
notify_init(void)
{
    read_socket(getenv("NOTIFY_SOCKET"));
    read_watchdog();
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}

void
notify_pass_on(void)
{
    if (given_socket[0] != '\0')
        setenv("NOTIFY_SOCKET", given_socket, 1);
    if (given_watchdog[0] != '\0')
        setenv("WATCHDOG_USEC", given_watchdog, 1);
}

void
notify_send(const char *state)
{
    int fd;

    if (manager_len == 0)
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&manager,
           manager_len);
    close(fd);
}

void
notify_reloading(void)
{
    char state[64];

    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)monotonic_us());
    notify_send(state);
}

uint32_t
notify_watchdog_ms(void)
{
    return watchdog_ms;
}
