"""Kills, stops and continues of every role at random under mixed load; then all is as before."""
import json
import os
import random
import signal
import threading
import time

import process
from http_client import Closed
from ws_client import Refused

SECONDS = int(os.environ.get("ATTACK_SECONDS", "20"))


class Clients:
    """Lists, files, logs, launches, until told to stop. Wrong answers are kept."""

    def __init__(self, server):
        self.server, self.over, self.wrong, self.n, self.launched = server, threading.Event(), [], 0, []
        self.threads = [threading.Thread(target=self.loop, args=(f,))
                        for f in (self.reads, self.reads, self.logs, self.launches)]
        for t in self.threads:
            t.start()

    def loop(self, step):
        while not self.over.is_set():
            try:
                step()
                self.n += 1
            except (Closed, OSError, AssertionError, Refused):
                time.sleep(0.02)

    def reads(self):
        for path in ("/api/health", "/api/containers", "/api/containers/hostile-output.1/diff",
                     "/api/containers/hostile-output.1/agent/dialog", "/api/launch/status", "/"):
            status = self.server.get(path, timeout=10).status
            if status not in (200, 404, 502, 503, 504):
                self.wrong.append((path, status))

    def logs(self):
        with self.server.websocket("/api/containers/hostile-output.1/logs-ws") as ws:
            ws.receive_json()

    def launches(self):
        r = self.server.post("/api/launch", {"Content-Type": "application/json"}, json.dumps(
            {"task": "tinyjson-overflow-12", "agent": "codex", "model": "gpt-6.1-sol",
             "mode": "sandbox", "source": "local"}).encode())
        if r.status == 200:
            self.launched.append(r.json()["launch_id"])
        elif r.status not in (429, 503, 504, 502):
            self.wrong.append(("launch", r.status, r.body[:200]))
        time.sleep(1)

    def stop(self):
        self.over.set()
        for t in self.threads:
            t.join()


def strike(server, dice):
    """One random blow; pauses so that the master's own limit of restarts is not what is tested."""
    role = dice.choice(["worker", "worker", "broker"])
    pids = server.role(role)
    if not pids:
        return None
    pid = dice.choice(pids)
    blow = dice.choice(["kill", "kill", "pause", "term"])
    try:
        if blow == "pause":
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.3)
            os.kill(pid, signal.SIGCONT)
        elif blow == "term":
            os.kill(pid, signal.SIGTERM)
        else:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return role, blow


def test_everything_killed_under_load(start, place):
    seed = int(os.environ.get("ATTACK_SEED", "0")) or random.randrange(1 << 30)
    dice = random.Random(seed)
    print("seed", seed)
    place.knobs(build_seconds=0.1, agent_seconds=0.3)
    server = start()
    rss = process.rss_kib(server.pid)
    fds = len(process.descriptors(server.pid))
    clients = Clients(server)
    blows, until = [], time.monotonic() + SECONDS
    try:
        while time.monotonic() < until:
            blows.append(strike(server, dice))
            time.sleep(dice.uniform(1.2, 2.5))
            assert server.process.poll() is None, server.log[-3000:]
    finally:
        clients.stop()
    process.wait_for(lambda: len(server.workers()) == 2 and len(server.role("broker")) == 1,
                     30, "every role")
    process.wait_for(lambda: server.get("/api/containers").status == 200, 30, "service")
    assert clients.wrong == [] and clients.n > 20, (clients.wrong[:5], clients.n)
    launches = {l.get("id") or l.get("launch_id"): l for l in listed(server)}
    missing = [i for i in clients.launched if i not in launches]
    assert clients.launched and not missing, "launches that nobody remembers"
    process.wait_for(lambda: all(l["status"] == "running" for l in listed(server)), 90,
                     "every launch to have its run: %r" % [
                         (l["status"], l.get("error")) for l in listed(server)])
    process.wait_for(lambda: len(process.descriptors(server.pid)) <= fds + 2, 20, "descriptors")
    assert process.rss_kib(server.pid) < rss + 16384
    print("%d blows, %d rounds, %d launches" % (len(blows), clients.n, len(clients.launched)))


def listed(server):
    value = server.json("/api/launch/status")
    return value if isinstance(value, list) else value.get("launches") or value.get("entries") or []
