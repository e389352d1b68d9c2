/* What a Host header may name and which names are loopback, with every spelling that
 * fooled somebody (contract/attacks.md rows 14, 20, 21, 22). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/host.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT(s) s, sizeof(s) - 1
#define TEN "abcdefghi."
#define FIFTY TEN TEN TEN TEN TEN

enum expected { BAD, FOREIGN, LOOPBACK };

static const struct {
    const char *label;
    const char *text;
    size_t len;
    enum expected expected;
    const char *name;
    int port;
} hosts[] = {
    {"localhost", TEXT("localhost"), LOOPBACK, "localhost", -1},
    {"localhost with port", TEXT("localhost:3001"), LOOPBACK, "localhost", 3001},
    {"letter case", TEXT("LocalHost:80"), LOOPBACK, "localhost", 80},
    {"one final dot", TEXT("localhost."), LOOPBACK, "localhost.", -1},
    {"one final dot and port", TEXT("localhost.:1"), LOOPBACK, "localhost.", 1},
    {"two final dots", TEXT("localhost.."), BAD},
    {"dot first", TEXT(".localhost"), BAD},
    {"only a dot", TEXT("."), BAD},
    {"127.0.0.1", TEXT("127.0.0.1"), LOOPBACK, "127.0.0.1", -1},
    {"127.0.0.1 with port", TEXT("127.0.0.1:3001"), LOOPBACK, "127.0.0.1", 3001},
    {"far end of the /8", TEXT("127.255.255.255:65535"), LOOPBACK, "127.255.255.255",
     65535},
    {"::1", TEXT("[::1]"), LOOPBACK, "::1", -1},
    {"::1 with port", TEXT("[::1]:3001"), LOOPBACK, "::1", 3001},
    {"::1 spelled out", TEXT("[0:0:0:0:0:0:0:1]:80"), LOOPBACK, "::1", 80},
    {"::1 with zeros", TEXT("[0000::0001]"), LOOPBACK, "::1", -1},
    {"mapped 127.0.0.1", TEXT("[::ffff:127.0.0.1]"), LOOPBACK, "::ffff:127.0.0.1", -1},
    {"mapped in hex", TEXT("[::FFFF:7f00:1]"), LOOPBACK, "::ffff:127.0.0.1", -1},
    {"mapped end of the /8", TEXT("[::ffff:7fff:ffff]"), LOOPBACK,
     "::ffff:127.255.255.255", -1},
    {"mapped other", TEXT("[::ffff:10.0.0.1]"), FOREIGN, "::ffff:10.0.0.1", -1},
    {"compatible form is not mapped", TEXT("[::127.0.0.1]"), FOREIGN, "::127.0.0.1",
     -1},
    {"NAT64 is not mapped", TEXT("[64:ff9b::7f00:1]"), FOREIGN, "64:ff9b::7f00:1", -1},
    {"any IPv6", TEXT("[::]"), FOREIGN, "::", -1},
    {"::2", TEXT("[::2]"), FOREIGN, "::2", -1},
    {"0.0.0.0 day", TEXT("0.0.0.0:3001"), FOREIGN, "0.0.0.0", 3001},
    {"0.0.0.0", TEXT("0.0.0.0"), FOREIGN, "0.0.0.0", -1},
    {"128.0.0.1", TEXT("128.0.0.1"), FOREIGN, "128.0.0.1", -1},
    {"126.255.255.255", TEXT("126.255.255.255"), FOREIGN, "126.255.255.255", -1},
    {"public address", TEXT("203.0.113.9"), FOREIGN, "203.0.113.9", -1},
    {"a name", TEXT("bench.example.org"), FOREIGN, "bench.example.org", -1},
    {"rebinding name", TEXT("attacker.example:3001"), FOREIGN, "attacker.example",
     3001},
    {"underscore", TEXT("a_b.example"), FOREIGN, "a_b.example", -1},
    {"digits first", TEXT("127.0.0.1.evil.example"), FOREIGN, "127.0.0.1.evil.example",
     -1},
    {"localhost as prefix", TEXT("localhost.evil.example"), FOREIGN,
     "localhost.evil.example", -1},
    {"localhost as suffix", TEXT("evil.localhost"), FOREIGN, "evil.localhost", -1},
    {"localhost joined", TEXT("localhostx"), FOREIGN, "localhostx", -1},
    {"nip.io", TEXT("127.0.0.1.nip.io"), FOREIGN, "127.0.0.1.nip.io", -1},
    {"253 long", TEXT(FIFTY FIFTY FIFTY FIFTY FIFTY "abc"), FOREIGN,
     FIFTY FIFTY FIFTY FIFTY FIFTY "abc", -1},
    {"254 long", TEXT(FIFTY FIFTY FIFTY FIFTY FIFTY "abcd"), BAD},
    {"254 long with its dot", TEXT(FIFTY FIFTY FIFTY FIFTY FIFTY "abc."), FOREIGN,
     FIFTY FIFTY FIFTY FIFTY FIFTY "abc.", -1},
    {"300 long", TEXT(FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY "a"), BAD},
    {"empty", TEXT(""), BAD},
    {"only a port", TEXT(":3001"), BAD},
    {"short form", TEXT("127.1"), BAD},
    {"three parts", TEXT("127.0.1"), BAD},
    {"five parts", TEXT("127.0.0.0.1"), BAD},
    {"one number", TEXT("2130706433"), BAD},
    {"zero", TEXT("0"), BAD},
    {"hexadecimal", TEXT("0x7f000001"), BAD},
    {"hexadecimal part", TEXT("0x7f.1"), BAD},
    {"hexadecimal last part", TEXT("127.0.0.0x1"), BAD},
    {"hexadecimal last label", TEXT("evil.0X7F"), BAD},
    {"empty hexadecimal", TEXT("0x"), BAD},
    {"not hexadecimal", TEXT("0xg"), FOREIGN, "0xg", -1},
    {"octal", TEXT("0177.0.0.1"), BAD},
    {"leading zero", TEXT("127.0.0.01"), BAD},
    {"part too large", TEXT("127.0.0.256"), BAD},
    {"part much too large", TEXT("127.0.0.99999999999"), BAD},
    {"empty part", TEXT("127..0.1"), BAD},
    {"quad with final dot", TEXT("127.0.0.1."), BAD},
    {"all-digit last label", TEXT("evil.127"), BAD},
    {"port 0", TEXT("localhost:0"), BAD},
    {"port with leading zero", TEXT("localhost:080"), BAD},
    {"port too large", TEXT("localhost:65536"), BAD},
    {"port overflow", TEXT("localhost:4294967376"), BAD},
    {"port with sign", TEXT("localhost:+80"), BAD},
    {"negative port", TEXT("localhost:-80"), BAD},
    {"empty port", TEXT("localhost:"), BAD},
    {"port of letters", TEXT("localhost:http"), BAD},
    {"port with blank", TEXT("localhost:80 "), BAD},
    {"two ports", TEXT("localhost:80:80"), BAD},
    {"user", TEXT("user@localhost"), BAD},
    {"user and port", TEXT("localhost:80@evil.example"), BAD},
    {"slash", TEXT("localhost/"), BAD},
    {"back slash", TEXT("localhost\\evil"), BAD},
    {"question mark", TEXT("localhost?"), BAD},
    {"hash", TEXT("localhost#"), BAD},
    {"percent", TEXT("localhost%00"), BAD},
    {"percent dot", TEXT("127%2e0.0.1"), BAD},
    {"tab", TEXT("local\thost"), BAD},
    {"blank first", TEXT(" localhost"), BAD},
    {"blank last", TEXT("localhost "), BAD},
    {"NUL and more", TEXT("127.0.0.1\0.evil"), BAD},
    {"NUL last", TEXT("localhost\0"), BAD},
    {"NUL in the port", TEXT("localhost:80\0"), BAD},
    {"two hosts folded", TEXT("127.0.0.1,  evil"), BAD},
    {"comma", TEXT("localhost,localhost"), BAD},
    {"not ASCII", TEXT("loc\xc3\xa4lhost"), BAD},
    {"full-width dot",
     TEXT("127\xe3\x80\x82"
          "0.0.1"),
     BAD},
    {"soft hyphen", TEXT("local\xc2\xadhost"), BAD},
    {"IPv6 without brackets", TEXT("::1"), BAD},
    {"no closing bracket", TEXT("[::1"), BAD},
    {"no opening bracket", TEXT("::1]"), BAD},
    {"empty brackets", TEXT("[]"), BAD},
    {"text after brackets", TEXT("[::1]x"), BAD},
    {"text before brackets", TEXT("x[::1]"), BAD},
    {"empty port after brackets", TEXT("[::1]:"), BAD},
    {"zone", TEXT("[::1%lo]"), BAD},
    {"encoded zone", TEXT("[fe80::1%25eth0]"), BAD},
    {"IPv4 in brackets", TEXT("[127.0.0.1]"), BAD},
    {"future form", TEXT("[v1.x]"), BAD},
    {"NUL in brackets", TEXT("[::1\0]"), BAD},
    {"two elisions", TEXT("[::1::]"), BAD},
    {"too many groups", TEXT("[1:2:3:4:5:6:7:8:9]"), BAD},
    {"group too long", TEXT("[::00001]"), BAD},
    {"octal in mapped", TEXT("[::ffff:127.0.0.01]"), BAD},
    {"blank in brackets", TEXT("[ ::1]"), BAD},
    {"long in brackets", TEXT("[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:1]"),
     BAD},
    {"name in brackets", TEXT("[localhost]"), BAD},
};

static void
test_parse(void **state)
{
    for (size_t i = 0; i < N(hosts); i++) {
        struct host h = {.port = 12345};
        bool parsed = policy_host_parse(hosts[i].text, hosts[i].len, &h);

        if (parsed != (hosts[i].expected != BAD))
            fail_msg("parse: %s", hosts[i].label);
        if (!parsed) {
            if (h.port != 12345 || h.len != 0)
                fail_msg("written on failure: %s", hosts[i].label);
            continue;
        }
        if (strcmp(h.name, hosts[i].name) != 0 || h.len != strlen(hosts[i].name) ||
            h.port != hosts[i].port)
            fail_msg("%s: %s port %d", hosts[i].label, h.name, h.port);
        if (policy_host_is_loopback(&h) != (hosts[i].expected == LOOPBACK))
            fail_msg("loopback: %s", hosts[i].label);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
