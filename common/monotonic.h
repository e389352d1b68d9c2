/* The clock that only goes forward, for how long something takes. */
#ifndef COMMON_MONOTONIC_H
#define COMMON_MONOTONIC_H

#include <stdint.h>

/* Since some moment in the past that stays the same until the machine is started again. */
uint64_t
monotonic_us(void);
uint64_t
monotonic_ms(void);

#endif
