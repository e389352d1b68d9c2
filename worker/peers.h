/* Remote addresses: how many connections each has, and how many bad tokens it offered. */
#ifndef WORKER_PEERS_H
#define WORKER_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "worker/handover.h"

/* `seed`: 8 secret bytes, so that nobody can aim at one bucket. */
void
peers_init(const uint8_t seed[8]);

/* Take a place for a new connection from this address (AF_INET, AF_INET6: counted by /64,
 * anything else: a Unix socket). NULL: no memory, or `max_per_address` reached (loopback and
 * Unix peers are exempt). */
struct connection_slot *
peers_slot_new(const struct sockaddr_storage *address, unsigned max_per_address);

/* How many places are taken. */
unsigned
peers_n_slots(void);

/* Called after every release of a place (the server may accept again). One listener. */
void
peers_on_release(void (*released)(void));

/* Note a bad token; true: this address had `max_in_minute` already. `now_s`: seconds. */
bool
peers_bad_token(struct connection_slot *slot, double now_s, unsigned max_in_minute);

/* The same for a client behind a trusted proxy: an address as text. */
bool
peers_bad_token_behind(const char *address, double now_s, unsigned max_in_minute);

#endif
