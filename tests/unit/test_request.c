/* The strict reader: every shape of request that two parsers could read differently is a row,
 * and so is everything a browser, curl or a proxy really sends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/request.h"

#define H "Host: 127.0.0.1:3001\r\n"
#define GET "GET / HTTP/1.1\r\n" H
#define POST "POST / HTTP/1.1\r\n" H
#define E "\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define UPGRADE "Connection: Upgrade\r\nUpgrade: websocket\r\n"
#define WS "GET /api/containers/a/logs-ws HTTP/1.1\r\n" H

/* Bytes with NULs inside need their length. */
#define BYTES(text) text, sizeof(text) - 1

struct verdict_row {
    const char *label;
    const char *bytes;
    size_t len;
    int status; /* 0: whole, -1: more is needed, else refused with it */
};

static const struct verdict_row VERDICTS[] = {
    /* --- what is sent for real */
    {"plain", BYTES(GET E), 0},
    {"1.0 with Host", BYTES("GET / HTTP/1.0\r\n" H E), 0},
    {"1.0 keep-alive", BYTES("GET / HTTP/1.0\r\n" H "Connection: keep-alive\r\n" E), 0},
    {"HEAD", BYTES("HEAD / HTTP/1.1\r\n" H E), 0},
    {"OPTIONS preflight", BYTES("OPTIONS /api/health HTTP/1.1\r\n" H
                                "Origin: http://127.0.0.1:3001\r\n"
                                "Access-Control-Request-Method: POST\r\n" E), 0},
    {"POST with length 0", BYTES(POST "Content-Length: 0\r\n" E), 0},
    {"POST with a body to come", BYTES(POST "Content-Length: 5\r\n" E), 0},
    {"GET with a body", BYTES(GET "Content-Length: 5\r\n" E "12345"), 0},
    {"DELETE without length", BYTES("DELETE /x HTTP/1.1\r\n" H E), 0},
    {"largest body", BYTES(POST "Content-Length: 65536\r\n" E), 0},
    {"length with blanks around", BYTES(POST "Content-Length:  \t7 \r\n" E), 0},
    {"no blank after colon", BYTES("GET / HTTP/1.1\r\nHost:a\r\n" E), 0},
    {"UTF-8 in a value", BYTES(GET "Authorization: Bearer \xc3\xa4\r\n" E), 0},
    {"tab inside a value", BYTES(GET "User-Agent: a\tb\r\n" E), 0},
    {"unknown method is for policy", BYTES("FOO / HTTP/1.1\r\n" H E), 0},
    {"lower-case method is another one", BYTES("get / HTTP/1.1\r\n" H E), 0},
    {"percent-encoded letter", BYTES("GET /%61pi/health HTTP/1.1\r\n" H E), 0},
    {"encoded UTF-8", BYTES("GET /%c3%a4 HTTP/1.1\r\n" H E), 0},
    {"double encoding stays encoded", BYTES("GET /%252e HTTP/1.1\r\n" H E), 0},
    {"three dots are a name", BYTES("GET /.../a HTTP/1.1\r\n" H E), 0},
    {"dots inside a name", BYTES("GET /a..b HTTP/1.1\r\n" H E), 0},
    {"semicolon inside a name", BYTES("GET /a;b HTTP/1.1\r\n" H E), 0},
    {"slash at the end", BYTES("GET /api/ HTTP/1.1\r\n" H E), 0},
    {"query", BYTES("GET /a?since=4&x=%20+ HTTP/1.1\r\n" H E), 0},
    {"query with a question mark", BYTES("GET /a?b?c HTTP/1.1\r\n" H E), 0},
    {"query with slashes and dots", BYTES("GET /a?directory=/../x HTTP/1.1\r\n" H E), 0},
    {"two X-Forwarded-For", BYTES(GET "X-Forwarded-For: 1\r\nX-Forwarded-For: 2\r\n" E), 0},
    {"IPv6 host", BYTES("GET / HTTP/1.1\r\nHost: [::1]:3001\r\n" E), 0},
    {"expect 100", BYTES(POST "Content-Length: 5\r\nExpect: 100-continue\r\n" E), 0},
    {"expect in any case", BYTES(POST "Content-Length: 5\r\nexpect: 100-Continue\r\n" E), 0},
    {"unknown fields twice", BYTES(GET "X: 1\r\nX: 2\r\n" E), 0},
    {"empty value", BYTES(GET "X:\r\n" E), 0},
    {"second request behind", BYTES(GET E GET E), 0},

    /* --- not whole yet */
    {"nothing", BYTES(""), -1},
    {"half a method", BYTES("GE"), -1},
    {"request line only", BYTES("GET / HTTP/1.1\r\n"), -1},
    {"CR has come, LF not", BYTES("GET / HTTP/1.1\r"), -1},
    {"all but the last LF", BYTES(GET "\r"), -1},

    /* --- line ends and raw bytes */
    {"bare LF after the request line", BYTES("GET / HTTP/1.1\n" H E), 400},
    {"bare LF after a field", BYTES("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400},
    {"bare LF ends the head", BYTES(GET "\n"), 400},
    {"only bare LFs", BYTES("GET / HTTP/1.1\nHost: a\n\n"), 400},
    {"bare CR in a value", BYTES(GET "Authorization: Bearer t0ken\rX\r\n" E), 400},
    {"bare CR in the request line", BYTES("GET /\r HTTP/1.1\r\n" H E), 400},
    {"bare CR, line not whole", BYTES("GET / HTTP/1.1\rX"), 400},
    {"CR CR LF", BYTES("GET / HTTP/1.1\r\r\n" H E), 400},
    {"NUL in Host", BYTES("GET / HTTP/1.1\r\nHost: 127.0.0.1\0.evil\r\n" E), 400},
    {"NUL in a value", BYTES(GET "X: a\0b\r\n" E), 400},
    {"NUL in the target", BYTES("GET /a\0b HTTP/1.1\r\n" H E), 400},
    {"NUL in a name", BYTES(GET "X\0Y: a\r\n" E), 400},
    {"NUL, line not whole", BYTES("GET /\0"), 400},
    {"ESC in a value", BYTES(GET "X: \x1b[31m\r\n" E), 400},
    {"DEL in a value", BYTES(GET "X: \x7f\r\n" E), 400},
    {"TLS on the plain port", BYTES("\x16\x03\x01\x02\x00\x01"), 400},
    {"empty line first", BYTES("\r\n" GET E), 400},
    {"blank first", BYTES(" GET / HTTP/1.1\r\n" H E), 400},
    {"raw UTF-8 in the target", BYTES("GET /\xc3\xa4 HTTP/1.1\r\n" H E), 400},
    {"tab in the request line", BYTES("GET\t/ HTTP/1.1\r\n" H E), 400},

    /* --- request line */
    {"two blanks", BYTES("GET  / HTTP/1.1\r\n" H E), 400},
    {"blank at the end", BYTES("GET / HTTP/1.1 \r\n" H E), 400},
    {"blank in the target", BYTES("GET /a b HTTP/1.1\r\n" H E), 400},
    {"HTTP/0.9 without version", BYTES("GET /\r\n"), 400},
    {"HTTP/0.9", BYTES("GET / HTTP/0.9\r\n" H E), 505},
    {"HTTP/9.9", BYTES("GET / HTTP/9.9\r\n" H E), 505},
    {"HTTP/1.2", BYTES("GET / HTTP/1.2\r\n" H E), 505},
    {"HTTP/2.0", BYTES("GET / HTTP/2.0\r\n" H E), 505},
    {"h2 preface", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505},
    {"version in lower case", BYTES("GET / http/1.1\r\n" H E), 400},
    {"version cut", BYTES("GET / HTTP/1\r\n" H E), 400},
    {"version long", BYTES("GET / HTTP/1.10\r\n" H E), 400},
    {"method with a colon", BYTES("G:T / HTTP/1.1\r\n" H E), 400},
    {"no method", BYTES(" / HTTP/1.1\r\n" H E), 400},
    {"endless method", BYTES("PROPFINDPROPFIND / HTTP/1.1\r\n" H E), 501},
    {"CONNECT", BYTES("CONNECT evil:443 HTTP/1.1\r\n" H E), 405},

    /* --- target */
    {"absolute form", BYTES("GET http://evil/abs HTTP/1.1\r\n" H E), 400},
    {"absolute form of ours", BYTES("GET http://127.0.0.1:3001/ HTTP/1.1\r\n" H E), 400},
    {"asterisk", BYTES("OPTIONS * HTTP/1.1\r\n" H E), 400},
    {"no slash", BYTES("GET api HTTP/1.1\r\n" H E), 400},
    {"fragment", BYTES("GET /a#b HTTP/1.1\r\n" H E), 400},
    {"backslash", BYTES("GET /a\\b HTTP/1.1\r\n" H E), 400},
    {"encoded backslash", BYTES("GET /a%5cb HTTP/1.1\r\n" H E), 400},
    {"encoded slash", BYTES("GET /a%2fb HTTP/1.1\r\n" H E), 400},
    {"dot dot", BYTES("GET /s/../etc HTTP/1.1\r\n" H E), 400},
    {"dot dot at the end", BYTES("GET /s/.. HTTP/1.1\r\n" H E), 400},
    {"encoded dot dot", BYTES("GET /s/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" H E), 400},
    {"half encoded dot dot", BYTES("GET /s/.%2e/etc HTTP/1.1\r\n" H E), 400},
    {"dot dot with encoded slash", BYTES("GET /r/..%2f..%2fetc HTTP/1.1\r\n" H E), 400},
    {"dot", BYTES("GET /s/./etc HTTP/1.1\r\n" H E), 400},
    {"dot dot with a parameter", BYTES("GET /s/..;a/etc HTTP/1.1\r\n" H E), 400},
    {"two slashes", BYTES("GET //etc HTTP/1.1\r\n" H E), 400},
    {"two slashes inside", BYTES("GET /a//b HTTP/1.1\r\n" H E), 400},
    {"encoded NUL", BYTES("GET /x/%00abc HTTP/1.1\r\n" H E), 400},
    {"encoded NUL behind dots", BYTES("GET /x/..%00/y HTTP/1.1\r\n" H E), 400},
    {"encoded LF", BYTES("GET /a%0aOrigin:http://evil HTTP/1.1\r\n" H E), 400},
    {"encoded CRLF", BYTES("GET /a%0d%0aX:y HTTP/1.1\r\n" H E), 400},
    {"encoded ESC", BYTES("GET /%1b HTTP/1.1\r\n" H E), 400},
    {"encoded DEL", BYTES("GET /%7f HTTP/1.1\r\n" H E), 400},
    {"encoded C1", BYTES("GET /%c2%9b HTTP/1.1\r\n" H E), 400},
    {"bad percent", BYTES("GET /%zz HTTP/1.1\r\n" H E), 400},
    {"cut percent", BYTES("GET /a% HTTP/1.1\r\n" H E), 400},
    {"cut percent, one digit", BYTES("GET /a%4 HTTP/1.1\r\n" H E), 400},
    {"percent across the query", BYTES("GET /a%4?1 HTTP/1.1\r\n" H E), 400},
    {"overlong UTF-8 slash", BYTES("GET /..%c0%af.. HTTP/1.1\r\n" H E), 400},
    {"UTF-8 surrogate", BYTES("GET /%ed%a0%80 HTTP/1.1\r\n" H E), 400},
    {"cut UTF-8", BYTES("GET /%e2%82 HTTP/1.1\r\n" H E), 400},
    {"quote in the path", BYTES("GET /\" HTTP/1.1\r\n" H E), 400},
    {"NUL in the query", BYTES("GET /?a=%00 HTTP/1.1\r\n" H E), 400},
    {"bad percent in the query", BYTES("GET /?a=%g1 HTTP/1.1\r\n" H E), 400},
    {"backslash in the query", BYTES("GET /?a=\\ HTTP/1.1\r\n" H E), 400},

    /* --- fields */
    {"folded Host", BYTES("GET / HTTP/1.1\r\nHost: a\r\n b\r\n" E), 400},
    {"folded with a tab", BYTES(GET "X: a\r\n\tb\r\n" E), 400},
    {"folded first line", BYTES("GET / HTTP/1.1\r\n Host: a\r\n" E), 400},
    {"blank before the colon", BYTES("GET / HTTP/1.1\r\nHost : evil\r\n" H E), 400},
    {"tab before the colon", BYTES(GET "X\t: evil\r\n" E), 400},
    {"blank inside a name", BYTES(GET "X Y: evil\r\n" E), 400},
    {"no colon", BYTES(GET "garbage\r\n" E), 400},
    {"no name", BYTES(GET ": v\r\n" E), 400},
    {"byte over 127 in a name", BYTES(GET "X\xc3: v\r\n" E), 400},

    /* --- Host */
    {"no Host", BYTES("GET / HTTP/1.1\r\n" E), 400},
    {"no Host in 1.0", BYTES("GET / HTTP/1.0\r\n" E), 400},
    {"two Hosts", BYTES(GET "Host: evil\r\n" E), 400},
    {"two equal Hosts", BYTES(GET H E), 400},
    {"two Hosts in other case", BYTES(GET "hOST: evil\r\n" E), 400},
    {"empty Host", BYTES("GET / HTTP/1.1\r\nHost:\r\n" E), 400},
    {"Host with a slash", BYTES("GET / HTTP/1.1\r\nHost: a/b\r\n" E), 400},
    {"Host with userinfo", BYTES("GET / HTTP/1.1\r\nHost: u@a\r\n" E), 400},
    {"Host with a blank", BYTES("GET / HTTP/1.1\r\nHost: a b\r\n" E), 400},
    {"Host with a comma", BYTES("GET / HTTP/1.1\r\nHost: a, b\r\n" E), 400},

    /* --- what may stand once */
    {"two Origins", BYTES(GET "Origin: http://a\r\nOrigin: http://b\r\n" E), 400},
    {"two Authorizations",
     BYTES(GET "Authorization: Bearer a\r\nAuthorization: Bearer a\r\n" E), 400},
    {"two Connections", BYTES(GET "Connection: close\r\nConnection: upgrade\r\n" E), 400},
    {"two Content-Types", BYTES(GET "Content-Type: a/b\r\nContent-Type: a/b\r\n" E), 400},

    /* --- how long the body is */
    {"length and chunked", BYTES("POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n"
                                 "Transfer-Encoding: chunked\r\n" E "GET /smuggled"), 400},
    {"chunked and length", BYTES(POST "Transfer-Encoding: chunked\r\n"
                                      "Content-Length: 5\r\n" E), 400},
    {"chunked POST", BYTES(POST "Transfer-Encoding: chunked\r\n" E "0\r\n\r\n"), 411},
    {"chunked in other case", BYTES(POST "transfer-encoding: Chunked\r\n" E), 411},
    {"chunked GET", BYTES(GET "Transfer-Encoding: chunked\r\n" E), 400},
    {"chunked in 1.0", BYTES("POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n" E), 400},
    {"gzip, chunked", BYTES(POST "Transfer-Encoding: gzip, chunked\r\n" E), 400},
    {"identity", BYTES(POST "Transfer-Encoding: identity\r\n" E), 400},
    {"empty coding", BYTES(POST "Transfer-Encoding:\r\n" E), 400},
    {"xchunked", BYTES(POST "Transfer-Encoding: xchunked\r\n" E), 400},
    {"two codings", BYTES(POST "Transfer-Encoding: chunked\r\n"
                               "Transfer-Encoding: chunked\r\n" E), 400},
    {"two lengths", BYTES(POST "Content-Length: 0\r\nContent-Length: 38\r\n" E), 400},
    {"two equal lengths", BYTES(POST "Content-Length: 5\r\nContent-Length: 5\r\n" E), 400},
    {"length list", BYTES(POST "Content-Length: 5, 5\r\n" E), 400},
    {"length 0x26", BYTES(POST "Content-Length: 0x26\r\n" E), 400},
    {"length +0", BYTES(POST "Content-Length: +0\r\n" E), 400},
    {"length -1", BYTES(POST "Content-Length: -1\r\n" E), 400},
    {"length 5abc", BYTES(POST "Content-Length: 5abc\r\n" E), 400},
    {"length 5 5", BYTES(POST "Content-Length: 5 5\r\n" E), 400},
    {"length 5.0", BYTES(POST "Content-Length: 5.0\r\n" E), 400},
    {"length of 40 digits",
     BYTES(POST "Content-Length: 0000000000000000000000000000000000000005\r\n" E), 400},
    {"length of 20 digits", BYTES(POST "Content-Length: 18446744073709551621\r\n" E), 400},
    {"empty length", BYTES(POST "Content-Length:\r\n" E), 400},
    {"POST without length", BYTES(POST E), 411},
    {"PUT without length", BYTES("PUT / HTTP/1.1\r\n" H E), 411},
    {"PATCH without length", BYTES("PATCH / HTTP/1.1\r\n" H E), 411},
    {"body one byte too long", BYTES(POST "Content-Length: 65537\r\n" E), 413},
    {"body of a gigabyte", BYTES(POST "Content-Length: 999999999\r\n" E), 413},
    {"other expectation", BYTES(POST "Content-Length: 5\r\nExpect: gold\r\n" E), 417},

    /* --- upgrades */
    {"handshake", BYTES(WS UPGRADE KEY VERSION E), 0},
    {"handshake in other case", BYTES(WS "connection: keep-alive, uPGRADE\r\n"
                                         "upgrade: WebSocket\r\n" KEY VERSION E), 0},
    {"handshake with protocols",
     BYTES(WS UPGRADE KEY VERSION "Sec-WebSocket-Protocol: ssebench, x\r\n" E), 0},
    {"h2c", BYTES(GET "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" E), 400},
    {"unknown upgrade", BYTES(GET "Connection: Upgrade\r\nUpgrade: foo\r\n" E), 400},
    {"websocket and h2c", BYTES(WS "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n" KEY
                                    VERSION E), 400},
    {"upgrade without Connection", BYTES(WS "Upgrade: websocket\r\n" KEY VERSION E), 400},
    {"Connection: u", BYTES(WS "Connection: u\r\nUpgrade: websocket\r\n" KEY VERSION E), 400},
    {"Connection: upgraded",
     BYTES(WS "Connection: upgraded\r\nUpgrade: websocket\r\n" KEY VERSION E), 400},
    {"POST handshake", BYTES("POST /x HTTP/1.1\r\n" H UPGRADE KEY VERSION
                             "Content-Length: 0\r\n" E), 400},
    {"HEAD handshake", BYTES("HEAD /x HTTP/1.1\r\n" H UPGRADE KEY VERSION E), 400},
    {"1.0 handshake", BYTES("GET /x HTTP/1.0\r\n" H UPGRADE KEY VERSION E), 400},
    {"handshake with a body", BYTES(WS UPGRADE KEY VERSION "Content-Length: 1\r\n" E), 400},
    {"version 8", BYTES(WS UPGRADE KEY "Sec-WebSocket-Version: 8\r\n" E), 426},
    {"version 13, 8", BYTES(WS UPGRADE KEY "Sec-WebSocket-Version: 13, 8\r\n" E), 426},
    {"no version", BYTES(WS UPGRADE KEY E), 426},
    {"no key", BYTES(WS UPGRADE VERSION E), 400},
    {"key x", BYTES(WS UPGRADE VERSION "Sec-WebSocket-Key: x\r\n" E), 400},
    {"key of 15 bytes",
     BYTES(WS UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j\r\n" E), 400},
    {"key of 17 bytes",
     BYTES(WS UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZWU=\r\n" E), 400},
    {"key of 60 characters",
     BYTES(WS UPGRADE VERSION "Sec-WebSocket-Key: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                              "aaaaaaaaaaaaaaaaaaaa\r\n" E), 400},
    {"key with stray bits",
     BYTES(WS UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==\r\n" E), 400},
    {"key with another alphabet",
     BYTES(WS UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25_ZQ==\r\n" E), 400},
    {"two keys", BYTES(WS UPGRADE KEY KEY VERSION E), 400},
    {"two protocol fields", BYTES(WS UPGRADE KEY VERSION "Sec-WebSocket-Protocol: a\r\n"
                                                         "Sec-WebSocket-Protocol: b\r\n" E),
     400},
};

static int
status_of(const char *bytes, size_t len)
{
    static struct request r;
    /* Exactly as large as the bytes, so that a sanitizer sees a read past them. */
    char *copy = malloc(len > 0 ? len : 1);
    struct request_result result;

    assert_non_null(copy);
    memcpy(copy, bytes, len);
    result = request_parse(copy, len, &r);
    free(copy);
    if (result.verdict == REQUEST_MORE)
        return -1;
    if (result.verdict == REQUEST_WHOLE)
        return 0;
    assert_non_null(result.reason);
    return result.status;
}

static void
test_verdicts(void **state)
{
    for (size_t i = 0; i < sizeof(VERDICTS) / sizeof(VERDICTS[0]); i++) {
        int status = status_of(VERDICTS[i].bytes, VERDICTS[i].len);

        if (status != VERDICTS[i].status)
            fail_msg("%s: %d instead of %d", VERDICTS[i].label, status, VERDICTS[i].status);
    }
}

/* However the bytes arrive, the verdict is the same: a prefix is "more" or already the same
 * refusal, never "whole" and never another refusal. */
static void
test_prefixes(void **state)
{
    for (size_t i = 0; i < sizeof(VERDICTS) / sizeof(VERDICTS[0]); i++) {
        const struct verdict_row *row = &VERDICTS[i];
        int last = -1;

        for (size_t len = 0; len <= row->len && last == -1; len++)
            last = status_of(row->bytes, len);
        if (last != row->status)
            fail_msg("%s, byte by byte: %d instead of %d", row->label, last, row->status);
    }
}

/* A head with a request line, `n_fields` fields and `padding` bytes in the last one. */
static char *
long_head(size_t target_len, unsigned n_fields, size_t padding, size_t *ret_len)
{
    size_t size = target_len + n_fields * 8 + padding + 256;
    char *head = malloc(size);
    char *at = head;

    assert_non_null(head);
    at += sprintf(at, "GET /?");
    memset(at, 'a', target_len - 2);
    at += target_len - 2;
    at += sprintf(at, " HTTP/1.1\r\nHost: a\r\n");
    for (unsigned i = 2; i < n_fields; i++)
        at += sprintf(at, "X: y\r\n");
    at += sprintf(at, "P: ");
    memset(at, 'p', padding);
    at += padding;
    at += sprintf(at, "\r\n\r\n");
    *ret_len = (size_t)(at - head);
    return head;
}

static void
test_sizes(void **state)
{
    /* "GET " + target + " HTTP/1.1\r\n" is 15 bytes more than the target. */
    static const struct {
        const char *label;
        size_t target_len;
        unsigned n_fields;
        size_t head_len; /* the whole head is padded to it */
        int status;
    } ROWS[] = {
        {"longest request line", LIMIT_REQUEST_LINE - 15, 2, 0, 0},
        {"request line one byte longer", LIMIT_REQUEST_LINE - 14, 2, 0, 414},
        {"most fields", 10, LIMIT_FIELDS, 0, 0},
        {"one field more", 10, LIMIT_FIELDS + 1, 0, 431},
        {"longest head", 10, 2, LIMIT_HEAD, 0},
        {"head one byte longer", 10, 2, LIMIT_HEAD + 1, 431},
    };

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        size_t len, padding = 0;
        char *head = long_head(ROWS[i].target_len, ROWS[i].n_fields, 0, &len);
        int status;

        if (ROWS[i].head_len > 0) {
            padding = ROWS[i].head_len - len;
            free(head);
            head = long_head(ROWS[i].target_len, ROWS[i].n_fields, padding, &len);
        }
        status = status_of(head, len);
        free(head);
        if (status != ROWS[i].status)
            fail_msg("%s: %d instead of %d", ROWS[i].label, status, ROWS[i].status);
    }
}

/* Without an end in sight the limits hold as well. */
static void
test_endless(void **state)
{
    char *bytes = malloc(2 * LIMIT_HEAD);

    assert_non_null(bytes);
    memset(bytes, 'A', 2 * LIMIT_HEAD);
    assert_int_equal(status_of(bytes, LIMIT_REQUEST_LINE), -1);
    assert_int_equal(status_of(bytes, LIMIT_REQUEST_LINE + 1), 414);
    memcpy(bytes, GET, sizeof(GET) - 1);
    assert_int_equal(status_of(bytes, LIMIT_HEAD), -1);
    assert_int_equal(status_of(bytes, LIMIT_HEAD + 1), 431);
    free(bytes);
}

static void
test_long_segment(void **state)
{
    char head[1024] = "GET /";

    memset(head + 5, 'a', LIMIT_PATH_SEGMENT);
    strcpy(head + 5 + LIMIT_PATH_SEGMENT, " HTTP/1.1\r\n" H E);
    assert_int_equal(status_of(head, strlen(head)), 0);
    memset(head + 5, 'a', LIMIT_PATH_SEGMENT + 1);
    strcpy(head + 5 + LIMIT_PATH_SEGMENT + 1, " HTTP/1.1\r\n" H E);
    assert_int_equal(status_of(head, strlen(head)), 414);
}

/* --- what a whole request says ------------------------------------------------------------ */

static bool
span_equals(struct span s, const char *text)
{
    return text ? s.at && s.len == strlen(text) && memcmp(s.at, text, s.len) == 0 : !s.at;
}

static void
test_fields(void **state)
{
    static const char HEAD[] =
        "POST /%61pi/launch?x=1&y HTTP/1.1\r\n"
        "hOsT: localhost:3001\r\nOrigin:\thttp://localhost:3001 \r\n"
        "Authorization: Bearer abc\r\nContent-Type: application/json\r\n"
        "Accept-Encoding: gzip\r\nIdempotency-Key: k\r\nExpect: 100-continue\r\n"
        "Content-Length: 12\r\n\r\n{\"a\":1}";
    static struct request r;
    struct request_result result = request_parse(HEAD, sizeof(HEAD) - 1, &r);

    assert_int_equal(result.verdict, REQUEST_WHOLE);
    assert_int_equal(result.head_len, sizeof(HEAD) - 1 - 7);
    assert_int_equal(r.method, METHOD_POST);
    assert_string_equal(r.method_name, "POST");
    assert_string_equal(r.path, "/api/launch");
    assert_int_equal(r.path_len, strlen("/api/launch"));
    assert_true(span_equals(r.query, "x=1&y"));
    assert_true(span_equals(r.host, "localhost:3001"));
    assert_true(span_equals(r.origin, "http://localhost:3001"));
    assert_true(span_equals(r.authorization, "Bearer abc"));
    assert_true(span_equals(r.content_type, "application/json"));
    assert_true(span_equals(r.accept_encoding, "gzip"));
    assert_true(span_equals(r.idempotency_key, "k"));
    assert_true(span_equals(r.if_none_match, NULL));
    assert_true(r.has_length);
    assert_int_equal(r.content_length, 12);
    assert_true(r.expect_continue);
    assert_true(r.keep_alive);
    assert_false(r.upgrade);
}

static void
test_keep_alive(void **state)
{
    static const struct {
        const char *head;
        bool keep_alive;
    } ROWS[] = {
        {GET E, true},
        {GET "Connection: close\r\n" E, false},
        {GET "Connection: foo , CLOSE\r\n" E, false},
        {GET "Connection: closed\r\n" E, true},
        {"GET / HTTP/1.0\r\n" H E, false},
        {"GET / HTTP/1.0\r\n" H "Connection: Keep-Alive\r\n" E, true},
    };
    static struct request r;

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        struct request_result result =
            request_parse(ROWS[i].head, strlen(ROWS[i].head), &r);

        assert_int_equal(result.verdict, REQUEST_WHOLE);
        assert_int_equal(r.keep_alive, ROWS[i].keep_alive);
    }
}

/* A request leaves nothing behind for the next one parsed into the same struct. */
static void
test_no_residue(void **state)
{
    static const char FIRST[] = "GET /secret?q=1 HTTP/1.1\r\n" H
                                "Authorization: Bearer x\r\nContent-Length: 3\r\n" E;
    static struct request r;

    request_parse(FIRST, sizeof(FIRST) - 1, &r);
    request_parse(GET E, sizeof(GET E) - 1, &r);
    assert_true(span_equals(r.authorization, NULL));
    assert_true(span_equals(r.query, NULL));
    assert_int_equal(r.content_length, 0);
    assert_false(r.has_length);
    assert_string_equal(r.path, "/");
}

static void
test_query(void **state)
{
    static const struct {
        const char *label, *query, *name;
        int result;
        const char *value;
    } ROWS[] = {
        {"plain", "since=12", "since", 1, "12"},
        {"second", "a=b&since=12", "since", 1, "12"},
        {"plus is a blank", "a=b+c", "a", 1, "b c"},
        {"percent", "a=%2Fx%c3%a4", "a", 1, "/x\xc3\xa4"},
        {"encoded name", "%61=1", "a", 1, "1"},
        {"empty value", "a=", "a", 1, ""},
        {"no equals sign", "a", "a", 1, ""},
        {"equals sign in the value", "a=b=c", "a", 1, "b=c"},
        {"absent", "b=1", "a", 0, NULL},
        {"prefix is another name", "ab=1", "a", 0, NULL},
        {"no query", "", "a", 0, NULL},
        {"only separators", "&&", "a", 0, NULL},
        {"given twice", "a=1&a=1", "a", -EBADMSG, NULL},
        {"twice, once encoded", "a=1&%61=2", "a", -EBADMSG, NULL},
        {"too long", "a=12345678", "a", -EBADMSG, NULL},
    };
    char head[256], out[8];
    static struct request r;

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        int result;

        sprintf(head, "GET /x?%s HTTP/1.1\r\n" H E, ROWS[i].query);
        assert_int_equal(request_parse(head, strlen(head), &r).verdict, REQUEST_WHOLE);
        result = request_query(&r, ROWS[i].name, out, sizeof(out));
        if (result != ROWS[i].result)
            fail_msg("%s: %d", ROWS[i].label, result);
        if (result == 1)
            assert_string_equal(out, ROWS[i].value);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),  cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_endless),
        cmocka_unit_test(test_long_segment), cmocka_unit_test(test_fields),
        cmocka_unit_test(test_keep_alive), cmocka_unit_test(test_no_residue),
        cmocka_unit_test(test_query),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
