/* The address in what `runs endpoint` prints. Pure. */
#ifndef BROKER_ENDPOINT_URL_H
#define BROKER_ENDPOINT_URL_H

struct sockaddr_storage;

/* http://IPv4:port, http://[IPv6]:port or http://localhost:port, and nothing behind it (one
 * slash may be). Names are not resolved: the backends print numbers (contract 2.8). 0, or
 * -EINVAL: ret_address is untouched. */
int
endpoint_url_parse(const char *url, struct sockaddr_storage *ret_address);

#endif
