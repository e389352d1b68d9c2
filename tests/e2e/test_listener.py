"""Where the server listens and whom it answers: base path, Unix socket, other accounts."""
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import time

import pytest

import harness
import process
from routes import RUN

NOBODY = 65534
PEER = ("Peer not allowed: this server has no token and answers only the account that started "
        "it; set SSEBENCH_WEBUI_TOKEN")
ASK = """
import socket, sys
host, port, path = sys.argv[1:]
s = socket.create_connection((host, int(port)), 10) if port != "0" else socket.socket(socket.AF_UNIX)
if port == "0": s.connect(host)
s.sendall(("GET %s HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n" % path).encode())
data = b""
while True:
    more = s.recv(65536)
    if not more: break
    data += more
print(data.decode("latin-1"))
"""


def ask_as(uid, server, path="/api/health"):
    """The same request from a process of another account; its whole answer as text."""
    address = (server.address, "0") if isinstance(server.address, str) else server.address
    return subprocess.run(["/usr/bin/python3", "-c", ASK, address[0], str(address[1]),
                           server.base + path], user=uid, group=uid, extra_groups=[],
                          capture_output=True, text=True, timeout=30)


@pytest.mark.root
def test_another_account_is_refused(start):
    server = start()
    for path in ("/api/health", "/api/containers", "/", "/api/containers/%s/diff" % RUN):
        answer = ask_as(NOBODY, server, path).stdout
        assert answer.startswith("HTTP/1.1 403 ") and PEER in answer, answer
    assert ask_as(0, server).stdout.startswith("HTTP/1.1 200 ")
    assert server.get("/api/health").status == 200


@pytest.mark.parametrize("reset", [False, True])
def test_a_client_that_is_gone_is_not_refused(start, reset):
    """It closes after the worker has asked whose it is, and before the broker has looked."""
    server = start()
    broker, workers = server.broker(), server.workers()
    with process.held(server.pid, []):
        for _ in range(5):
            os.kill(broker, signal.SIGSTOP)
            with socket.create_connection(server.address) as s:
                if reset:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                time.sleep(0.2)  # until it has asked
                for pid in workers:
                    os.kill(pid, signal.SIGSTOP)
            os.kill(broker, signal.SIGCONT)
            time.sleep(0.2)  # until the answer is there, beside the end of the connection
            for pid in workers:
                os.kill(pid, signal.SIGCONT)
    assert server.get("/api/health").status == 200
    assert server.stop() == 0  # all its lines are here
    assert [line for line in server.err if " refused " in line] == []


@pytest.mark.root
def test_another_account_with_peers_any(start):
    server = start({"SSEBENCH_WEBUI_PEERS": "any"})
    assert ask_as(NOBODY, server).stdout.startswith("HTTP/1.1 200 ")


@pytest.mark.root
def test_another_account_with_a_token_server(start):
    """With a token, the token decides: 401 and not 403."""
    server = start({"SSEBENCH_WEBUI_TOKEN": harness.TOKEN})
    assert ask_as(NOBODY, server).stdout.startswith("HTTP/1.1 401 ")


@pytest.fixture
def own_place():
    """A place that belongs to nobody, for a server of that account."""
    p = harness.Place()
    p.give_to(NOBODY, NOBODY)
    yield p
    p.close()


@pytest.mark.root
def test_server_of_an_ordinary_user(start, own_place):
    server = start(at=own_place, uid=NOBODY)
    for pid in server.tree():
        assert set(process.status(pid)["Uid"].split()) == {str(NOBODY)} or \
            process.namespace(pid, "user") != process.namespace(os.getpid(), "user")
    for pid in server.workers():
        s = process.status(pid)
        assert (s["Seccomp"], s["NoNewPrivs"], s["CapEff"]) == ("2", "1", "0" * 16)
    assert ask_as(NOBODY, server).stdout.startswith("HTTP/1.1 200 ")
    assert ask_as(0, server).stdout.startswith("HTTP/1.1 200 "), "root is always admitted"
    other = ask_as(65533, server).stdout
    assert other.startswith("HTTP/1.1 403 ") and PEER in other
    assert len(server.runs()) == len(own_place.finished())
    assert server.get("/api/containers/%s/diff" % RUN).status == 200
    with server.websocket("/api/containers/%s/logs-ws" % RUN) as ws:
        assert ws.receive_json()["type"] == "log"


def test_unix_socket(start, place):
    path = os.path.join(place.top, "web.sock")
    server = start({"SSEBENCH_WEBUI_HOST": "unix:" + path})
    assert server.address == path
    mode = os.stat(path)
    assert stat.S_ISSOCK(mode.st_mode) and stat.S_IMODE(mode.st_mode) == 0o600
    assert server.get("/api/health").status == 200
    assert server.get("/api/health", {"Host": "evil.example"}).status == 403
    assert server.get("/api/containers/%s/diff" % RUN).status == 200
    if os.geteuid() == 0:
        os.chmod(path, 0o666)
        assert PEER in ask_as(NOBODY, server).stdout
    assert server.stop() == 0
    assert not os.path.exists(path), "the socket file goes with the server"


def test_unix_socket_left_by_a_killed_server(start, place):
    path = os.path.join(place.top, "web.sock")
    first = start({"SSEBENCH_WEBUI_HOST": "unix:" + path})
    first.kill()
    first.process.returncode = 0
    second = start({"SSEBENCH_WEBUI_HOST": "unix:" + path})
    assert second.get("/api/health").status == 200


def test_a_plain_file_is_not_replaced_by_a_socket(place):
    path = os.path.join(place.top, "precious")
    with open(path, "w", encoding="utf-8") as f:
        f.write("keep me")
    server = harness.Server(place, {"SSEBENCH_WEBUI_HOST": "unix:" + path}, wait=False)
    assert server.process.wait(30) == 1
    with open(path, encoding="utf-8") as f:
        assert f.read() == "keep me"


def test_ipv6_loopback(start):
    if not os.path.exists("/proc/net/if_inet6") or not process.read(os.getpid(), "net/if_inet6"):
        pytest.skip("this machine has no IPv6")
    server = start({"SSEBENCH_WEBUI_HOST": "::1"})
    assert server.url.startswith("http://[::1]:")
    assert server.get("/api/health").status == 200


@pytest.mark.parametrize("base", ["/a/b", "/x", "/deep/er/est", "/ends/"])
@pytest.mark.once
def test_base_path(start, base):
    server = start(base_path=base)
    server.base = base.rstrip("/")
    assert server.url.endswith(server.base + "/")
    assert server.get("/api/health").status == 200
    page = server.get("/")
    assert page.status == 200 and b"<" in page.body
    server.base = ""
    for path in ("/api/health", "/api/containers", base.rstrip("/") + "x/api/health",
                 "/%2e%2e" + base + "api/health", "/other/api/health"):
        assert server.get(path).status in (301, 302, 307, 308, 400, 404), path
        assert b'"status":"ok"' not in server.get(path).body


def assets(server, page):
    import re
    return re.findall(rb'(?:src|href)="([^":]*\.(?:js|css|svg|ico|woff2))"', page)


def test_page_and_assets(shared):
    r = shared.get("/", {"Accept-Encoding": "gzip, br"})
    plain = shared.get("/")
    assert plain.status == 200 and plain.header("Content-Type") == "text/html; charset=utf-8"
    assert r.status == 200
    policy = plain.header("Content-Security-Policy")
    assert "require-trusted-types-for 'script'" in policy and "unsafe" not in policy
    assert plain.header("Cross-Origin-Opener-Policy") == "same-origin"
    assert b"<script>" not in plain.body and b"style=" not in plain.body
    found = assets(shared, plain.body)
    assert found, plain.body[:500]
    for name in found:
        path = name.decode()
        if path.startswith(shared.base + "/"):
            path = path[len(shared.base):]
        path = "/" + path.lstrip("./")
        asset = shared.get(path)
        assert asset.status == 200, path
        tag = asset.header("ETag")
        assert tag and shared.get(path, {"If-None-Match": tag}).status == 304
        assert shared.get(path, {"If-None-Match": '"other"'}).status == 200
        assert shared.get(path, {"Accept-Encoding": "gzip"}).header("Content-Encoding") == "gzip"


def test_deep_links_show_the_page(shared):
    for path in ("/runs/" + RUN, "/launch", "/settings"):
        r = shared.get(path)
        assert r.status == 200 and r.header("Content-Type").startswith("text/html")
    assert shared.get("/assets/missing.js").status == 404
    assert shared.post("/").status == 405


def test_server_runs_from_another_folder(start, place):
    """The build tree finds its role programs whatever the working directory is."""
    server = start(cwd="/")
    assert server.get("/api/containers/%s/diff" % RUN).status == 200


def test_checkout_defaults_to_the_working_directory(start, place):
    server = start({"SSEBENCH_PATH": None})
    assert RUN in [c["id"] for c in server.runs()]


def test_no_results_yet(start, place):
    shutil.rmtree(place.results)
    server = start()
    assert server.runs() == []
