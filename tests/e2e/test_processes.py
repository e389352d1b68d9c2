"""Start, stop, and the death of every role under load."""
import os
import signal
import threading
import time

import pytest

import process
from http_client import Closed
from routes import RUN

pytestmark = pytest.mark.once  # processes know no path


def healthy(server):
    try:
        return server.get("/api/health").status == 200
    except (Closed, OSError):
        return False


def shows(server):
    """A finished run's diff comes back: worker, broker and the way between them work."""
    try:
        return server.get("/api/containers/%s/diff" % RUN).status == 200
    except (Closed, OSError):
        return False


def test_roles_can_be_told_apart(shared):
    assert len(shared.workers()) == 2 and len(shared.role("broker")) == 1
    for pid in shared.workers() + shared.role("broker"):
        assert len(process.command(pid)) == 2 and process.command(pid)[1].isdigit()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_graceful_stop(start, number):
    server = start()
    tree = server.tree()
    assert server.stop(number) == 0
    assert [p for p in tree if process.alive(p)] == []
    with pytest.raises(OSError):
        server.connect()


def test_stop_closes_websockets_with_1001(start):
    server = start()
    with server.websocket("/api/containers/%s/logs-ws" % RUN) as ws:
        while ws.receive_json()["type"] != "end":
            pass
        server.process.send_signal(signal.SIGTERM)
        assert ws.close_code() in (1000, 1001)
    assert server.stop() == 0


def test_who_is_stopped_is_continued(start):
    """By SIGSTOP it would serve nobody, and nobody would notice."""
    server = start()
    for pid in server.workers() + server.role("broker"):
        os.kill(pid, signal.SIGSTOP)
    process.wait_for(lambda: server.log.count("child-stopped ") == 3, what="three lines")
    assert all(shows(server) for _ in range(8))
    assert server.log.count("signal=SIGSTOP action=continue") == 3 and "child-ended" not in server.log


def test_a_pause_of_everything_is_no_fault(start):
    """As of a container that is paused: the clock ran on, and nobody said a word."""
    server = start()
    with server.websocket("/api/containers/%s/logs-ws" % RUN) as ws:
        ws.receive_json()
        with process.held(server.pid, server.workers() + server.role("broker")):
            time.sleep(22)
        time.sleep(6)  # until they have said that they live
        assert answers(ws)
    assert "child-hung" not in server.log and "child-ended" not in server.log


def test_stop_does_not_wait_for_idle_connections(start):
    server = start()
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\n")  # a head that never ends
        assert server.stop() == 0


class Load:
    """Readers that go on through everything, and remember what they saw."""

    def __init__(self, server, threads=4):
        self.server, self.stop, self.seen, self.broken = server, threading.Event(), [], 0
        self.threads = [threading.Thread(target=self.work) for _ in range(threads)]

    def work(self):
        paths = ["/api/health", "/api/containers", "/api/containers/%s/diff" % RUN, "/"]
        while not self.stop.is_set():
            for path in paths:
                try:
                    self.seen.append(self.server.get(path).status)
                except (Closed, OSError, AssertionError):
                    self.broken += 1
                    time.sleep(0.01)

    def __enter__(self):
        for t in self.threads:
            t.start()
        time.sleep(0.5)
        return self

    def __exit__(self, *_):
        self.stop.set()
        for t in self.threads:
            t.join()


def test_killed_worker_is_replaced(start):
    server = start()
    with Load(server) as load:
        for _ in range(3):
            victim = server.workers()[0]
            os.kill(victim, signal.SIGKILL)
            process.wait_for(lambda: victim not in server.workers() and
                             len(server.workers()) == 2, what="a new worker")
            process.wait_for(lambda: shows(server), what="service")
    assert set(load.seen) <= {200}, "what is answered is whole and right"
    assert len(load.seen) > load.broken


def test_killed_broker_is_replaced(start):
    server = start()
    workers = sorted(server.workers())
    with Load(server) as load:
        for _ in range(3):
            victim = server.broker()
            os.kill(victim, signal.SIGKILL)
            process.wait_for(lambda: server.role("broker") not in ([], [victim]),
                             what="a new broker")
            process.wait_for(lambda: shows(server), what="service")
    assert sorted(server.workers()) == workers, "no worker had to go"
    assert set(load.seen) <= {200, 503}, "try again, or the answer"


def log_viewers(server, n, others):
    """n viewers of a log, none of them at one of `others`, who are stopped meanwhile."""
    with process.held(server.pid, others):
        sockets = [server.websocket("/api/containers/%s/logs-ws" % RUN) for _ in range(n)]
        for ws in sockets:
            while ws.receive_json()["type"] != "end":
                pass
    return sockets


def answers(ws):
    ws.connection.sock.settimeout(5)
    try:
        ws.send_frame(9, b"are you there")
        while ws.read_frame()[1] != 10:
            pass
        return True
    except (Closed, OSError):
        return False
    finally:
        ws.connection.close()


def test_killed_worker_leaves_the_others_connections(start):
    server = start({"SSEBENCH_WEBUI_WORKERS": "2"})
    victim, other = server.workers()
    staying = log_viewers(server, 4, [victim])
    going = log_viewers(server, 4, [other])
    os.kill(victim, signal.SIGKILL)
    process.wait_for(lambda: len(server.workers()) == 2 and healthy(server), what="recovery")
    assert [answers(ws) for ws in staying] == [True] * 4
    assert [answers(ws) for ws in going] == [False] * 4


def test_killed_master_takes_all_along(start):
    server = start()
    tree = server.tree()
    with Load(server, 2):
        os.kill(server.pid, signal.SIGKILL)
        server.process.wait(20)
        process.wait_for(lambda: not [p for p in tree if process.alive(p)],
                         what="workers and broker gone")
    server.process.returncode = 0  # how it ended is what this test asked for


def test_killed_broker_ends_its_commands(start, place):
    place.knobs(hang=["list"])
    server = start()
    server.get("/api/containers")
    process.wait_for(lambda: place.vectors("runs list"), what="the command")
    os.kill(server.broker(), signal.SIGKILL)
    place.knobs()

    def recovered():  # while the broker is away nobody's account can be asked for: 503
        r = server.get("/api/health")
        assert r.status in (200, 503), r
        return r.status == 200 and r.json().get("runner")

    process.wait_for(recovered, 40, "recovery")


def test_a_role_that_dies_at_once_stops_the_server_with_a_reason(start):
    server = start()
    for _ in range(30):
        if server.process.poll() is not None:
            break
        for pid in server.role("broker"):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)
        if not server.role("broker"):
            process.wait_for(lambda: server.role("broker") or
                             server.process.poll() is not None, what="broker or end")
    process.wait_for(lambda: server.process.poll() is not None, what="the limit of restarts")
    assert server.process.returncode != 0
    assert server.stop() != 0 and "broker" in server.log
    server.process.returncode = 0


def test_log_holds_no_secret_and_no_raw_bytes(start, place):
    token = "correct-horse-battery-staple"
    server = start({"SSEBENCH_WEBUI_TOKEN": token, "SSEBENCH_WEBUI_LOG_LEVEL": "debug"})
    server.get("/api/health", {"Authorization": "Bearer guess-guess-guess-guess",
                               "Referer": "http://localhost/?token=" + token})
    server.get("/api/x%1b[31m", {"User-Agent": "\x1b]0;x\x07"})
    with server.websocket("/api/containers/%s/logs-ws" % RUN):
        pass
    for pid in server.tree():
        assert token.encode() not in process.read(pid, "cmdline")
        if pid != server.pid:
            assert token.encode() not in process.read(pid, "environ"), process.command(pid)
    server.stop()
    whole = server.log + "\n".join(server.out)
    assert token not in whole and "guess-guess" not in whole and "\x1b" not in whole


def test_token_file_is_read_again_on_sighup(start, place):
    path = os.path.join(place.top, "token")

    def put(text):
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text + "\n")
        os.chmod(path + ".new", 0o600)
        os.replace(path + ".new", path)
    put("first-token-of-this-test")
    server = start({"SSEBENCH_WEBUI_TOKEN_FILE": path})

    def status(token):
        return server.get("/api/health", {"Authorization": "Bearer " + token}).status
    assert status("first-token-of-this-test") == 200
    put("second-token-of-this-test")
    server.process.send_signal(signal.SIGHUP)
    process.wait_for(lambda: status("second-token-of-this-test") == 200, what="the new token")
    process.wait_for(lambda: [status("first-token-of-this-test") for _ in range(8)] == [401] * 8,
                     what="the old token refused by every worker")
    put("short")
    server.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert status("second-token-of-this-test") == 200, "a bad reload changes nothing"


def test_idle_memory_and_state_stay_in_place(start, place):
    server = start()
    assert shows(server)
    assert sum(process.rss_kib(p) for p in server.tree()) < 200 * 1024
    top = {"checkout", "standin", "home"}
    assert set(os.listdir(place.top)) == top
    assert set(os.listdir(place.home)) <= {"state"}
