"""The TLS proxies of deploy/proxies, each run for real in front of the server."""
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

import harness
import process
from http_client import Connection, TlsAddress, head
from screen import Screen
from test_feed import Dialog, Viewer, liar  # noqa: F401
from test_live import RUN
from ws_client import PING, PONG, Refused, WebSocket, token_protocols

pytestmark = pytest.mark.once
EXAMPLES = pathlib.Path(harness.TOP, "deploy", "proxies")
MODULES = "/usr/lib/apache2/modules"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def swap(text, old, new):
    assert old in text, "the example lost %r" % old
    return text.replace(old, new)


def inner_port(text):
    return int(re.search(r"http://127\.0\.0\.1:(\d+)/", text).group(1))


def nginx(text, top, port, rewrite_host, base):
    if base:
        text = swap(text, "location / {", "location %s/ {" % base)
    text = swap(text, "listen 443 ssl", "listen 127.0.0.1:%d ssl" % port)
    text = swap(text, "[::]:443", "[::1]:%d" % port)
    if rewrite_host:
        text = swap(text, "Host $http_host", "Host $proxy_host")
    (top / "site.conf").write_text(text)
    paths = "".join("%s_temp_path %s/%s;\n" % (n, top, n) for n in (
        "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;\n" if os.geteuid() == 0 else ""
    (top / "main.conf").write_text("%sdaemon off;\npid %s/pid;\nerror_log stderr;\nevents {}\n"
                                   "http {\naccess_log off;\n%sinclude %s/site.conf;\n}\n"
                                   % (user, top, paths, top))
    return ["nginx", "-e", "stderr", "-c", str(top / "main.conf")]


def caddy(text, top, port, rewrite_host, base):
    if base:
        text = swap(text, "\treverse_proxy ", "\treverse_proxy %s/* " % base)
    text = swap(text, "\nbench.example.org {", "\nhttps://localhost:%d {\n\tbind 127.0.0.1 [::1]" % port)
    if rewrite_host:
        text = swap(text, "flush_interval", "header_up Host {upstream_hostport}\n\t\tflush_interval")
    (top / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + text)
    return ["caddy", "run", "--config", str(top / "Caddyfile"), "--adapter", "caddyfile"]


def haproxy(text, top, port, rewrite_host, base):
    if base:
        text = swap(text, "default_backend ssebench",
                    "use_backend ssebench if { path_beg %s/ }" % base)
    text = swap(text, "0.0.0.0:443", "127.0.0.1:%d" % port)
    text = swap(text, "[::]:443", "[::1]:%d" % port)
    if rewrite_host:
        text = swap(text, "backend ssebench\n    server", "backend ssebench\n    http-request "
                    "set-header Host 127.0.0.1\n    server")
    (top / "haproxy.cfg").write_text(text)
    return ["haproxy", "-db", "-f", str(top / "haproxy.cfg")]


def apache2(text, top, port, rewrite_host, base):
    if base:
        text = swap(text, "ProxyPass / http://127.0.0.1:%d/" % inner_port(text),
                    "ProxyPass %s/ http://127.0.0.1:%d%s/" % (base, inner_port(text), base))
    text = swap(text, "Listen 443", "Listen 127.0.0.1:%d\nListen [::1]:%d" % (port, port))
    text = swap(text, "*:443", "*:%d" % port)
    if rewrite_host:
        text = swap(text, "ProxyPreserveHost On", "ProxyPreserveHost Off")
    load = "".join("LoadModule %s_module %s/mod_%s.so\n" % (m, MODULES, m) for m in (
        "mpm_event", "authz_core", "ssl", "proxy", "proxy_http", "proxy_wstunnel", "headers"))
    (top / "apache.conf").write_text(
        load + "ServerName localhost\nDefaultRuntimeDir %s\nPidFile %s/pid\nErrorLog %s/log\n"
        "ServerRoot %s\nMutex file:%s\n" % (top, top, top, top, top) +
        ("User #65534\nGroup #65534\n" if os.geteuid() == 0 else "") + text)
    return ["apache2", "-DFOREGROUND", "-f", str(top / "apache.conf")]


PROXIES = {"nginx": ("nginx.conf", nginx), "caddy": ("Caddyfile", caddy),
           "haproxy": ("haproxy.cfg", haproxy), "apache2": ("apache.conf", apache2)}


class Proxy:
    """A running proxy in front of `server`."""

    def __init__(self, name, server, top, rewrite_host=False, port=None):
        program = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")
        if program is None:
            pytest.skip("%s is not installed" % name)
        self.port = port or free_port()
        self.origin = "https://localhost:%d" % self.port
        self.server, self.top = server, pathlib.Path(top, name + str(self.port))
        self.top.mkdir()
        self.make_certificate()
        example, prepare = PROXIES[name]
        text = (EXAMPLES / example).read_text()
        text = swap(text, "/etc/ssl/bench.example.org", str(self.top / "own"))
        text = swap(text, "127.0.0.1:3001", "127.0.0.1:%d" % server.address[1])
        argv = prepare(text, self.top, self.port, rewrite_host, server.base)
        with open(self.top / "output", "wb") as out:
            self.process = subprocess.Popen(
                [program] + argv[1:], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env={"PATH": os.environ["PATH"], "HOME": str(self.top)})
        self.address = TlsAddress(("127.0.0.1", self.port))
        self.address.context = ssl.create_default_context(cafile=str(self.top / "own.crt"))
        try:
            process.wait_for(self.is_up, 30, "the proxy")
        except AssertionError:
            self.stop()
            raise AssertionError((self.top / "output").read_text()[-2000:])

    def make_certificate(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                        self.top / "own.key", "-out", self.top / "own.crt"],
                       check=True, capture_output=True)
        (self.top / "own.pem").write_bytes((self.top / "own.crt").read_bytes() +
                                           (self.top / "own.key").read_bytes())

    def is_up(self):
        try:
            return self.get("/").status == 200
        except (OSError, ssl.SSLError):
            return False

    def get(self, path, address=None, outside=False, **headers):
        headers = {"Host": "localhost:%d" % self.port, "Connection": "close", **headers}
        with Connection(address or self.address, 20) as c:
            c.send(head("GET", ("" if outside else self.server.base) + path, headers.items()))
            return c.response()

    def api(self, path, **headers):
        return self.get(path, Authorization="Bearer " + harness.TOKEN, **headers)

    def websocket(self, path, timeout=20):
        return WebSocket(self.address, self.server.base + path, "localhost:%d" % self.port,
                         token_protocols(harness.TOKEN), self.origin, timeout=timeout)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


@pytest.fixture
def front(start, place):
    proxies = []

    def make(name, env=None, base_path=None, server=None, **more):
        server = server or start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN, **(env or {})},
                                 base_path=base_path)
        os.makedirs(place.top + "/proxies", exist_ok=True)
        proxies.append(Proxy(name, server, place.top + "/proxies", **more))
        return proxies[-1]
    yield make
    for p in proxies:
        p.stop()


@pytest.mark.parametrize("name", PROXIES)
@pytest.mark.parametrize("base", ["", "/bench"], ids=["root", "prefix"])
def test_page_api_and_websocket(front, name, base):
    proxy = front(name, base_path=base)
    page = proxy.get("/")
    assert "<html" in page.text and page.header("Content-Security-Policy")
    assert proxy.get("/api/health").status == 401
    assert proxy.api("/api/health", Origin=proxy.origin).json()["status"] == "ok"
    assert proxy.api("/api/health", Origin="https://attacker.example").status == 403
    run = proxy.api("/api/containers").json()["containers"][0]
    own = proxy.server.get("/api/containers/%s/agent/dialog" % run["id"])
    through = proxy.api("/api/containers/%s/agent/dialog" % run["id"])
    assert (through.status, through.body) == (own.status, own.body)
    with proxy.websocket("/api/containers/%s/sdk-ws" % run["id"]) as ws:
        assert ws.protocol == "ssebench"
        assert ws.receive_json()["type"]
    six = TlsAddress(("::1", proxy.port))
    six.context = proxy.address.context
    assert proxy.get("/", address=six).status == 200
    if base:
        other = proxy.get("/api/health", outside=True)
        assert "json" not in other.header("Content-Type", ""), "what lies beside the prefix is not ours"


@pytest.mark.parametrize("name", PROXIES)
def test_host_rewritten(front, start, name):
    """Refused, unless the public origin is listed."""
    proxy = front(name, rewrite_host=True)
    refused = proxy.api("/api/health", Origin=proxy.origin)
    assert refused.status == 403 and "SSEBENCH_WEBUI_CORS_ORIGINS" in refused.json()["hint"]
    with pytest.raises(Refused):
        proxy.websocket("/api/launch/ws")
    port = free_port()
    listed = front(name, {"SSEBENCH_WEBUI_CORS_ORIGINS": "https://localhost:%d" % port},
                   rewrite_host=True, port=port)
    assert listed.api("/api/health", Origin=listed.origin).status == 200
    listed.websocket("/api/launch/ws").connection.close()


class SlowOrigin:
    """A server in the place of ours whose stream goes on when the test has read its beginning."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address, self.base = self.listener.getsockname(), ""
        self.seen = threading.Event()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection):
        with connection:
            request = connection.recv(65536)
            if not request.startswith(b"GET /slow "):
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                               b"Transfer-Encoding: chunked\r\n\r\n6\r\nfirst,\r\n")
            if self.seen.wait(60):
                connection.sendall(b"4\r\nlast\r\n0\r\n\r\n")

    def close(self):
        self.seen.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.mark.parametrize("name", PROXIES)
def test_streams_are_not_buffered(front, name):
    """The end is not sent before the beginning has come through."""
    origin = SlowOrigin()
    try:
        proxy = front(name, server=origin)
        with Connection(proxy.address, 30) as c:
            c.send(head("GET", "/slow", [("Host", "localhost:%d" % proxy.port)]))
            c.read_until(b"first,")
            origin.seen.set()
            c.read_until(b"last")
    finally:
        origin.close()


class Idle:
    """One proxy's sockets: a shell, the log of a run, its feed, and the launches."""

    def __init__(self, proxy):
        self.proxy, run = proxy, "/api/containers/" + RUN
        self.shell = Screen(proxy, "/api/pty/" + RUN, timeout=100)
        self.shell.type("stty -echo; echo ready-$((1+1))\r")
        self.shell.shows("ready-2")
        self.logs = proxy.websocket(run + "/logs-ws", timeout=100)
        self.feed = Viewer(proxy)
        self.feed.until("status", status="ready")
        self.launches = proxy.websocket("/api/launch/ws", timeout=100)
        self.sockets = [self.shell.ws, self.logs, self.feed.ws, self.launches]
        for ws in self.sockets:
            ws.pings = 0

    def listen(self):
        """What came by itself; pings are answered."""
        ready, _, _ = select.select([ws.connection.sock for ws in self.sockets], [], [], 0.3)
        for ws in [w for w in self.sockets if w.connection.sock in ready]:
            _, opcode, payload = ws.read_frame()
            if opcode == PING:
                ws.pings += 1
                ws.send_frame(PONG, payload)

    def close(self):
        for ws in self.sockets:
            ws.connection.close()


@pytest.mark.slow
def test_idle_websockets_stay(front, start, place, liar):
    """More than a minute without a word, through every proxy at once; then each still works."""
    names = [n for n in PROXIES if shutil.which(n, path=os.environ["PATH"] + ":/usr/sbin")]
    if not names:
        pytest.skip("no proxy is installed")
    place.knobs(agent_seconds=600, rubbish={"endpoint": liar.url + "\n"})
    place.start_run(RUN, agent="dummy", agent_seconds=600)
    server = start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN})
    process.wait_for(lambda: [r for r in server.runs() if r["id"] == RUN and
                              r["status"] == "running"], what="the run is listed")
    fronts = [Idle(front(n, server=server)) for n in names]
    end = time.monotonic() + 65
    while time.monotonic() < end:
        for f in fronts:
            f.listen()
    Dialog(place).add(0)
    for name, f in zip(names, fronts):
        assert all(ws.pings > 0 for ws in f.sockets), (name, [ws.pings for ws in f.sockets])
        f.shell.type("echo still-$((1+1))\r")
        f.shell.shows("still-2")
        assert f.feed.until_seq(0) == [0], name
        f.launches.send_frame(PING, b"still there?")
        while f.launches.read_frame()[1:] != (PONG, b"still there?"):
            pass
    assert server.post("/api/containers/%s/stop" % RUN).status == 200
    for f in fronts:
        while f.logs.receive_json()["type"] != "end":
            pass
        f.close()
