"""Slow and greedy clients: the others are served, and memory stays bounded."""
import os
import resource
import socket
import time

import pytest

import process
from harness import TOKEN
from ws_client import token_protocols

CROWD_KIB = 98304  # a worker may grow by this much under any crowd below
N_PROBES = 60


@pytest.fixture(scope="module", autouse=True)
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


LATENCIES = {}  # of all rounds of one crowd, by its name


@pytest.fixture(scope="module", autouse=True)
def figures():
    """A table for people, where ATTACK_FIGURES names a file (`tools/bench greedy`)."""
    yield
    if not os.environ.get("ATTACK_FIGURES"):
        return
    with open(os.environ["ATTACK_FIGURES"], "a", encoding="utf-8") as f:
        f.write("| others, beside | requests | p50 ms | p99 ms | worst ms | workers, MiB |\n"
                "|---|---|---|---|---|---|\n")
        for name, (latencies, mib) in LATENCIES.items():
            latencies.sort()
            f.write("| %s | %d | %.1f | %.1f | %.1f | %s |\n" % (
                name, len(latencies), latencies[len(latencies) // 2] * 1000,
                latencies[int(len(latencies) * .99)] * 1000, latencies[-1] * 1000, mib))


def figure(name, latencies, server):
    mib = ", ".join("%d" % (process.rss_kib(p) // 1024) for p in server.workers())
    LATENCIES[name] = (LATENCIES.get(name, ([],))[0] + latencies, mib)


def others_are_served(server, name):
    latencies = []
    for i in range(N_PROBES):
        began = time.monotonic()
        r = server.get("/api/containers" if i % 2 else "/api/health")
        assert r.status == 200, r
        latencies.append(time.monotonic() - began)
    figure(name, latencies, server)
    assert sorted(latencies)[int(N_PROBES * .9)] < 5, latencies


def worker_rss(server):
    return {p: process.rss_kib(p) for p in server.workers()}


def bounded(server, before):
    for pid, kib in worker_rss(server).items():
        assert pid in before, "a worker was replaced"
        assert kib < before[pid] + CROWD_KIB, (before, kib)


def crowd(server, n, first_bytes):
    sockets = []
    for _ in range(n):
        s = socket.create_connection(server.address, 20)
        if first_bytes:
            s.sendall(first_bytes)
        sockets.append(s)
    return sockets


def close_all(sockets):
    for s in sockets:
        s.close()


def test_nobody_is_there(guarded):
    others_are_served(guarded, "quiet")


def test_idle_connections(guarded):
    before = worker_rss(guarded)
    sockets = crowd(guarded, 2000, b"")
    try:
        others_are_served(guarded, "2,000 idle")
        bounded(guarded, before)
    finally:
        close_all(sockets)


def test_half_heads(guarded):
    before = worker_rss(guarded)
    sockets = crowd(guarded, 1000, b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 4000)
    try:
        others_are_served(guarded, "1,000 half heads of 4 kB")
        bounded(guarded, before)
    finally:
        close_all(sockets)


def test_dripping_bodies(guarded):
    before = worker_rss(guarded)
    head = ("POST %s/api/launch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
            "Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"
            % (guarded.base, TOKEN)).encode()
    sockets = crowd(guarded, 1000, head)
    try:
        until = time.monotonic() + 4
        while time.monotonic() < until:
            for s in sockets[::7]:
                try:
                    s.send(b" ")
                except OSError:
                    pass
            others_are_served(guarded, "1,000 dripping bodies")
        bounded(guarded, before)
        # Dripping does not move the deadline: all are answered or closed in the end.
        for s in sockets[::50]:
            s.settimeout(40)
            assert s.recv(100)[:12] in (b"HTTP/1.1 408", b"HTTP/1.1 400", b"HTTP/1.1 413", b"")
    finally:
        close_all(sockets)


def test_dripping_heads(guarded):
    """slowhttptest's first mode: a header line now and then. The deadline is for the whole head."""
    before = worker_rss(guarded)
    sockets = crowd(guarded, 1000, b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n")
    began = time.monotonic()
    try:
        while time.monotonic() < began + 4:
            for i, s in enumerate(sockets[::7]):
                try:
                    s.send(b"X-%d: b\r\n" % i)
                except OSError:
                    pass
            time.sleep(.1)  # now and then: a head may have 64 fields
            others_are_served(guarded, "1,000 dripping heads")
        bounded(guarded, before)
        for s in sockets[::50]:
            s.settimeout(40)
            assert s.recv(100)[:12] in (b"HTTP/1.1 408", b"")
    finally:
        close_all(sockets)


def test_slow_readers(guarded):
    """slowhttptest's third mode: a small window, and a few bytes now and then."""
    before = worker_rss(guarded)
    wanted = ("GET %s/api/containers/hostile-output.1/agent/dialog HTTP/1.1\r\nHost: localhost\r\n"
              "Authorization: Bearer %s\r\n\r\n" % (guarded.base, TOKEN)).encode() * 10
    sockets = []
    try:
        for _ in range(300):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            s.settimeout(20)
            s.connect(guarded.address)
            s.sendall(wanted)
            sockets.append(s)
        for _ in range(3):
            for s in sockets:
                assert s.recv(32)
            others_are_served(guarded, "300 that read 32 bytes now and then")
        bounded(guarded, before)
    finally:
        close_all(sockets)


def test_ranges_cost_nothing(guarded):
    """slowhttptest's fourth mode: a thousand overlapping ranges. There are none here."""
    ranges = ",".join("5-%d" % i for i in range(1, 1300))
    whole = guarded.get("/api/containers/hostile-output.1/agent/dialog")
    r = guarded.get("/api/containers/hostile-output.1/agent/dialog", {"Range": "bytes=0-," + ranges})
    assert r.status == 200 and r.body == whole.body
    assert r.header("Content-Range") is None


def test_readers_that_read_nothing(guarded):
    before = worker_rss(guarded)
    wanted = ("GET %s/api/containers/hostile-output.1/agent/dialog HTTP/1.1\r\nHost: localhost\r\n"
              "Authorization: Bearer %s\r\n\r\n" % (guarded.base, TOKEN)).encode() * 20
    sockets = crowd(guarded, 300, wanted)
    try:
        others_are_served(guarded, "300 that pipeline 20 dialogs and read nothing")
        bounded(guarded, before)
    finally:
        close_all(sockets)


def test_websockets_that_read_nothing(guarded):
    before = worker_rss(guarded)
    open_ones = []
    try:
        for _ in range(500):
            open_ones.append(guarded.websocket("/api/containers/hostile-output.1/logs-ws"))
        others_are_served(guarded, "500 WebSockets that read nothing")
        bounded(guarded, before)
    finally:
        for ws in open_ones:
            ws.connection.close()


def test_upgrades_in_a_hurry(guarded):
    descriptors = {p: len(process.descriptors(p)) for p in guarded.workers()}
    upgrade = ("GET %s/api/containers/hostile-output.1/logs-ws HTTP/1.1\r\nHost: localhost\r\n"
               "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: %s\r\n\r\n"
               % (guarded.base, ", ".join(token_protocols(TOKEN)))).encode()
    for i in range(600):
        with socket.create_connection(guarded.address, 20) as s:
            s.sendall(upgrade)
            if i % 3:
                assert s.recv(100).startswith(b"HTTP/1.1 101")
        if i % 200 == 199:
            others_are_served(guarded, "600 upgrades, as fast as they go")
    process.wait_for(lambda: all(len(process.descriptors(p)) <= n + 4
                                 for p, n in descriptors.items()), 60, "descriptors to settle")


def test_guessing_tokens(guarded):
    seen = set()
    for i in range(120):
        seen.add(guarded.get("/api/health", {"Authorization": "Bearer guess-%016d" % i}).status)
    assert seen == {401, 429}, "guessing is limited, and told so"
    others_are_served(guarded, "a guesser at the same address")


def test_connections_that_are_reset(guarded):
    """SO_LINGER 0: the server sees resets in every state."""
    before = {p: len(process.descriptors(p)) for p in guarded.workers() + [guarded.broker()]}
    for i in range(500):
        s = socket.create_connection(guarded.address, 20)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        if i % 2:
            s.sendall(b"GET /api/containers HTTP/1.1\r\nHost: localhost\r\n\r\n"[:10 + i % 50])
        s.close()
    others_are_served(guarded, "500 resets")
    process.wait_for(lambda: all(len(process.descriptors(p)) <= n + 4 for p, n in before.items()),
                     30, "descriptors to settle")
