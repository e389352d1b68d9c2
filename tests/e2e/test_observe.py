"""What an administrator sees: /healthz, /api/metrics, log lines about changes and refusals."""
import os
import re
import signal
import subprocess

import pytest

import harness
import process
from http_client import head

pytestmark = pytest.mark.once
FORWARDED = "198.51.100.7"


def metrics(server):
    r = server.get("/api/metrics")
    assert r.status == 200 and r.header("Content-Type").startswith("text/plain; version=0.0.4")
    found = {}
    for line in r.text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP|TYPE) ssebench_webui_\w+ .+", line), line
            continue
        m = re.fullmatch(r"(ssebench_webui_\w+)(?:\{version=\"[^\"]+\"\})? (\d+)", line)
        assert m, line
        found[m[1][15:]] = int(m[2])
    return found


def test_healthz_needs_no_token_and_tells_nothing(guarded):
    r = guarded.get("/healthz", {"Authorization": None})
    assert (r.status, r.body) == (200, b"ok\n")
    assert guarded.request("POST", "/healthz", {"Authorization": None,
                                                "Content-Length": "0"}).status == 405


def test_healthz_keeps_the_rule_of_host_names(shared):
    assert shared.get("/healthz", {"Host": "attacker.example"}).status == 403


def test_healthz_without_a_broker(start):
    server = start()
    seen = set()
    for _ in range(5):  # each restart waits longer than the last
        os.kill(server.broker(), signal.SIGKILL)
        seen.update(server.get("/healthz").status for _ in range(20))
        if 503 in seen:
            break
        process.wait_for(lambda: server.role("broker"), what="a new broker")
    assert seen <= {200, 503} and 503 in seen, seen
    process.wait_for(lambda: server.get("/healthz").status == 200, what="a new broker")


def test_metrics_count(start):
    server = start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN})
    assert server.get("/api/metrics", {"Authorization": None}).status == 401
    before = metrics(server)
    server.get("/api/health", {"Authorization": "Bearer not-the-right-token"})
    with server.websocket("/api/launch/ws"):
        # A worker counts a socket, and what it refused, after it has answered.
        process.wait_for(lambda: metrics(server)["websockets"] == before["websockets"] + 1,
                         what="the socket in the count")
        after = metrics(server)
    assert after["requests_total"] > before["requests_total"]
    assert after["bad_tokens_total"] == before["bad_tokens_total"] + 1
    assert after["refused_total"] == before["refused_total"] + 1
    assert after["workers"] == 2
    assert after["longest_turn_microseconds"] >= before["longest_turn_microseconds"] > 0


def test_what_a_killed_worker_had_open_is_not_counted(start):
    server = start()
    counted = metrics(server)["requests_total"]
    sockets = [server.websocket("/api/launch/ws") for _ in range(6)]
    process.wait_for(lambda: metrics(server)["websockets"] == 6, what="six sockets in the count")
    for worker in server.workers():
        os.kill(worker, signal.SIGKILL)
    process.wait_for(lambda: metrics(server)["websockets"] == 0, what="none in the count")
    process.wait_for(lambda: metrics(server)["connections"] <= 1, what="our own connection only")
    assert metrics(server)["requests_total"] > counted
    for s in sockets:
        s.connection.close()


def line_with(server, *words):
    def found():
        return [x for x in server.err if all(w in x for w in words)]
    return process.wait_for(found, what="a log line with %r" % (words,))[-1]


def test_changes_and_refusals_are_logged(start):
    server = start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN})
    server.post("/api/containers/no-such-run/stop")
    line = line_with(server, " audit ", 'path="/api/containers/no-such-run/stop"')
    assert "who=token role=full from=127.0.0.1 method=POST" in line and re.search(r"result=\d+$", line)
    server.post("/api/containers/x/remove", {"Authorization": None})
    line = line_with(server, " refused ", 'path="/api/containers/x/remove"')
    assert "status=401" in line and "who=unknown" in line and 'reason="Unauthorized"' in line
    assert not [x for x in server.err if " audit " in x and "/remove" in x], "not admitted"
    server.get("/api/health")
    assert not [x for x in server.err if "/api/health" in x], "reads are not logged"


def test_reads_are_logged_where_that_is_wanted(start):
    server = start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN, "SSEBENCH_WEBUI_ACCESS_LOG": "1"})
    server.get("/api/containers?q=a-secret-of-the-query")
    line = line_with(server, " access ", 'path="/api/containers"')
    assert "who=token role=full from=127.0.0.1 method=GET" in line and "result=200" in line
    server.post("/api/launch/clear")
    line_with(server, " audit ", "launch/clear")
    server.get("/")
    assert not [x for x in server.err if 'path="/"' in x or "a-secret-of-the-query" in x]


def test_no_flood_of_lines_hides_a_change(start):
    """A client that asks for more lines than are passed on displaces none of an audit."""
    server = start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN, "SSEBENCH_WEBUI_ACCESS_LOG": "1",
                    "SSEBENCH_WEBUI_WORKERS": "1"})
    look = head("GET", "/api/connection", server.headers())
    change = head("POST", "/api/launch/clear", server.headers(), b"{}")
    with server.connect(60) as c:
        for _ in range(20):
            c.send(look * 400 + change)
            for method in ["GET"] * 400 + ["POST"]:
                assert c.response(method).status == 200
    process.wait_for(lambda: sum(" audit " in x for x in server.err) == 20, 30, "every change")
    assert sum(" access " in x for x in server.err) < 8000
    process.wait_for(lambda: server.get("/api/health").status == 200 and
                     " access-more count=" in server.log, 20, "the rest is counted")


def test_an_account_is_named(start):
    server = start()
    server.post("/api/launch/clear")
    assert "who=uid:%d " % os.geteuid() in line_with(server, " audit ", "launch/clear")


@pytest.mark.parametrize("proxies,believed", [(None, False), ("127.0.0.1,::1", True),
                                              ("192.0.2.1", False)])
def test_forwarded_for_is_believed_from_named_proxies(start, proxies, believed):
    server = start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN, "SSEBENCH_WEBUI_PROXIES": proxies})
    server.post("/api/launch/clear", {"X-Forwarded-For": "203.0.113.1, " + FORWARDED})
    line = line_with(server, " audit ", "launch/clear")
    assert ("from=%s " % (FORWARDED if believed else "127.0.0.1")) in line
    server.post("/api/launch/cancel", {"X-Forwarded-For": 'x" who=root'})
    assert "from=127.0.0.1 " in line_with(server, " audit ", "launch/cancel")


def bad_token(server, address):
    return server.get("/api/health", {"Authorization": "Bearer not-the-right-token",
                                      "X-Forwarded-For": address}).status


def test_bad_tokens_are_counted_by_client(start):
    """One client behind the proxy that guesses does not lock out the others."""
    server = start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN, "SSEBENCH_WEBUI_WORKERS": "1",
                    "SSEBENCH_WEBUI_PROXIES": "127.0.0.1"})
    statuses = [bad_token(server, FORWARDED) for _ in range(300)]
    assert statuses[0] == 401 and statuses[-1] == 429
    assert bad_token(server, "198.51.100.8") == 401


def test_bad_value(place):
    r = subprocess.run([harness.SERVER], env={**place.env(), "SSEBENCH_WEBUI_PROXIES": "proxy"},
                       capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    assert r.returncode == 1 and "SSEBENCH_WEBUI_PROXIES: proxy is not an address" in r.stderr
