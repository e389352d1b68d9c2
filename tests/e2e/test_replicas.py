"""Hosted servers behind one address: each answers for all, and nothing is shared but the results."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import harness
import process
from http_client import Connection, head
from routes import RUN
from test_proxies import free_port
from ws_client import WebSocket, token_protocols

pytestmark = pytest.mark.once
NGINX = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
ENV = {"SSEBENCH_WEBUI_TOKEN": harness.TOKEN, "SSEBENCH_WEBUI_HOSTED": "1"}
AGE = re.compile(rb'"(listAgeMs|tookMs)":\d+')
CONFIG = """daemon off;
%(user)spid %(top)s/pid;
error_log stderr;
events {}
http {
    access_log off;
    %(paths)s
    upstream replicas { %(servers)s }
    server {
        listen 127.0.0.1:%(port)d;
        location / {
            proxy_pass http://replicas;
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $http_connection;
            add_header X-Replica $upstream_addr always;
        }
    }
}
"""


class Balancer:
    """nginx, one request to each replica in turn; no stickiness."""

    def __init__(self, top, servers):
        self.top, self.port = pathlib.Path(top), free_port()
        self.host = "127.0.0.1:%d" % self.port
        names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        (self.top / "conf").write_text(CONFIG % {
            "top": top, "port": self.port, "user": "user root;\n" if os.geteuid() == 0 else "",
            "paths": " ".join("%s_temp_path %s/%s;" % (n, top, n) for n in names),
            "servers": " ".join("server 127.0.0.1:%d max_fails=1;" % s.address[1]
                                for s in servers)})
        self.process = subprocess.Popen([NGINX, "-e", "stderr", "-c", str(self.top / "conf")],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def get(self, path, **headers):
        headers = {"Host": self.host, "Connection": "close", "Authorization": "Bearer " +
                   harness.TOKEN, **{k.replace("_", "-"): v for k, v in headers.items()}}
        with Connection(("127.0.0.1", self.port)) as c:
            c.send(head("GET", path, headers.items()))
            return c.response()

    def is_up(self):
        try:
            return self.get("/healthz").status == 200
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


@pytest.fixture
def replicas(start, place):
    """Three servers, each with a checkout, home and state of its own; and what is before them."""
    if NGINX is None:
        pytest.skip("nginx is not installed")
    places = [harness.Place(demo=False) for _ in range(3)]
    env = {**ENV, "SSEBENCH_WEBUI_RESULTS": place.results}
    servers = [start(env, at=p, base_path="") for p in places]
    balancer = Balancer(place.top, servers)
    process.wait_for(lambda: balancer.is_up(), what="nginx")
    yield balancer, servers, places
    balancer.stop()
    for s in servers:
        s.stop()
    for p in places:
        p.close()


def around(balancer, path, **headers):
    """The answers of all three, by who gave them."""
    answers = {}
    process.wait_for(lambda: answers.update([(lambda a: (a.header("X-Replica"), a))(
        balancer.get(path, **headers))]) or len(answers) == 3, what="an answer of each")
    return list(answers.values())


def test_every_replica_answers_alike(replicas, place):
    balancer, servers, places = replicas
    run = "/api/containers/" + RUN
    for path in ("/", "/api/containers", "/api/containers?limit=3&offset=2&sort=spend",
                 run + "/agent/dialog", run + "/diff", run + "/files", run + "/result",
                 run + "/agent/dialog?since=1", "/api/search?q=overflow"):
        answers = around(balancer, path)
        assert {a.status for a in answers} == {200}, (path, answers)
        assert len({AGE.sub(b"", a.body) for a in answers}) == 1, path
        assert len({a.header("ETag") for a in answers}) == 1, path
    # What one has tagged another knows.
    tag = balancer.get(run + "/diff").header("ETag")
    assert {a.status for a in around(balancer, run + "/diff", If_None_Match=tag)} == {304}
    # Who runs here, and nothing of what it serves.
    for p in places:
        assert not [f for f in pathlib.Path(p.state).rglob("*") if f.is_file()
                    and f.name != "server.lock" and f.parent.name != "servers"], "it keeps something"


def test_feeds_go_on_at_another_replica(replicas, place):
    """A feed that is cut is resumed where it was, by whoever answers; a new run is seen by all."""
    balancer, servers, places = replicas
    seen = []
    while len(seen) < 3:
        with WebSocket(("127.0.0.1", balancer.port), "/api/containers/%s/sdk-ws" % RUN,
                       balancer.host, token_protocols(harness.TOKEN)) as ws:
            entries = []
            while True:
                m = ws.receive_json()
                if m["type"] == "dialog":
                    entries += m["entries"]
                if m["type"] == "result":
                    break
            assert ws.answer.header("X-Replica") not in [who for who, _ in seen]
            seen.append((ws.answer.header("X-Replica"), entries))
    assert seen[0][1] and seen[0][1] == seen[1][1] == seen[2][1]
    source = next(f for f, _, _ in os.walk(place.results) if f.endswith("/" + RUN))
    summary = json.loads(pathlib.Path(source, "summary.json").read_text())
    shutil.copytree(source, os.path.join(os.path.dirname(source), "again-1"))
    (pathlib.Path(source).parent / "again-1" / "summary.json").write_text(
        json.dumps({**summary, "run_id": "again-1"}))
    process.wait_for(lambda: all('"again-1"' in a.text for a in around(
        balancer, "/api/containers")), what="the new run is listed by all")


def test_one_may_go(replicas):
    balancer, servers, places = replicas
    servers[1].stop()
    for _ in range(12):
        assert balancer.get("/api/containers/%s/diff" % RUN).status == 200
