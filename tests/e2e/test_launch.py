"""Launching: what is offered, what is refused, what is started, told, cancelled, cleared."""
import json
import os
import signal

import pytest

import launch_help as lh
import process
from http_client import Closed

SANDBOX = {"agent": "codex", "model": "gpt-6.1-sol", "mode": "sandbox", "source": "local"}


@pytest.fixture
def stage(place):
    return lh.Stage(place)


# --- the real way, with the stand-in --------------------------------------------------------

def test_launch_watch_grade(place, start):
    place.knobs(build_seconds=0.2, agent_seconds=0.5)
    server = start({"SSEBENCH_WEBUI_TOKEN": "correct-horse-battery-staple"})
    viewer = lh.Viewer(server)
    launch_id = lh.launch(server, "tinyjson-overflow-12", timeout=600, difficulty=3,
                          egress="open", plugins=["artifact", "oracle", "artifact"])
    running = lh.wait_status(server, launch_id, "running")
    assert running["containerId"] == launch_id and running["taskId"] == "tinyjson-overflow-12"
    call = [c for c in place.calls() if c["argv"][0] == "run"][0]
    assert call["argv"] == [
        "run", "--model=gpt-6.1-sol", "--agent=codex", "--task=tinyjson-overflow-12",
        "--mode=sandbox", "--run-id=" + launch_id, "--keep-container",
        "--local=" + os.path.join(place.checkout, "datasets/pilot"), "--timeout=600",
        "--difficulty=3", "--egress=open", "--plugin=artifact", "--plugin=oracle"]
    assert call["cwd"] == place.checkout
    assert not [n for n in call["env"] if n.startswith("SSEBENCH_WEBUI_TOKEN")]
    process.wait_for(lambda: server.json("/api/containers/%s/result" % launch_id
                                         ).get("available") or None
                     if place.live_states().get(launch_id) == "exited" else
                     os.path.getsize(os.path.join(
                         place.results, "tinyjson-overflow-12", "gpt-6.1-sol", "codex",
                         launch_id, "result.json")), what="the grade")
    assert server.post("/api/containers/%s/stop" % launch_id).status == 200
    ended = lh.wait_end(server, launch_id)
    assert ended["status"] == "running" and ended["exitCode"] == 0
    lines = lh.logs(server, launch_id)
    assert [x for x in lines if x.startswith("Grade: passed")]
    process.wait_for(lambda: viewer.lines.get(launch_id) == lines, what="the same lines")
    assert [s["status"] for s in viewer.states[launch_id]][:1] == ["launching"]
    assert lh.post(server, "/clear", {"launch_id": launch_id}).json() == {"cleared": True}
    process.wait_for(lambda: launch_id in viewer.cleared, what="cleared")
    assert lh.status(server, launch_id) == {"status": None}
    process.wait_for(lambda: lh.folder(place, launch_id) is None, what="no folder")
    viewer.close()


def test_reference_needs_no_model(place, start):
    place.knobs(agent_seconds=0.2)
    server = start()
    r = lh.post(server, "", {"task": "tinyjson-overflow-12", "agent": "reference",
                             "mode": "sandbox", "source": "remote"})
    assert r.status == 200, r
    lh.wait_status(server, r.json()["launch_id"], "running")
    assert place.vectors("run ")[0] == (
        "run --agent=reference --task=tinyjson-overflow-12 --mode=sandbox --run-id=%s "
        "--keep-container --catalog=%s" % (
            r.json()["launch_id"], os.path.join(place.checkout, "datasets/pilot/manifest.json")))


# --- what is refused --------------------------------------------------------------------------

REFUSED = [
    ({}, "Missing required fields"),
    ({"task": "t", **SANDBOX, "agent": None}, "Missing required fields"),
    ({"task": "t", **SANDBOX, "model": ""}, "Missing required fields"),
    ({"task": "t", **SANDBOX, "mode": "x", "source": "x"},
     "Invalid source: expected local or remote"),
    ({"task": "t", **SANDBOX, "mode": 5}, "Invalid mode: expected sandbox or sidecar"),
    ({"task": "t", **SANDBOX, "agent": "nobody"}, "Unknown agent"),
    ({"task": "t", **SANDBOX, "agent": "README.md"}, "Unknown agent"),
    ({"task": "t", **SANDBOX, "agent": "../codex"}, "Unknown agent"),
    ({"task": "t", **SANDBOX, "agent": ["codex"]}, "Unknown agent"),
    ({"task": "t", **SANDBOX, "model": "x" * 300}, "Unknown model"),
    ({"task": "t", **SANDBOX, "model": "--help"}, "Unknown model"),
    ({"task": "-t", **SANDBOX}, "Invalid task ID"),
    ({"task": "a/b", **SANDBOX}, "Invalid task ID"),
    ({"task": "x" * 129, **SANDBOX}, "Invalid task ID"),
    ({"task": "t", **SANDBOX}, "Unknown local task"),
    ({"task": "ringlog-race-7", **SANDBOX, "egress": "x", "plugins": 5},
     "Invalid egress: expected restricted or open"),
    ({"task": "ringlog-race-7", **SANDBOX, "egress": ""},
     "Invalid egress: expected restricted or open"),
    ({"task": "ringlog-race-7", **SANDBOX, "plugins": "oracle"},
     "Invalid plugins: expected a list of plugin names"),
    ({"task": "ringlog-race-7", **SANDBOX, "plugins": [5]},
     "Invalid plugins: expected a list of plugin names"),
    ({"task": "ringlog-race-7", **SANDBOX, "plugins": ["nothing"]}, "Unknown plugin"),
    ({"task": "ringlog-race-7", **SANDBOX, "plugins": [""]}, "Unknown plugin"),
    ({"task": "ringlog-race-7", **SANDBOX, "mode": "sidecar", "plugins": ["oracle"]},
     "Plugins apply to sandbox mode only"),
    ({"task": "ringlog-race-7", **SANDBOX, "timeout": 0},
     "Invalid timeout: expected whole seconds from 1 to 604800"),
    ({"task": "ringlog-race-7", **SANDBOX, "timeout": 604801, "difficulty": 9},
     "Invalid timeout: expected whole seconds from 1 to 604800"),
    ({"task": "ringlog-race-7", **SANDBOX, "timeout": "60"},
     "Invalid timeout: expected whole seconds from 1 to 604800"),
    ({"task": "ringlog-race-7", **SANDBOX, "timeout": 1.5},
     "Invalid timeout: expected whole seconds from 1 to 604800"),
    ({"task": "ringlog-race-7", **SANDBOX, "difficulty": 5},
     "Invalid difficulty: expected 0 to 4"),
    ({"task": "ringlog-race-7", **SANDBOX, "difficulty": -1},
     "Invalid difficulty: expected 0 to 4"),
]

NO_REQUEST = [b"", b"x", b"[]", b"null", b'"x"', b"{", b"{}x", b"{} {}", b'{"task":"a","task":"b"}',
              b'{"a":1,}', b'{"a\x00b":1}', b'{"a":"\x00"}', b"\xef\xbb\xbf{}", b'{"a":NaN}']


def test_refusals(place, start):
    server = start()
    for value, error in REFUSED:
        r = lh.post(server, "", value)
        assert (r.status, r.json()["error"]) == (400, error), value
    for raw in NO_REQUEST:
        r = lh.post(server, "", raw)
        assert (r.status, r.json()["error"]) == (400, "Invalid launch request"), raw
    for path in ("/cancel", "/clear"):
        for raw in (b"[]", b"{", b'{"launch_id":"a","launch_id":"b"}'):
            assert lh.post(server, path, raw).status == 400, (path, raw)
    assert lh.post(server, "", b"{" + b" " * 70000 + b"}").status == 413
    r = lh.post(server, "/cancel", {})
    assert (r.status, r.json()["error"]) == (400, "Missing required field: launch_id")
    assert lh.post(server, "/cancel", {"launch_id": "../x"}).json() == {"cancelled": False}
    r = server.get("/api/launch/logs")
    assert (r.status, r.json()["error"]) == (400, "Missing required query parameter: id")
    assert server.json("/api/launch/logs?id=nothing") == {"logs": []}
    assert server.json("/api/launch/status?id=nothing") == {"status": None}
    assert place.vectors("run ") == []
    assert server.json("/api/launch/status") == {"launches": []}


def test_no_catalog(place, start):
    os.unlink(os.path.join(place.checkout, "datasets/pilot/manifest.json"))
    server = start()
    text = "Task catalog not configured: set SSEBENCH_CATALOG for the webui server"
    r = lh.post(server, "", {"task": "t", **SANDBOX, "source": "remote"})
    assert (r.status, r.json()["error"]) == (400, text)
    r = server.get("/api/launch/tasks")
    assert (r.status, r.json()["tasks"], r.json()["error"]) == (503, [], text)
    assert len(server.json("/api/launch/tasks?source=local")["tasks"]) == 4
    assert server.json("/api/launch/config")["catalogConfigured"] is False


def test_hosted_launches_nothing(place, start):
    server = start({"SSEBENCH_WEBUI_HOSTED": "1"})
    for path in ("", "/cancel", "/clear"):
        assert lh.post(server, path, lh.body("ringlog-race-7")).status == 403
    with server.websocket("/api/launch/ws?heartbeat=1") as ws:
        assert ws.receive_json()["type"] == "heartbeat"
    assert place.vectors("run ") == []


def test_command_that_cannot_run(place, start):
    cli = os.path.join(place.top, "cli")
    os.symlink("/bin/true", cli)
    server = start({"SSEBENCH_CLI": cli})
    os.unlink(cli)
    r = lh.post(server, "", lh.body("ringlog-race-7"))
    assert r.status == 500 and r.json()["error"] == (
        "Cannot run `%s` (SSEBENCH_CLI): No such file or directory" % cli)
    assert server.json("/api/launch/status") == {"launches": []}


# --- what is offered -----------------------------------------------------------------------------

def test_offers_follow_the_checkout(place, start):
    server = start()
    before = server.json("/api/launch/models")["models"]
    with open(os.path.join(place.checkout, "models", "more.yml"), "w") as f:
        f.write('- model_name: "zz-quoted"  # a remark\n  litellm_params: {model: a/b}\n'
                "- {model_name: zz-flow}\n- litellm_params:\n    model_name: nested\n- 5\n")
    with open(os.path.join(place.checkout, "models", "bad.yaml"), "w") as f:
        f.write("- model_name: zz-before\n- model_name: [unclosed\n")
    os.mkdir(os.path.join(place.checkout, "agents", "new-agent"))
    process.wait_for(lambda: "zz-flow" in server.json("/api/launch/models")["models"],
                     what="the new file is read")
    assert server.json("/api/launch/models")["models"] == sorted(
        before + ["zz-quoted", "zz-flow", "zz-before"])
    process.wait_for(lambda: "new-agent" in server.json("/api/launch/agents")["agents"],
                     what="the new agent")


@pytest.mark.parametrize("text,status", [
    ('{"tasks":[{"id":"a","language":"c","project":"p","x":1},{"id":5},{"id":"b"}]}', 200),
    ('{"tasks":{}}', 500), ("[]", 500), ("", 500), ("{", 500)])
def test_catalog_file(place, start, text, status):
    path = os.path.join(place.top, "manifest.json")
    with open(path, "w") as f:
        f.write(text)
    server = start({"SSEBENCH_CATALOG": path})
    r = server.get("/api/launch/tasks")
    assert r.status == status, r
    if status == 200:
        assert r.json() == {"tasks": [{"id": "a", "language": "c", "project": "p"}, {"id": "b"}]}
    else:
        assert r.json()["error"] == "Failed to fetch tasks" and r.json()["tasks"] == []


def test_catalog_url(place, start):
    import http.server
    import threading

    class Catalog(http.server.BaseHTTPRequestHandler):
        answer = (200, b'{"tasks":[{"id":"from-afar"}]}')
        asked = []

        def do_GET(self):
            self.asked.append(self.path)
            self.send_response(self.answer[0])
            self.end_headers()
            self.wfile.write(self.answer[1])

        def log_message(self, *_):
            pass
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Catalog)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    server = start({"SSEBENCH_CATALOG": "http://127.0.0.1:%d/c//?k=1" % web.server_port})
    assert server.json("/api/launch/tasks") == {"tasks": [{"id": "from-afar"}]}
    assert Catalog.asked == ["/c/manifest.json?k=1"]
    Catalog.answer = (404, b"")
    process.wait_for(lambda: server.get("/api/launch/tasks").status == 500, what="an error")
    assert "404" in server.get("/api/launch/tasks").json()["hint"]
    web.shutdown()
    web.server_close()


def test_doctor_report_although_status_1(place, start):
    server = start()
    report = server.json("/api/launch/doctor")
    assert report["available"] is True and report["report"]["checks"]
    calls = len(place.vectors("doctor"))
    assert server.json("/api/launch/doctor") == report and len(place.vectors("doctor")) == calls


def test_doctor_fails(place, start):
    place.knobs(fail={"doctor": [1, "no doctor today"]})
    server = start()
    assert server.json("/api/launch/doctor") == {"available": False, "error": "no doctor today"}


# --- states -------------------------------------------------------------------------------------

@pytest.mark.parametrize("code,error", [
    (0, "The run ended without starting a container"), (3, "Process exited with code 3")])
def test_ends_without_a_run(stage, start, code, error):
    server = start(stage.env())
    stage.task("short", lines=3, exit=code)
    launch_id = lh.launch(server, "short")
    failed = lh.wait_status(server, launch_id, "failed")
    assert failed["error"] == error and failed["exitCode"] == code
    assert len(lh.logs(server, launch_id)) == 3


def test_listed_at_last_look(stage, start):
    server = start(stage.env())
    stage.task("quick", lines=3, list_at=2)
    launch_id = lh.launch(server, "quick")
    s = lh.wait_end(server, launch_id)
    s = lh.wait_status(server, launch_id, "running")
    assert s["exitCode"] == 0


def test_idempotency_key(stage, start):
    server = start(stage.env())
    stage.task("stays", stay=True)
    key = {"Idempotency-Key": "abc"}
    first = lh.post(server, "", lh.body("stays"), key).json()["launch_id"]
    assert lh.post(server, "", lh.body("stays"), key).json()["launch_id"] == first
    r = lh.post(server, "", lh.body("stays", timeout=5), key)
    assert r.status == 400 and "Idempotency-Key" in r.json()["error"]
    os.kill(server.broker(), signal.SIGKILL)
    lh.wait_status(server, first, "launching")
    assert lh.post(server, "", lh.body("stays"), key).json()["launch_id"] == first
    other = lh.post(server, "", lh.body("stays"), {"Idempotency-Key": "abd"}).json()["launch_id"]
    assert other != first
    assert len(server.json("/api/launch/status")["launches"]) == 2
    stage.end("stays")
    lh.wait_end(server, first)
    lh.wait_end(server, other)


def test_cancel(stage, start):
    server = start(stage.env())
    stage.task("stays", lines=2, stay=True)
    launch_id = lh.launch(server, "stays")
    process.wait_for(lambda: stage.started(launch_id), what="it executes")
    assert lh.post(server, "/cancel", {"launch_id": launch_id}).json() == {"cancelled": True}
    assert lh.post(server, "/cancel", {"launch_id": launch_id}).json() == {"cancelled": False}
    s = lh.wait_end(server, launch_id)
    assert (s["status"], s["error"], s["exitCode"]) == ("failed", "Cancelled by user", 143)
    assert not process.alive(stage.started(launch_id)["pid"])
    process.wait_for(lambda: not lh.keepers(), what="no keeper")


@pytest.mark.once  # thirty seconds, and no path in them
def test_cancel_of_one_that_ignores_sigterm(stage, start):
    server = start(stage.env())
    stage.task("deaf", stay=True, ignore_term=True)
    launch_id = lh.launch(server, "deaf")
    process.wait_for(lambda: stage.started(launch_id), what="it executes")
    assert lh.post(server, "/cancel", {"launch_id": launch_id}).json() == {"cancelled": True}
    assert lh.status(server, launch_id)["status"] == "failed"
    assert lh.wait_end(server, launch_id)["exitCode"] == 137


def test_clear_leaves_a_run_alone(stage, start, place):
    server = start(stage.env())
    stage.task("runs", lines=1, list_at=0, stay=True)
    stage.task("waits", lines=1, stay=True)
    runs, waits = lh.launch(server, "runs"), lh.launch(server, "waits")
    lh.wait_status(server, runs, "running")
    assert lh.post(server, "/clear", {}).json() == {"cleared": True}
    assert server.json("/api/launch/status") == {"launches": []}
    process.wait_for(lambda: not process.alive(stage.started(waits)["pid"]), what="ended")
    assert process.alive(stage.started(runs)["pid"])
    os.kill(server.broker(), signal.SIGKILL)
    process.wait_for(lambda: lh.try_status(server, runs) == {"status": None}, what="the broker")
    assert server.json("/api/launch/status") == {"launches": []}
    assert process.alive(stage.started(runs)["pid"])
    stage.end("runs")
    process.wait_for(lambda: not lh.folder(place, runs), what="no folder")
    process.wait_for(lambda: not lh.folder(place, waits), what="no folder")


def test_queue(stage, start):
    server = start(stage.env(SSEBENCH_WEBUI_MAX_LAUNCHES="2"))
    names = [stage.task("q%d" % i, lines=1, stay=True) for i in range(5)]
    ids = [lh.launch(server, n) for n in names]
    got = [lh.status(server, i) for i in ids]
    assert [g["status"] for g in got] == ["launching"] * 5
    assert [g.get("queuePosition") for g in got] == [None, None, 1, 2, 3]
    process.wait_for(lambda: stage.started(ids[0]) and stage.started(ids[1]), what="two execute")
    assert [bool(stage.started(i)) for i in ids] == [True, True, False, False, False]
    assert lh.post(server, "/cancel", {"launch_id": ids[2]}).json() == {"cancelled": True}
    assert lh.status(server, ids[2])["error"] == "Cancelled by user"
    os.kill(server.broker(), signal.SIGKILL)  # the queue is on disk, too
    process.wait_for(lambda: (lh.try_status(server, ids[4]) or {}).get("queuePosition") == 2,
                     what="the queue is known again")
    stage.end("q0")
    process.wait_for(lambda: stage.started(ids[3]), what="the next one")
    for n in names:
        stage.end(n)
    lh.wait_end(server, ids[4])
    assert stage.started(ids[2]) is None


# --- output ----------------------------------------------------------------------------------------

def test_last_5000_lines(stage, start):
    server = start(stage.env())
    stage.task("long", lines=7000, block=500)
    launch_id = lh.launch(server, "long")
    lh.wait_end(server, launch_id)
    got = server.json("/api/launch/logs?id=" + launch_id)
    assert got["truncated"] is True and len(got["logs"]) == 5000
    assert got["logs"][0].startswith("line 000002000 ")
    with server.websocket("/api/launch/ws") as ws:
        messages = [ws.receive_json() for _ in range(5002)]
    assert messages[0]["type"] == "status" and messages[0]["data"]["launch_id"] == launch_id
    assert "older output are not shown" in messages[1]["data"]
    assert [m["data"] for m in messages[2:]] == got["logs"]


def test_binary_and_long_lines(stage, start, place):
    server = start(stage.env())
    stage.task("odd", binary=True, long_line=10 * 1024 * 1024, lines=3)
    launch_id = lh.launch(server, "odd")
    lh.wait_end(server, launch_id)
    out = lh.kept_output(place, launch_id)
    assert out.startswith(b"a" * 10485760 + b"\n" + bytes(range(256)))
    lh.check_numbered(out, 3)
    got = lh.logs(server, launch_id)
    assert got[-1].startswith("line 000000002") and max(len(x) for x in got) <= 16384
    with server.websocket("/api/launch/ws") as ws:
        m = ws.receive_json()
        while not m["data"] or not str(m["data"]).startswith("line 000000002"):
            m = ws.receive_json()


def test_gigabyte_is_bounded_on_disk(stage, start, place):
    server = start(stage.env())
    stage.task("flood", flood=1 << 30, lines=10)
    launch_id = lh.launch(server, "flood")
    lh.wait_end(server, launch_id, 300)
    st = os.stat(os.path.join(lh.folder(place, launch_id), "output"))
    assert st.st_size >= 1000 << 20 and st.st_blocks * 512 <= 80 << 20, st
    got = server.json("/api/launch/logs?id=" + launch_id)
    assert len(got["logs"]) == 5000 and got["logs"][-1].startswith("line 000000009")


def test_closes_its_output(stage, start):
    server = start(stage.env())
    stage.task("mute", lines=2, close_output=True, stay=True, exit=4)
    launch_id = lh.launch(server, "mute")
    process.wait_for(lambda: len(lh.logs(server, launch_id)) == 2, what="its lines")
    stage.end("mute")
    assert lh.wait_end(server, launch_id)["exitCode"] == 4


def test_forks_away(stage, start):
    server = start(stage.env())
    stage.task("forks", lines=2, fork_away=1.5, exit=5)
    launch_id = lh.launch(server, "forks")
    assert lh.wait_end(server, launch_id)["exitCode"] == 5
    process.wait_for(lambda: lh.logs(server, launch_id)[-1] == "said by what was left behind",
                     what="the last words")
    process.wait_for(lambda: not lh.keepers(), what="no keeper")


def test_orphans_are_reaped_meanwhile(stage, start):
    """A command that goes on for days fills no process table with what it leaves behind."""
    server = start(stage.env())
    stage.task("orphans", orphans=300, lines=1, stay=True, exit=7)
    launch_id = lh.launch(server, "orphans")
    pid = process.wait_for(lambda: stage.started(launch_id), what="it executes")["pid"]
    process.wait_for(lambda: lh.logs(server, launch_id), what="its line, after all orphans")
    keeper, = lh.keepers()
    process.wait_for(lambda: process.descendants(keeper) == [pid], what="no zombies")
    stage.end("orphans")
    assert lh.wait_end(server, launch_id)["exitCode"] == 7
    process.wait_for(lambda: not lh.keepers(), what="no keeper")


def test_what_is_left_behind_floods(stage, start, place):
    """The command's end is told although others go on writing, and what comes is still moved."""
    server = start(stage.env())
    stage.task("flooded", lines=2000, block=500, leave_flooding=8, exit=6)
    launch_id = lh.launch(server, "flooded")
    assert lh.wait_end(server, launch_id)["exitCode"] == 6
    size = lambda: os.stat(os.path.join(lh.folder(place, launch_id), "output")).st_size  # noqa: E731
    at_end = size()
    process.wait_for(lambda: size() > at_end + (8 << 20), what="the flood goes on")
    stage.end("flooded")
    process.wait_for(lambda: not lh.keepers(), what="no keeper")


def test_run_never_appears_and_cli_hangs(stage, start):
    server = start(stage.env())
    stage.task("unseen", lines=2, stay=True)
    launch_id = lh.launch(server, "unseen")
    open(os.path.join(stage.state, "hang-list"), "w").close()
    process.wait_for(lambda: len(lh.logs(server, launch_id)) == 2, what="its lines")
    assert lh.status(server, launch_id)["status"] == "launching"
    assert lh.post(server, "/cancel", {"launch_id": launch_id}).json() == {"cancelled": True}
    assert lh.wait_end(server, launch_id)["error"] == "Cancelled by user"
    os.unlink(os.path.join(stage.state, "hang-list"))
