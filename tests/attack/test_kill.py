"""Kills, stops, lost memory and upgrades of every role at random under mixed load; then all is as
before. ATTACK_SECONDS=600 is the long form; ATTACK_SEED repeats the order of the blows."""
import json
import os
import random
import re
import signal
import struct
import threading
import time

import pytest

import harness
import launch_help
import process
from http_client import Closed
from liar import Liar, answer
from preloaded import Preloaded
from screen import Screen
from ws_client import Refused

SECONDS = int(os.environ.get("ATTACK_SECONDS", "60"))
LINES = 400
FINE = {200, 404, 409, 429, 500, 502, 503, 504}


class Timed:
    """How long one client was without service, at worst, and after which blow."""
    blow = ""

    def __init__(self):
        self.good, self.worst, self.gaps = time.monotonic(), 0.0, []

    def served(self):
        gap = time.monotonic() - self.good
        self.good = time.monotonic()
        self.worst = max(self.worst, gap)
        if gap > 0.5:
            self.gaps.append((gap, Timed.blow))


class Clients:
    """Lists, files, feeds, logs, launches, a shell, the assistant, until told to stop. Answers that
    are none are kept."""

    def __init__(self, server):
        self.server, self.over, self.wrong = server, threading.Event(), []
        self.launched, self.done, self.lock = [], {}, threading.Lock()
        self.session, self.n_shells = None, 0
        self.timed = [Timed(), Timed()]
        self.threads = [threading.Thread(target=self.loop, args=a) for a in (
            ("list", self.reads, self.timed[0]), ("list", self.reads, self.timed[1]),
            ("feed", self.feed), ("log", self.log), ("launch", self.launch),
            ("shell", self.shell), ("assistant", self.assistant))]
        for t in self.threads:
            t.start()

    def loop(self, kind, step, *args):
        while not self.over.is_set():
            try:
                step(*args)
                with self.lock:
                    self.done[kind] = self.done.get(kind, 0) + 1
            except (Closed, OSError, AssertionError, Refused, ValueError):
                time.sleep(0.02)

    def check(self, what, r):
        if r.status not in FINE:
            self.wrong.append((what, r.status, r.body[:200]))
        return r

    def reads(self, timed):
        for path in ("/api/health", "/api/containers", "/api/containers/hostile-output.1/diff",
                     "/api/containers/hostile-output.1/agent/dialog", "/api/launch/status", "/"):
            r = self.check(path, self.server.get(path, timeout=10))
            if path == "/api/containers" and r.status == 200:
                timed.served()

    def feed(self):
        with self.server.websocket("/api/containers/t1/sdk-ws", timeout=5) as ws:
            for _ in range(3):
                ws.receive_json()

    def log(self):
        with self.server.websocket("/api/containers/hostile-output.1/logs-ws", timeout=5) as ws:
            ws.receive_json()

    def launch(self):
        r = self.check("launch", launch_help.post(self.server, "", launch_help.body("stream")))
        if r.status == 200:
            self.launched.append(r.json()["launch_id"])
        self.over.wait(1.5)

    def shell(self):
        """The same shell for as long as there is one; each mark has to come back."""
        path = "/api/pty/t1?mode=binary"
        with_session = path + ("&session=" + self.session if self.session else "")
        session, self.session = self.session, None
        s = Screen(self.server, with_session, timeout=10)
        try:
            self.session = s.first("session")["id"] if not session else session
            for n in range(5):
                s.type("echo mark-$((%d+1))\r" % n)
                s.shows("mark-%d" % (n + 1))
                self.n_shells += 1
        finally:
            s.close()

    def assistant(self):
        r = self.check("assistant", self.server.get("/api/containers/t1/opencode/sessions", timeout=20))
        if r.status == 200 and r.json() is None:
            self.wrong.append(("assistant", r))
        self.over.wait(0.1)

    def stop(self):
        self.over.set()
        for t in self.threads:
            t.join()


class Blows:
    """One random blow at a time; pauses so that the master's own limit of restarts is not what is
    tested."""

    def __init__(self, server, fails, dice):
        self.server, self.fails, self.dice, self.counts = server, fails, dice, {}

    def strike(self):
        role = self.dice.choice(["worker", "worker", "broker", "keeper", "master"])
        blow = self.dice.choice(["kill", "kill", "stop", "long stop", "term", "allocations",
                                 "address space", "upgrade"])
        if blow in ("upgrade", "allocations"):
            role = "all"
        if role == "master" and blow in ("term", "address space"):
            return
        pids = [self.server.pid] if role in ("all", "master") else \
            launch_help.keepers() if role == "keeper" else self.server.role(role)
        if not pids or (role == "keeper" and blow == "address space"):
            return
        Timed.blow = role + ": " + blow
        self.counts[Timed.blow] = self.counts.get(Timed.blow, 0) + 1
        try:
            getattr(self, blow.replace(" ", "_"))(self.dice.choice(pids))
        except ProcessLookupError:
            pass
        if (role, blow) == ("master", "kill"):
            self.server.start_again()

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)

    def stop(self, pid, seconds=0.3):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)

    def long_stop(self, pid):
        self.stop(pid, 2)

    def term(self, pid):
        os.kill(pid, signal.SIGTERM)

    def upgrade(self, pid):
        os.kill(pid, signal.SIGUSR2)

    def allocations(self, _):
        self.fails.map[:8] = struct.pack("Q", self.dice.choice([10, 50, 200]))
        time.sleep(0.7)
        self.fails.map[:8] = struct.pack("Q", 0)

    def address_space(self, pid):
        """Full for a while. What it starts meanwhile is poor as well, so: not the broker."""
        if pid not in self.server.workers():
            return
        if process.limit_address_space(pid, 0):
            time.sleep(0.7)
            process.limit_address_space(pid, None)


def metric(server, name):
    return sum(float(v) for v in re.findall(r"^ssebench_webui_%s(?:{[^}]*})? ([\d.]+)$" % name,
                                            server.get("/api/metrics").text, re.M))


def poor(status):
    """Ended for want of memory, which says so."""
    return re.search("memory|allocate", json.dumps(status))


def check_launches(server, place, clients):
    for launch in clients.launched:
        ended = launch_help.wait_end(server, launch, 120)
        if ended["exitCode"] is None and poor(ended):
            continue
        # None: its keeper was killed, and only a parent is told how a process ended.
        assert ended["exitCode"] in (7, None), ended
        launch_help.check_numbered(launch_help.kept_output(place, launch), LINES)


@pytest.mark.plain
def test_everything_killed_under_load(start, place, monkeypatch):
    seed = int(os.environ.get("ATTACK_SEED", "0")) or random.randrange(1 << 30)
    print("seed", seed)
    fails = Preloaded(place, "libmalloc_fails.so", "MALLOC_FAILS_FILE")
    monkeypatch.setattr(harness, "SERVER", fails.program)
    stage, liar = launch_help.Stage(place), Liar()
    stage.task("stream", lines=LINES, block=10, pause=0.03, list_at=50, exit=7)
    liar.say["/session"] = answer("[]")
    liar.say["/agent/dialog"] = answer("[]")
    place.knobs(rubbish={"endpoint": liar.url + "\n"}, agent_seconds=SECONDS + 300)
    server = start(stage.env(SSEBENCH_STANDIN=harness.STANDIN, PTY_ORPHAN_THRESHOLD="3000",
                             PTY_CLEANUP_INTERVAL="500"))
    place.start_run("t1", agent_seconds=SECONDS + 300)
    process.wait_for(lambda: [r for r in server.runs() if r["id"] == "t1"], what="the run")
    process.wait_for(lambda: server.get("/api/containers/hostile-output.1/diff").status == 200,
                     what="the first walk")
    rss, fds = process.rss_kib(server.pid), len(process.descriptors(server.pid))
    clients, blows = Clients(server), Blows(server, fails, random.Random(seed))
    until = time.monotonic() + SECONDS
    try:
        while time.monotonic() < until:
            blows.strike()
            time.sleep(blows.dice.uniform(1.2, 2.5))
            assert server.process.poll() is None, server.log[-3000:]
    finally:
        clients.stop()
        fails.map[:8] = struct.pack("Q", 0)
        liar.close()
    report(blows, clients)
    assert clients.wrong == [], clients.wrong[:5]
    assert set(clients.done) == {"list", "feed", "log", "launch", "shell", "assistant"}, clients.done
    process.wait_for(lambda: len(server.workers()) == 2 and len(server.role("broker")) == 1,
                     60, "every role")
    process.wait_for(lambda: server.get("/api/containers").status == 200, 60, "service")
    check_launches(server, place, clients)
    check_nothing_grew(server, rss, fds)
    assert max(t.worst for t in clients.timed) < 20


def report(blows, clients):
    gaps = sorted(g for t in clients.timed for g in t.gaps)
    print("blows: %d %s" % (sum(blows.counts.values()), dict(sorted(blows.counts.items()))))
    print("rounds: %s; launches %d; marks of shells %d" % (clients.done, len(clients.launched),
                                                           clients.n_shells))
    print("longest times without a list: %s" % ["%.2f s, %s" % g for g in gaps[-5:]])


def check_nothing_grew(server, rss, fds):
    assert not re.search(r"child-ended .*SIG(?:SEGV|BUS|ILL|FPE|SYS|ABRT)", server.log)
    process.wait_for(lambda: len(process.descriptors(server.pid)) <= fds + 2, 40, "descriptors")
    process.wait_for(lambda: not launch_help.keepers(), 60, "no keeper without a launch")
    assert launch_help.post(server, "/clear", {}).status == 200
    assert process.rss_kib(server.pid) < rss + 16384
    for pid in server.workers() + server.role("broker"):
        process.wait_for(lambda: len(process.descriptors(pid)) < 48, 60, "descriptors: %s" %
                         process.descriptors(pid))
        assert process.rss_kib(pid) < 200 << 10
    try:
        process.wait_for(lambda: metric(server, "websockets") == 0 and
                         metric(server, "connections") <= 2, 60, "counters")
    except AssertionError:
        raise AssertionError("counters that are not true:\n" + server.get("/api/metrics").text)
