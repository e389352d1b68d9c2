"""The command hangs, fails, babbles or is missing: runs that are over are listed all the same."""
import json
import time

import pytest

import process
from routes import RUN

pytestmark = pytest.mark.once  # the command knows no path

# Seconds. Not the promise (2 s), but far below the command's own limit of 60.
SOON = 15


def listing(server):
    began = time.monotonic()
    answer = server.json("/api/containers")
    assert time.monotonic() - began < SOON
    assert RUN in [c["id"] for c in answer["containers"]], "finished runs are always there"
    return answer


def error_of(server):
    return process.wait_for(lambda: listing(server).get("runnerError"), what="runnerError")


def sick(server):
    """Health once it says so: each worker learns of it with its own first question."""
    def found():
        health = server.json("/api/health")
        return health if health["runner"] is False else None
    return process.wait_for(found, what="runner: false")


FAULTS = [
    ("hang", {"hang": ["list"]}, None),
    ("hang, deaf", {"hang_hard": ["list"]}, None),
    ("fail", {"fail": {"list": [1, "Cannot connect to the Docker daemon"]}},
     "Cannot connect to the Docker daemon"),
    ("usage", {"fail": {"list": [2, "error: invalid choice: 'runs'"]}}, None),
    ("rubbish", {"rubbish": {"list": "<html>no JSON</html>\n"}}, None),
    ("nothing", {"rubbish": {"list": ""}}, None),
    ("half", {"rubbish": {"list": '{"backend": "docker", "runs": ['}}, None),
    ("another shape", {"rubbish": {"list": '{"runs": {"a": 1}}'}}, None),
    ("a list", {"rubbish": {"list": "[]"}}, None),
    ("flood", {"flood": {"list": 200000000}}, None),
    ("crash", {"crash": {"list": 11}}, None),
]


@pytest.mark.parametrize("name,knobs,text", FAULTS, ids=[f[0] for f in FAULTS])
def test_fault_and_recovery(start, place, name, knobs, text):
    place.knobs(**knobs)
    server = start()
    assert server.json("/api/health")["status"] == "ok"
    error = error_of(server)
    assert isinstance(error, str) and error
    if text:
        assert text in error
    health = sick(server)
    assert health["docker"] is False and health["runnerError"]
    for what in ("diff", "agent/dialog", "result"):
        assert server.get("/api/containers/%s/%s" % (RUN, what)).status == 200
    if name.startswith("hang"):
        return  # ends with its limit of 60 s; that nothing is left is checked at the end
    place.knobs()
    process.wait_for(lambda: "runnerError" not in listing(server), what="recovery")
    process.wait_for(lambda: server.json("/api/health")["runner"], what="runner: true")


def test_missing_command(start):
    server = start({"SSEBENCH_CLI": "/nonexistent/ssebench with words"})
    assert isinstance(error_of(server), str)
    assert sick(server)["runnerError"]


def test_last_known_live_runs_stay_listed(start, place):
    place.start_run("live-1")
    server = start()
    process.wait_for(lambda: server.runs()[0]["id"] == "live-1", what="the live run")
    place.knobs(fail={"list": [1, "the engine is away"]})
    process.wait_for(lambda: "the engine is away" in listing(server).get("runnerError", ""),
                     what="the reason")
    assert server.runs()[0]["id"] == "live-1"


def test_slow_command_is_shared_by_all_callers(start, place):
    place.knobs(delay={"list": 0.5})
    server = start()
    listing(server)
    before = len(place.vectors("runs list"))
    began = time.monotonic()
    for _ in range(60):
        listing(server)
    passed = time.monotonic() - began
    calls = len(place.vectors("runs list")) - before
    assert calls <= passed / 0.5 + 2, "at most one at a time"


def test_nobody_looks_so_nobody_asks(start, place):
    server = start()
    listing(server)

    def quiet():
        count = len(place.vectors("runs list"))
        time.sleep(4)
        return len(place.vectors("runs list")) == count
    process.wait_for(quiet, 40, "refreshing to stop")


def test_what_the_command_is_given(start, place):
    start({"SSEBENCH_WEBUI_TOKEN": "correct-horse-battery-staple", "A_WORD": "1"})
    call = process.wait_for(lambda: [c for c in place.calls()
                                     if c["argv"][:2] == ["runs", "list"]], what="a listing")[0]
    assert call["argv"] == ["runs", "list", "--json"]
    assert call["cwd"] == place.checkout
    assert call["values"] == {"NO_COLOR": "1", "FORCE_COLOR": "0"}
    assert "A_WORD" in call["env"] and "SSEBENCH_WEBUI_TOKEN" not in call["env"]


def test_stop_and_remove(start, place):
    run = place.start_run("live-1")
    server = start()
    path = "/api/containers/live-1/"
    for verb, answer in (("stop", {"stopped": True}), ("stop", {"stopped": True}),
                         ("remove", {"removed": True}), ("stop", {"stopped": True}),
                         ("remove", {"removed": True})):
        r = server.post(path + verb)
        assert r.status == 200 and r.json() == answer
    run.wait(20)
    acts = [v for v in place.vectors("runs") if not v.startswith(("runs list", "runs results"))]
    assert acts == ["runs stop live-1", "runs stop live-1", "runs remove live-1",
                    "runs stop live-1", "runs remove live-1"]


@pytest.mark.parametrize("verb,done,failed", [
    ("stop", "stopped", "Failed to stop container"),
    ("remove", "removed", "Failed to remove container")])
def test_outcomes_of_stop_and_remove(start, place, verb, done, failed):
    place.knobs(ambiguous=["twice"], fail={})
    server = start()
    r = server.post("/api/containers/twice/" + verb)
    assert r.status == 409 and r.json()["error"] == "More than one run has this ID"
    r = server.post("/api/containers/%s/%s" % (RUN, verb))
    assert r.status == 200 and r.json() == {done: True}, "a run that is only finished"
    place.knobs(fail={verb: [1, "the engine is away"]})
    r = server.post("/api/containers/x/" + verb)
    assert r.status == 500 and r.json()["error"] == failed


@pytest.mark.parametrize("extra", [
    [{}], [None, 5, "x", []], [{"run_id": 5}], [{"run_id": "latest", "state": "running"}],
    [{"run_id": "-rf", "state": "running"}], [{"run_id": "a" * 100}],
    [{"run_id": "ok-1", "state": {"x": 1}, "labels": [], "name": None, "exit_code": "x"}],
    [{"run_id": "ok-1", "task": "<script>", "model": "\u202e", "created_at": "x" * 100000}]])
def test_odd_entries_of_the_listing(start, place, extra):
    """The backend's document is a container's word too: odd entries are left out or filled in."""
    place.knobs(rubbish={"list": json.dumps(
        {"backend": "docker", "supports_exec": True, "runs": extra})})
    server = start()
    answer = listing(server)
    live = [c for c in answer["containers"] if c["source"] == "container"]
    assert [c["id"] for c in live if c["id"] != "ok-1"] == []
    for c in live:
        for key in ("name", "taskId", "model", "agent", "image", "createdAt", "status"):
            assert isinstance(c[key], str), (key, c[key])
        assert c["status"] in ("running", "exited", "created", "unknown", "paused")
