"""OpenCode, the daemon and LiteLLM lie in every way. That run's request fails clearly within its
limit; others notice nothing; memory stays bounded; nobody dies."""
import json
import os
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import harness
import lies
import process
from http_client import Closed
from liar import Liar, answer
from ws_client import Refused

A = "/api/containers/t1/opencode"
ALL = {**lies.HTTP, **lies.JSON}
# 30 s of a call, what it takes to find out whether OpenCode is there, and a loaded machine.
LIMIT_S = 30 + 12 + 30


@pytest.fixture
def liar():
    found = Liar()
    yield found
    found.close()


class Others:
    """Somebody else, meanwhile."""

    def __init__(self, server):
        self.server, self.over, self.slowest, self.wrong = server, threading.Event(), 0, []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.over.is_set():
            for path in ("/api/health", "/api/containers", "/api/containers/hostile-output.1/diff"):
                begun = time.monotonic()
                status = self.server.get(path, timeout=30).status
                self.slowest = max(self.slowest, time.monotonic() - begun)
                if status != 200:
                    self.wrong.append((path, status))
            time.sleep(0.05)

    def stop(self):
        self.over.set()
        self.thread.join()
        assert self.wrong == [] and self.slowest < 10, (self.wrong, self.slowest)


@pytest.fixture
def stage(place, start, liar):
    place.knobs(rubbish={"endpoint": liar.url + "\n"}, agent_seconds=600)
    server = start()
    place.start_run("t1", agent_seconds=600)
    process.wait_for(lambda: [r for r in server.runs() if r["id"] == "t1"], what="the run")
    liar.say["/session"] = answer("[]")
    liar.say["/session/status"] = answer("{}")
    before = sorted(server.workers() + server.role("broker"))
    others = Others(server)
    yield server
    others.stop()
    assert sorted(server.workers() + server.role("broker")) == before, server.log[-2000:]
    for pid in server.workers():
        assert process.rss_kib(pid) < 300 << 10


def tell(liar, path, lie):
    liar.say[path] = ALL[lie]
    if lie in lies.CLOSING:
        liar.close_after.add(path)


def ask_all(server, jobs):
    """Everything at once: {name: (seconds, response)}."""
    def ask(job):
        name, method, path, body = job
        begun = time.monotonic()
        r = server.request(method, path, {"Content-Length": str(len(body))} if body else None, body,
                           timeout=LIMIT_S)
        return name, time.monotonic() - begun, r
    with ThreadPoolExecutor(len(jobs)) as pool:
        return {name: (s, r) for name, s, r in pool.map(ask, jobs)}


def check(got, honest=()):
    for name, (seconds, r) in got.items():
        assert seconds < LIMIT_S, (name, seconds)
        kind = name.split("|")[0]
        if kind in lies.HTTP and kind not in honest:
            assert r.status >= 400, (name, r)
            assert r.json()["error"], (name, r)
        elif r.status == 200:
            json.loads(r.body.decode("utf-8", "strict") or "null", parse_int=str)
        for name_, value in r.headers:
            assert name_.lower() != "location", (name, r)


@pytest.mark.plain
def test_opencode(stage, liar):
    """Messages and a session's own data, each lie in a session of its own, all at once."""
    jobs = []
    for n, lie in enumerate(ALL):
        tell(liar, "/session/ses_%d/message" % n, lie)
        tell(liar, "/session/ses_d%d" % n, lie)
        jobs.append((lie + "|messages", "GET", A + "/sessions/ses_%d/messages" % n, b""))
        jobs.append((lie + "|session", "GET", A + "/sessions/ses_d%d" % n, b""))
        jobs.append((lie + "|abort", "POST", A + "/sessions/ses_d%d/abort" % n, b"{}"))
    got = ask_all(stage, jobs)
    # Two answers: the first is one, the second nobody asked for.
    check(got)
    print("%d lies, slowest %.1f s" % (len(got), max(s for s, _ in got.values())))


@pytest.mark.plain
def test_daemon(stage, liar):
    """A dialog asked for from different places."""
    jobs = []
    for n, lie in enumerate(ALL):
        tell(liar, "/agent/dialog?since=%d" % (n + 1), lie)
        jobs.append((lie + "|dialog", "GET", "/api/containers/t1/agent/dialog?since=%d" % (n + 1), b""))
    got = ask_all(stage, jobs)
    check(got)
    print("%d lies, slowest %.1f s" % (len(got), max(s for s, _ in got.values())))


@pytest.mark.plain
def test_is_it_there(stage, liar):
    """Lies about the list of sessions, by which OpenCode is found."""
    quick = [n for n in lies.HTTP if isinstance(lies.HTTP[n], bytes)]
    for lie in quick:
        tell(liar, "/session", lie)
        liar.close_after.discard("/session")
        if lie in lies.CLOSING:
            liar.close_after.add("/session")
        r = stage.get(A + "/health", timeout=LIMIT_S)
        assert r.status in (200, 503) and r.json(), (lie, r)
        if r.status == 200:
            assert not r.json().get("healthy"), (lie, r)
    print("%d lies" % len(quick))


@pytest.mark.plain
@pytest.mark.parametrize("several", range(2))
def test_events(stage, liar, several):
    """One lie after the other under viewers who stay; what reaches them is events or nothing."""
    for lie, what in list(lies.EVENTS.items())[several::2]:
        liar.say["/event"] = what
        liar.close_after.discard("/event")
        until = time.monotonic() + 1.5
        try:
            with stage.websocket(A + "/events-ws?session=ses_1", timeout=1.5) as ws:
                while time.monotonic() < until:
                    opcode, payload = ws.receive()
                    if opcode == 1:
                        assert json.loads(payload.decode("utf-8")), lie
        except (Closed, OSError, Refused):
            pass
        assert stage.get("/api/health").status == 200, lie


PROGRAM = os.path.join(harness.BUILD, "broker", "ssebench-webui-keymaker")
HELPER = os.path.join(harness.BUILD, "tests", "attack", "ask_keymaker")


def ask_key(url, *model, **environment):
    """What a key maker that was started as the broker starts it says."""
    return subprocess.run([HELPER, PROGRAM, url, *model], capture_output=True, timeout=90,
                          check=True, env={**os.environ, **environment}).stdout.decode("utf-8", "replace")


class TlsLiar(Liar):
    """A liar behind TLS, with a certificate for `localhost` that nobody signed but itself."""

    def __init__(self, folder, kind, newest):
        self.certificate, key = folder / "own.crt", folder / "own.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", *kind, "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-keyout", key, "-out", self.certificate], check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, key)
        self.context.maximum_version = newest
        super().__init__()
        self.say["/key/generate"] = answer('{"key":"sk-good"}')
        self.close_after.add("/key/generate")
        self.url = self.url.replace("http://127.0.0.1", "https://localhost")

    def serve(self, connection):
        try:
            super().serve(self.context.wrap_socket(connection, server_side=True))
        except OSError:
            pass


@pytest.mark.parametrize("kind, newest", (
    (("rsa:2048",), ssl.TLSVersion.TLSv1_2), (("rsa:2048",), ssl.TLSVersion.TLSv1_3),
    (("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), ssl.TLSVersion.TLSv1_3)))
def test_litellm_tls(tmp_path, kind, newest):
    """Over TLS a key comes from whom a file or a folder of authorities names, from nobody else."""
    folder, empty = tmp_path / "authorities", tmp_path / "empty"
    folder.mkdir()
    empty.mkdir()
    one = TlsLiar(tmp_path, kind, newest)
    (folder / "own.pem").write_bytes(one.certificate.read_bytes())
    subprocess.run(["openssl", "rehash", folder], check=True, capture_output=True)
    nothing = str(empty / "none")
    try:
        for file, directory in ((one.certificate, empty), (nothing, folder),
                                (nothing, "%s:%s" % (empty, folder))):
            said = ask_key(one.url, SSL_CERT_FILE=str(file), SSL_CERT_DIR=str(directory))
            assert "done=1 status=0 key=sk-good" in said, (file, directory, said)
        asked = len(one.asked)
        for url, file in ((one.url, nothing), (one.url.replace("localhost", "127.0.0.1"),
                                               one.certificate)):
            said = ask_key(url, SSL_CERT_FILE=str(file), SSL_CERT_DIR=str(empty))
            assert "done=0 status=0 key= error=The LiteLLM proxy at" in said, said
            assert "no certificate that is trusted" in said, said
        assert len(one.asked) == asked
    finally:
        one.close()


def filters(pid):
    with open("/proc/%s/status" % pid, encoding="ascii") as f:
        return int(dict(line.split(":\t", 1) for line in f)["Seccomp_filters"])


@pytest.mark.parametrize("scheme", ("http", "https"))
def test_litellm_fence(scheme):
    """The fence is up before the proxy has said a byte."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = "%s://127.0.0.1:%d" % (scheme, silent.getsockname()[1])
        with subprocess.Popen([HELPER, PROGRAM, url], stdout=subprocess.PIPE) as helper:
            with silent.accept()[0] as connection:
                assert connection.recv(1)
                with open("/proc/%d/task/%d/children" % (helper.pid, helper.pid),
                          encoding="ascii") as f:
                    child = f.read().split()[0]
                assert filters(child) == filters("self") + 1
                connection.sendall(b"\x16\x03\x03\x40\x00\x02" + bytes(100))
            assert b"done=0 status=0 key= error=The LiteLLM" in helper.communicate(timeout=60)[0]


@pytest.mark.parametrize("model", ("*", "openai/*", "all-proxy-models", "all-team-models",
                                   "all-org-models", "no-default-models"))
def test_litellm_many_models(liar, model):
    """A key for more than the run's model is not even asked for."""
    liar.say["/key/generate"] = answer('{"key":"sk-good"}')
    liar.close_after.add("/key/generate")
    assert "done=0 status=0 key= error=The model's name stands for" in ask_key(liar.url, model)
    assert liar.n_connections == 0


def test_litellm(liar):
    """The key maker alone with a proxy that lies: no key, a reason of ours, in time, no secret."""
    liar.say["/key/generate"] = answer('{"key":"sk-good"}')
    liar.close_after.add("/key/generate")
    assert "done=1 status=0 key=sk-good" in ask_key(liar.url)
    more = {**ALL, "no text": answer('{"key":7}'), "a line feed": answer('{"key":"sk-a\\nb"}'),
            "a long key": answer('{"key":"%s"}' % ("k" * 600)), "nested": answer('{"a":{"key":"sk"}}'),
            "another shape": answer('["key","sk"]')}
    liars = {}
    for lie, what in more.items():
        one = liars[lie] = Liar()
        one.say["/key/generate"] = what
        if isinstance(what, bytes):
            one.close_after.add("/key/generate")

    def ask(lie):
        begun = time.monotonic()
        said = ask_key(liars[lie].url)
        return lie, time.monotonic() - begun, said
    try:
        with ThreadPoolExecutor(8) as pool:
            for lie, seconds, said in pool.map(ask, liars):
                # 142: SIGALRM, its own limit; the broker says what that means.
                assert "done=0 status=0 key= error=The " in said or "status=142" in said, (lie, said)
                assert "canary" not in said and seconds < 60, (lie, seconds, said)
    finally:
        for one in liars.values():
            one.close()
    print("%d lies" % len(liars))
