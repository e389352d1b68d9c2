"""The way in that the README recommends: `ssh -L` through a real sshd on loopback, to the port and
to the socket file. The sshd belongs to the test: its own configuration, keys, port and folder."""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess

import pytest

import harness
import process
from http_client import Connection
from test_proxies import free_port
from ws_client import Refused, WebSocket

pytestmark = pytest.mark.once
DAEMON = 1  # an account that every system has; "nobody" counts as locked on some
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ["PATH"])
CONFIG = """ListenAddress 127.0.0.1:%(port)d
HostKey %(top)s/host
AuthorizedKeysFile %(top)s/user.pub
AllowUsers %(user)s
AllowTcpForwarding local
AllowStreamLocalForwarding local
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PidFile none
"""


class Tunnel:
    """`ssh -N -L <here>:<target>` and the sshd at its other end, which runs as account `uid`."""

    def __init__(self, top, uid, target):
        self.top, self.processes = pathlib.Path(top), []
        self.user = pwd.getpwuid(uid).pw_name
        self.who = {} if uid == os.geteuid() else {"user": uid, "group": uid, "extra_groups": []}
        for key in ("host", "user"):
            self.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.top / key))
        port, self.port = free_port(), free_port()
        (self.top / "config").write_text(CONFIG % {"port": port, "top": top, "user": self.user})
        self.spawn("sshd", [SSHD, "-D", "-e", "-f", str(self.top / "config")], "Server listening")
        host_key = (self.top / "host.pub").read_text()
        (self.top / "known").write_text("[127.0.0.1]:%d %s" % (port, host_key))
        self.spawn("ssh", [
            shutil.which("ssh"), "-v", "-F", "none", "-N", "-i", str(self.top / "user"),
            "-o", "UserKnownHostsFile=%s/known" % top, "-o", "ExitOnForwardFailure=yes",
            "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "ControlPath=none",
            "-L", "127.0.0.1:%d:%s" % (self.port, target), "-p", str(port),
            self.user + "@127.0.0.1"], "Entering interactive session")

    def run(self, *argv):
        subprocess.run(argv, check=True, capture_output=True, timeout=60, cwd="/", **self.who)

    def spawn(self, name, argv, mark):
        log = self.top / (name + ".log")
        with open(log, "wb") as out:
            p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/",
                                 env={"PATH": os.environ["PATH"], "HOME": str(self.top)}, **self.who)
        self.processes.append(p)
        try:
            process.wait_for(lambda: mark in log.read_text() or p.poll() is not None, 60, name)
            assert p.poll() is None, log.read_text() + (self.top / "sshd.log").read_text()
        except AssertionError:
            self.stop()
            raise

    def stop(self):
        for p in reversed(self.processes):
            if p.poll() is None:
                p.send_signal(signal.SIGTERM)
            p.wait(20)


@pytest.fixture
def tunnel():
    """tunnel(server): to where it listens, as `uid`."""
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip("sshd (openssh-server) or ssh is not installed")
    made = []

    def make(server, uid):
        top = os.path.join(server.place.top, "ssh%d" % len(made))
        os.mkdir(top)
        os.chown(top, uid, uid if os.geteuid() == 0 else -1)
        target = server.address if isinstance(server.address, str) else \
            "127.0.0.1:%d" % server.address[1]
        made.append(Tunnel(top, uid, target))
        return made[-1]
    yield make
    for t in made:
        t.stop()


@pytest.fixture
def own():
    """A place and its account: an ordinary one, so that the sshd needs no rights either."""
    uid = DAEMON if os.geteuid() == 0 else os.geteuid()
    p = harness.Place()
    if os.geteuid() == 0:
        p.give_to(uid, uid)
    yield p, uid
    p.close()


def through(server, port):
    """The same server, asked as a browser at the tunnel's near end asks."""
    server.address, server.host = ("127.0.0.1", port), "localhost:%d" % port
    return server


@pytest.mark.parametrize("to", ["port", "socket"])
@pytest.mark.parametrize("token", [None, harness.TOKEN], ids=["no-token", "token"])
def test_page_api_and_websocket(start, own, tunnel, to, token):
    """Host and Origin are the near end's, another port than ours; the peer is sshd's account."""
    place, uid = own
    env = {"SSEBENCH_WEBUI_TOKEN": token}
    if to == "socket":
        env["SSEBENCH_WEBUI_HOST"] = "unix:" + place.top + "/web.sock"
    server = start(env, at=place, uid=uid if os.geteuid() == 0 else None)
    near = through(server, tunnel(server, uid).port)
    origin = "http://" + near.host
    page = near.get("/")
    assert page.status == 200 and "<html" in page.text
    assert near.get("/api/health", {"Origin": origin}).json()["status"] == "ok"
    assert near.get("/api/health", {"Origin": "http://localhost:1"}).status == 403
    run = near.runs()[0]["id"]
    with near.websocket("/api/containers/%s/sdk-ws" % run, origin=origin) as ws:
        assert ws.protocol in ("ssebench", None) and ws.receive_json()["type"]
    if token is None:
        named = near.get("/api/health", {"Host": "bench.example.org"})
        assert named.status == 403 and named.json()["error"].startswith("Host not allowed"), named
    else:
        assert near.get("/api/health", {"Authorization": None}).status == 401


@pytest.mark.root
@pytest.mark.parametrize("to", ["port", "socket"])
def test_a_tunnel_of_another_account(start, place, tunnel, to):
    """Who logs in as somebody else is somebody else: refused without a token."""
    env = {"SSEBENCH_WEBUI_HOST": "unix:" + place.top + "/web.sock"} if to == "socket" else {}
    server = start(env)
    if to == "socket":
        os.chmod(server.address, 0o666)
    near = through(server, tunnel(server, DAEMON).port)
    answer = near.get("/api/health")
    assert answer.status == 403 and answer.json()["error"].startswith("Peer not allowed"), answer
    with pytest.raises(Refused):
        WebSocket(near.address, near.base + "/api/launch/ws", near.host)


def test_the_socket_file_is_closed_to_others(start, place, tunnel):
    """Mode 0600 comes before any rule of ours: sshd of another account cannot even connect."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as another account")
    server = start({"SSEBENCH_WEBUI_HOST": "unix:" + place.top + "/web.sock"})
    near = tunnel(server, DAEMON)
    with Connection(("127.0.0.1", near.port)) as c:
        assert c.is_closed()
    assert "open failed" in (near.top / "ssh.log").read_text()
