"""The TLS proxies of deploy/proxies, each run for real in front of the server."""
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import time

import pytest

import harness
import process
from http_client import Connection, TlsAddress, head
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


def nginx(text, top, port, rewrite_host):
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


def caddy(text, top, port, rewrite_host):
    text = swap(text, "\nbench.example.org {", "\nhttps://localhost:%d {\n\tbind 127.0.0.1 [::1]" % port)
    if rewrite_host:
        text = swap(text, "flush_interval", "header_up Host {upstream_hostport}\n\t\tflush_interval")
    (top / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + text)
    return ["caddy", "run", "--config", str(top / "Caddyfile"), "--adapter", "caddyfile"]


def haproxy(text, top, port, rewrite_host):
    text = swap(text, "0.0.0.0:443", "127.0.0.1:%d" % port)
    text = swap(text, "[::]:443", "[::1]:%d" % port)
    if rewrite_host:
        text = swap(text, "backend ssebench\n    server", "backend ssebench\n    http-request "
                    "set-header Host 127.0.0.1\n    server")
    (top / "haproxy.cfg").write_text(text)
    return ["haproxy", "-db", "-f", str(top / "haproxy.cfg")]


def apache2(text, top, port, rewrite_host):
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
        argv = prepare(text, self.top, self.port, rewrite_host)
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

    def get(self, path, address=None, **headers):
        headers = {"Host": "localhost:%d" % self.port, "Connection": "close", **headers}
        with Connection(address or self.address, 20) as c:
            c.send(head("GET", self.server.base + path, headers.items()))
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


@pytest.mark.slow
def test_idle_websockets_stay(front, start):
    """More than a minute without a message, through every proxy at once."""
    server = start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN})
    names = [n for n in PROXIES if shutil.which(n, path=os.environ["PATH"] + ":/usr/sbin")]
    if not names:
        pytest.skip("no proxy is installed")
    sockets = [front(n, server=server).websocket("/api/launch/ws", timeout=100) for n in names]
    end = time.monotonic() + 65
    for ws in sockets:
        ws.pings = 0
        ws.connection.sock.settimeout(0.2)
    while time.monotonic() < end:
        for ws in sockets:
            try:
                _, opcode, payload = ws.read_frame()
            except TimeoutError:
                continue
            if opcode == PING:
                ws.pings += 1
                ws.send_frame(PONG, payload)
    for name, ws in zip(names, sockets):
        assert ws.pings > 0, name
        ws.connection.sock.settimeout(20)
        ws.send_frame(PING, b"still there?")
        while ws.read_frame()[1:] != (PONG, b"still there?"):
            pass
        ws.connection.close()
