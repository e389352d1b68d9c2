/*
 * Reading an address: a fixed form, so that no URL library has to be trusted with it.
 * Distrusts: the text, whoever made the CLI print it.
 */
#include "broker/endpoint_url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* Decimal, 1 to 65535, then the end. */
static bool
read_port(const char *text, uint16_t *ret_port)
{
    uint32_t port = 0;
    size_t n = strspn(text, "0123456789");

    if (n == 0 || n > 5 || text[0] == '0' || strcmp(text + n + (text[n] == '/'), "") != 0)
        return false;
    for (size_t i = 0; i < n; i++)
        port = port * 10 + (uint32_t)(text[i] - '0');
    *ret_port = htons((uint16_t)port);
    return port <= 65535;
}

int
endpoint_url_parse(const char *url, struct sockaddr_storage *ret_address)
{
    static const char scheme[] = "http://";
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    char host[INET6_ADDRSTRLEN];
    const char *at, *end;
    bool bracket;

    if (strncmp(url, scheme, sizeof scheme - 1) != 0)
        return -EINVAL;
    at = url + sizeof scheme - 1;
    bracket = *at == '[';
    at += bracket;
    end = strchr(at, bracket ? ']' : ':');
    if (end == NULL || (size_t)(end - at) >= sizeof host || (bracket && end[1] != ':'))
        return -EINVAL;
    memcpy(host, at, (size_t)(end - at));
    host[end - at] = '\0';
    at = end + 1 + bracket;
    if (!read_port(at, bracket ? &v6.sin6_port : &v4.sin_port))
        return -EINVAL;
    if (bracket ? inet_pton(AF_INET6, host, &v6.sin6_addr) != 1
                : inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
                            &v4.sin_addr) != 1)
        return -EINVAL;
    memset(ret_address, 0, sizeof *ret_address);
    if (bracket)
        memcpy(ret_address, &v6, sizeof v6);
    else
        memcpy(ret_address, &v4, sizeof v4);
    return 0;
}
