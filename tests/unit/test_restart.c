/* Restart back-off: at once, then 100 ms doubling to 1 s, and an end to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "master/restart.h"

static void
test_backoff_then_giving_up(void **state)
{
    static const uint32_t delays[] = {0, 100, 200, 400, 800, 1000};
    struct restart r = {0};
    uint64_t now_ms = 1000000;
    uint32_t delay_ms = 99;

    for (unsigned i = 0; i < LIMIT_RESTARTS - 1; i++) {
        assert_true(restart_note(&r, now_ms, 10, &delay_ms));
        assert_int_equal(delay_ms, delays[i < 5 ? i : 5]);
        now_ms += delay_ms + 10;
    }
    assert_true(now_ms - 1000000 > 18000);
    assert_false(restart_note(&r, now_ms, 10, &delay_ms));
}

static void
test_delay_is_capped(void **state)
{
    struct restart r = {0};
    uint64_t now_ms = 0;
    uint32_t delay_ms = 0;

    for (int i = 0; i < 100; i++) { /* too far apart to give up */
        now_ms += LIMIT_RESTARTS_MS / 2;
        assert_true(restart_note(&r, now_ms, 0, &delay_ms));
        assert_true(delay_ms <= RESTART_DELAY_MAX_MS);
    }
    assert_int_equal(delay_ms, RESTART_DELAY_MAX_MS);
}

static void
test_a_child_that_served_starts_afresh(void **state)
{
    struct restart r = {0};
    uint32_t delay_ms = 99;

    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(restart_note(&r, i * 1100, RESTART_LIVED_MS, &delay_ms));
        assert_int_equal(delay_ms, 0);
    }
    assert_true(restart_note(&r, 2000000, 0, &delay_ms));
    assert_true(restart_note(&r, 2000001, 0, &delay_ms));
    assert_int_equal(delay_ms, RESTART_DELAY_FIRST_MS);
    assert_true(restart_note(&r, 2002000, RESTART_LIVED_MS, &delay_ms));
    assert_true(restart_note(&r, 2002001, 0, &delay_ms));
    assert_int_equal(delay_ms, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backoff_then_giving_up),
        cmocka_unit_test(test_delay_is_capped),
        cmocka_unit_test(test_a_child_that_served_starts_afresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
