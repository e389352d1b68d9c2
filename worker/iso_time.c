/* UTC without tzdata: a worker that calls gmtime() opens /etc/localtime and dies. */
#include "worker/iso_time.h"

#include <stdio.h>
#include <time.h>

/* Days since 1970-01-01 to a date of the proleptic Gregorian calendar, counted in eras of 400
 * years that begin on 1 March. */
static void
civil_from_days(int64_t days, int64_t *ret_year, unsigned *ret_month, unsigned *ret_day)
{
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    unsigned day_of_era = (unsigned)(shifted - era * 146097);
    unsigned year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned shifted_month = (5 * day_of_year + 2) / 153;

    *ret_day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    *ret_month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
    *ret_year = (int64_t)year_of_era + era * 400 + (*ret_month <= 2);
}

void
iso_time_format(int64_t unix_ms, char out[ISO_TIME_SIZE])
{
    int64_t days = unix_ms / 86400000;
    int64_t rest = unix_ms % 86400000;
    int64_t year;
    unsigned month, day, ms;

    if (rest < 0) {
        rest += 86400000;
        days--;
    }
    ms = (unsigned)rest;
    civil_from_days(days, &year, &month, &day);
    snprintf(out, ISO_TIME_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
             (unsigned)year % 10000, month % 100, day % 100, ms / 3600000 % 24,
             ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
}

static int64_t
clock_ms(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t
iso_time_now_ms(void)
{
    return clock_ms(CLOCK_REALTIME);
}

int64_t
iso_time_steady_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}
