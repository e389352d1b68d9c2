"""The documents of a run that goes on: its daemon's, whatever the daemon does."""
import json
import os
import time

import pytest

from liar import Liar, answer, chunked
from process import wait_for

RUN = "live-1"
BASE = "/api/containers/%s/" % RUN


@pytest.fixture
def liar():
    daemon = Liar()
    yield daemon
    daemon.close()


def begin(start, place, liar=None, seconds=120, **knobs):
    """A server and one run that goes on; the CLI names the liar as its daemon."""
    if liar:
        knobs["rubbish"] = {"endpoint": liar.url + "\n"}
    place.knobs(agent_seconds=seconds, **knobs)
    place.start_run(RUN)
    server = start()
    wait_for(lambda: any(r["id"] == RUN and r["status"] == "running" for r in server.runs()),
             what="the run is listed")
    return server


def test_the_daemon_answers(start, place):
    server = begin(start, place)
    project = server.json(BASE + "project")
    assert project["id"] == "tinyjson-overflow-12" and isinstance(project["poc"], list)
    assert server.json(BASE + "sdk/version") == {"version": "1.1.0"}
    health = server.json(BASE + "sdk/health")
    assert health["healthy"] is True and health["sdkUrl"].startswith("http://127.0.0.1:")
    assert isinstance(server.json(BASE + "diff")["diff"], str)
    assert isinstance(server.json(BASE + "files")["files"], list)
    wait_for(lambda: len(server.json(BASE + "agent/dialog")["entries"]) > 2, what="entries")
    entries = server.json(BASE + "agent/dialog")["entries"]
    assert [e["seq"] for e in entries] == list(range(len(entries)))
    later = server.json(BASE + "agent/dialog?since=1")["entries"]
    assert later[0]["seq"] == 2
    assert server.json(BASE + "review") == {"available": False}
    assert server.get(BASE + "agent/dialog?since=x").status == 400
    # One CLI call and few connections for all of that.
    assert len([c for c in place.calls() if "endpoint" in c["argv"]]) == 1


TRUNCATED = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"id\":"
FAILED = (500, "Failed to communicate with SDK daemon")
ABSENT = (503, "SDK not accessible - the run may not be running")
LATE = (504, "SDK request timeout")


def flood(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    while True:
        connection.sendall(piece)


def trickle(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{")
    while True:
        connection.sendall(b" ")
        time.sleep(0.2)


LIES = {
    "not JSON": (answer("hello"), FAILED),
    "empty": (answer(""), FAILED),
    "an array": (answer("[1,2]"), FAILED),
    "two values": (answer("{}{}"), FAILED),
    "deep": (answer('{"a":' * 100000 + "1" + "}" * 100000), FAILED),
    "truncated": (TRUNCATED, FAILED),
    "garbage": (b"\x00\x01\x02 SSH-2.0-OpenSSH\r\n\r\n", FAILED),
    "HTTP/0.9": (b"{}", FAILED),
    "redirect": (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
                 b"Content-Length: 2\r\n\r\n{}", FAILED),
    "switching": (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", FAILED),
    "no head's end": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100000, FAILED),
    "two lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
                    FAILED),
    "huge length": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{", FAILED),
    "bad chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}", FAILED),
    "endless": (flood, FAILED),
    "drop by drop": (trickle, LATE),
    "silence": (None, LATE),
}
CLOSED_AFTER = ("truncated", "HTTP/0.9", "garbage")


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_that_runs_error_alone(start, place, liar, lie):
    what, (status, error) = LIES[lie]
    liar.say["/project"] = what
    liar.say["/version"] = answer('{"version":"9"}')
    if lie in CLOSED_AFTER:
        liar.close_after.add("/project")
    server = begin(start, place, liar)
    got = server.get(BASE + "project", timeout=20)
    assert (got.status, json.loads(got.body)["error"]) == (status, error)
    assert server.json(BASE + "sdk/version") == {"version": "9"}
    assert server.json("/api/health")["status"] == "ok"


GOOD = {
    "chunked": (chunked(b'{"i', b'd":"', b'x"}'), {"id": "x"}),
    "until close": (b"HTTP/1.0 200 OK\r\n\r\n{\"id\":\"x\"}", {"id": "x"}),
    "pretty": (answer('{\n "id": "x"\n}\n'), {"id": "x"}),
    "bad UTF-8": (answer(b'{"id":"a\xffb"}'), {"id": "a\ufffdb"}),
    "cut character": (chunked(b'{"id":"\xe2', b"\x82", b'\xac"}'), {"id": "\u20ac"}),
    "30 MiB": (answer('{"id":"%s"}' % ("x" * (30 << 20))), {"id": "x" * (30 << 20)}),
}


@pytest.mark.parametrize("form", GOOD)
def test_every_honest_form_is_read(start, place, liar, form):
    liar.say["/project"], expected = GOOD[form]
    if form == "until close":
        liar.close_after.add("/project")
    got = begin(start, place, liar).get(BASE + "project")
    assert (got.status, got.json()) == (200, expected)


def test_errors_of_the_daemon_pass(start, place, liar):
    liar.say["/diff"] = answer('{"error":"git failed"}', "500 Internal Server Error")
    got = begin(start, place, liar).get(BASE + "diff")
    assert (got.status, json.loads(got.body)) == (500, {"error": "git failed"})


def test_one_connection_serves_many_requests(start, place, liar):
    liar.say["/project"] = answer('{"id":"x"}')
    server = begin(start, place, liar)
    for _ in range(20):
        assert server.get(BASE + "project").status == 200
    assert liar.n_connections <= 2  # one for each worker


def test_nobody_listens(start, place, liar):
    server = begin(start, place, liar)
    liar.close()
    got = server.get(BASE + "project")
    assert (got.status, json.loads(got.body)["error"]) == ABSENT
    assert server.json(BASE + "sdk/health")["healthy"] is False


def test_no_address(start, place):
    server = begin(start, place, fail={"endpoint": [1, "The run is not running"]})
    got = server.get(BASE + "files")
    assert (got.status, json.loads(got.body)["error"]) == ABSENT
    assert server.json(BASE + "sdk/health") == {"healthy": False,
                                                "reason": "SDK URL not found"}


@pytest.mark.parametrize("url", ["https://127.0.0.1:1", "http://example.org:80", "ftp://x",
                                 "http://127.0.0.1:80/path"])
def test_other_addresses_are_not_connected_to(start, place, url):
    server = begin(start, place, rubbish={"endpoint": url + "\n"})
    assert server.get(BASE + "project").status == 503


def test_a_grade_on_the_host_when_the_daemon_has_none(start, place, liar):
    liar.say["/result"] = answer('{"available":false}')
    server = begin(start, place, liar)
    assert server.json(BASE + "result") == {"available": False}
    folder = next(f for f, _, _ in os.walk(place.results) if f.endswith("/" + RUN))
    grade = {"patch_result": {"status": "passed"}, "runtime_result": {"agent_duration": 3}}
    with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as f:
        json.dump(grade, f)
    assert server.json(BASE + "result") == {"available": True, **grade}
    liar.say["/result"] = answer('{"available":true,"patch_result":{}}')
    assert server.json(BASE + "result") == {"available": True, "patch_result": {}}


def test_a_stuck_daemon_holds_nobody_up(start, place, liar):
    liar.say["/project"] = None
    server = begin(start, place, liar)
    stuck = [server.connect() for _ in range(20)]
    for c in stuck:
        c.send(("GET %s%sproject HTTP/1.1\r\nHost: %s\r\n\r\n"
                % (server.base, BASE, server.host)).encode())
    for _ in range(20):
        assert server.json("/api/health")["status"] == "ok"
    for c in stuck:
        assert c.response().status == 504
        c.close()


FINISHED = "/api/containers/hostile-output.1/"


@pytest.mark.parametrize("path", ["project", "diff", "files", "agent/dialog", "result",
                                  "agent/dialog?since=3"])
def test_a_finished_runs_document_has_a_tag(shared, path):
    first = shared.get(FINISHED + path)
    tag = {k.lower(): v for k, v in first.headers}.get("etag")
    assert first.status == 200 and tag
    again = shared.get(FINISHED + path, {"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"")
    other = shared.get(FINISHED + path, {"If-None-Match": 'W/"other"'})
    assert other.status == 200 and other.body == first.body


def test_the_reference_patch_of_a_local_task(start, place, liar):
    sse = os.path.join(place.checkout, "datasets", "pilot", "tinyjson-overflow-12", "sse")
    server = begin(start, place, liar)
    os.makedirs(os.path.join(sse, "deep"), exist_ok=True)
    secret = os.path.join(place.top, "secret")
    for name, text in ((os.path.join(sse, "deep", "p.diff"), "the patch\n"),
                       (secret, "secret\n")):
        with open(name, "w", encoding="utf-8") as f:
            f.write(text)
    os.symlink(secret, os.path.join(sse, "deep", "link"))

    def names(path):
        with open(os.path.join(sse, "config.yaml"), "w", encoding="utf-8") as f:
            f.write("id: x\nfiles:\n  patch: %s\n" % path)
        return server.json(BASE + "reference/patch")["diff"]
    assert names("deep/p.diff") == "the patch\n"
    for path in ("deep/link", "../../../../secret", secret, "deep", "deep/none", "[a]", "'\\0'",
                 "x" * 300):
        assert names(path) == "", path
