"""The strict reader on real sockets: what two parsers could read differently is refused."""
import pytest

from harness import BASE_PATH
from http_client import Closed

HEALTH = (BASE_PATH + "/api/health").encode()
GOOD = b"GET " + HEALTH + b" HTTP/1.1\r\nHost: localhost\r\n"
SMUGGLED = b"GET " + HEALTH + b" HTTP/1.1\r\nHost: localhost\r\nX-Smuggled: 1\r\n\r\n"
POST = b"POST " + HEALTH + b" HTTP/1.1\r\nHost: localhost\r\n"

REFUSED = [
    ("length and chunked", POST + b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n"
     b"0\r\n\r\n" + SMUGGLED, {400}),
    ("chunked", POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400, 411}),
    ("chunked, disguised", POST + b"Transfer-Encoding: xchunked\r\n\r\n" + SMUGGLED, {400, 411}),
    ("two lengths", POST + b"Content-Length: 0\r\nContent-Length: 38\r\n\r\n" + SMUGGLED, {400}),
    ("two equal lengths", POST + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n", {400}),
    ("list of lengths", POST + b"Content-Length: 0, 0\r\n\r\n", {400}),
    ("hex length", POST + b"Content-Length: 0x26\r\n\r\n" + SMUGGLED, {400}),
    ("plus length", POST + b"Content-Length: +0\r\n\r\n" + SMUGGLED, {400}),
    ("negative length", POST + b"Content-Length: -1\r\n\r\n", {400}),
    ("empty length", POST + b"Content-Length: \r\n\r\n", {400}),
    ("length over 64 bits", POST + b"Content-Length: 18446744073709551617\r\n\r\n", {400, 413}),
    ("huge length", POST + b"Content-Length: 99999999\r\n\r\n", {413}),
    ("two hosts", GOOD + b"Host: evil\r\n\r\n", {400}),
    ("two equal hosts", GOOD + b"Host: localhost\r\n\r\n", {400}),
    ("no host", b"GET " + HEALTH + b" HTTP/1.1\r\n\r\n", {400}),
    ("NUL in host", b"GET " + HEALTH + b" HTTP/1.1\r\nHost: localhost\0.evil\r\n\r\n", {400}),
    ("blank before the colon", b"GET " + HEALTH + b" HTTP/1.1\r\nHost : localhost\r\n\r\n", {400}),
    ("folded line", GOOD + b"X-A: a\r\n b\r\n\r\n", {400}),
    ("bare line feeds", b"GET " + HEALTH + b" HTTP/1.1\nHost: localhost\n\n", {400}),
    ("bare carriage return", GOOD + b"X-A: a\rb\r\n\r\n", {400}),
    ("control byte in a value", GOOD + b"X-A: a\x01b\r\n\r\n", {400}),
    ("line without a colon", GOOD + b"nonsense\r\n\r\n", {400}),
    ("empty name", GOOD + b": x\r\n\r\n", {400}),
    ("two origins", GOOD + b"Origin: http://localhost\r\nOrigin: http://evil\r\n\r\n", {400}),
    ("two authorizations", GOOD + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
     {400}),
    ("absolute form", b"GET http://localhost" + HEALTH + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
     {400}),
    ("asterisk form", b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    ("CONNECT", b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost:22\r\n\r\n", {400, 405, 501}),
    ("encoded NUL", b"GET " + HEALTH + b"%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    ("encoded line feed", b"GET " + HEALTH + b"%0aX:%20y HTTP/1.1\r\nHost: localhost\r\n\r\n",
     {400}),
    ("bad percent", b"GET " + HEALTH + b"%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    ("raw byte above ASCII", b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    ("two blanks", b"GET  " + HEALTH + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
    ("lower-case version", b"GET " + HEALTH + b" http/1.1\r\nHost: localhost\r\n\r\n", {400, 505}),
    ("HTTP/2.0", b"GET " + HEALTH + b" HTTP/2.0\r\nHost: localhost\r\n\r\n", {400, 505}),
    ("HTTP/0.9", b"GET " + HEALTH + b"\r\n\r\n", {400, 505}),
    ("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 405, 501, 505}),
    ("h2c", GOOD + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
     b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", {400, 426, 501}),
    ("unknown upgrade", GOOD + b"Connection: Upgrade\r\nUpgrade: x\r\n\r\n", {400, 426, 501}),
    ("two upgrades", GOOD + b"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n"
     b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
     {400, 426, 501}),
    ("old WebSocket", GOOD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
     b"Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
     {400, 426}),
    ("bad WebSocket key", GOOD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
     b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n\r\n", {400}),
    ("long line", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", {414}),
    ("long head", GOOD + b"X-A: " + b"a" * 20000 + b"\r\n\r\n", {431}),
    ("many fields", GOOD + b"X-A: a\r\n" * 100 + b"\r\n", {431}),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 40, {400}),
]


@pytest.mark.parametrize("name,data,statuses", REFUSED, ids=[r[0] for r in REFUSED])
def test_refused_and_closed(shared, name, data, statuses):
    with shared.connect() as c:
        c.send(data)
        r = c.response()
        assert r.status in statuses, r
        assert isinstance(r.json()["error"], str)
        rest = c.read_to_end()
        assert b"HTTP/1.1 200" not in rest, "what followed was served as a second request"


@pytest.mark.parametrize("piece", [1, 7, 64])
def test_a_head_in_pieces(shared, piece):
    data = GOOD + b"Connection: close\r\n\r\n"
    with shared.connect() as c:
        for at in range(0, len(data), piece):
            c.send(data[at:at + piece])
        assert c.response().status == 200


def test_pipelined_requests_are_answered_in_order(shared):
    other = b"GET " + BASE_PATH.encode() + b"/api/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with shared.connect() as c:
        c.send(GOOD + b"\r\n" + other + GOOD + b"\r\n")
        assert [c.response().status for _ in range(3)] == [200, 404, 200]


def test_http10(shared):
    with shared.connect() as c:
        c.send(b"GET " + HEALTH + b" HTTP/1.0\r\nHost: localhost\r\n\r\n")
        r = c.response()
        assert r.status == 200 and r.json()["status"] == "ok"
        assert c.read_to_end() == b""


def test_head_has_no_body(shared):
    with shared.connect() as c:
        c.send(GOOD.replace(b"GET", b"HEAD") + b"\r\n" + GOOD + b"\r\n")
        r = c.response("HEAD")
        assert r.status == 200 and r.body == b"" and int(r.header("Content-Length")) > 0
        assert c.response().json()["status"] == "ok"


def test_body_of_a_refused_request_is_no_request(guarded):
    """The body of an unauthorised POST must not be read as the next request."""
    body = SMUGGLED
    with guarded.connect(timeout=3) as c:
        c.send(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert c.response().status in (401, 429)
        try:
            second = c.response()
        except (Closed, TimeoutError):
            return
        raise AssertionError("answered twice: %r" % second)


@pytest.mark.parametrize("target", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
                                    "/..%2f..%2fetc/passwd", "//etc/passwd", "/./api/../x",
                                    "/assets/../../../../etc/passwd", "/\\..\\..\\etc\\passwd"])
def test_no_path_is_a_file(shared, target):
    with shared.connect() as c:
        c.send(("GET %s%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                % (shared.base, target)).encode())
        r = c.response()
        assert b"root:" not in r.body and r.status in (200, 301, 308, 400, 404)
        if r.status == 200:
            assert r.header("Content-Type").startswith("text/html"), "only the page itself"


@pytest.mark.parametrize("bad", ["latest", "LATEST", "-rf", ".hidden", "a" * 65, "a%2fb",
                                 "a;id", "$(id)", "a%20b", "--help", "%C3%A9", "a%0a"])
def test_invalid_run_ids_reach_no_command(shared, bad):
    before = len(shared.place.calls())
    for path in ("", "/diff", "/project", "/reference/patch"):
        r = shared.get("/api/containers/%s%s" % (bad, path))
        assert r.status in (400, 404), r
        if r.status == 400 and "%0a" not in bad and "%2f" not in bad:
            assert r.json()["error"] == "Invalid run ID"
    for verb in ("stop", "remove"):
        assert shared.post("/api/containers/%s/%s" % (bad, verb)).status in (400, 404)
    new = [c["argv"] for c in shared.place.calls()[before:]]
    assert [v for v in new if v[:2] != ["runs", "list"]] == []


def test_wrong_method_names_the_right_ones(shared):
    r = shared.request("DELETE", "/api/containers")
    assert r.status == 405 and "GET" in r.header("Allow")


def test_unknown_api_path(shared):
    r = shared.get("/api/nothing/here")
    assert r.status == 404 and isinstance(r.json()["error"], str)
