/* Origins: one row for each way in which somebody's comparison was fooled
 * (contract/attacks.md rows 1 to 4, 15, 16). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/origin.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT(s) s, sizeof(s) - 1

static const struct {
    const char *label;
    const char *text;
    size_t len;
    const char *canonical; /* NULL: no origin at all */
} normal[] = {
    {"http", TEXT("http://localhost"), "http://localhost:80"},
    {"https", TEXT("https://bench.example.org"), "https://bench.example.org:443"},
    {"default port given", TEXT("https://bench.example.org:443"),
     "https://bench.example.org:443"},
    {"other port", TEXT("http://10.0.0.1:3001"), "http://10.0.0.1:3001"},
    {"IPv6", TEXT("http://[::1]:3001"), "http://[::1]:3001"},
    {"IPv6 spelled out", TEXT("http://[0:0:0:0:0:0:0:1]"), "http://[::1]:80"},
    {"letter case", TEXT("HTTPS://Bench.Example.ORG"), "https://bench.example.org:443"},
    {"one slash", TEXT("https://bench.example.org/"), "https://bench.example.org:443"},
    {"two slashes", TEXT("https://bench.example.org//"), NULL},
    {"path", TEXT("https://bench.example.org/a"), NULL},
    {"query", TEXT("https://bench.example.org?a"), NULL},
    {"fragment", TEXT("https://bench.example.org#a"), NULL},
    {"user", TEXT("https://user@bench.example.org"), NULL},
    {"wildcard", TEXT("*"), NULL},
    {"wildcard host", TEXT("https://*"), NULL},
    {"wildcard label", TEXT("https://*.example.org"), NULL},
    {"no scheme", TEXT("bench.example.org"), NULL},
    {"scheme-relative", TEXT("//bench.example.org"), NULL},
    {"file", TEXT("file://"), NULL},
    {"file with host", TEXT("file://localhost"), NULL},
    {"ftp", TEXT("ftp://bench.example.org"), NULL},
    {"websocket scheme", TEXT("ws://bench.example.org"), NULL},
    {"extension", TEXT("chrome-extension://abcdef"), NULL},
    {"null", TEXT("null"), NULL},
    {"empty", TEXT(""), NULL},
    {"only a slash", TEXT("/"), NULL},
    {"no host", TEXT("http://"), NULL},
    {"no host but slash", TEXT("http:///"), NULL},
    {"one slash after scheme", TEXT("http:/localhost"), NULL},
    {"back slashes", TEXT("http:\\\\localhost"), NULL},
    {"blank first", TEXT(" http://localhost"), NULL},
    {"blank last", TEXT("http://localhost "), NULL},
    {"two origins", TEXT("http://localhost http://evil.example"), NULL},
    {"two origins with comma", TEXT("http://localhost, http://evil.example"), NULL},
    {"NUL", TEXT("http://localhost\0"), NULL},
    {"NUL and more", TEXT("http://localhost\0.evil.example"), NULL},
    {"percent", TEXT("http://local%68ost"), NULL},
    {"port 0", TEXT("http://localhost:0"), NULL},
    {"port too large", TEXT("http://localhost:65536"), NULL},
    {"empty port", TEXT("http://localhost:"), NULL},
    {"short address", TEXT("http://127.1"), NULL},
    {"not ASCII", TEXT("http://b\xc3\xa4nch.example"), NULL},
};

static void
test_normalise(void **state)
{
    for (size_t i = 0; i < N(normal); i++) {
        char out[POLICY_ORIGIN_SIZE] = "untouched";
        bool is = policy_origin_normalise(normal[i].text, normal[i].len, out);
        const char *expected =
            normal[i].canonical != NULL ? normal[i].canonical : "untouched";

        if (is != (normal[i].canonical != NULL) || strcmp(out, expected) != 0)
            fail_msg("%s: %s", normal[i].label, out);
    }
}

/* A header is not a setting: there the slash is a path. */
static void
test_parse_is_strict(void **state)
{
    struct origin o;

    assert_false(policy_origin_parse(TEXT("http://localhost/"), &o));
    assert_true(policy_origin_parse(TEXT("http://localhost"), &o));
    assert_int_equal(o.host.port, 80);
    assert_true(policy_origin_parse(TEXT("https://localhost"), &o));
    assert_int_equal(o.scheme, ORIGIN_HTTPS);
    assert_int_equal(o.host.port, 443);
}

static const struct {
    const char *label, *origin, *host;
    bool same;
} pairs[] = {
    {"same", "http://localhost:3001", "localhost:3001", true},
    {"letter case", "http://LOCALHOST:3001", "localhost:3001", true},
    {"default port, http", "http://bench.example", "bench.example", true},
    {"default port, https", "https://bench.example", "bench.example", true},
    {"Host spells out 80", "http://bench.example", "bench.example:80", true},
    {"Host spells out 443", "https://bench.example", "bench.example:443", true},
    {"Origin spells out 80", "http://bench.example:80", "bench.example", true},
    {"Origin spells out 443", "https://bench.example:443", "bench.example", true},
    {"the other scheme's port", "https://bench.example", "bench.example:80", false},
    {"443 under http", "http://bench.example", "bench.example:443", false},
    {"IPv6", "http://[::1]:3001", "[::1]:3001", true},
    {"IPv6, other spelling", "http://[0:0::1]:3001", "[::1]:3001", true},
    {"mapped IPv4, other spelling", "http://[::ffff:7f00:1]", "[::ffff:127.0.0.1]",
     true},
    {"mapped is not plain", "http://127.0.0.1", "[::ffff:127.0.0.1]", false},
    {"other port", "http://localhost:3002", "localhost:3001", false},
    {"no port, no default", "http://localhost", "localhost:3001", false},
    {"sibling subdomain", "http://evil.bench.example", "bench.example", false},
    {"parent domain", "http://example", "bench.example", false},
    {"suffix joined", "http://evilbench.example", "bench.example", false},
    {"prefix", "http://bench.example.evil.example", "bench.example", false},
    {"dash joined", "http://bench.example-evil.example", "bench.example", false},
    {"any address", "http://203.0.113.9", "127.0.0.1", false},
    {"name against address", "http://localhost:3001", "127.0.0.1:3001", false},
    {"final dot is another origin", "http://localhost.:3001", "localhost:3001", false},
    {"foreign", "https://attacker.example", "127.0.0.1:3001", false},
};

static void
test_same_host(void **state)
{
    for (size_t i = 0; i < N(pairs); i++) {
        struct origin o;
        struct host h;

        if (!policy_origin_parse(pairs[i].origin, strlen(pairs[i].origin), &o) ||
            !policy_host_parse(pairs[i].host, strlen(pairs[i].host), &h))
            fail_msg("row does not parse: %s", pairs[i].label);
        if (policy_origin_same_host(&o, &h) != pairs[i].same)
            fail_msg("%s", pairs[i].label);
    }
}

static const struct {
    const char *label, *origin;
    bool listed;
} offers[] = {
    {"first", "https://bench.example.org", true},
    {"first with port", "https://bench.example.org:443", true},
    {"first, letter case", "HTTPS://BENCH.example.org", true},
    {"second", "http://10.0.0.1:3001", true},
    {"third, IPv6", "http://[0::1]:5173", true},
    {"other scheme", "http://bench.example.org", false},
    {"other scheme, that port", "http://bench.example.org:443", false},
    {"other port", "https://bench.example.org:444", false},
    {"cut port", "http://10.0.0.1:300", false},
    {"longer port", "http://10.0.0.1:30011", false},
    {"subdomain", "https://a.bench.example.org", false},
    {"suffix", "https://evilbench.example.org", false},
    {"prefix", "https://bench.example.org.evil.example", false},
    {"final dot", "https://bench.example.org.", false},
};

static void
test_listed(void **state)
{
    static const char list[3][POLICY_ORIGIN_SIZE] = {
        "https://bench.example.org:443", "http://10.0.0.1:3001", "http://[::1]:5173"};

    for (size_t i = 0; i < N(offers); i++) {
        struct origin o;

        if (!policy_origin_parse(offers[i].origin, strlen(offers[i].origin), &o))
            fail_msg("row does not parse: %s", offers[i].label);
        if (policy_origin_listed(&o, list, 3) != offers[i].listed)
            fail_msg("%s", offers[i].label);
        assert_false(policy_origin_listed(&o, NULL, 0));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normalise),
        cmocka_unit_test(test_parse_is_strict),
        cmocka_unit_test(test_same_host),
        cmocka_unit_test(test_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
