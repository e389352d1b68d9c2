"""A canary token and canary keys: every error is provoked, then everything is searched."""
import base64
import os
import re
import signal
import stat

import pytest

import harness
import process
from http_client import Closed
from launch_help import launch
from screen import Screen

CANARY = "canary-%s-token" % base64.b16encode(os.urandom(8)).decode().lower()
KEY = "sk-canary-" + base64.b16encode(os.urandom(8)).decode().lower()
B64 = base64.urlsafe_b64encode(CANARY.encode()).decode().rstrip("=")
SPELLINGS = [CANARY.encode(), B64.encode(), base64.b64encode(CANARY.encode()).rstrip(b"="),
             CANARY.encode().hex().encode()]


def hits(data, secrets=SPELLINGS):
    return [s for s in secrets if s in data]


@pytest.fixture
def server(start, place):
    with open(os.path.join(place.checkout, ".env"), "a", encoding="utf-8") as f:
        f.write("LITELLM_MASTER_KEY=%s\n" % KEY)
    return start({"SSEBENCH_WEBUI_TOKEN": CANARY, "SSEBENCH_WEBUI_LOG_LEVEL": "debug",
                  "SSEBENCH_WEBUI_RECORD": "1", "SSEBENCH_WEBUI_ACCESS_LOG": "1"})


class Living:
    """Every kind of process that the server has: a keeper with its command, a followed log, a
    terminal; each by a client that carries the token."""

    def __init__(self, server):
        self.run = launch(server, "tinyjson-overflow-12", keepContainer=True)
        process.wait_for(lambda: [r for r in server.runs() if r["id"] == self.run and
                                  r["status"] == "running"], 60, "the launched run")
        self.log = server.websocket("/api/containers/%s/logs-ws" % self.run)
        self.log.receive()
        self.screen = Screen(server, "/api/pty/" + self.run)
        self.screen.type("echo shell-$((20+3)); env\r")
        self.screen.shows("shell-23")
        self.screen.shows("TERM=")
        pids = [p for p in server.tree() if p != server.pid]
        self.words = {p: " ".join(process.command(p)) for p in pids}
        for kind in ("-worker", "-broker", "-keeper", "runs logs", "bash"):
            assert [w for w in self.words.values() if kind in w], (kind, self.words)

    def end(self, server):
        self.screen.close()
        self.log.connection.close()
        server.post("/api/containers/%s/remove" % self.run)


def provoke(server):
    """Requests that carry the token everywhere it may and may not stand; the answers."""
    place, token = server.place, {"Authorization": "Bearer " + CANARY}
    carriers = [
        token, {**token, "Referer": "http://x/?token=" + CANARY}, {**token, "Cookie": "t=" + CANARY},
        {**token, "Origin": "http://" + CANARY}, {**token, "Host": CANARY + ":1"},
        {**token, "User-Agent": CANARY}, {**token, "X-Forwarded-For": CANARY},
        {"Authorization": "Basic " + base64.b64encode(CANARY.encode()).decode()},
        {"Authorization": "Bearer " + CANARY + "x"}, {"Authorization": CANARY},
        {**token, "Sec-WebSocket-Protocol": "ssebench.token." + B64},
        {**token, "Idempotency-Key": CANARY},
    ]
    paths = ["/api/health", "/api/containers", "/api/containers/nobody",
             "/api/containers/hostile-output.1/diff", "/api/nothing?token=" + CANARY,
             "/api/containers?token=" + CANARY, "/assets/none.js?" + CANARY, "/api/launch"]
    answers = []

    def ask(method, path, headers, body=b""):
        try:
            answers.append(server.request(method, path, {"Authorization": None, **headers}, body))
        except (Closed, TimeoutError, AssertionError, ConnectionError):
            pass

    for knobs in ({}, {"fail": {"list": [1, "no"], "stop": [1, "no"]}}, {"rubbish": {"list": "{"}}):
        place.knobs(**knobs)
        for headers in carriers:
            for path in paths:
                ask("GET", path, headers)
        ask("POST", "/api/containers/hostile-output.1/stop", token)
        ask("POST", "/api/launch", {**token, "Content-Type": "application/json"},
            b'{"agent": "%s", "model": 1' % CANARY.encode())
        ask("POST", "/api/launch", {**token, "Content-Type": "text/plain"}, b"x" * 70000)
    place.knobs()
    for protocols in (["ssebench", "ssebench.token." + B64], ["ssebench.token." + B64],
                      ["ssebench", "ssebench.token." + B64 + "="]):
        try:
            with server.websocket("/api/containers/hostile-output.1/logs-ws", protocols) as ws:
                answers.append(ws.answer)
                ws.receive_json()
        except Exception as e:  # a refusal carries its answer
            answers.append(getattr(e, "response", None))
    with server.connect() as c:  # malformed heads with the token in them
        c.send(b"GET / HTTP/1.1\r\nAuthorization: Bearer " + CANARY.encode() + b"\r\nHost: a\0b\r\n\r\n")
        answers.append(c.response())
    return [a for a in answers if a is not None]


def test_nowhere(server, tmp_path):
    answers = provoke(server)
    assert len(answers) > 100 and 200 in {a.status for a in answers}
    # What the client itself put into a Host may come back to it as text; a header no more.
    for a in answers:
        names = b"\n".join(("%s: %s" % h).encode() for h in a.headers)
        assert not hits(names), names
        assert KEY.encode() not in a.body
    living = Living(server)
    for pid in server.tree():
        assert not hits(process.read(pid, "cmdline")), process.command(pid)
        if pid != server.pid:  # the master was given it by its environment; nobody else
            assert not hits(process.read(pid, "environ")), process.command(pid)
        limits = process.read(pid, "limits").decode()
        assert re.search(r"^Max core file size +0 ", limits, re.M) or not process.alive(pid), limits
    if os.geteuid() == 0:
        # What passes a channel stays in the broker's memory for a while; so would a token. The
        # workers' have it, from their clients: the search finds what is there.
        spelled = [s.decode() for s in SPELLINGS]
        for pid, words in living.words.items():
            if "-worker" not in words:
                assert not process.found_in_memory(pid, spelled), words
        assert [p for p in server.workers() if process.found_in_memory(p, spelled)]
    living.end(server)
    # A crash: what would leave a core file, if any could.
    os.kill(server.workers()[0], signal.SIGSEGV)
    os.kill(server.broker(), signal.SIGSEGV)
    process.wait_for(lambda: server.get("/api/health").status == 200, what="service")
    server.get("/api/containers")
    assert server.stop() == 0
    log = "\n".join(server.out + server.err).encode()
    assert not hits(log), [line for line in server.err if hits(line.encode())][:3]
    assert KEY.encode() not in log
    assert b" access " in log and b" audit " in log and b" refused " in log
    assert b"?" not in re.sub(rb'reason="[^"]*"', b"", log), "a query"
    assert not re.search(rb"[Rr]eferer", log)
    for folder in (server.place.home, server.place.standin):
        for top, _, names in os.walk(folder):
            for name in names:
                assert not hits(name.encode("utf-8", "surrogateescape")), name
                path = os.path.join(top, name)
                if stat.S_ISREG(os.lstat(path).st_mode):  # a keeper's FIFO would wait for a writer
                    with open(path, "rb") as f:
                        assert not hits(f.read()), path
    recordings = os.path.join(server.place.state, "recordings")
    assert os.listdir(recordings), "the terminal was recorded, and searched above"
    for call in server.place.calls():
        assert not hits(repr(call).encode()), call
    for top, _, names in os.walk(server.place.top):
        assert not [n for n in names if re.match(r"core(\.\d+)?$", n)], top


def test_no_process_may_dump(server):
    """Workers and broker are not dumpable: their files in /proc belong to root."""
    for pid in server.workers() + [server.broker(), server.pid]:
        assert os.stat("/proc/%d/environ" % pid).st_uid == 0
        limits = process.read(pid, "limits").decode()
        assert re.search(r"^Max core file size +0 ", limits, re.M), limits


def test_a_token_from_a_file_is_in_no_environment(start, place):
    path = os.path.join(place.home, "token")
    with open(path, "w", encoding="utf-8") as f:
        f.write(CANARY + "\n")
    os.chmod(path, 0o600)
    server = start({"SSEBENCH_WEBUI_TOKEN_FILE": path})
    server.token = CANARY
    assert server.get("/api/health").status == 200
    for pid in server.tree():
        assert not hits(process.read(pid, "environ") + process.read(pid, "cmdline"))


def test_wrong_tokens_answer_alike(guarded):
    """Length, prefix and scheme make no difference in the answer."""
    right = harness.TOKEN
    bodies = set()
    for token in (right[:-1], right + "x", right.upper(), "x" * len(right), right[::-1], "a", " "):
        r = guarded.get("/api/health", {"Authorization": "Bearer " + token})
        if r.status != 429:
            assert r.status == 401
            bodies.add(r.body)
    assert len(bodies) <= 1, bodies
