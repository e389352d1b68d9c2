"""Launches as a test wants them: a checkout of tasks that misbehave, requests, viewers."""
import json
import os
import threading
import time

import harness
import process
from http_client import Closed

NOISY = os.path.join(harness.TOP, "tests", "e2e", "noisy_cli")


class Stage:
    """Tasks of a place, each with what its launch does (tests/e2e/noisy_cli)."""

    def __init__(self, place):
        self.place = place
        self.state = place.standin
        for folder in ("plans", "listed", "started", "end"):
            os.makedirs(os.path.join(self.state, folder), exist_ok=True)

    def task(self, name, **plan):
        os.makedirs(os.path.join(self.place.checkout, "datasets", "pilot", name, "sse"),
                    exist_ok=True)
        with open(os.path.join(self.state, "plans", name + ".json"), "w") as f:
            json.dump(plan, f)
        return name

    def end(self, name):
        """A task that stays may end."""
        open(os.path.join(self.state, "end", name), "w").close()

    def started(self, launch_id):
        try:
            with open(os.path.join(self.state, "started", launch_id)) as f:
                return json.load(f)
        except (FileNotFoundError, ValueError):
            return None

    def env(self, **more):
        return {"SSEBENCH_CLI": NOISY, **more}


def body(task, **more):
    return {"task": task, "agent": "codex", "model": "gpt-6.1-sol", "mode": "sandbox",
            "source": "local", **more}


def post(server, path, value, headers=None):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return server.post("/api/launch" + path, headers, raw)


def launch(server, task, **more):
    r = post(server, "", body(task, **more))
    assert r.status == 200, r
    return r.json()["launch_id"]


def status(server, launch_id):
    return server.json("/api/launch/status?id=" + launch_id)


def try_status(server, launch_id):
    """None while a part of the server is away."""
    try:
        r = server.get("/api/launch/status?id=" + launch_id)
        return r.json() if r.status == 200 else None
    except (Closed, OSError, ValueError):
        return None


def wait_status(server, launch_id, wanted, seconds=60):
    def reached():
        s = try_status(server, launch_id)
        return s if s and s.get("status") == wanted else None
    return process.wait_for(reached, seconds, "%s is %s" % (launch_id, wanted))


def wait_end(server, launch_id, seconds=90):
    def ended():
        s = try_status(server, launch_id)
        return s if s and s.get("endTime") else None
    return process.wait_for(ended, seconds, "the end of " + launch_id)


def logs(server, launch_id):
    return server.json("/api/launch/logs?id=" + launch_id)["logs"]


def folder(place, launch_id):
    for top, names, _ in os.walk(os.path.join(place.state, "launches")):
        if launch_id in names:
            return os.path.join(top, launch_id)
    return None


def kept_output(place, launch_id):
    with open(os.path.join(folder(place, launch_id), "output"), "rb") as f:
        return f.read()


def keepers():
    """Pids of living keepers below this test."""
    return [p for p in process.descendants(os.getpid()) if process.alive(p) and
            process.command(p)[:1] == ["ssebench-webui-keeper"]]


def check_numbered(text, n, width=20):
    """Every line of lines(), once, in order."""
    found = [x for x in text.split(b"\n") if x.startswith(b"line ")]
    assert found == [b"line %09d %s" % (i, b"x" * width) for i in range(n)], (
        "%d lines of %d" % (len(found), n), found[:3], found[-3:])


class Viewer:
    """A page's launch socket that reconnects as the page does and drops what it has."""

    def __init__(self, server):
        self.server, self.lines, self.states, self.cleared = server, {}, {}, set()
        self.last, self.over = {}, False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.over:
            try:
                with self.server.websocket("/api/launch/ws?heartbeat=1", timeout=5) as ws:
                    while not self.over:
                        self.take(ws.receive_json())
            except Exception:  # gone: the page tries again
                time.sleep(0.05)

    def take(self, m):
        if m["type"] == "status":
            self.states.setdefault(m["launch_id"], []).append(m["data"])
        elif m["type"] == "cleared":
            self.cleared.add(m["launch_id"])
        elif m["type"] == "log" and m["offset"] > self.last.get(m["launch_id"], -1):
            self.last[m["launch_id"]] = m["offset"]
            self.lines.setdefault(m["launch_id"], []).append(m["data"])

    def close(self):
        self.over = True
        self.thread.join(10)
