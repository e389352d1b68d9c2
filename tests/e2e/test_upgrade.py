"""SIGUSR2: the program is exchanged in place; nobody is refused, nothing is lost."""
import json
import os
import shutil
import signal
import subprocess
import threading
import time

import harness
import process
from http_client import Closed, Connection, head
import launch_help
from routes import RUN
from test_processes import shows


class Installed:
    """A copy of the programs that a test may exchange."""

    def __init__(self, place):
        self.top = os.path.join(place.top, "installed")
        os.mkdir(self.top)
        for role in (".", "worker", "broker"):
            os.makedirs(os.path.join(self.top, role), exist_ok=True)
            for name in os.listdir(os.path.join(harness.BUILD, role)):
                path = os.path.join(harness.BUILD, role, name)
                if name.startswith("ssebench-webui") and os.path.isfile(path):
                    shutil.copy2(path, os.path.join(self.top, role, name))
        self.program = os.path.join(self.top, "ssebench-webui")

    def put(self, role, name, text=None):
        """As a package manager does: a new file in the old one's place."""
        path = os.path.join(self.top, role, name)
        if text is None:
            shutil.copy2(os.path.join(harness.BUILD, role, name), path + ".new")
        else:
            with open(path + ".new", "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path + ".new", 0o755)
        os.replace(path + ".new", path)


def upgrade(server, seconds=60):
    """Ask for it, and wait until new processes serve and the old are gone."""
    old = server.workers() + server.role("broker")
    n = server.out.count(next(x for x in server.out if "Listening" in x))
    server.process.send_signal(signal.SIGUSR2)
    process.wait_for(lambda: sum("Listening" in x for x in server.out) > n, seconds,
                     "the new program: " + server.log[-2000:])
    process.wait_for(lambda: not any(process.alive(p) for p in old), seconds, "the old to end")
    return old


class Steady:
    """Clients that never let up: each answer has to come, whole and right."""

    def __init__(self, server):
        self.server, self.over, self.wrong, self.n = server, threading.Event(), [], 0
        self.slowest = 0
        self.threads = [threading.Thread(target=self.loop, args=(path,)) for path in
                        ("/api/health", "/api/containers", "/api/containers/%s/diff" % RUN, "/")]

    def loop(self, path):
        while not self.over.is_set():
            begun = time.monotonic()
            try:
                status = self.server.get(path, timeout=60).status
                if status != 200:
                    self.wrong.append((path, status))
            except (Closed, OSError, AssertionError) as e:
                self.wrong.append((path, repr(e)))
            self.slowest = max(self.slowest, time.monotonic() - begun)
            self.n += 1

    def __enter__(self):
        for t in self.threads:
            t.start()
        time.sleep(0.3)
        return self

    def __exit__(self, *_):
        self.over.set()
        for t in self.threads:
            t.join()


def test_nobody_is_refused(start, place):
    server = start()
    pid, port = server.pid, server.address
    with Steady(server) as steady:
        for _ in range(3):
            old = upgrade(server)
            assert not set(old) & set(server.workers() + server.role("broker"))
            process.wait_for(lambda: shows(server), what="service")
    assert steady.wrong == [] and steady.n > 30
    assert (server.pid, server.address) == (pid, port) and server.process.poll() is None
    assert len(process.children(pid)) == 3, "nothing is left of three exchanges"
    print("%d requests, slowest %.2f s" % (steady.n, steady.slowest))


def test_descriptors_do_not_pile_up(start):
    server = start()
    upgrade(server)
    before = len(process.descriptors(server.pid))
    for _ in range(3):
        upgrade(server)
    process.wait_for(lambda: len(process.descriptors(server.pid)) <= before, 20, "descriptors")


def test_launch_and_sockets(start, place):
    """A launch goes on and is known; a viewer is told to come back; an answer under way ends."""
    place.knobs(build_seconds=3, agent_seconds=30)
    server = start()
    launch = launch_help.launch(server, "tinyjson-overflow-12")
    with server.websocket("/api/containers/%s/logs-ws" % launch) as ws, \
            Connection(server.address, 60) as slow:
        body = json.dumps(launch_help.body("tinyjson-overflow-12", model="no-such")).encode()
        whole = head("POST", server.base + "/api/launch", [("Host", server.host)], body)
        slow.send(whole[:-10])
        time.sleep(0.3)
        server.process.send_signal(signal.SIGUSR2)
        assert ws.close_code() == 1001
        slow.send(whole[-10:])
        assert slow.response("POST").status in (400, 404, 422)
    process.wait_for(lambda: sum("Listening" in x for x in server.out) == 2, 60, "the new program")
    process.wait_for(lambda: [l["status"] for l in known(server)] == ["running"], 60, "the run")
    assert len(place.vectors("run ")) == 1


def test_a_tokens_file_that_went_away_opens_nothing(start, place):
    """Neither a reload nor the next program takes its absence for a server without tokens."""
    subprocess.run([harness.SERVER, "token", "add", "alice", "--role", "view"], env=place.env(),
                   check=True, capture_output=True, timeout=60)
    server = start()
    os.rename(os.path.join(place.state, "tokens"), os.path.join(place.state, "away"))
    server.process.send_signal(signal.SIGUSR2)
    process.wait_for(lambda: "upgrade-refused" in server.log and "is gone" in server.log,
                     what="the refusal")
    assert server.get("/api/health").status == 401
    os.rename(os.path.join(place.state, "away"), os.path.join(place.state, "tokens"))
    upgrade(server)
    assert server.get("/api/health").status == 401


def test_a_revoked_token_ends_in_the_program_before_too(start, place):
    """Its workers know tokens by other numbers; what they are still at does not outlive one."""
    def token(*argv):
        return subprocess.run([harness.SERVER, "token", *argv], env=place.env(), check=True,
                              capture_output=True, text=True, timeout=60).stdout.strip()
    bearers = [("Authorization", "Bearer " + token("add", name, "--role", "operate"))
               for name in ("stays", "goes")]
    server = start()
    body = json.dumps(launch_help.body("tinyjson-overflow-12", model="no-such")).encode()
    for name, ends in (("later", False), ("goes", True)):
        whole = head("POST", server.base + "/api/launch", [("Host", server.host), bearers[1]], body)
        n = sum("Listening" in x for x in server.out)
        with Connection(server.address, 60) as slow:
            slow.send(whole[:-10])
            time.sleep(0.3)
            server.process.send_signal(signal.SIGUSR2)
            process.wait_for(lambda: sum("Listening" in x for x in server.out) > n, 60, "the next")
            if ends:
                token("revoke", name)
            else:
                token("add", name, "--role", "view")
            told = server.log.count("reload-told")
            server.process.send_signal(signal.SIGHUP)
            process.wait_for(lambda: server.log.count("reload-told") > told, what="the reload")
            if ends:
                assert slow.is_closed()
            else:
                slow.send(whole[-10:])
                assert slow.response("POST").status in (400, 503)
        process.wait_for(lambda: len(process.children(server.pid)) == 3, 60, "the old to end")
    assert "drain-cut" in server.log and server.get("/api/health", dict(bearers[:1])).status == 200


def test_no_line_is_lost(start, place):
    """Numbered lines of a launch over two exchanges: on disk, by HTTP and on a page none is missing."""
    stage = launch_help.Stage(place)
    server = start(stage.env())
    stage.task("stream", lines=4000, block=10, pause=0.02, list_at=100, exit=7)
    viewer = launch_help.Viewer(server)
    launch = launch_help.launch(server, "stream")
    process.wait_for(lambda: len(viewer.lines.get(launch, [])) > 200, what="lines")
    upgrade(server)
    upgrade(server)
    assert launch_help.wait_end(server, launch)["exitCode"] == 7
    launch_help.check_numbered(launch_help.kept_output(place, launch), 4000)
    process.wait_for(lambda: any("line 000003999" in x for x in viewer.lines[launch]), what="the page")
    viewer.close()
    launch_help.check_numbered("\n".join(x.rstrip("\n") for x in viewer.lines[launch]).encode(), 4000)


def known(server):
    value = server.json("/api/launch/status")
    return value if isinstance(value, list) else value.get("launches") or value.get("entries") or []


def test_token_stays_known(start):
    """Only its hash is: the variable was wiped at the first start."""
    server = start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN, "SSEBENCH_WEBUI_HOST": "0.0.0.0"})
    upgrade(server)
    assert server.get("/api/health").status == 200
    assert server.get("/api/health", {"Authorization": "Bearer " + "x" * 32}).status == 401
    assert harness.TOKEN.encode() not in process.read(server.pid, "environ")
    upgrade(server)
    assert server.get("/api/health").status == 200


def test_token_file_is_read_again(start, place):
    path = os.path.join(place.top, "token")
    with open(path, "w", encoding="utf-8") as f:
        f.write("first-token-of-this-test\n")
    os.chmod(path, 0o600)
    server = start({"SSEBENCH_WEBUI_TOKEN_FILE": path})
    server.token = "first-token-of-this-test"
    with open(path, "w", encoding="utf-8") as f:
        f.write("second-token-of-this-test\n")
    upgrade(server)
    assert server.get("/api/health").status == 401
    server.token = "second-token-of-this-test"
    assert server.get("/api/health").status == 200


def test_socket_file_stays(start, place):
    path = os.path.join(place.top, "socket")
    server = start({"SSEBENCH_WEBUI_HOST": "unix:" + path})
    node = os.stat(path).st_ino
    upgrade(server)
    assert os.stat(path).st_ino == node and server.get("/api/health").status == 200
    assert server.stop() == 0 and not os.path.exists(path)


def test_a_bad_program_changes_nothing(start, place, monkeypatch):
    installed = Installed(place)
    monkeypatch.setattr(harness, "SERVER", installed.program)
    server = start()
    before = sorted(server.workers() + server.role("broker"))

    def refused(n):
        server.process.send_signal(signal.SIGUSR2)
        process.wait_for(lambda: server.log.count("upgrade-refused") == n, 40, "a refusal")
        assert sorted(server.workers() + server.role("broker")) == before and shows(server)
    installed.put(".", "ssebench-webui", "#!/bin/sh\necho 'not today' >&2; exit 1\n")
    refused(1)
    assert "not today" in server.log
    installed.put(".", "ssebench-webui", "no program\n")
    refused(2)
    installed.put(".", "ssebench-webui")
    os.unlink(os.path.join(installed.top, "worker", "ssebench-webui-worker"))
    refused(3)
    installed.put("worker", "ssebench-webui-worker")
    upgrade(server)
    assert shows(server)
    assert os.stat("/proc/%d/exe" % server.pid).st_ino == os.stat(installed.program).st_ino


def test_stop_in_the_middle(start):
    """SIGTERM right after SIGUSR2 ends the server, whichever program gets it."""
    for pause in (0, 0.02, 0.1, 0.3):
        server = start()
        server.process.send_signal(signal.SIGUSR2)
        time.sleep(pause)
        tree = server.tree()
        assert server.stop() == 0
        assert [p for p in tree if process.alive(p)] == []
