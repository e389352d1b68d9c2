#!/usr/bin/python3
"""What watching a run costs: from an entry in its file to the client, and what the rest waits.

    SSEBENCH_BUILD=build tests/bench/bench_feed.py [part ...]      parts: push quiet poll idle
                                                                  past diff log turns
"""
import json
import os
import random
import resource
import select
import socket
import statistics
import sys
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
import harness  # noqa: E402
from liar import Liar, answer  # noqa: E402
from process import wait_for  # noqa: E402
from ws_client import handshake_headers  # noqa: E402
from http_client import head  # noqa: E402

RUN = "bench-1"
FEED = "/api/containers/%s/sdk-ws" % RUN


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def memory(pid, field):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    return 0


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class World:
    """A server and a run that goes on, whose dialog is written here."""

    def __init__(self, env=None, rubbish=(), **knobs):
        self.place, self.liar = harness.Place(), Liar()
        self.liar.say = {"/version": answer('{"version":"1"}'), "/project": answer('{"id":"t"}'),
                         "/files": answer('{"files":[]}'), "/diff": answer('{"diff":""}'),
                         "/result": answer('{"available":false}')}
        self.place.knobs(agent_seconds=3000, **knobs,
                         rubbish={"endpoint": self.liar.url + "\n", **dict(rubbish)})
        self.place.start_run(RUN, agent="dummy", agent_seconds=3000)
        self.server = harness.Server(self.place, env)
        wait_for(lambda: any(r["id"] == RUN and r["status"] == "running"
                             for r in self.server.runs()), what="the run")
        folder = next(f for f, _, _ in os.walk(self.place.results) if f.endswith("/" + RUN))
        os.makedirs(os.path.join(folder, "archive"), exist_ok=True)
        self.dialog = open(os.path.join(folder, "archive", "dialog.jsonl"), "ab", buffering=0)
        self.dialog.write(b'{"seq":0}\n')
        self.n = 0

    def workers(self):
        return [w if isinstance(w, int) else w[0] for w in self.server.workers()]

    def connect(self, path=FEED):
        s = socket.create_connection(self.server.address)
        headers, _ = handshake_headers(self.server.host)
        s.sendall(head("GET", self.server.base + path, headers))
        return s

    def add(self):
        self.n += 1
        self.dialog.write(b'{"seq":%d,"type":"message","content":"entry"}\n' % self.n)
        return b'"lastSeq":%d}' % self.n

    def close(self):
        self.server.stop()
        self.liar.close()
        self.place.close()


def drain(sockets, quiet=1.0):
    """Read all until nothing has come for a while, but pings, which never end."""
    end = time.monotonic() + 5 * quiet
    poller = select.epoll()
    for s in sockets:
        poller.register(s.fileno(), select.EPOLLIN)
    by_fd = {s.fileno(): s for s in sockets}
    while True:
        ready = poller.poll(quiet)
        if not ready or time.monotonic() > end:
            return poller, by_fd
        for fd, _ in ready:
            by_fd[fd].recv(1 << 20)


def rest(seconds, sockets):
    """Wait, and show signs of life as a browser does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(min(8, max(0, end - time.monotonic())))
        for s in sockets:
            s.sendall(b"\x8a\x80\0\0\0\0")


def broadcast(world, poller, by_fd):
    """Milliseconds until the first and until the last has the next entry, and of each."""
    waiting, tails, times = set(by_fd), {}, []
    begun = time.perf_counter()
    mark = world.add()
    while waiting:
        ready = poller.poll(10)
        assert ready, "%d viewers got nothing" % len(waiting)
        now = (time.perf_counter() - begun) * 1000
        for fd, _ in ready:
            data = by_fd[fd].recv(65536)
            assert data, "a viewer was closed"
            tails[fd] = tails.get(fd, b"")[-64:] + data
            if mark in tails[fd] and fd in waiting:
                waiting.discard(fd)
                times.append(now)
    return times


def push(viewers, rounds):
    world = World()
    sockets = [world.connect() for _ in range(viewers)]
    poller, by_fd = drain(sockets)
    times, last = [], []
    for _ in range(rounds):
        got = broadcast(world, poller, by_fd)
        times += got
        last.append(max(got))
        time.sleep(0.01)
    print("push, %d viewers, %d entries: p50 %.2f ms, p99 %.2f ms, worst %.2f ms; all have it: "
          "p50 %.2f ms, p99 %.2f ms" % (viewers, rounds, percentile(times, .5),
                                        percentile(times, .99), max(times),
                                        percentile(last, .5), percentile(last, .99)))
    world.close()


def seen(poller, by_fd, add):
    """Milliseconds from the entry until the viewer has it."""
    begun = time.perf_counter()
    mark, tail = add(), b""
    while mark not in tail:
        for fd, _ in poller.poll(30):
            data = by_fd[fd].recv(65536)
            assert data, "a viewer was closed"
            tail = tail[-64:] + data
    return (time.perf_counter() - begun) * 1000


class Distant:
    """A run whose directory is outside the server's: its daemon alone has the dialog."""

    def __init__(self):
        self.place, self.liar, self.lines = harness.Place(), Liar(), []
        elsewhere = os.path.join(self.place.top, "elsewhere")
        os.makedirs(elsewhere)
        self.liar.say = {"/version": answer('{"version":"1"}'), "/project": answer('{"id":"t"}'),
                         "/files": answer('{"files":[]}'), "/diff": answer('{"diff":""}'),
                         "/result": answer('{"available":false}'), "/agent/dialog": self.dialog}
        self.place.knobs(rubbish={"endpoint": self.liar.url + "\n"}, extra=[{
            "id": RUN, "name": RUN, "state": "running", "task": "t", "model": "m", "agent": "a",
            "mode": "sandbox", "reference_run": False, "created_at": "2026-01-01T00:00:00Z",
            "image": "i", "results_dir": elsewhere, "run_id": RUN}])
        self.server = harness.Server(self.place)
        wait_for(lambda: any(r["id"] == RUN for r in self.server.runs()), what="the run")
        self.add()

    def dialog(self, connection):
        since = self.liar.asked[-1].partition("since=")[2]
        entries = self.lines[int(since) + 1 if since else 0:]
        connection.sendall(answer('{"entries":[%s]}' % ",".join(entries)))

    connect, close = World.connect, World.close

    def add(self):
        self.lines.append('{"seq":%d,"type":"message","content":"entry"}' % len(self.lines))
        return b'"lastSeq":%d}' % (len(self.lines) - 1)


def several(worlds, label, rounds, wait):
    """One viewer of each world; to each `rounds` entries, apart by what `wait` says."""
    times = []

    def one(world):
        sockets = [world.connect()]
        poller, by_fd = drain(sockets)
        for _ in range(rounds):
            rest(wait(), sockets)
            times.append(seen(poller, by_fd, world.add))
    threads = [threading.Thread(target=one, args=(w,)) for w in worlds]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print("%s, %d entries: p50 %.2f ms, p99 %.2f ms, worst %.2f ms" % (
        label, len(times), percentile(times, .5), percentile(times, .99), max(times)))
    for world in worlds:
        world.close()


def quiet(n=20):
    """A minute without an entry, and up to a quarter more: any moment of a long period."""
    for world, label in ((World, "push"), (Distant, "polling")):
        several([world() for _ in range(n)], label + " after 60 to 75 s of silence", 1,
                lambda: random.uniform(60, 75))


def poll():
    """Entries at any moment of the period between two questions."""
    several([Distant() for _ in range(4)], "polling", 50, lambda: random.uniform(0.5, 2.5))


def idle(viewers):
    resource.setrlimit(resource.RLIMIT_NOFILE, (viewers + 1000, viewers + 1000))
    world = World()
    before = sum(memory(w, "VmRSS") for w in world.workers())
    sockets = []
    for _ in range(viewers):
        sockets.append(world.connect())
    poller, by_fd = drain(sockets, 2)
    rest(0.1, sockets)
    after = sum(memory(w, "VmRSS") for w in world.workers())
    cpu = sum(cpu_seconds(w) for w in world.workers())
    rest(20, sockets)
    cpu = sum(cpu_seconds(w) for w in world.workers()) - cpu
    times = [broadcast(world, poller, by_fd) for _ in range(5)]
    print("idle, %d viewers: %.2f KiB each; CPU %.2f %% of one core; one entry to all: %.0f ms"
          % (viewers, (after - before) / viewers, cpu * 5,
             statistics.median(max(t) for t in times)))
    for s in sockets:
        s.close()
    world.close()


class Others(threading.Thread):
    """Another client meanwhile: its slowest request."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.slowest, self.over, self.n = server, 0, False, 0

    def run(self):
        with self.server.connect() as c:
            request = head("GET", self.server.base + "/api/health",
                           self.server.headers())
            while not self.over:
                begun = time.perf_counter()
                c.send(request)
                c.response()
                self.slowest = max(self.slowest, (time.perf_counter() - begun) * 1000)
                self.n += 1
                time.sleep(0.001)


def receive(s, end):
    begun = time.perf_counter()
    first, n, tail = 0, 0, b""
    while end not in tail:
        data = s.recv(1 << 20)
        assert data, "closed"
        n += len(data)
        if not first and n > 4096:
            first = (time.perf_counter() - begun) * 1000
        tail = tail[-64:] + data[-256:]
    return first, (time.perf_counter() - begun) * 1000, n


def past():
    world = World()
    text = "x" * 85  # 32 MB in all
    world.dialog.write(b"".join(
        b'{"seq":%d,"ts":"2026-01-01T00:00:00Z","type":"message","content":"%s"}\n'
        % (i, text.encode()) for i in range(1, 200000)))
    before = max(memory(w, "VmRSS") for w in world.workers())
    others = [Others(world.server) for _ in range(4)]
    for o in others:
        o.start()
    time.sleep(0.3)
    quiet = max(o.slowest for o in others)
    for o in others:
        o.slowest = 0
    for label in ("first viewer", "late viewer"):
        s = world.connect()
        first, last, n = receive(s, b'"lastSeq":199999}')
        print("past, 200,000 entries, %s: first bytes %.1f ms, last %.0f ms, %.0f MB/s"
              % (label, first, last, n / last / 1000))
        s.close()
    for o in others:
        o.over = True
        o.join()
    print("past: memory of the largest worker %.0f -> peak %.0f MiB; slowest other request %.1f "
          "ms (%.1f ms when nobody watches)"
          % (before / 1024, max(memory(w, "VmHWM") for w in world.workers()) / 1024,
             max(o.slowest for o in others), quiet))
    world.close()


def diff():
    place = harness.Place()
    run = place.finished()[0]
    folder = next(f for f, _, _ in os.walk(place.results) if f.endswith("/" + run["run_id"]))
    one = "diff --git a/f%d b/f%d\n--- a/f%d\n+++ b/f%d\n@@ -1,2 +1,400 @@\n"
    with open(os.path.join(folder, "final.patch"), "w", encoding="utf-8") as f:
        for i in range(1000):
            f.write(one % (i, i, i, i) + ("+" + "y" * 77 + "\n") * 400)
    server = harness.Server(place)
    server.runs()
    begun = time.perf_counter()
    files = server.json("/api/containers/%s/files" % run["run_id"])["files"]
    print("diff, %.0f MiB: %d files in %.0f ms" % (1000 * 400 * 79 / 2 ** 20, len(files),
                                                  (time.perf_counter() - begun) * 1000))
    server.stop()
    place.close()


def log():
    world = World(flood={"logs": 100 * 1000 * 1000})
    before = max(memory(w, "VmRSS") for w in world.workers())
    s = world.connect("/api/containers/%s/logs-ws" % RUN)
    first, last, n = receive(s, b'"type":"end"')
    print("log, 100 MB: %.0f MB in %.1f s, %.0f MB/s; memory of the largest worker %.0f -> peak "
          "%.0f MiB" % (n / 1e6, last / 1000, n / last / 1000, before / 1024,
                        max(memory(w, "VmHWM") for w in world.workers()) / 1024))
    world.close()


# --- the longest turn of a worker's loop ---------------------------------------------------------

BIG = 30 << 20
LINES = "+a line of a diff\\n"


def undisturbed(pid):
    """No other process takes the worker's core from it: its turns are its own. What it does must
    take less than a second, for the kernel stops such a process for 50 ms in every one."""
    try:
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        print("turns: not root, so other processes' time is in the figures")


def longest(server):
    text = server.get("/api/metrics").text
    return int(text.rpartition("ssebench_webui_longest_turn_microseconds ")[2].split()[0])


def until(s, *marks):
    """Read messages up to one with each mark, in any order."""
    tail, left = b"", set(marks)
    while left:
        data = s.recv(1 << 20)
        assert data, "closed"
        tail = tail[-256:] + data
        left -= {m for m in left if m in tail}


def documents(liar):
    liar.say["/project"] = answer('{"id":"%s"}' % ("x" * BIG))
    liar.say["/diff"] = answer('{"diff":"%s"}' % (LINES * (BIG // len(LINES))))
    liar.say["/files"] = answer('{"files":[%s]}' % ",".join(
        ['{"path":"a/file","status":"modified","additions":1,"deletions":2}'] * 400000))


def turn_feed(world):
    s = world.connect()
    until(s, b'"type":"project"', b'"type":"diff"', b'"type":"files"', b'"type":"result"')
    time.sleep(3)  # rounds in which it is compared
    world.liar.say["/diff"] = answer('{"diff":"%s!"}' % (LINES * (BIG // len(LINES))))
    until(s, b"!\"}")
    s.close()


def turn_daemon_dialog(world):
    os.unlink(world.dialog.name)
    world.liar.say["/agent/dialog"] = answer('{"entries":[{"seq":0,"content":"%s"},%s]}' % (
        "z" * (BIG // 2), ",".join('{"seq":%d,"content":"entry"}' % i
                                   for i in range(1, 200000))))
    s = world.connect()
    until(s, b'"lastSeq":199999')
    s.close()


def get(world, what, coding):
    def one():
        answered = world.server.get("/api/containers/%s/%s" % (RUN, what),
                                    {"Accept-Encoding": coding}, timeout=60)
        assert answered.status == 200, answered.status
    return one


def turn_file_dialog(world):
    world.dialog.write(b'{"seq":1,"content":"%s"}\n' % (b"z" * BIG))
    world.dialog.write(b"".join(b'{"seq":%d}\n' % i for i in range(2, 100000)))
    s = world.connect()
    until(s, b'"lastSeq":99999')
    s.close()


def turn_log(world, run=RUN):
    s = world.connect("/api/containers/%s/logs-ws" % run)
    until(s, b'"type":"end"')
    s.close()


def finished_with(world, big):
    """A finished run whose file `big` has 30 MiB; its ID."""
    run = world.place.finished()[0]["run_id"]
    folder = next(f for f, _, _ in os.walk(world.place.results) if f.endswith("/" + run))
    text = {"result.json": '{"patch_result":{"error_log":"%s"},"runtime_result":{}}'
                           % ("e\\n" * (BIG // 3)),
            "post-review.txt": " " * BIG, "final.patch": "+x\n" * (BIG // 3),
            "agent.log": "a\n" * 300000, "summary.json": None}[big]
    path = os.path.join(folder, big)
    if big == "summary.json":
        with open(path, encoding="utf-8") as f:
            summary = json.load(f)
        summary["task"]["task_description"] = {"issue": "i" * (7 << 20)}
        text = json.dumps(summary)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return run


def turn_finished(big, what):
    def one(world):
        run = finished_with(world, big)
        if what == "logs-ws":
            turn_log(world, run)
        elif what == "sdk-ws":
            s = world.connect("/api/containers/%s/sdk-ws" % run)
            until(s, b'"type":"result"')
            s.close()
        else:
            answered = world.server.get("/api/containers/%s/%s" % (run, what), timeout=60)
            assert answered.status == 200, (what, answered.status)
    return one


def turns():
    """Each case on a server of its own, with one worker: what it adds to the longest turn."""
    cases = {
        "feed, documents of 30 MiB from the daemon": (turn_feed, True, {}),
        "feed, daemon's dialog of 15 MiB and 200,000 entries": (turn_daemon_dialog, False, {}),
        "feed, dialog's line of 30 MiB and 100,000 others": (turn_file_dialog, False, {}),
        "logs-ws, 300,000 lines of two bytes": (
            turn_log, False, {"rubbish": {"logs": "x\n" * 300000}}),
    }
    for what in ("diff", "files", "project"):
        for coding in ("identity", "gzip"):
            cases["GET %s of 30 MiB from the daemon, %s" % (what, coding)] = (
                lambda w, a=what, c=coding: get(w, a, c)(), True, {})
    for big, what in (("result.json", "result"), ("result.json", "sdk-ws"),
                      ("summary.json", "project"), ("post-review.txt", "review"),
                      ("final.patch", "files"), ("final.patch", "diff"),
                      ("agent.log", "logs-ws")):
        cases["finished run, big %s, %s" % (big, what)] = (turn_finished(big, what), False, {})
    for label, (act, big, knobs) in cases.items():
        world = World({"SSEBENCH_WEBUI_WORKERS": "1"}, **knobs)
        undisturbed(world.workers()[0])
        if big:
            documents(world.liar)
        before = longest(world.server)
        try:
            act(world)
            print("turns, %s: longest %.1f ms (%.1f ms before)" % (
                label, longest(world.server) / 1000, before / 1000))
        finally:
            world.close()


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    parts = sys.argv[1:] or ["push", "quiet", "poll", "idle", "past", "diff", "log"]
    if "push" in parts:
        push(1, 1000)
        push(500, 100)
    if "quiet" in parts:
        quiet()
    if "poll" in parts:
        poll()
    if "past" in parts:
        past()
    if "diff" in parts:
        diff()
    if "log" in parts:
        log()
    if "turns" in parts:
        turns()
    if "idle" in parts:
        idle(10000)
