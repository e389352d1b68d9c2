/* Times as text without the C library's time zone, which would open a file. Pure. */
#ifndef WORKER_ISO_TIME_H
#define WORKER_ISO_TIME_H

#include <stdint.h>

#define ISO_TIME_SIZE 32u

/* "2026-11-29T17:00:00.123Z" of milliseconds since 1970 (years 0 to 9999). */
void
iso_time_format(int64_t unix_ms, char out[ISO_TIME_SIZE]);

/* Milliseconds: of the wall clock since 1970, and of a clock that only goes forward. */
int64_t
iso_time_now_ms(void);
int64_t
iso_time_steady_ms(void);

#endif
