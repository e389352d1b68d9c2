"""Hostile requests alone, as the second of a connection, and through four proxies."""
import base64
import importlib.util
import os
import socket
import time

import pytest

import fronts
import harness
from conftest import E2E
from harness import TOKEN
from http_client import Closed, Connection

_spec = importlib.util.spec_from_file_location("e2e_requests",
                                               os.path.join(E2E, "test_requests.py"))
e2e_requests = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(e2e_requests)
GOOD, SMUGGLED, POST = e2e_requests.GOOD, e2e_requests.SMUGGLED, e2e_requests.POST
HEALTH = e2e_requests.HEALTH

# label, bytes: beyond what the end-to-end suite has
MORE = [
    ("length in the trailer", POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"
     b"Content-Length: 5\r\n\r\n" + SMUGGLED),
    ("chunked by a folded line", POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    ("chunked with a tab", POST + b"Transfer-Encoding:\tchunked\r\nContent-Length: 0\r\n\r\n"
     + SMUGGLED),
    ("chunked, capitals", POST + b"TRANSFER-ENCODING: CHUNKED\r\n\r\n0\r\n\r\n" + SMUGGLED),
    ("chunked, vertical tab", POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    ("chunked twice", POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"
     b"0\r\n\r\n" + SMUGGLED),
    ("identity", POST + b"Transfer-Encoding: identity\r\n\r\n" + SMUGGLED),
    ("blank before the colon of a length", POST + b"Content-Length : 5\r\n\r\nGET /" + SMUGGLED),
    ("length with a line feed only", POST + b"X: y\nContent-Length: 60\r\n\r\n" + SMUGGLED),
    ("length with underscores", POST + b"Content_Length: 60\r\n\r\n" + SMUGGLED),
    ("length with zeros", POST + b"Content-Length: 000000000000000000000\r\n\r\n" + SMUGGLED),
    ("length with a blank in it", POST + b"Content-Length: 1 0\r\n\r\n" + SMUGGLED),
    ("length with NUL", POST + b"Content-Length: 0\0\r\n\r\n" + SMUGGLED),
    ("length of GET", GOOD + b"Content-Length: %d\r\n\r\n" % len(SMUGGLED) + SMUGGLED),
    ("chunk extension with a line feed", POST + b"Transfer-Encoding: chunked\r\n\r\n"
     b"2;\nxx\r\nGE\r\n0\r\n\r\n" + SMUGGLED),
    ("chunk size over 64 bits", POST + b"Transfer-Encoding: chunked\r\n\r\n"
     b"10000000000000000\r\n\r\n" + SMUGGLED),
    ("HTTP/1.0 with chunked", POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n"
     b"0\r\n\r\n" + SMUGGLED),
    ("HTTP/1.2", GOOD.replace(b"1.1", b"1.2") + b"\r\n"),
    ("connection names the host", GOOD + b"Connection: Host\r\n\r\n"),
    ("connection names the token", GOOD + b"Connection: close, Authorization\r\n\r\n"),
    ("host with a path", b"GET " + HEALTH + b" HTTP/1.1\r\nHost: localhost/evil\r\n\r\n"),
    ("host in the target", b"GET http://evil/ HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("target with a fragment", b"GET " + HEALTH + b"#x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("target with a tab", b"GET " + HEALTH + b"\tHTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("backslashes", b"GET \\api\\health HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("encoded slash", b"GET /api%2fhealth HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("encoded dots", b"GET /x/%2e%2e/api/health HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("dots", b"GET /x/../api/health HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("empty segments", b"GET //api//health HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("twice encoded", b"GET /api%252fhealth HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("forwarded host", GOOD + b"X-Forwarded-Host: evil\r\nForwarded: host=evil\r\n\r\n"),
    ("method override", GOOD + b"X-HTTP-Method-Override: DELETE\r\n\r\n"),
    ("expect", POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}"),
    ("expect something else", POST + b"Expect: 200-maybe\r\nContent-Length: 2\r\n\r\n{}"),
    ("trailing garbage", GOOD + b"\r\n\0\0\0\0"),
    ("many blank lines first", b"\r\n" * 50 + GOOD + b"\r\n"),
]
ALL = [(r[0], r[1]) for r in e2e_requests.REFUSED] + MORE
HOSTS = ["evil", "evil:80", "localhost.evil", "127.0.0.1.evil", "evil.localhost.evil",
         "user@localhost", "localhost@evil", "localhost:80@evil", "[::1]evil", "[::1", "::1",
         "[::]", "0.0.0.0", "[::ffff:8.8.8.8]", "0x7f.1.evil", "2130706434", "128.0.0.1",
         "localhost:65536", "localhost:-1", "localhost:80:80", "localhost:8a", "local host",
         "localhost,evil", "localhost;evil", "localhost%00", "localhost%2eevil", "\xe2\x93\x9b",
         "169.254.169.254", "127.0.0.1#", "127.0.0.1?", "127.0.0.1/", "xn--localhost-", "-", "*",
         "127.0.0.256", "[fe80::1]", "[::1%25lo]"]
ORIGINS = ["null", "file://", "http://evil", "https://evil", "http://localhost.evil",
           "http://evil.localhost", "http://localhost:1", "http://{host}.evil",
           "http://user@{host}", "http://{host}@evil", "http://{host}/", "http://{host}/x",
           "http://{host}, http://evil", "http://evil, http://{host}", "http://{host}:80",
           "http://203.0.113.9", "//{host}", "{host}", "http:{host}", "ftp://{host}",
           "ws://{host}", "javascript://{host}", "chrome-extension://abc", "http://{host}?",
           "http://{host}#", "http://{host}\\.evil", "http://%6cocalhost", "HTTP", "http://"]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "FOO"]
ROUTES = ["/api/health", "/api/containers", "/api/containers/x/stop", "/api/launch",
          "/api/launch/clear", "/api/nothing"]


@pytest.mark.parametrize("label,data", ALL, ids=[r[0] for r in ALL])
def test_as_the_second_request(shared, label, data):
    """After a good one the answers are: the good one's, then what it gets alone."""
    alone = answers(shared.address, data)
    second = answers(shared.address, GOOD + b"\r\n" + data)
    assert second[0] == 200 and second[1:] == alone, (alone, second)
    assert len(alone) <= 1 + data.count(b"HTTP/1.1\r\n") - 1 or 200 not in alone[1:]


def answers(address, data):
    """Statuses until the server closes, or says nothing for half a second."""
    found = []
    with Connection(address, 10) as c:
        try:
            c.send(data)
            c.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        method = data.lstrip(b"\r\n").split(b" ", 1)[0].decode("latin-1")
        try:
            while True:
                found.append(c.response(method if method == "HEAD" else "GET").status)
        except (Closed, TimeoutError, ConnectionError):
            return found


@pytest.mark.parametrize("host", HOSTS)
def test_foreign_host(shared, host):
    """Alone and after a good request, whatever the route: no answer of a handler."""
    for path in ROUTES:
        data = ("GET %s%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (shared.base, path, host)).encode("latin-1")
        alone = answers(shared.address, data)
        assert alone and set(alone) <= {400, 403}, (path, alone)
        assert answers(shared.address, GOOD + b"\r\n" + data) == [200] + alone


@pytest.mark.parametrize("origin", ORIGINS)
def test_foreign_origin(shared, guarded, origin):
    for server in (shared, guarded):
        calls = len(server.place.vectors("runs stop") + server.place.vectors("run "))
        value = origin.format(host=server.host)
        for method in METHODS:
            for path in ROUTES:
                r = server.request(method, path, {"Origin": value, "Content-Length": "0"})
                assert r.status in (400, 403, 405, 501), (method, path, r)
                assert not [k for k, _ in r.headers if k.lower().startswith("access-control")]
        upgrade = {"Origin": value, "Connection": "Upgrade", "Upgrade": "websocket",
                   "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": base64.b64encode(b"0" * 16).decode()}
        for path in ("/api/pty/x", "/api/containers/hostile-output.1/logs-ws", "/api/launch/ws"):
            with server.connect() as c:
                c.send(fetch(server, path, upgrade))
                assert c.response().status in (400, 403, 404)
        assert len(server.place.vectors("runs stop") + server.place.vectors("run ")) == calls


def fetch(server, path, headers):
    lines = ["GET %s%s HTTP/1.1" % (server.base, path)]
    lines += ["%s: %s" % h for h in server.headers(headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


# --- through proxies ---------------------------------------------------------------------------

@pytest.fixture(scope="module", params=list(fronts.FRONTS))
def front(request, guarded):
    if fronts.find(fronts.FRONTS[request.param][0]) is None:
        pytest.skip("%s is not installed" % fronts.FRONTS[request.param][0])
    tap = fronts.Tap(guarded.address)
    f = fronts.start(request.param, tap.port)
    f.tap, f.name = tap, request.param
    yield f
    f.close()
    tap.close()


def send_to(port, data):
    """Send, then read until nothing comes any more. (No half-close: nginx takes it for the end.)"""
    got = b""
    with socket.create_connection(("127.0.0.1", port), 5) as s:
        try:
            s.settimeout(3)
            s.sendall(data)
            while True:
                piece = s.recv(65536)
                if not piece:
                    break
                got += piece
                s.settimeout(0.15)
        except OSError:
            pass
    return got


def allowed(line, fields):
    """May this request, as the proxy framed it, have an answer of a handler?"""
    values = [v for k, v in fields if k == b"authorization"]
    origins = [v for k, v in fields if k == b"origin"]
    return values == [b"Bearer " + TOKEN.encode()] and not origins


def agree(streams):
    for sent, got in streams:
        asked = requests_in_or_none(sent)
        if asked is None:
            continue
        methods = [line.split(b" ")[0] for line, _ in asked]
        statuses = [s for s in fronts.statuses_in(got, methods) if s >= 200]
        assert len(statuses) <= len(asked), (asked, statuses, "more answers than requests")
        if len(statuses) < len(asked):
            # Refused and closed; or the proxy broke off in a body that it could not read.
            assert not statuses or statuses[-1] >= 400, (asked, statuses)
        for (line, fields), status in zip(asked, statuses):
            if status < 300 and b"/api" in line:
                assert allowed(line, fields), (line, fields, status)


def agree_in_the_end(tap):
    """A proxy may answer its client before we have answered it."""
    until = time.monotonic() + 5
    while True:
        try:
            return agree(tap.take())
        except AssertionError:
            if time.monotonic() > until:
                raise
        time.sleep(0.05)


def requests_in_or_none(data):
    try:
        return fronts.requests_in(data)
    except ValueError:
        return None


@pytest.mark.parametrize("label,data", ALL, ids=[r[0] for r in ALL])
def test_through_a_proxy(front, guarded, label, data):
    """As many answers as the proxy forwarded requests; none without the token."""
    token = b"Host: localhost\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n"
    data = data.replace(b"Host: localhost\r\n", token, 1)
    front.tap.forget()
    got = send_to(front.port, data)
    agree_in_the_end(front.tap)
    assert b"X-Smuggled" not in got
    assert guarded.get("/api/health").status == 200


def test_a_good_request_passes_a_proxy(front):
    """So that the table above cannot be green for want of answers."""
    data = GOOD.replace(b"Host: localhost\r\n", b"Host: localhost\r\nAuthorization: Bearer "
                        + TOKEN.encode() + b"\r\nConnection: close\r\n")
    front.tap.forget()
    assert b" 200 " in send_to(front.port, data + b"\r\n").split(b"\r\n")[0]
    assert len(front.tap.take()) == 1


@pytest.mark.parametrize("host", ["evil", "localhost"])
def test_no_token_no_answer_through_a_proxy(front, host):
    got = send_to(front.port, b"GET " + HEALTH + b" HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
                  % host.encode())
    assert b" 401 " in got.split(b"\r\n")[0] or b" 429 " in got.split(b"\r\n")[0]


def test_body_reaches_us_whole_through_a_proxy(front, guarded):
    """Kept-alive upstream connections stay in step after bodies and refusals."""
    for i in range(10):
        body = b"x" * (i * 97)
        head = POST.replace(b"Host: localhost\r\n", b"Host: localhost\r\nAuthorization: Bearer "
                            + TOKEN.encode() + b"\r\n")
        front.tap.forget()
        got = send_to(front.port, head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert got.split(b" ")[1] in (b"405", b"404", b"400", b"403"), got[:100]
        agree_in_the_end(front.tap)
