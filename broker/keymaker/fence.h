/* What the key maker may still do when it begins to read what others wrote. */
#ifndef BROKER_KEYMAKER_FENCE_H
#define BROKER_KEYMAKER_FENCE_H

#include <stdbool.h>

/* From the start: no dump, no new privileges, little memory and time. */
void
fence_early(void);

/* For good: read and write what is open, memory, and the end; with `tls` what OpenSSL asks for in
 * a handshake besides (random numbers, the time, its process id). Dies if it cannot. */
void
fence_up(bool tls);

#endif
