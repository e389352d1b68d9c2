/* The clock that only goes forward. No call into the kernel: the C library reads it by itself. */
#include "common/monotonic.h"

#include <time.h>

uint64_t
monotonic_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

uint64_t
monotonic_ms(void)
{
    return monotonic_us() / 1000u;
}
