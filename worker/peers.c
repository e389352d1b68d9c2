/* Remote addresses: how many connections each has, and how many bad tokens it offered. */
#include "worker/peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEERS_BUCKETS 4096u
#define PEERS_REMEMBERED 4096u /* addresses without a connection kept for their bad tokens */
#define PEERS_WINDOW_S 60.0

struct peer {
    struct peer *next;
    uint8_t key[16]; /* IPv4 as mapped, IPv6 without its lower half, all ones: Unix */
    unsigned n_connections;
    unsigned n_bad;     /* bad tokens in the minute that began at bad_since_s */
    double bad_since_s;
};

struct connection_slot {
    struct peer *peer;
    char text[INET6_ADDRSTRLEN];
};

static struct {
    struct peer *buckets[PEERS_BUCKETS];
    uint64_t seed;
    unsigned n_slots;
    unsigned n_remembered;
    void (*released)(void);
} peers;

void
peers_init(const uint8_t seed[8])
{
    memcpy(&peers.seed, seed, sizeof(peers.seed));
}

void
peers_on_release(void (*released)(void))
{
    peers.released = released;
}

static unsigned
bucket_of(const uint8_t key[16])
{
    uint64_t half[2], h = peers.seed;

    memcpy(half, key, sizeof(half));
    for (int i = 0; i < 2; i++) {
        h ^= half[i];
        h *= 0xff51afd7ed558ccdull;
        h ^= h >> 32;
    }
    return (unsigned)(h % PEERS_BUCKETS);
}

/* The key of an address and its text. */
static void
address_key(const struct sockaddr_storage *address, uint8_t key[16], char *text)
{
    static const uint8_t MAPPED[12] = {[10] = 0xff, [11] = 0xff};

    memset(key, address->ss_family == AF_INET6 ? 0 : 0xff, 16);
    strcpy(text, "unix");
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;

        memcpy(key, MAPPED, sizeof(MAPPED));
        memcpy(key + 12, &in->sin_addr, 4);
        inet_ntop(AF_INET, &in->sin_addr, text, INET6_ADDRSTRLEN);
    } else if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
        bool mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
        bool loopback = IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);

        memcpy(key, &in6->sin6_addr, mapped || loopback ? 16 : 8);
        if (mapped)
            inet_ntop(AF_INET, in6->sin6_addr.s6_addr + 12, text, INET6_ADDRSTRLEN);
        else
            inet_ntop(AF_INET6, &in6->sin6_addr, text, INET6_ADDRSTRLEN);
    }
}

/* A TLS proxy on this machine is one address for all its clients. */
static bool
key_exempt(const uint8_t key[16])
{
    static const uint8_t UNIX_PEER[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t LOOPBACK6[16] = {[15] = 1};
    static const uint8_t LOOPBACK4[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};

    return memcmp(key, UNIX_PEER, 16) == 0 || memcmp(key, LOOPBACK6, 16) == 0 ||
           memcmp(key, LOOPBACK4, 13) == 0;
}

static struct peer *
peer_find(const uint8_t key[16])
{
    struct peer **head = &peers.buckets[bucket_of(key)];
    struct peer *p = *head;

    while (p && memcmp(p->key, key, 16) != 0)
        p = p->next;
    if (p) {
        if (p->n_connections == 0)
            peers.n_remembered--;
        return p;
    }
    p = calloc(1, sizeof(*p));
    if (p) {
        memcpy(p->key, key, 16);
        p->next = *head;
        *head = p;
    }
    return p;
}

/* The last connection of an address is gone: forget it, unless its bad tokens count and there
 * is room to remember. */
static void
peer_settle(struct peer *p)
{
    struct peer **link = &peers.buckets[bucket_of(p->key)];

    if (p->n_connections > 0)
        return;
    if (p->n_bad > 0 && peers.n_remembered < PEERS_REMEMBERED) {
        peers.n_remembered++;
        return;
    }
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    free(p);
}

/* Addresses that are only remembered, and whose minute is over, in one bucket. */
static void
bucket_sweep(unsigned bucket, double now_s)
{
    struct peer **link = &peers.buckets[bucket];

    while (*link) {
        struct peer *p = *link;

        if (p->n_connections == 0 && now_s - p->bad_since_s > PEERS_WINDOW_S) {
            *link = p->next;
            peers.n_remembered--;
            free(p);
        } else {
            link = &p->next;
        }
    }
}

struct connection_slot *
peers_slot_new(const struct sockaddr_storage *address, unsigned max_per_address)
{
    struct connection_slot *slot = malloc(sizeof(*slot));
    uint8_t key[16];

    if (!slot)
        return NULL;
    address_key(address, key, slot->text);
    slot->peer = peer_find(key);
    if (slot->peer && (key_exempt(key) || slot->peer->n_connections < max_per_address)) {
        slot->peer->n_connections++;
        peers.n_slots++;
        return slot;
    }
    if (slot->peer)
        peer_settle(slot->peer);
    free(slot);
    return NULL;
}

unsigned
peers_n_slots(void)
{
    return peers.n_slots;
}

void
connection_slot_release(struct connection_slot *slot)
{
    slot->peer->n_connections--;
    peer_settle(slot->peer);
    free(slot);
    peers.n_slots--;
    if (peers.released)
        peers.released();
}

const char *
connection_slot_address(const struct connection_slot *slot)
{
    return slot->text;
}

static bool
note_bad_token(struct peer *p, double now_s, unsigned max_in_minute)
{
    static unsigned sweep_at;

    /* Whoever fails pays for the cleaning. */
    for (int i = 0; i < 64; i++)
        bucket_sweep(sweep_at++ % PEERS_BUCKETS, now_s);
    if (p->n_bad == 0 || now_s - p->bad_since_s > PEERS_WINDOW_S) {
        p->n_bad = 0;
        p->bad_since_s = now_s;
    }
    if (p->n_bad >= max_in_minute)
        return true;
    p->n_bad++;
    return false;
}

bool
peers_bad_token(struct connection_slot *slot, double now_s, unsigned max_in_minute)
{
    return note_bad_token(slot->peer, now_s, max_in_minute);
}

bool
peers_bad_token_behind(const char *address, double now_s, unsigned max_in_minute)
{
    struct sockaddr_storage storage = {.ss_family = strchr(address, ':') ? AF_INET6 : AF_INET};
    void *bytes = storage.ss_family == AF_INET6
                      ? (void *)&((struct sockaddr_in6 *)&storage)->sin6_addr
                      : (void *)&((struct sockaddr_in *)&storage)->sin_addr;
    char text[INET6_ADDRSTRLEN];
    uint8_t key[16];
    struct peer *p;
    bool over;

    if (inet_pton(storage.ss_family, address, bytes) != 1)
        return false;
    address_key(&storage, key, text);
    p = peer_find(key);
    if (!p)
        return true; /* no memory to count in: no further tries */
    p->n_connections++; /* in use, so that the cleaning leaves it alone */
    over = note_bad_token(p, now_s, max_in_minute);
    p->n_connections--;
    peer_settle(p);
    return over;
}
