/* Places under the caps, and the count of bad tokens. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

#include "worker/peers.h"

static struct sockaddr_storage
address_of(const char *text)
{
    struct sockaddr_storage s = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)&s;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&s;

    if (strcmp(text, "unix") == 0) {
        s.ss_family = AF_UNIX;
    } else if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
        in6->sin6_family = AF_INET6;
    }
    return s;
}

/* Two connections from `first` fill a cap of two: does one from `second` still find place? */
static void
test_cap_per_address(void **state)
{
    static const struct {
        const char *label, *first, *second;
        bool admitted;
    } ROWS[] = {
        {"same IPv4", "203.0.113.9", "203.0.113.9", false},
        {"other IPv4", "203.0.113.9", "203.0.113.10", true},
        {"mapped is the same IPv4", "203.0.113.9", "::ffff:203.0.113.9", false},
        {"same IPv6 network", "2001:db8::1", "2001:db8::ffff:2", false},
        {"other IPv6 network", "2001:db8::1", "2001:db8:0:1::1", true},
        {"IPv4 loopback is exempt", "127.0.0.1", "127.0.0.1", true},
        {"all of 127/8 is exempt", "127.9.9.9", "127.9.9.9", true},
        {"IPv6 loopback is exempt", "::1", "::1", true},
        {"mapped loopback is exempt", "::ffff:127.0.0.1", "::ffff:127.0.0.1", true},
        {"loopback's neighbours are not", "::2", "::3", false},
        {"nor is the unspecified address", "::", "::", false},
        {"a Unix peer is exempt", "unix", "unix", true},
        {"128.0.0.1 is not loopback", "128.0.0.1", "128.0.0.1", false},
    };

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        struct sockaddr_storage first = address_of(ROWS[i].first);
        struct sockaddr_storage second = address_of(ROWS[i].second);
        struct connection_slot *a = peers_slot_new(&first, 2);
        struct connection_slot *b = peers_slot_new(&first, 2);
        struct connection_slot *c = peers_slot_new(&second, 2);

        assert_non_null(a);
        assert_non_null(b);
        if ((c != NULL) != ROWS[i].admitted)
            fail_msg("%s", ROWS[i].label);
        assert_int_equal(peers_n_slots(), c ? 3 : 2);
        connection_slot_release(a);
        connection_slot_release(b);
        if (c)
            connection_slot_release(c);
        c = peers_slot_new(&second, 2);
        assert_non_null(c);
        connection_slot_release(c);
        assert_int_equal(peers_n_slots(), 0);
    }
}

static void
test_address_text(void **state)
{
    static const struct {
        const char *address, *text;
    } ROWS[] = {
        {"203.0.113.9", "203.0.113.9"},
        {"::ffff:203.0.113.9", "203.0.113.9"},
        {"2001:db8::1", "2001:db8::1"},
        {"unix", "unix"},
    };

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        struct sockaddr_storage address = address_of(ROWS[i].address);
        struct connection_slot *slot = peers_slot_new(&address, 1);

        assert_non_null(slot);
        assert_string_equal(connection_slot_address(slot), ROWS[i].text);
        connection_slot_release(slot);
    }
}

static bool
bad_token_from(const char *text, double now_s)
{
    struct sockaddr_storage address = address_of(text);
    struct connection_slot *slot = peers_slot_new(&address, 10);
    bool over;

    assert_non_null(slot);
    over = peers_bad_token(slot, now_s, 3);
    connection_slot_release(slot);
    return over;
}

/* The count survives the connection, ends with its minute and is each address's own. */
static void
test_bad_tokens(void **state)
{
    for (int i = 0; i < 3; i++)
        assert_false(bad_token_from("203.0.113.9", 100.0 + i));
    assert_true(bad_token_from("203.0.113.9", 104));
    assert_true(bad_token_from("203.0.113.9", 159));
    assert_false(bad_token_from("203.0.113.10", 159));
    assert_false(bad_token_from("203.0.113.9", 161));
}

/* More addresses than are remembered: nothing is lost but the memory of some. */
static void
test_many_addresses(void **state)
{
    struct sockaddr_storage address = address_of("10.0.0.0");
    struct sockaddr_in *in = (struct sockaddr_in *)&address;

    for (uint32_t i = 0; i < 20000; i++) {
        struct connection_slot *slot;

        in->sin_addr.s_addr = htonl(0x0a000000u + i);
        slot = peers_slot_new(&address, 1);
        assert_non_null(slot);
        assert_false(peers_bad_token(slot, 1000.0 + i * 0.001, 3));
        connection_slot_release(slot);
    }
    assert_int_equal(peers_n_slots(), 0);
}

static unsigned n_released;

static void
count_release(void)
{
    n_released++;
}

static void
test_release_is_told(void **state)
{
    struct sockaddr_storage address = address_of("203.0.113.9");

    peers_on_release(count_release);
    connection_slot_release(peers_slot_new(&address, 1));
    assert_int_equal(n_released, 1);
    peers_on_release(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cap_per_address), cmocka_unit_test(test_address_text),
        cmocka_unit_test(test_bad_tokens),      cmocka_unit_test(test_many_addresses),
        cmocka_unit_test(test_release_is_told),
    };

    peers_init((const uint8_t *)"12345678");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
