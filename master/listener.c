/* Addresses become listening sockets here, and what must not be listened on is refused.
 */
#include "master/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "master/listener_internal.h"
#include "master/spawn.h"
#include "policy/host.h"

#define BACKLOG 4096 /* the kernel cuts it to net.core.somaxconn */
/* After a SIGKILL of the master its workers hold the old listener until their own death
 * signal arrives, and a service manager may be faster than that. */
#define BUSY_TRIES 10
#define BUSY_WAIT_US 30000

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
};

struct addresses {
    union address item[HANDOFF_LISTENERS];
    size_t n;
    bool optional_v6; /* localhost: the second family may be missing on this machine */
};

static socklen_t
address_len(const union address *a)
{
    return a->any.sa_family == AF_INET    ? sizeof(a->v4)
           : a->any.sa_family == AF_INET6 ? sizeof(a->v6)
                                          : sizeof(a->un);
}

bool
listener_address_is_loopback(const struct sockaddr *address)
{
    const union address *a = (const union address *)(const void *)address;

    if (address->sa_family == AF_UNIX)
        return true;
    if (address->sa_family == AF_INET)
        return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
    if (address->sa_family != AF_INET6)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr) &&
            a->v6.sin6_addr.s6_addr[12] == 127);
}

void
listener_format(const struct sockaddr *address, socklen_t len,
                char ret[LISTENER_LABEL_SIZE])
{
    const union address *a = (const union address *)(const void *)address;
    char text[INET6_ADDRSTRLEN] = "";

    if (address->sa_family == AF_UNIX) {
        bool named =
            len > offsetof(struct sockaddr_un, sun_path) && a->un.sun_path[0] != '\0';

        snprintf(ret, LISTENER_LABEL_SIZE, "unix:%.107s",
                 named ? a->un.sun_path : "(abstract)");
    } else if (address->sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, text, sizeof(text));
        snprintf(ret, LISTENER_LABEL_SIZE, "[%s]:%u", text, ntohs(a->v6.sin6_port));
    } else {
        inet_ntop(AF_INET, &a->v4.sin_addr, text, sizeof(text));
        snprintf(ret, LISTENER_LABEL_SIZE, "%s:%u", text, ntohs(a->v4.sin_port));
    }
}

int
listener_check_token(const struct settings *s, const char *host, bool loopback,
                     char *error)
{
    if (loopback || s->token[0] != '\0' || s->kept_token || s->tokens.n > 0)
        return 0;
    return settings_refuse(
        error,
        "Refusing to listen on %s without SSEBENCH_WEBUI_TOKEN. Set a "
        "token, or keep SSEBENCH_WEBUI_HOST on a loopback address "
        "(default 127.0.0.1).",
        settings_show(host));
}

int
listener_add(struct listeners *l, int fd)
{
    struct listener *item = &l->item[l->n];
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    int on = 1;

    item->fd = spawn_raise_fd(fd);
    if (item->fd < 0)
        return item->fd;
    memset(&address, 0, sizeof(address));
    if (getsockname(item->fd, (struct sockaddr *)&address, &len) != 0 ||
        fcntl(item->fd, F_SETFL, O_RDWR | O_NONBLOCK) != 0) {
        int status = -errno;

        close(item->fd);
        return status;
    }
    /* Accepted sockets inherit it: one call here instead of one per connection. */
    if (address.ss_family != AF_UNIX)
        setsockopt(item->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    listener_format((struct sockaddr *)&address, len, item->label);
    l->n++;
    return 0;
}

static void
add_literal(struct addresses *list, int family, uint32_t port)
{
    union address *a = &list->item[list->n++];

    memset(a, 0, sizeof(*a));
    a->any.sa_family = (sa_family_t)family;
    if (family == AF_INET) {
        a->v4.sin_port = htons((uint16_t)port);
        a->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
        a->v6.sin6_port = htons((uint16_t)port);
        a->v6.sin6_addr = in6addr_loopback;
    }
}

static void
add_unix(struct addresses *list, const char *path)
{
    union address *a = &list->item[list->n++];

    memset(a, 0, sizeof(*a));
    a->un.sun_family = AF_UNIX;
    memcpy(a->un.sun_path, path, strlen(path)); /* settings_value.c: at most 107 bytes */
}

static bool
is_listed(const struct addresses *list, const struct addrinfo *ai)
{
    for (size_t i = 0; i < list->n; i++)
        if (memcmp(&list->item[i], ai->ai_addr, ai->ai_addrlen) == 0)
            return true;
    return false;
}

static int
resolve_name(const struct settings *s, struct addresses *list, char *error)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    char port[16];
    int status;

    snprintf(port, sizeof(port), "%u", s->port);
    status = getaddrinfo(s->host, port, &hints, &found);
    if (status == EAI_NONAME) { /* not numeric: ask the resolver */
        hints.ai_flags &= ~AI_NUMERICHOST;
        status = getaddrinfo(s->host, port, &hints, &found);
    }
    if (status != 0)
        return settings_refuse(error,
                               "SSEBENCH_WEBUI_HOST=%s cannot be resolved: %s. Set an "
                               "address of this machine (default 127.0.0.1).",
                               settings_show(s->host), gai_strerror(status));
    for (struct addrinfo *ai = found; ai != NULL && list->n < HANDOFF_LISTENERS;
         ai = ai->ai_next) {
        if ((ai->ai_family != AF_INET && ai->ai_family != AF_INET6) ||
            is_listed(list, ai))
            continue;
        memset(&list->item[list->n], 0, sizeof(list->item[0]));
        memcpy(&list->item[list->n++], ai->ai_addr, ai->ai_addrlen);
    }
    freeaddrinfo(found);
    return 0;
}

/* `localhost` is decided here and not by a hosts file: both loopback addresses. */
static int
find_addresses(const struct settings *s, struct addresses *list, char *error)
{
    memset(list, 0, sizeof(*list));
    if (strncmp(s->host, "unix:", 5) == 0) {
        add_unix(list, s->host + 5);
        return 0;
    }
    if (strcasecmp(s->host, "localhost") == 0) {
        add_literal(list, AF_INET, s->port);
        add_literal(list, AF_INET6, s->port);
        list->optional_v6 = true;
        return 0;
    }
    return resolve_name(s, list, error);
}

static bool
all_loopback(const struct addresses *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (!listener_address_is_loopback(&list->item[i].any))
            return false;
    return true;
}

/* A bound, listening socket, or -errno. */
static int
listen_on(const union address *a, struct listeners *l)
{
    int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, status;

    if (fd < 0)
        return -errno;
    if (a->any.sa_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    /* `::` must not silently be 0.0.0.0 as well: what is asked for is what is open. */
    if (a->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (a->any.sa_family == AF_UNIX)
        status = listener_bind_unix(fd, &a->un, l);
    else
        status = bind(fd, &a->any, address_len(a)) == 0 ? 0 : -errno;
    if (status == 0 && listen(fd, BACKLOG) != 0)
        status = -errno;
    if (status != 0) {
        close(fd);
        return status;
    }
    return fd;
}

static const char *
bind_reason(int error)
{
    switch (error) {
    case EADDRINUSE:
        return "address already in use. Another program, perhaps another "
               "ssebench-webui, has "
               "it; stop it, or set PORT to a free port (PORT=0 picks one)";
    case EACCES:
        return "permission denied. Ports below 1024 and some directories are root's; "
               "set "
               "another PORT or SSEBENCH_WEBUI_HOST";
    case EADDRNOTAVAIL:
        return "this machine has no such address. Set SSEBENCH_WEBUI_HOST to one it "
               "has "
               "(default 127.0.0.1)";
    case EEXIST:
        return "a file that is no socket is there. Remove it, or set "
               "SSEBENCH_WEBUI_HOST to "
               "another path";
    default:
        return strerror(error);
    }
}

static void
set_port(struct addresses *list, uint16_t port)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->item[i].any.sa_family == AF_INET6)
            list->item[i].v6.sin6_port = htons(port);
        else if (list->item[i].any.sa_family == AF_INET)
            list->item[i].v4.sin_port = htons(port);
}

/* Port 0: what the first socket was given becomes the port of the others. */
static void
share_port(struct addresses *list, const struct listeners *l)
{
    const char *colon = strrchr(l->item[0].label, ':');
    unsigned port = 0;

    if (sscanf(colon, ":%u", &port) == 1 && port > 0)
        set_port(list, (uint16_t)port);
}

static int
refuse_bind(const union address *a, int status, char *error)
{
    char label[LISTENER_LABEL_SIZE];

    listener_format(&a->any, address_len(a), label);
    return settings_refuse(error, "Cannot listen on %s: %s.", label,
                           bind_reason(-status));
}

static int
open_all(const struct settings *s, struct addresses *list, struct listeners *l,
         char *error)
{
    for (size_t i = 0; i < list->n; i++) {
        int fd = listen_on(&list->item[i], l);
        int status = fd < 0 ? fd : listener_add(l, fd);

        if (status != 0 && list->optional_v6 && i > 0 &&
            (status == -EADDRNOTAVAIL || status == -EAFNOSUPPORT))
            continue;
        if (status != 0) {
            refuse_bind(&list->item[i], status, error);
            return status;
        }
        if (s->port == 0 && i == 0 && !l->is_unix)
            share_port(list, l);
    }
    return 0;
}

int
listener_check(const struct settings *s, char ret_error[SETTINGS_ERROR_SIZE])
{
    struct addresses list;
    int status = find_addresses(s, &list, ret_error);

    if (status == 0)
        status = listener_check_token(s, s->host, all_loopback(&list), ret_error);
    return status;
}

int
listener_open(const struct settings *s, struct listeners *ret,
              char ret_error[SETTINGS_ERROR_SIZE])
{
    struct addresses list;
    int status;

    memset(ret, 0, sizeof(*ret));
    status = listener_inherit(s, ret, ret_error);
    if (status != 0)
        return status > 0 ? 0 : status;
    status = find_addresses(s, &list, ret_error);
    if (status != 0)
        return status;
    ret->is_unix = list.item[0].any.sa_family == AF_UNIX;
    ret->loopback = all_loopback(&list);
    status = listener_check_token(s, s->host, ret->loopback, ret_error);
    for (int tries = 0; status == 0; tries++) {
        set_port(&list, (uint16_t)s->port);
        status = open_all(s, &list, ret, ret_error);
        if (status != -EADDRINUSE || tries == BUSY_TRIES)
            break;
        /* Port 0: the free port of one family was busy on the other, so choose again.
         */
        while (ret->n > 0)
            close(ret->item[--ret->n].fd);
        if (s->port != 0 || ret->is_unix)
            usleep(BUSY_WAIT_US);
        status = 0;
    }
    if (status != 0)
        listener_close(ret);
    return status == 0 ? 0 : -EINVAL;
}

void
listener_close(struct listeners *l)
{
    listener_unlink(l);
    while (l->n > 0)
        close(l->item[--l->n].fd);
}
