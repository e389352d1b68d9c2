"""Who gets in: Host x Origin x token x method over every route there is."""
import itertools

import pytest

import routes
from harness import TOKEN
from http_client import Closed, head
from ws_client import Refused, handshake_headers, token_protocols

HOST_REFUSED = "Host not allowed: set SSEBENCH_WEBUI_TOKEN to serve other host names"
HOSTS = ["evil.example", "evil.example:%d", "127.0.0.1.evil.example", "localhost.evil.example",
         "evil.example.localhost.example:%d", "0.0.0.0:%d", "127.1:%d", "0x7f.1:%d",
         "2130706433:%d", "[::]:%d", "[::ffff:10.0.0.1]:%d", "10.0.0.1:%d", "169.254.169.254",
         "localhost..:%d", "LOCALHOST.evil"]
MALFORMED_HOSTS = ["user@127.0.0.1:%d", "127.0.0.1:%d@evil.example", "127.0.0.1,evil.example",
                   "127.0.0.1:99999", "127.0.0.1:080", "127.0.0.1%%00.evil", "[::1", "",
                   "127.0.0.1/", "127.0.0.1 evil.example"]
ORIGINS = ["null", "", "file://", "http://evil.example", "https://evil.example",
           "http://127.0.0.1:1", "http://localhost:%d", "http://203.0.113.9",
           "http://127.0.0.1.evil.example:%d", "http://evil@127.0.0.1:%d",
           "http://127.0.0.1:%d.evil.example", "http://127.0.0.1:%d/", "127.0.0.1:%d",
           "ftp://127.0.0.1:%d", "http://127.0.0.1:%d http://evil.example", "http://[::1]:%d",
           "chrome-extension://127.0.0.1:%d", "http://sub.127.0.0.1:%d", "HTTP//127.0.0.1:%d"]


def port(server):
    return server.address[1]


def fill(text, server):
    return text.replace("%d", str(port(server))).replace("%%", "%")


class Asker:
    """Many requests over few connections: goes on with a new one when the server closes."""

    def __init__(self, server):
        self.server, self.connection = server, None

    def ask(self, method, path, headers):
        if method in ("POST", "PUT", "PATCH"):
            headers = headers + [("Content-Length", "0")]
        for _ in range(2):
            if self.connection is None:
                self.connection = self.server.connect()
            try:
                self.connection.send(head(method, self.server.base + path, headers))
                r = self.connection.response(method)
            except (Closed, BrokenPipeError, ConnectionResetError):
                self.connection.close()
                self.connection = None
                continue
            if r.header("Connection", "").lower() == "close":
                self.connection.close()
                self.connection = None
            return r
        raise AssertionError("no answer to %s %s %r" % (method, path, headers))


def every_request(server, headers, methods=routes.METHODS):
    """Each path with each method, plain; each path as an upgrade. Yields what was answered."""
    asker = Asker(server)
    for (path, _), method in itertools.product(routes.api_paths(), methods):
        yield method, path, asker.ask(method, path, headers)
    upgrade, _ = handshake_headers(None)
    for path, _ in routes.api_paths():
        yield "UPGRADE", path, asker.ask("GET", path, headers + upgrade[1:])


def refused(method, path, r, statuses, error=None):
    """Not one byte of the API may come back."""
    allowed = set(statuses) | ({400, 405, 501} if method == "FETCH" else set())
    assert r.status in allowed, (method, path, r)
    if method != "HEAD" and error and r.status in statuses:
        body = r.json()
        assert body["error"] == error, (method, path, r)
        assert "hint" in body, "a refusal says what it received and what admits it"


def only_listings(server):
    return [v for v in server.place.vectors() if not v.startswith(("runs list", "runs results"))]


@pytest.mark.parametrize("host", HOSTS)
def test_foreign_host_without_token(shared, host):
    for method, path, r in every_request(shared, [("Host", fill(host, shared))]):
        refused(method, path, r, {403}, HOST_REFUSED)
    assert only_listings(shared) == []


@pytest.mark.parametrize("host", MALFORMED_HOSTS)
def test_malformed_host(shared, host):
    for method in ("GET", "POST", "DELETE"):
        r = Asker(shared).ask(method, "/api/containers", [("Host", fill(host, shared))])
        assert r.status in (400, 403), r


def test_page_of_a_foreign_host_is_refused_too(shared):
    assert shared.get("/", {"Host": "evil.example"}).status == 403


@pytest.mark.parametrize("origin", ORIGINS)
def test_foreign_origin(shared, origin):
    headers = [("Host", shared.host), ("Origin", fill(origin, shared))]
    for method, path, r in every_request(shared, headers):
        refused(method, path, r, {403}, "Origin not allowed")
        assert not [k for k, _ in r.headers if k.lower().startswith("access-control-")]
    assert only_listings(shared) == []


@pytest.mark.parametrize("origin", ORIGINS)
def test_foreign_origin_with_a_good_token(guarded, origin):
    headers = guarded.headers() + [("Origin", fill(origin, guarded))]
    for method, path, r in every_request(guarded, headers):
        refused(method, path, r, {403}, "Origin not allowed")
    assert only_listings(guarded) == []


def test_rebinding_host_and_origin_agree(shared):
    """Both name the attacker; the Host rule must not be satisfied by the Origin rule."""
    headers = [("Host", "evil.example"), ("Origin", "http://evil.example")]
    for method, path, r in every_request(shared, headers, ("GET", "POST", "DELETE")):
        refused(method, path, r, {403}, HOST_REFUSED)


@pytest.mark.parametrize("host", ["localhost:%d", "127.0.0.1:%d", "LocalHost:%d", "[::1]:%d",
                                  "127.9.9.9:%d", "[::ffff:127.0.0.1]:%d", "localhost", "127.0.0.1"])
def test_loopback_names_are_admitted(shared, host):
    assert shared.get("/api/health", {"Host": fill(host, shared)}).status == 200


def test_same_origin_is_admitted(shared):
    assert shared.get("/api/health", {"Origin": "http://" + shared.host}).status == 200
    for host, origin in (("localhost", "http://localhost"), ("localhost:80", "http://localhost"),
                         ("localhost", "http://localhost:80"),
                         ("localhost:443", "https://localhost"),
                         ("localhost", "https://localhost")):
        assert shared.get("/api/health", {"Host": host, "Origin": origin}).status == 200, origin


TOKENS = [None, "", "Bearer", "Bearer ", "Bearer " + TOKEN[:-1], "Bearer " + TOKEN + "x",
          "Bearer " + TOKEN.upper(), "Basic " + TOKEN, TOKEN, "Bearer " + TOKEN + " x",
          "Bearer \t" + TOKEN + ",", "Token " + TOKEN]


@pytest.mark.parametrize("value", TOKENS[:6])
def test_no_route_without_the_token(guarded, value):
    headers = [("Host", guarded.host)] + ([("Authorization", value)] if value is not None else [])
    for method, path, r in every_request(guarded, headers):
        if method == "OPTIONS":
            continue
        assert r.status in ({401, 429} | ({400, 405, 501} if method == "FETCH" else set())), (
            method, path, r)
        if r.status == 401:
            assert r.header("WWW-Authenticate") == "Bearer"
            assert method == "HEAD" or r.json()["error"] == "Unauthorized"
    assert only_listings(guarded) == []


@pytest.mark.parametrize("value", TOKENS[6:])
def test_other_wrong_tokens(guarded, value):
    assert guarded.get("/api/health", {"Authorization": value}).status in (400, 401, 429)


def test_failing_tokens_do_not_hurt_good_ones(guarded):
    seen = {guarded.get("/api/health", {"Authorization": "Bearer wrong-wrong-wrong"}).status
            for _ in range(60)}
    assert seen <= {401, 429} and 429 in seen, "failed tokens are rate-limited"
    assert guarded.get("/api/health").status == 200


def test_page_needs_no_token(guarded):
    r = guarded.get("/", {"Authorization": None})
    assert r.status == 200 and r.header("Content-Type").startswith("text/html")


def test_token_by_subprotocol(guarded):
    with guarded.websocket("/api/containers/%s/logs-ws" % routes.RUN) as ws:
        assert ws.protocol == "ssebench"
        assert TOKEN not in repr(ws.answer.headers)
        assert "ssebench.token" not in repr(ws.answer.headers)


@pytest.mark.parametrize("protocols", [
    ["ssebench"], ["ssebench", "ssebench.token."], ["ssebench", "ssebench.token.!!!!"],
    token_protocols(TOKEN + "x"), token_protocols(TOKEN[:-1]),
    ["ssebench", token_protocols(TOKEN)[1] + "="]])
def test_wrong_token_by_subprotocol(guarded, protocols):
    with pytest.raises(Refused) as e:
        guarded.websocket("/api/containers/%s/logs-ws" % routes.RUN, protocols=protocols)
    assert e.value.response.status in (400, 401, 429)


def test_the_authorization_header_alone_decides(guarded):
    with pytest.raises(Refused) as e:
        guarded.websocket("/api/containers/%s/logs-ws" % routes.RUN,
                          extra=[("Authorization", "Bearer wrong-wrong-wrong")])
    assert e.value.response.status in (401, 429)


@pytest.mark.parametrize("path", ["/%61pi/health", "/api%2fhealth", "/a%70i/containers",
                                  "/ap%69/containers/x/diff"])
def test_checks_run_on_the_decoded_path(guarded, path):
    assert guarded.get(path, {"Authorization": None}).status in (400, 401, 404, 429)
    assert guarded.get(path, {"Origin": "http://evil.example"}).status in (400, 403, 404)


@pytest.fixture(scope="module")
def hosted():
    import conftest
    yield from conftest.module_server({"SSEBENCH_WEBUI_HOSTED": "1",
                                       "SSEBENCH_WEBUI_TERMINAL": "1"})


def test_hosted_refuses_every_change(hosted):
    headers = [("Host", hosted.host)]
    methods = [m for m in routes.METHODS if m not in ("GET", "HEAD", "OPTIONS")]
    asker = Asker(hosted)
    for (path, _), method in itertools.product(routes.api_paths(), methods):
        refused(method, path, asker.ask(method, path, headers), {403}, "This server is read-only")
    assert only_listings(hosted) == []


@pytest.mark.parametrize("path,error", [
    ("/api/containers/x/opencode/sessions", "The assistant is off on a hosted server"),
    ("/api/containers/x/opencode", "The assistant is off on a hosted server"),
    ("/api/containers/x/%6fpencode/health", "The assistant is off on a hosted server"),
    ("/api/pty-debug/x", "The assistant is off on a hosted server"),
    ("/api/launch/doctor", "This server does not report on its host")])
def test_hosted_refuses_what_acts(hosted, path, error):
    r = hosted.get(path)
    assert r.status == 403 and r.json()["error"] == error


@pytest.mark.parametrize("path", ["/api/pty/x", "/api/pty-debug/x"])
def test_terminal_off(start, path):
    server = start({"SSEBENCH_WEBUI_TERMINAL": "off"})
    with pytest.raises(Refused) as e:
        server.websocket(path)
    assert e.value.response.status == 403
    assert e.value.response.json()["error"] == "Terminal is disabled on this server"
    assert server.json("/api/health")["terminal"] is False


def test_hosted_health_and_reading(hosted):
    health = hosted.json("/api/health")
    assert (health["hosted"], health["terminal"], health["assistant"]) == (True, False, False)
    for what in ("review", "reference/patch", "diff", "files", "project", "result"):
        assert hosted.get("/api/containers/%s/%s" % (routes.RUN, what)).status == 200, what


def test_preflight_of_a_listed_origin(start):
    server = start({"SSEBENCH_WEBUI_CORS_ORIGINS": "https://bench.example.org/,http://B.example"})
    asking = {"Origin": "https://bench.example.org", "Access-Control-Request-Method": "DELETE"}
    r = server.request("OPTIONS", "/api/containers", asking)
    assert r.status == 204
    assert r.header("Access-Control-Allow-Origin") == "https://bench.example.org"
    assert set(r.header("Access-Control-Allow-Methods").replace(" ", "").split(",")) == {
        "GET", "POST", "DELETE", "OPTIONS"}
    assert set(r.header("Access-Control-Allow-Headers").lower().replace(" ", "").split(",")) == {
        "content-type", "cache-control", "authorization"}
    assert r.header("Access-Control-Allow-Credentials") is None
    assert "origin" in (r.header("Vary") or "").lower()
    r = server.get("/api/health", {"Origin": "http://b.example"})
    assert r.status == 200 and r.header("Access-Control-Allow-Origin") == "http://b.example"
    for origin in ("https://evil.example", "http://bench.example.org", "https://bench.example.org:8443"):
        r = server.request("OPTIONS", "/api/containers", {"Origin": origin})
        assert r.status == 403 and r.header("Access-Control-Allow-Origin") is None


def test_second_request_of_a_connection_is_checked(shared):
    with shared.connect() as c:
        r = c.raw(head("GET", shared.base + "/api/health", [("Host", shared.host)]))
        assert r.status == 200 and r.header("Connection", "").lower() != "close"
        r = c.raw(head("GET", shared.base + "/api/health", [("Host", "evil.example")]))
        assert r.status == 403 and r.json()["error"] == HOST_REFUSED


def test_forwarded_headers_decide_nothing(shared):
    fake = {"X-Forwarded-Host": "localhost", "Forwarded": "for=127.0.0.1;host=localhost",
            "X-Forwarded-For": "127.0.0.1", "User-Agent": "Mozilla/5.0",
            "Sec-Fetch-Site": "same-origin"}
    assert shared.get("/api/health", {"Host": "evil.example", **fake}).status == 403
    assert shared.get("/api/health", {"Origin": "http://evil.example", **fake}).status == 403


@pytest.mark.parametrize("site, status", [("cross-site", 403), ("same-site", 403), ("?", 403),
                                          ("same-origin", 200), ("none", 200), (None, 200)])
def test_another_sites_page_without_an_origin(shared, site, status):
    r = shared.get("/api/launch/doctor", {"Sec-Fetch-Site": site})
    assert r.status == status, r
    if status == 403:
        assert r.json()["error"] == "Origin not allowed" and site in r.json()["hint"]
    assert shared.get("/api/health", {"Sec-Fetch-Site": site}).status == 200


def test_headers_of_every_answer(shared):
    for path in ("/api/health", "/api/nothing", "/api/containers/bad!id", "/", "/nothing.js"):
        r = shared.get(path)
        assert r.header("X-Content-Type-Options") == "nosniff", path
        assert r.header("Referrer-Policy") == "no-referrer", path
        assert r.header("X-Frame-Options") == "DENY", path
        assert r.header("Cross-Origin-Resource-Policy") == "same-origin", path
        policy = r.header("Content-Security-Policy") or ""
        assert "frame-ancestors 'none'" in policy and "unsafe" not in policy, (path, policy)
        if path.startswith("/api"):
            assert r.header("Cache-Control") == "no-store", path
