"""The wall clock jumps a day forward, two days back and a day forward again, under everything."""
import datetime
import re
import struct
import time

import pytest

import harness
import launch_help
import process
from http_client import Connection, head
from preloaded import Preloaded
from screen import Screen
from test_disk import make_run, sees
from test_terminal import live, shell_pid

DAY = 86400
BAD = {"Authorization": "Bearer " + "x" * 32}


class Clock(Preloaded):
    """The wall clock of these programs is this test's; the monotonic one goes on."""

    def __init__(self, place):
        super().__init__(place, "libclock_jump.so", "CLOCK_JUMP_FILE")

    def set(self, seconds):
        self.map[:8] = struct.pack("q", seconds)


def date_of(response):
    return datetime.datetime.strptime(response.header("Date"), "%a, %d %b %Y %H:%M:%S GMT")


def off_by(server, seconds):
    """Do all workers live in that time?"""
    real = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    return all(abs((date_of(server.get("/api/health")) - real).total_seconds() - seconds) < 60
               for _ in range(8))


def ask(connection, server, path="/api/health"):
    connection.send(head("GET", path, server.headers()))
    return connection.response("GET").status


def tokens_refused(server):
    return {server.get("/api/health", BAD).status for _ in range(6)}


@pytest.mark.plain
def test_jumps(place, start, monkeypatch):
    clock = Clock(place)
    monkeypatch.setattr(harness, "SERVER", clock.program)
    place.knobs(build_seconds=0.2, agent_seconds=120)
    stage = launch_help.Stage(place)
    server = start({**stage.env(), "SSEBENCH_WEBUI_TOKEN": harness.TOKEN,
                    "SSEBENCH_WEBUI_WORKERS": "1"})
    assert off_by(server, 0)
    stage.task("stream", lines=2500, block=10, pause=0.05, list_at=100, exit=7)
    launch = launch_help.launch(server, "stream")
    launch_help.wait_status(server, launch, "running")
    place.start_run("0b5f0000-0000-4000-8000-00000000c10c")
    process.wait_for(lambda: len(server.runs()) > 1, what="the run")
    pids = server.workers() + server.role("broker")
    for _ in range(40):
        server.get("/api/health", BAD)
    assert tokens_refused(server) == {429}

    with Connection(server.address, 30) as kept, Connection(server.address, 60) as half, \
            server.websocket("/api/launch/ws?heartbeat=1", timeout=60) as ws:
        assert ask(kept, server) == 200
        for n, offset in enumerate((DAY, -DAY, 0)):
            clock.set(offset)
            process.wait_for(lambda: off_by(server, offset), what="the new time")
            time.sleep(1.2)  # two turns of the wheel of deadlines
            assert ask(kept, server) == 200, "an idle connection lives on"
            assert ws.receive_json()["type"], "and so does a WebSocket"
            assert server.get("/api/containers").status == 200
            make_run(place, "later%d" % n)
            sees(server, "later%d" % n)
            if n < 2:
                assert tokens_refused(server) == {429}, "a minute is a minute"
            begun = time.monotonic()
            if n == 1:
                half.send(b"GET / HTTP/1.1\r\n")
                assert half.response("GET").status == 408
                assert 8 < time.monotonic() - begun < 40, "a deadline comes, and when it should"
        ended = launch_help.wait_end(server, launch)
    assert ended["exitCode"] == 7
    launch_help.check_numbered(launch_help.kept_output(place, launch), 2500)
    for name in ("startTime", "endTime"):
        assert re.match(r"\d{4}-\d\d-\d\dT", ended[name]), ended
    assert server.workers() + server.role("broker") == pids, "nobody died of it"


@pytest.mark.plain
def test_a_shell_over_a_jump(place, start, monkeypatch):
    """A shell that nobody watches lives for a time that passes, not until a date."""
    clock = Clock(place)
    monkeypatch.setattr(harness, "SERVER", clock.program)
    server = start({"PTY_ORPHAN_THRESHOLD": "6000", "PTY_CLEANUP_INTERVAL": "100"})
    live(place, server, "t1")
    first = Screen(server, "/api/pty/t1?mode=binary")
    session, pid = first.first("session")["id"], shell_pid(first)
    first.close()
    clock.set(DAY)
    time.sleep(0.5)
    second = Screen(server, "/api/pty/t1?mode=binary&session=" + session)
    assert shell_pid(second) == pid
    clock.set(-DAY)
    second.close()
    process.wait_for(lambda: not process.alive(pid), 30, "the end of the unwatched shell")
