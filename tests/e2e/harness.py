"""Starts the built server on a checkout of its own, and makes sure that nothing is left."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import process
import protocol
from http_client import Connection, head
from ws_client import WebSocket

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SSEBENCH_BUILD") or os.path.join(TOP, "build"))
SERVER = os.path.join(BUILD, "ssebench-webui")
WORKER = os.path.join(BUILD, "worker", "ssebench-webui-worker")
STANDIN = os.path.join(TOP, "tests", "standin", "ssebench")
MAKE_DEMO = os.path.join(TOP, "tests", "data", "demo", "make_demo.py")
BASE_PATH = os.environ.get("SSEBENCH_E2E_BASE_PATH", "")
TOKEN = "correct-horse-battery-staple"
LISTENING = re.compile(r"^\[Server\] Listening on (\S+)$")


class Place:
    """A temporary world: a checkout with finished runs, a home, the stand-in's state."""

    def __init__(self, demo=True):
        self.top = tempfile.mkdtemp(prefix="ssebench-e2e-")
        os.chmod(self.top, 0o755)
        self.checkout = os.path.join(self.top, "checkout")
        self.standin = os.path.join(self.top, "standin")
        self.home = os.path.join(self.top, "home")
        self.state = os.path.join(self.home, "state", "ssebench-webui")
        for folder in (self.checkout, self.standin, self.home):
            os.mkdir(folder)
        if demo:
            subprocess.run(["/usr/bin/python3", MAKE_DEMO, self.checkout], check=True)

    @property
    def results(self):
        return os.path.join(self.checkout, "results")

    def give_to(self, uid, gid):
        for folder, below, files in os.walk(self.top):
            for name in [folder] + [os.path.join(folder, n) for n in below + files]:
                os.lchown(name, uid, gid)

    def knobs(self, **knobs):
        """Faults of the stand-in, from its next call on. Without arguments: none."""
        path = os.path.join(self.standin, "knobs.json")
        with open(path + ".new", "w", encoding="utf-8") as f:
            json.dump(knobs, f)
        os.chmod(path + ".new", 0o644)
        os.replace(path + ".new", path)

    def calls(self):
        try:
            with open(os.path.join(self.standin, "calls.jsonl"), encoding="utf-8") as f:
                return [json.loads(line) for line in f]
        except FileNotFoundError:
            return []

    def vectors(self, first=None):
        """Argument vectors so far; with `first` only those that begin with these words."""
        found = [" ".join(c["argv"]) for c in self.calls()]
        return [v for v in found if first is None or v.startswith(first)]

    def env(self):
        return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.home,
                "XDG_STATE_HOME": os.path.join(self.home, "state"), "LANG": "C.UTF-8",
                "SSEBENCH_CLI": STANDIN, "SSEBENCH_PATH": self.checkout,
                "SSEBENCH_STANDIN_STATE": self.standin}

    def cli(self, *argv, knobs=None, **more):
        """Run the stand-in as a person would."""
        env = self.env()
        if knobs:
            env["SSEBENCH_STANDIN_KNOBS"] = json.dumps(knobs)
        return subprocess.run([STANDIN, *argv], cwd=self.checkout, env=env,
                              capture_output=True, text=True, errors="replace", timeout=60,
                              **more)

    def start_run(self, run_id, task="tinyjson-overflow-12", model="gpt-6.1-sol", agent="codex",
                  keep=True, **knobs):
        """A live run, started beside the server. The `ssebench run` process."""
        knobs = {"build_seconds": 0, "agent_seconds": 0.5, **knobs}
        argv = [STANDIN, "run", "--model=" + model, "--agent=" + agent, "--task=" + task,
                "--mode=sandbox", "--run-id=" + run_id, "--local=datasets/pilot"]
        env = {**self.env(), "SSEBENCH_STANDIN_KNOBS": json.dumps(knobs)}
        p = subprocess.Popen(argv + (["--keep-container"] if keep else []), cwd=self.checkout,
                             env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
        process.wait_for(lambda: run_id in self.live_states() or p.poll() is not None,
                         what="the run's container")
        return p

    def live_states(self):
        sys.path.insert(0, os.path.join(TOP, "tests", "standin"))
        from standin import state
        sys.path.pop(0)
        state.RUNS = os.path.join(self.standin, "runs")
        return {c.run_id: c.state()[0] for c in state.containers()}

    def finished(self):
        """What the command itself says of finished runs."""
        return json.loads(self.cli("runs", "results", "--json").stdout)["runs"]

    def close(self):
        self.cli("standin-reset")
        shutil.rmtree(self.top, ignore_errors=True)


def programs_for(place, uid):
    """The server and the stand-in where account `uid` can run them: the tree may lie below a
    home that is closed to others."""
    if uid is None:
        return SERVER, STANDIN
    top = os.path.join(place.top, "programs")
    if not os.path.isdir(top):
        shutil.copytree(os.path.dirname(STANDIN), os.path.join(top, "standin"))
        for role in (".", "worker", "broker"):
            os.makedirs(os.path.join(top, role), exist_ok=True)
            for name in os.listdir(os.path.join(BUILD, role)):
                path = os.path.join(BUILD, role, name)
                if name.startswith("ssebench-webui") and os.path.isfile(path):
                    shutil.copy2(path, os.path.join(top, role, name))
    return os.path.join(top, "ssebench-webui"), os.path.join(top, "standin", "ssebench")


class Server:
    """One started server. `address` is (host, port) or the path of a Unix socket."""

    def __init__(self, place, env=None, base_path=None, uid=None, wait=True, cwd=None, under=None):
        """`under`: program and arguments that it is started by."""
        self.place = place
        self.base = BASE_PATH if base_path is None else base_path
        program, standin = programs_for(place, uid)
        self.env = {**place.env(), "PORT": "0", "SSEBENCH_WEBUI_WORKERS": "2",
                    "SSEBENCH_CLI": standin, **(env or {})}
        self.env = {k: v for k, v in self.env.items() if v is not None}
        if self.base:
            self.env["SSEBENCH_WEBUI_BASE_PATH"] = self.base
        self.token = self.env.get("SSEBENCH_WEBUI_TOKEN")
        self.err, self.lines = [], threading.Condition()
        self.command, self.cwd = [*(under or []), program], cwd or place.checkout
        self.who = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        self.address, self.url = None, None
        self.run()
        if wait:
            self.wait_listening()

    def run(self):
        self.out = []
        self.process = subprocess.Popen(
            self.command, env=self.env, cwd=self.cwd, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **self.who)
        self.readers = [threading.Thread(target=self.collect, args=a, daemon=True)
                        for a in ((self.process.stdout, self.out),
                                  (self.process.stderr, self.err))]
        for r in self.readers:
            r.start()

    def start_again(self):
        """What a service manager does when the master is gone: the same program, the same port."""
        self.process.wait(10)
        self.env["PORT"] = str(self.address[1])
        self.run()
        self.wait_listening()

    def collect(self, stream, into):
        for line in stream:
            with self.lines:
                into.append(line.decode("utf-8", "replace").rstrip("\n"))
                self.lines.notify_all()
        with self.lines:
            self.lines.notify_all()

    def wait_listening(self, seconds=60):
        def found():
            for line in self.out:
                m = LISTENING.match(line)
                if m:
                    return m.group(1)
            if self.process.poll() is not None:
                raise AssertionError("the server ended with %d: %s" % (
                    self.process.returncode, self.err))
            return None
        self.url = process.wait_for(found, seconds, "[Server] Listening on")
        if self.url.startswith("unix:"):
            self.address, self.host = self.url[5:], "localhost"
            return
        authority = self.url.partition("//")[2].partition("/")[0]
        name, _, port = authority.rpartition(":")
        self.address, self.host = (name.strip("[]"), int(port)), authority

    @property
    def log(self):
        return "\n".join(self.err)

    # --- requests -------------------------------------------------------------------

    def connect(self, timeout=20):
        return Connection(self.address, timeout)

    def headers(self, given=None):
        headers = dict(given or {})
        headers.setdefault("Host", self.host)
        if self.token and "Authorization" not in headers:
            headers["Authorization"] = "Bearer " + self.token
        return [(k, v) for k, v in headers.items() if v is not None]

    def request(self, method, path, headers=None, body=b"", timeout=20):
        """One request on a connection of its own. A header of None is left out."""
        with self.connect(timeout) as c:
            wanted = [("Connection", "close")] + self.headers(headers)
            c.send(head(method, self.base + path, wanted, body))
            return c.response(method)

    def get(self, path, headers=None, timeout=20):
        return self.request("GET", path, headers, timeout=timeout)

    def post(self, path, headers=None, body=b""):
        if not body:
            headers = {"Content-Length": "0", **(headers or {})}
        return self.request("POST", path, headers, body)

    def json(self, path, status=200):
        r = self.get(path)
        assert r.status == status, (path, r)
        if status == 200:
            protocol.check(protocol.shape_of("DOCUMENTS", path, "GET "), r.json(), path)
        return r.json()

    def runs(self):
        return self.json("/api/containers")["containers"]

    def websocket(self, path, protocols=None, origin=None, host=None, **more):
        from ws_client import token_protocols
        if protocols is None and self.token:
            protocols = token_protocols(self.token)
        ws = WebSocket(self.address, self.base + path, host or self.host, protocols, origin,
                       **more)
        ws.shape = protocol.shape_of("MESSAGES", path)
        return ws

    # --- processes ------------------------------------------------------------------

    @property
    def pid(self):
        return self.process.pid

    def role(self, name):
        """Pids of the living children of this role."""
        return [p for p in process.children(self.pid) if process.alive(p) and
                any(("webui-" + name) in w for w in process.command(p)[:1])]

    def workers(self):
        return self.role("worker")

    def broker(self):
        return process.wait_for(lambda: self.role("broker"), what="a broker")[0]

    def tree(self):
        return [self.pid] + process.descendants(self.pid)

    def stop(self, number=signal.SIGTERM, seconds=40):
        """End it; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(seconds)
        for r in self.readers:
            r.join(10)
        return code

    def kill(self):
        """Whatever state it is in."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(20)


# Servers that live longer than one test; not left behind.
long_lived = []


def leftovers():
    """Our living children and orphans, but for long-lived servers and what is theirs."""
    expected = {os.getpid()}
    for server in long_lived:
        expected.update(server.tree())
    return [(p, process.command(p)) for p in process.descendants(os.getpid())
            if process.alive(p) and p not in expected]
