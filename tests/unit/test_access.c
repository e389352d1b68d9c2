/* Who is admitted: one row per rule, order and known way around it (security model;
 * contract 10.3; contract/attacks.md rows 2 to 5, 10, 11, 14 to 16, 22). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/access.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* The texts, written out here again so that a change of one is seen. */
#define HOST_TEXT "Host not allowed: set SSEBENCH_WEBUI_TOKEN to serve other host names"
#define PEER_TEXT                                                                      \
    "Peer not allowed: this server has no token and answers only the account that "    \
    "started "                                                                         \
    "it; set SSEBENCH_WEBUI_TOKEN"
#define ORIGIN_TEXT "Origin not allowed"
#define TOKEN_TEXT "Unauthorized"
#define READ_ONLY_TEXT "This server is read-only"
#define ASSISTANT_TEXT "The assistant is off on a hosted server"
#define DOCTOR_TEXT "This server does not report on its host"
#define ROLE_TEXT "This token's role does not allow it"
#define TERMINAL_TEXT "Terminal is disabled on this server"

#define LOCAL "127.0.0.1:3001"
#define OURS "http://127.0.0.1:3001"
#define LISTED "https://bench.example.org"
#define EVIL "http://attacker.example"

/* How the server was started. */
enum start { PLAIN, TOKEN, HOSTED, HOSTED_TOKEN, NO_TERMINAL, ANY_PEER, STARTS };

static const char listed[][POLICY_ORIGIN_SIZE] = {"https://bench.example.org:443"};

static const struct access_rules rules[STARTS] = {
    [PLAIN] = {.terminal = true,
               .account_uid = 1000,
               .origins = listed,
               .n_origins = 1},
    [TOKEN] = {.terminal = true,
               .has_token = true,
               .account_uid = 1000,
               .origins = listed,
               .n_origins = 1},
    [HOSTED] = {.hosted = true,
                .terminal = true,
                .account_uid = 1000,
                .origins = listed,
                .n_origins = 1},
    [HOSTED_TOKEN] = {.hosted = true,
                      .terminal = true,
                      .has_token = true,
                      .account_uid = 1000,
                      .origins = listed,
                      .n_origins = 1},
    [NO_TERMINAL] = {.account_uid = 1000, .origins = listed, .n_origins = 1},
    [ANY_PEER] = {.terminal = true,
                  .peers_any = true,
                  .account_uid = 1000,
                  .origins = listed,
                  .n_origins = 1},
};

/* What comes along: peer's account and token. */
enum with {
    OWN = 0,
    ROOT = 1,
    OTHER = 2,
    NOBODY_KNOWS = 3,
    GOOD = 4,  /* the server's token */
    WRONG = 8, /* another token */
    WS = 16,   /* as a WebSocket handshake */
    VIEW = 32, /* a good token of a lesser role */
    OPERATE = 64,
    CROSS = 128, /* Sec-Fetch-Site, what another site's page sends, and so on */
    SITE = 256,
    SAME = 512,
    PERSON = 1024,
};

struct access_case {
    const char *label;
    enum start start;
    int with;
    const char *method, *path, *host, *origin;
    int status; /* 0: allowed; 204: preflight */
    const char *error;
    const char *setting;
    bool cors;
};

#define ALLOWED 0, NULL, NULL, false
#define ALLOWED_CORS 0, NULL, NULL, true
#define NO_HOST 403, HOST_TEXT, "SSEBENCH_WEBUI_TOKEN", false
#define NO_PEER 403, PEER_TEXT, "SSEBENCH_WEBUI_TOKEN", false
#define NO_ORIGIN 403, ORIGIN_TEXT, "SSEBENCH_WEBUI_CORS_ORIGINS", false
#define NO_TOKEN 401, TOKEN_TEXT, NULL, false
#define READ_ONLY 403, READ_ONLY_TEXT, "SSEBENCH_WEBUI_HOSTED", false
#define NO_ASSISTANT 403, ASSISTANT_TEXT, "SSEBENCH_WEBUI_HOSTED", false
#define NO_DOCTOR 403, DOCTOR_TEXT, "SSEBENCH_WEBUI_HOSTED", false
#define HOSTED_TERMINAL 403, TERMINAL_TEXT, "SSEBENCH_WEBUI_HOSTED", false
#define TERMINAL_OFF 403, TERMINAL_TEXT, "SSEBENCH_WEBUI_TERMINAL", false

#define NO_ROLE 403, ROLE_TEXT, "SSEBENCH_WEBUI_TOKENS", false

static const struct access_case cases[] = {
    /* rule 7: the token's role */
    {"view reads", TOKEN, OWN | VIEW, "GET", "/api/containers", LOCAL, NULL, ALLOWED},
    {"view reads heads", TOKEN, OWN | VIEW, "HEAD", "/api/containers", LOCAL, NULL, ALLOWED},
    {"view watches", TOKEN, OWN | VIEW | WS, "GET", "/api/launch/ws", LOCAL, NULL, ALLOWED},
    {"view reads logs", TOKEN, OWN | VIEW | WS, "GET", "/api/containers/r/logs-ws", LOCAL, NULL,
     ALLOWED},
    {"view counts terminals", TOKEN, OWN | VIEW, "GET", "/api/pty/sessions", LOCAL, NULL,
     ALLOWED},
    {"view gets the page", TOKEN, OWN | VIEW, "GET", "/", LOCAL, NULL, ALLOWED},
    {"view launches", TOKEN, OWN | VIEW, "POST", "/api/launch", LOCAL, NULL, NO_ROLE},
    {"view stops", TOKEN, OWN | VIEW, "POST", "/api/containers/r/stop", LOCAL, NULL, NO_ROLE},
    {"view looks at the host", TOKEN, OWN | VIEW, "GET", "/api/launch/doctor", LOCAL, NULL,
     NO_ROLE},
    {"view opens a shell", TOKEN, OWN | VIEW | WS, "GET", "/api/pty/r", LOCAL, NULL, NO_ROLE},
    {"view asks the assistant", TOKEN, OWN | VIEW, "GET", "/api/containers/r/opencode/health",
     LOCAL, NULL, NO_ROLE},
    {"view invents a method", TOKEN, OWN | VIEW, "FETCH", "/api/containers", LOCAL, NULL,
     NO_ROLE},
    {"operate launches", TOKEN, OWN | OPERATE, "POST", "/api/launch", LOCAL, NULL, ALLOWED},
    {"operate cancels", TOKEN, OWN | OPERATE, "POST", "/api/launch/cancel", LOCAL, NULL,
     ALLOWED},
    {"operate clears", TOKEN, OWN | OPERATE, "POST", "/api/launch/clear", LOCAL, NULL, ALLOWED},
    {"operate stops", TOKEN, OWN | OPERATE, "POST", "/api/containers/r/stop", LOCAL, NULL,
     ALLOWED},
    {"operate removes", TOKEN, OWN | OPERATE, "POST", "/api/containers/r/remove", LOCAL, NULL,
     ALLOWED},
    {"operate looks at the host", TOKEN, OWN | OPERATE, "GET", "/api/launch/doctor", LOCAL,
     NULL, ALLOWED},
    {"operate opens a shell", TOKEN, OWN | OPERATE | WS, "GET", "/api/pty/r", LOCAL, NULL,
     NO_ROLE},
    {"operate opens OpenCode", TOKEN, OWN | OPERATE | WS, "GET", "/api/pty-debug/r", LOCAL,
     NULL, NO_ROLE},
    {"operate ends a terminal", TOKEN, OWN | OPERATE, "DELETE", "/api/pty/sessions/1", LOCAL,
     NULL, NO_ROLE},
    {"operate talks to the assistant", TOKEN, OWN | OPERATE, "POST",
     "/api/containers/r/opencode/sessions", LOCAL, NULL, NO_ROLE},
    {"operate, the word moved by %2f", TOKEN, OWN | OPERATE, "GET",
     "/api/containers/a/b/opencode/health", LOCAL, NULL, NO_ROLE},
    {"operate, a stop that is none", TOKEN, OWN | OPERATE, "POST",
     "/api/containers/a/b/stop", LOCAL, NULL, NO_ROLE},
    {"operate, a run called opencode", TOKEN, OWN | OPERATE, "POST",
     "/api/containers/opencode/stop", LOCAL, NULL, ALLOWED},
    {"operate, another change", TOKEN, OWN | OPERATE, "DELETE", "/api/containers/r", LOCAL,
     NULL, NO_ROLE},
    {"operate, a launch by PUT", TOKEN, OWN | OPERATE, "PUT", "/api/launch", LOCAL, NULL,
     NO_ROLE},
    {"full opens a shell", TOKEN, OWN | GOOD | WS, "GET", "/api/pty/r", LOCAL, NULL, ALLOWED},
    {"hosted decides before the role", HOSTED_TOKEN, OWN | VIEW, "POST", "/api/launch", LOCAL,
     NULL, READ_ONLY},
    {"origin decides before the role", TOKEN, OWN | VIEW, "POST", "/api/launch", LOCAL, EVIL,
     NO_ORIGIN},
    /* rule 1: host names */
    {"page, loopback", PLAIN, OWN, "GET", "/", LOCAL, NULL, ALLOWED},
    {"API, loopback", PLAIN, OWN, "GET", "/api/health", LOCAL, NULL, ALLOWED},
    {"localhost.", PLAIN, OWN, "GET", "/api/health", "localhost.", NULL, ALLOWED},
    {"::1", PLAIN, OWN, "GET", "/api/health", "[::1]:3001", NULL, ALLOWED},
    {"mapped", PLAIN, OWN, "GET", "/api/health", "[::ffff:127.0.0.1]", NULL, ALLOWED},
    {"rebound name", PLAIN, OWN, "GET", "/api/health", "attacker.example:3001", NULL,
     NO_HOST},
    {"rebound name, page", PLAIN, OWN, "GET", "/", "attacker.example", NULL, NO_HOST},
    {"rebound name, page below", PLAIN, OWN, "GET", "/run/1", "attacker.example", NULL,
     NO_HOST},
    {"name in both headers", PLAIN, OWN, "GET", "/api/health", "attacker.example", EVIL,
     NO_HOST},
    {"name with listed origin", PLAIN, OWN, "GET", "/api/health", "bench.example.org",
     LISTED, NO_HOST},
    {"preflight to a rebound name", PLAIN, OWN, "OPTIONS", "/api/launch",
     "attacker.example", LISTED, NO_HOST},
    {"upgrade to a rebound name", PLAIN, OWN | WS, "GET", "/api/pty/r",
     "attacker.example", EVIL, NO_HOST},
    {"0.0.0.0 day", PLAIN, OWN, "GET", "/api/health", "0.0.0.0:3001", NULL, NO_HOST},
    {"0.0.0.0 day, own origin", PLAIN, OWN, "GET", "/api/health", "0.0.0.0:3001",
     "http://0.0.0.0:3001", NO_HOST},
    {"empty host", PLAIN, OWN, "GET", "/api/health", "", NULL, NO_HOST},
    {"unparsable host", PLAIN, OWN, "GET", "/api/health", "127.0.0.1:x", NULL, NO_HOST},
    {"two hosts folded", PLAIN, OWN, "GET", "/api/health", "127.0.0.1, evil", NULL,
     NO_HOST},
    {"user in host", PLAIN, OWN, "GET", "/api/health", "evil@127.0.0.1", NULL, NO_HOST},
    {"short address", PLAIN, OWN, "GET", "/api/health", "127.1", NULL, NO_HOST},
    {"hosted without token", HOSTED, OWN, "GET", "/", "bench.example.org", NULL,
     NO_HOST},
    {"a token offered to a token-less server", PLAIN, OWN | WRONG, "GET", "/api/health",
     "attacker.example", NULL, NO_HOST},
    {"any peer is not any host", ANY_PEER, OTHER, "GET", "/", "attacker.example", NULL,
     NO_HOST},
    {"with a token any name", TOKEN, OTHER | GOOD, "GET", "/api/health",
     "bench.example.org", NULL, ALLOWED},
    {"with a token any name, page", TOKEN, OTHER, "GET", "/", "bench.example.org", NULL,
     ALLOWED},

    /* beyond the public server: the peer's account */
    {"root", PLAIN, ROOT, "GET", "/api/health", LOCAL, NULL, ALLOWED},
    {"other account", PLAIN, OTHER, "GET", "/api/health", LOCAL, NULL, NO_PEER},
    {"other account, page", PLAIN, OTHER, "GET", "/", LOCAL, NULL, NO_PEER},
    {"other account, upgrade", PLAIN, OTHER | WS, "GET", "/api/pty/r", LOCAL, OURS,
     NO_PEER},
    {"other account, preflight", PLAIN, OTHER, "OPTIONS", "/api/launch", LOCAL, LISTED,
     NO_PEER},
    {"unknown account", PLAIN, NOBODY_KNOWS, "GET", "/api/health", LOCAL, NULL,
     NO_PEER},
    {"unknown account, page", PLAIN, NOBODY_KNOWS, "GET", "/", LOCAL, NULL, NO_PEER},
    {"other account, hosted", HOSTED, OTHER, "GET", "/api/health", LOCAL, NULL,
     NO_PEER},
    {"host comes before peer", PLAIN, OTHER, "GET", "/", "attacker.example", NULL,
     NO_HOST},
    {"peer comes before origin", PLAIN, OTHER, "GET", "/api/health", LOCAL, EVIL,
     NO_PEER},
    {"any peer", ANY_PEER, OTHER, "GET", "/api/health", LOCAL, NULL, ALLOWED},
    {"any peer, unknown", ANY_PEER, NOBODY_KNOWS, "GET", "/api/health", LOCAL, NULL,
     ALLOWED},
    {"other account with the token", TOKEN, OTHER | GOOD, "GET", "/api/health", LOCAL,
     NULL, ALLOWED},

    /* rule 2: origins */
    {"own origin", PLAIN, OWN, "GET", "/api/health", LOCAL, OURS, ALLOWED},
    {"own origin, POST", PLAIN, OWN, "POST", "/api/launch", LOCAL, OURS, ALLOWED},
    {"own origin, upgrade", PLAIN, OWN | WS, "GET", "/api/pty/r", LOCAL, OURS, ALLOWED},
    {"no origin", PLAIN, OWN, "POST", "/api/launch", LOCAL, NULL, ALLOWED},
    {"https behind a proxy, default port", TOKEN, OTHER | GOOD, "GET", "/api/health",
     "bench.example.org", "https://bench.example.org", ALLOWED_CORS},
    {"https behind a proxy, not listed", TOKEN, OTHER | GOOD, "GET", "/api/health",
     "lab.example", "https://lab.example", ALLOWED},
    {"listed", PLAIN, OWN, "GET", "/api/health", LOCAL, LISTED, ALLOWED_CORS},
    {"listed, upgrade", PLAIN, OWN | WS, "GET", "/api/launch/ws", LOCAL, LISTED,
     ALLOWED_CORS},
    {"listed name, other scheme", PLAIN, OWN, "GET", "/api/health", LOCAL,
     "http://bench.example.org", NO_ORIGIN},
    {"listed name, other port", PLAIN, OWN, "GET", "/api/health", LOCAL,
     "https://bench.example.org:8443", NO_ORIGIN},
    {"subdomain of the listed", PLAIN, OWN, "GET", "/api/health", LOCAL,
     "https://a.bench.example.org", NO_ORIGIN},
    {"listed as prefix", PLAIN, OWN, "GET", "/api/health", LOCAL,
     "https://bench.example.org.evil.example", NO_ORIGIN},
    {"listed as suffix", PLAIN, OWN, "GET", "/api/health", LOCAL,
     "https://evilbench.example.org", NO_ORIGIN},
    {"foreign", PLAIN, OWN, "GET", "/api/health", LOCAL, EVIL, NO_ORIGIN},
    {"foreign, POST", PLAIN, OWN, "POST", "/api/launch", LOCAL, EVIL, NO_ORIGIN},
    {"foreign, DELETE", PLAIN, OWN, "DELETE", "/api/containers/r/opencode/sessions/s",
     LOCAL, EVIL, NO_ORIGIN},
    {"foreign, PATCH", PLAIN, OWN, "PATCH", "/api/launch", LOCAL, EVIL, NO_ORIGIN},
    {"foreign, HEAD", PLAIN, OWN, "HEAD", "/api/health", LOCAL, EVIL, NO_ORIGIN},
    {"foreign, invented method", PLAIN, OWN, "FOO", "/api/launch", LOCAL, EVIL,
     NO_ORIGIN},
    {"foreign, upgrade", PLAIN, OWN | WS, "GET", "/api/pty/r", LOCAL, EVIL, NO_ORIGIN},
    {"foreign, preflight", PLAIN, OWN, "OPTIONS", "/api/launch", LOCAL, EVIL,
     NO_ORIGIN},
    {"foreign with the token", TOKEN, OTHER | GOOD, "GET", "/api/health", LOCAL, EVIL,
     NO_ORIGIN},
    {"foreign upgrade with the token", TOKEN, OTHER | GOOD | WS, "GET", "/api/pty/r",
     LOCAL, "http://localhost:8080", NO_ORIGIN},
    {"any address", PLAIN, OWN, "GET", "/api/health", LOCAL, "http://203.0.113.9",
     NO_ORIGIN},
    {"other loopback port", PLAIN, OWN, "GET", "/api/health", LOCAL,
     "http://127.0.0.1:3002", NO_ORIGIN},
    {"other loopback name", PLAIN, OWN, "GET", "/api/health", LOCAL,
     "http://localhost:3001", NO_ORIGIN},
    {"default port is not ours", PLAIN, OWN, "GET", "/api/health", LOCAL,
     "http://127.0.0.1", NO_ORIGIN},
    {"null", PLAIN, OWN, "GET", "/api/health", LOCAL, "null", NO_ORIGIN},
    {"empty", PLAIN, OWN, "GET", "/api/health", LOCAL, "", NO_ORIGIN},
    {"two", PLAIN, OWN, "GET", "/api/health", LOCAL, OURS " " EVIL, NO_ORIGIN},
    {"two with comma", PLAIN, OWN, "GET", "/api/health", LOCAL, OURS ", " OURS,
     NO_ORIGIN},
    {"file", PLAIN, OWN, "GET", "/api/health", LOCAL, "file://", NO_ORIGIN},
    {"with a path", PLAIN, OWN, "GET", "/api/health", LOCAL, OURS "/", NO_ORIGIN},
    {"upgrade to the page's path", PLAIN, OWN | WS, "GET", "/", LOCAL, EVIL, NO_ORIGIN},
    {"the page does not look at it", PLAIN, OWN, "GET", "/", LOCAL, EVIL, ALLOWED},
    {"no prefix of /api", PLAIN, OWN, "GET", "/apix", LOCAL, EVIL, ALLOWED},
    {"/api itself", PLAIN, OWN, "GET", "/api", LOCAL, EVIL, NO_ORIGIN},
    {"origin against an unparsable host", TOKEN, OTHER | GOOD, "GET", "/api/health",
     "a b", "http://ab", NO_ORIGIN},

    /* rule 2 where there is no Origin: another page's image, frame or link */
    {"image that starts", PLAIN, OWN | CROSS, "GET", "/api/containers/r/opencode/health", LOCAL,
     NULL, NO_ORIGIN},
    {"image of another port", PLAIN, OWN | SITE, "GET", "/api/containers/r/opencode/health",
     LOCAL, NULL, NO_ORIGIN},
    {"image that asks the host", PLAIN, OWN | CROSS, "GET", "/api/launch/doctor", LOCAL, NULL,
     NO_ORIGIN},
    {"image with a token", TOKEN, OWN | GOOD | CROSS, "GET", "/api/launch/doctor", LOCAL, NULL,
     NO_ORIGIN},
    {"socket without an origin", PLAIN, OWN | CROSS | WS, "GET", "/api/pty/r", LOCAL, NULL,
     NO_ORIGIN},
    {"our own page", PLAIN, OWN | SAME, "GET", "/api/containers/r/opencode/health", LOCAL, NULL,
     ALLOWED},
    {"typed by a person", PLAIN, OWN | PERSON, "GET", "/api/launch/doctor", LOCAL, NULL,
     ALLOWED},
    {"link to a log", PLAIN, OWN | CROSS, "GET", "/api/containers/r/logs", LOCAL, NULL, ALLOWED},
    {"link to the page", PLAIN, OWN | CROSS, "GET", "/", LOCAL, NULL, ALLOWED},
    {"listed page", PLAIN, OWN | CROSS, "POST", "/api/launch", LOCAL, LISTED, ALLOWED_CORS},

    /* rule 3: preflight */
    {"preflight, listed", PLAIN, OWN, "OPTIONS", "/api/launch", LOCAL, LISTED, 204,
     NULL, NULL, true},
    {"preflight, own", PLAIN, OWN, "OPTIONS", "/api/launch", LOCAL, OURS, 204, NULL,
     NULL, false},
    {"preflight needs no token", TOKEN, OTHER, "OPTIONS", "/api/launch", LOCAL, LISTED,
     204, NULL, NULL, true},
    {"preflight when hosted", HOSTED, OWN, "OPTIONS", "/api/launch", LOCAL, LISTED, 204,
     NULL, NULL, true},
    {"preflight to the page is none", PLAIN, OWN, "OPTIONS", "/", LOCAL, NULL, ALLOWED},

    /* rule 4: the token */
    {"no token", TOKEN, OWN, "GET", "/api/health", LOCAL, NULL, NO_TOKEN},
    {"no token, /api", TOKEN, OWN, "GET", "/api", LOCAL, NULL, NO_TOKEN},
    {"no token, HEAD", TOKEN, OWN, "HEAD", "/api/health", LOCAL, NULL, NO_TOKEN},
    {"no token, unknown route", TOKEN, OWN, "GET", "/api/none", LOCAL, NULL, NO_TOKEN},
    {"no token, root's", TOKEN, ROOT, "GET", "/api/health", LOCAL, NULL, NO_TOKEN},
    {"wrong token", TOKEN, OWN | WRONG, "GET", "/api/health", LOCAL, NULL, NO_TOKEN},
    {"no token, upgrade", TOKEN, OWN | WS, "GET", "/api/launch/ws", LOCAL, OURS,
     NO_TOKEN},
    {"wrong token, upgrade", TOKEN, OWN | WRONG | WS, "GET", "/api/pty/r", LOCAL, OURS,
     NO_TOKEN},
    {"no token, upgrade elsewhere", TOKEN, OWN | WS, "GET", "/x", LOCAL, OURS,
     NO_TOKEN},
    {"no token, listed origin may read the answer", TOKEN, OWN, "GET", "/api/health",
     LOCAL, LISTED, 401, TOKEN_TEXT, NULL, true},
    {"token", TOKEN, OWN | GOOD, "GET", "/api/health", LOCAL, NULL, ALLOWED},
    {"token, upgrade", TOKEN, OTHER | GOOD | WS, "GET", "/api/pty/r", LOCAL, OURS,
     ALLOWED},
    {"lower-case method is no preflight", TOKEN, OWN, "options", "/api/health", LOCAL,
     NULL, NO_TOKEN},
    {"the page needs none", TOKEN, OTHER, "GET", "/", LOCAL, NULL, ALLOWED},
    {"token comes before hosted", HOSTED_TOKEN, OWN, "POST", "/api/launch", LOCAL, NULL,
     NO_TOKEN},

    /* rule 5: hosted */
    {"hosted read", HOSTED, OWN, "GET", "/api/containers", LOCAL, NULL, ALLOWED},
    {"hosted head", HOSTED, OWN, "HEAD", "/api/containers", LOCAL, NULL, ALLOWED},
    {"hosted review", HOSTED, OWN, "GET", "/api/containers/r/review", LOCAL, NULL,
     ALLOWED},
    {"hosted patch", HOSTED, OWN, "GET", "/api/containers/r/reference/patch", LOCAL,
     NULL, ALLOWED},
    {"hosted logs", HOSTED, OWN | WS, "GET", "/api/containers/r/logs-ws", LOCAL, OURS,
     ALLOWED},
    {"hosted launches", HOSTED, OWN | WS, "GET", "/api/launch/ws", LOCAL, OURS,
     ALLOWED},
    {"hosted launch", HOSTED, OWN, "POST", "/api/launch", LOCAL, NULL, READ_ONLY},
    {"hosted stop", HOSTED, OWN, "POST", "/api/containers/r/stop", LOCAL, NULL,
     READ_ONLY},
    {"hosted remove", HOSTED, OWN, "POST", "/api/containers/r/remove", LOCAL, NULL,
     READ_ONLY},
    {"hosted delete", HOSTED, OWN, "DELETE", "/api/containers/r/opencode/sessions/s",
     LOCAL, NULL, READ_ONLY},
    {"hosted put", HOSTED, OWN, "PUT", "/api/launch", LOCAL, NULL, READ_ONLY},
    {"hosted patch method", HOSTED, OWN, "PATCH", "/api/launch", LOCAL, NULL,
     READ_ONLY},
    {"hosted invented method", HOSTED, OWN, "FOO", "/api/launch", LOCAL, NULL,
     READ_ONLY},
    {"hosted lower-case get", HOSTED, OWN, "get", "/api/health", LOCAL, NULL,
     READ_ONLY},
    {"hosted longer method", HOSTED, OWN, "GETX", "/api/health", LOCAL, NULL,
     READ_ONLY},
    {"hosted with the token", HOSTED_TOKEN, OWN | GOOD, "POST", "/api/launch", LOCAL,
     NULL, READ_ONLY},
    {"hosted assistant", HOSTED, OWN, "GET", "/api/containers/r/opencode/health", LOCAL,
     NULL, NO_ASSISTANT},
    {"hosted assistant itself", HOSTED, OWN, "GET", "/api/containers/r/opencode", LOCAL,
     NULL, NO_ASSISTANT},
    {"hosted assistant, slash", HOSTED, OWN, "GET", "/api/containers/r/opencode/",
     LOCAL, NULL, NO_ASSISTANT},
    {"hosted assistant events", HOSTED, OWN | WS, "GET",
     "/api/containers/r/opencode/events-ws", LOCAL, OURS, NO_ASSISTANT},
    {"hosted assistant, slash in the ID", HOSTED, OWN, "GET",
     "/api/containers/a/b/opencode/health", LOCAL, NULL, NO_ASSISTANT},
    {"hosted assistant, empty ID", HOSTED, OWN, "GET",
     "/api/containers//opencode/health", LOCAL, NULL, NO_ASSISTANT},
    {"hosted run named opencode", HOSTED, OWN, "GET", "/api/containers/opencode/diff",
     LOCAL, NULL, ALLOWED},
    {"hosted, only starts like it", HOSTED, OWN, "GET", "/api/containers/r/opencodex",
     LOCAL, NULL, ALLOWED},
    {"hosted debug terminal", HOSTED, OWN | WS, "GET", "/api/pty-debug/r", LOCAL, OURS,
     NO_ASSISTANT},
    {"hosted debug terminal, plain", HOSTED, OWN, "GET", "/api/pty-debug/r", LOCAL,
     NULL, NO_ASSISTANT},
    {"hosted doctor", HOSTED, OWN, "GET", "/api/launch/doctor", LOCAL, NULL, NO_DOCTOR},
    {"hosted doctor, slash", HOSTED, OWN, "GET", "/api/launch/doctor/", LOCAL, NULL,
     NO_DOCTOR},
    {"hosted POST outside the API is the routes' matter", HOSTED, OWN, "POST", "/",
     LOCAL, NULL, ALLOWED},
    {"not hosted", PLAIN, OWN, "POST", "/api/launch", LOCAL, NULL, ALLOWED},
    {"not hosted assistant", PLAIN, OWN, "GET", "/api/containers/r/opencode/health",
     LOCAL, NULL, ALLOWED},
    {"not hosted doctor", PLAIN, OWN, "GET", "/api/launch/doctor", LOCAL, NULL,
     ALLOWED},

    /* rule 6: the terminal */
    {"terminal", PLAIN, OWN | WS, "GET", "/api/pty/r", LOCAL, OURS, ALLOWED},
    {"debug terminal", PLAIN, OWN | WS, "GET", "/api/pty-debug/r", LOCAL, OURS,
     ALLOWED},
    {"terminal off", NO_TERMINAL, OWN | WS, "GET", "/api/pty/r", LOCAL, OURS,
     TERMINAL_OFF},
    {"terminal off, no run", NO_TERMINAL, OWN | WS, "GET", "/api/pty", LOCAL, OURS,
     TERMINAL_OFF},
    {"terminal off, plain", NO_TERMINAL, OWN, "GET", "/api/pty/r", LOCAL, NULL,
     TERMINAL_OFF},
    {"terminal off, debug", NO_TERMINAL, OWN | WS, "GET", "/api/pty-debug/r", LOCAL,
     OURS, TERMINAL_OFF},
    {"terminal off, counts", NO_TERMINAL, OWN, "GET", "/api/pty/sessions", LOCAL, NULL,
     ALLOWED},
    {"terminal off, run named sessions", NO_TERMINAL, OWN | WS, "GET",
     "/api/pty/sessions", LOCAL, OURS, TERMINAL_OFF},
    {"terminal off, assistant stays", NO_TERMINAL, OWN, "GET",
     "/api/containers/r/opencode/health", LOCAL, NULL, ALLOWED},
    {"hosted terminal", HOSTED, OWN | WS, "GET", "/api/pty/r", LOCAL, OURS,
     HOSTED_TERMINAL},
    {"hosted terminal, plain", HOSTED, OWN, "GET", "/api/pty/r", LOCAL, NULL,
     HOSTED_TERMINAL},
    {"hosted counts", HOSTED, OWN, "GET", "/api/pty/sessions", LOCAL, NULL, ALLOWED},
    {"hosted terminal with the token", HOSTED_TOKEN, OWN | GOOD | WS, "GET",
     "/api/pty/r", LOCAL, OURS, HOSTED_TERMINAL},
};

static struct access_verdict
decide(const struct access_case *c)
{
    static const uint32_t uids[] = {[OWN] = 1000, [ROOT] = 0, [OTHER] = 1001};
    int peer = c->with & 3;
    const char *site = (c->with & CROSS) != 0    ? "cross-site"
                       : (c->with & SITE) != 0   ? "same-site"
                       : (c->with & SAME) != 0   ? "same-origin"
                       : (c->with & PERSON) != 0 ? "none"
                                                 : NULL;
    struct access_request request = {
        .method = c->method,
        .path = c->path,
        .path_len = strlen(c->path),
        .upgrade = (c->with & WS) != 0,
        .host = c->host,
        .host_len = strlen(c->host),
        .origin = c->origin,
        .origin_len = c->origin != NULL ? strlen(c->origin) : 0,
        .fetch_site = site,
        .fetch_site_len = site != NULL ? strlen(site) : 0,
        .token_given = (c->with & (GOOD | WRONG | VIEW | OPERATE)) != 0,
        .token_good = (c->with & (GOOD | VIEW | OPERATE)) != 0,
        .role = (c->with & GOOD) != 0      ? ROLE_FULL
                : (c->with & OPERATE) != 0 ? ROLE_OPERATE
                : (c->with & VIEW) != 0    ? ROLE_VIEW
                                           : ROLE_NONE,
        .peer = peer == NOBODY_KNOWS ? ACCESS_PEER_UNKNOWN : ACCESS_PEER_UID,
        .peer_uid = peer == NOBODY_KNOWS ? 1000 : uids[peer],
    };

    return policy_access_decide(&rules[c->start], &request);
}

static bool
same_text(const char *a, const char *b)
{
    return (a == NULL && b == NULL) || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void
test_table(void **state)
{
    for (size_t i = 0; i < N(cases); i++) {
        const struct access_case *c = &cases[i];
        struct access_verdict v = decide(c);
        enum access_outcome outcome = c->status == 0     ? ACCESS_ALLOW
                                      : c->status == 204 ? ACCESS_PREFLIGHT
                                                         : ACCESS_REFUSE;

        if (v.outcome != outcome ||
            (outcome == ACCESS_REFUSE && v.status != c->status) ||
            !same_text(v.error, c->error) || !same_text(v.setting, c->setting) ||
            v.cors != c->cors)
            fail_msg("%s: outcome %d status %d error %s setting %s cors %d", c->label,
                     v.outcome, v.status, v.error != NULL ? v.error : "-",
                     v.setting != NULL ? v.setting : "-", v.cors);
    }
}

/* Host x Origin x method x path with hostile values: whatever comes along, a foreign
 * value in either header never gets past rule 2. */
static void
test_cross_product(void **state)
{
    static const char *const methods[] = {"GET",    "HEAD",  "POST",    "PUT",
                                          "DELETE", "PATCH", "OPTIONS", "FOO"};
    static const char *const paths[] = {
        "/api",      "/api/health", "/api/launch",    "/api/pty/r",
        "/api/none", "/api/",       "/api/launch/ws", "/api/containers/r/stop"};
    static const char *const hosts[] = {LOCAL, "localhost:3001", "[::1]:3001"};
    static const char *const origins[] = {
        EVIL,
        "null",
        "",
        "http://203.0.113.9",
        "http://127.0.0.1:3002",
        "file://",
        "http://0.0.0.0",
        "https://*",
        "http://127.0.0.1:3001.evil.example",
    };

    for (size_t n = 0; n < N(methods) * N(paths) * N(hosts) * N(origins) * STARTS * 2;
         n++) {
        size_t k = n;
        struct access_case c = {.with = OWN | GOOD};

        c.method = methods[k % N(methods)], k /= N(methods);
        c.path = paths[k % N(paths)], k /= N(paths);
        c.host = hosts[k % N(hosts)], k /= N(hosts);
        c.origin = origins[k % N(origins)], k /= N(origins);
        c.start = (enum start)(k % STARTS), k /= STARTS;
        c.with |= k != 0 ? WS : 0;
        struct access_verdict v = decide(&c);
        if (v.outcome != ACCESS_REFUSE || v.status != 403 ||
            strcmp(v.error, ORIGIN_TEXT) != 0 || v.cors)
            fail_msg("%s %s Host: %s Origin: %s", c.method, c.path, c.host, c.origin);
    }
}

static void
test_path(void **state)
{
    static const struct {
        const char *path;
        bool api;
    } paths[] = {{"/api", true},  {"/api/", true},   {"/api/health", true},
                 {"/", false},    {"/apix", false},  {"/ap", false},
                 {"/API", false}, {"/x/api", false}, {"", false},
                 {"api/x", false}};

    for (size_t i = 0; i < N(paths); i++)
        if (policy_access_is_api(paths[i].path, strlen(paths[i].path)) != paths[i].api)
            fail_msg("%s", paths[i].path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_cross_product),
        cmocka_unit_test(test_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
