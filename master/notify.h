/* Telling the service manager how it stands (sd_notify's protocol, without its
 * library). */
#ifndef MASTER_NOTIFY_H
#define MASTER_NOTIFY_H

#include <stdint.h>

/* Remember NOTIFY_SOCKET and WATCHDOG_USEC, and take them, with the LISTEN_* variables,
 * out of the environment: nothing that we start may speak for us. */
void notify_init(void);

/* Put into the environment again what notify_init took out: for our own next program. */
void notify_pass_on(void);

/* Send e.g. "READY=1"; without a service manager nothing happens. */
void notify_send(const char *state);

/* RELOADING=1 with the time stamp that Type=notify-reload asks for. */
void notify_reloading(void);

/* Milliseconds between two WATCHDOG=1; 0: no watchdog. */
uint32_t notify_watchdog_ms(void);

#endif
