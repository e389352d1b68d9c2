"""Allocations fail in workers and broker, in the middle of everything; or their address space is
as good as full. A request ends with an error, or its process ends; none of them crashes, others
go on, and with memory back all is as before."""
import os
import random
import re
import struct
import threading
import time

import pytest

import harness
import launch_help
import process
from http_client import Closed
from preloaded import Preloaded
from test_disk import make_run
from test_terminal import live
from ws_client import Refused

SECONDS = float(os.environ.get("ATTACK_SECONDS", "20"))
DEMO = "hostile-output.1"
FINE = {200, 404, 409, 429, 500, 502, 503, 504}
PATHS = ["/api/health", "/api/containers", "/api/containers?limit=5&sort=created", "/",
         "/api/containers/%s/project" % DEMO, "/api/containers/%s/diff" % DEMO,
         "/api/containers/%s/files" % DEMO, "/api/containers/%s/agent/dialog" % DEMO,
         "/api/containers/%s/agent/dialog?since=2" % DEMO, "/api/containers/%s/result" % DEMO,
         "/api/containers/%s/review" % DEMO, "/api/containers/%s/reference/patch" % DEMO,
         "/api/containers/t1/project", "/api/containers/t1/agent/dialog", "/api/containers/t1/diff",
         "/api/containers/t1/sdk/health", "/api/launch/status", "/api/launch/models",
         "/api/launch/tasks", "/api/launch/agents", "/api/launch/config", "/api/launch/doctor",
         "/api/containers/big/diff", "/api/containers/big/files", "/api/containers/big/agent/dialog",
         "/api/search?q=needle", "/api/sdk/connections", "/api/pty/sessions", "/api/metrics"]
SOCKETS = ["/api/containers/%s/sdk-ws" % DEMO, "/api/containers/t1/sdk-ws", "/api/launch/ws",
           "/api/containers/%s/logs-ws" % DEMO, "/api/containers/t1/logs-ws",
           "/api/pty/t1?mode=binary", "/api/containers/t1/opencode/events-ws"]


def stage(place):
    """What needs memory: a patch and a dialog of 8 MiB each."""
    place.knobs(build_seconds=0.1, agent_seconds=0.3)
    folder = make_run(place, "big")
    with open(os.path.join(folder, "final.patch"), "w", encoding="utf-8") as f:
        f.write("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,1 +1,200000 @@\n" + "+needle in the hay, forty bytes a line...\n" * 200000)
    with open(os.path.join(folder, "archive", "dialog.jsonl"), "w", encoding="utf-8") as f:
        for i in range(40000):
            f.write('{"seq":%d,"type":"message","data":{"text":"%s"}}\n' % (i, "hay " * 40))


class Clients:
    def __init__(self, server):
        self.server, self.over = server, threading.Event()
        self.wrong, self.n, self.ended = [], 0, 0
        self.threads = [threading.Thread(target=self.loop, args=a) for a in (
            (self.read, PATHS), (self.read, PATHS), (self.watch, SOCKETS), (self.watch, SOCKETS),
            (self.launch, ["tinyjson-overflow-12"]))]
        for t in self.threads:
            t.start()

    def loop(self, step, of):
        dice = random.Random()
        while not self.over.is_set():
            try:
                step(dice.choice(of))
                self.n += 1
            except (Closed, OSError, AssertionError, Refused, ValueError):
                self.ended += 1
                time.sleep(0.02)

    def read(self, path):
        r = self.server.get(path, {"Accept-Encoding": random.choice(["gzip", "identity"])}, timeout=30)
        if r.status not in FINE:
            self.wrong.append((path, r.status, r.body[:100]))

    def watch(self, path):
        with self.server.websocket(path, timeout=5) as ws:
            if path.startswith("/api/pty"):
                ws.send_frame(2, b"echo one; seq 500; exit\r")
            for _ in range(5):
                ws.receive()

    def launch(self, task):
        r = launch_help.post(self.server, "", launch_help.body(task))
        if r.status not in FINE:
            self.wrong.append(("launch", r.status, r.body[:100]))
        time.sleep(0.3)

    def stop(self):
        self.over.set()
        for t in self.threads:
            t.join()


def crashes(server):
    """Ends that no role of ours chose. SIGABRT: libev and the C library say so themselves."""
    return re.findall(r"child-ended .*SIG(?:SEGV|BUS|ILL|FPE|SYS).*", server.log)


def known(server):
    """What every worker is to show after it as before."""
    launchable = server.json("/api/launch/models")
    return {r["id"] for r in server.runs() if r["status"] != "running"} - {"t1"}, launchable


def recovered(server, before):
    def serves():
        try:
            return all(server.get(p, timeout=10).status == 200 for p in
                       ("/api/containers", "/api/containers/%s/diff" % DEMO, "/api/launch/models"))
        except (Closed, OSError):
            return False
    process.wait_for(lambda: len(server.workers()) == 2 and len(server.role("broker")) == 1, 40,
                     "every role")
    for _ in range(6):
        process.wait_for(serves, 40, "service")
        process.wait_for(lambda: known(server)[0] >= before[0] and known(server)[1] == before[1],
                         40, "all runs and all models")


@pytest.mark.plain
def test_allocations_fail(place, start, monkeypatch):
    fails = Preloaded(place, "libmalloc_fails.so", "MALLOC_FAILS_FILE")
    monkeypatch.setattr(harness, "SERVER", fails.program)
    stage(place)
    server = start()
    live(place, server, "t1")
    before = known(server)
    clients, until = Clients(server), time.monotonic() + max(SECONDS, 8)
    dice = random.Random()
    try:
        while time.monotonic() < until:
            fails.map[:8] = struct.pack("Q", dice.choice([5, 20, 20, 100, 300]))
            time.sleep(0.7)
            fails.map[:8] = struct.pack("Q", 0)
            time.sleep(1.2)  # who lived for a second is no reason to give up
            assert server.process.poll() is None, server.log[-3000:]
            assert not crashes(server), server.log
    finally:
        fails.map[:8] = struct.pack("Q", 0)
        clients.stop()
    recovered(server, before)
    failed = struct.unpack("Q", fails.map[8:16])[0]
    print("%d allocations failed, %d rounds, %d ended early, %d processes ended" % (
        failed, clients.n, clients.ended, server.log.count("child-ended")))
    assert clients.wrong == [] and failed > 20 and clients.n > 50
    assert not crashes(server), crashes(server)


@pytest.mark.plain
@pytest.mark.parametrize("role", ["worker", "broker"])
def test_address_space_full(place, start, role):
    """The limit stands a little above what is in use, then under it."""
    stage(place)
    server = start()
    live(place, server, "t1")
    before = known(server)
    clients = Clients(server)
    try:
        for room in (4 << 20, 1 << 20, 256 << 10, 0, 0):
            for pid in server.role(role):
                process.limit_address_space(pid, room)
            time.sleep(1.5)
            assert server.process.poll() is None, server.log[-3000:]
    finally:
        clients.stop()
    for pid in server.role(role):
        process.limit_address_space(pid, None)
    recovered(server, before)
    assert clients.wrong == [] and clients.n > 20
    assert not crashes(server), crashes(server)
    print("%d rounds, %d ended early, %d processes ended" % (
        clients.n, clients.ended, server.log.count("child-ended")))
