"""The run list and the documents of finished runs, held against the files themselves."""
import glob
import gzip
import json
import os
import threading

import pytest

import process
from http_client import head
from routes import RUN

FIELDS = {"id", "name", "taskId", "model", "agent", "referenceRun", "runId", "status", "image",
          "createdAt", "source"}


def without_error(server, path, member):
    """The document, once it has this member and no fault of the listing; a slow one is told too."""
    document = server.json(path)
    told = document.get(member) is not None and "runnerError" not in document
    return document if told else None


def test_health(shared):
    health = shared.json("/api/health")
    assert health["status"] == "ok" and health["version"]
    # The backend is told from the first listing on.
    health = process.wait_for(lambda: without_error(shared, "/api/health", "backend"),
                              what="the first listing")
    assert health["runner"] is True and health["docker"] is True
    assert health["backend"] == "docker"
    assert (health["terminal"], health["assistant"], health["hosted"]) == (True, True, False)
    assert health["timestamp"].endswith("Z")


def test_finished_runs_are_what_the_command_says(shared):
    listed = process.wait_for(lambda: without_error(shared, "/api/containers", "containers"))
    finished = [c for c in listed["containers"] if c["source"] == "results"]
    expected = shared.place.finished()
    assert [c["id"] for c in finished] == [r["run_id"] for r in expected]
    for c, r in zip(finished, expected):
        assert set(c) >= FIELDS
        assert (c["id"], c["runId"], c["name"]) == (r["run_id"],) * 3
        assert (c["taskId"], c["model"], c["agent"]) == (r["task"], r["model"], r["agent"])
        assert c["referenceRun"] is r["reference_run"]
        assert (c["status"], c["image"], c["createdAt"]) == ("exited", "", r["started_at"])


def each(shared):
    for r in shared.place.finished():
        yield r["run_id"], r["dir"]


def read(*path):
    try:
        with open(os.path.join(*path), encoding="utf-8", newline="") as f:
            return f.read()
    except FileNotFoundError:
        return None


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def test_one_run(shared):
    for run_id, _ in each(shared):
        c = shared.json("/api/containers/" + run_id)["container"]
        assert c["id"] == run_id and set(c) >= FIELDS
    assert shared.json("/api/containers/nobody", 404)["error"] == "Container not found"


def test_project(shared):
    for run_id, folder in each(shared):
        task = json.loads(read(folder, "summary.json"))["task"]
        p = shared.json("/api/containers/%s/project" % run_id)
        assert p["id"] == task["id"] and p["project"] == task["project"]
        assert (p["language"], p["source"]) == (task["language"], task["source"])
        assert p["task_description"] == task["task_description"]
        assert p["poc"] == task["files"]["poc"]


def test_diff(shared):
    for run_id, folder in each(shared):
        assert shared.json("/api/containers/%s/diff" % run_id) == {
            "diff": read(folder, "final.patch")}


def test_files(shared):
    for run_id, folder in each(shared):
        patch = read(folder, "final.patch")
        files = shared.json("/api/containers/%s/files" % run_id)["files"]
        assert len(files) == patch.count("\ndiff --git ") + patch.startswith("diff --git ")
        for f in files:
            assert set(f) >= {"path", "status", "additions", "deletions"}
    files = {f["path"]: f for f in shared.json("/api/containers/%s/files" % RUN)["files"]}
    quoted = files['tests/café "quoted".md']
    assert (quoted["status"], quoted["additions"], quoted["deletions"]) == ("added", 2, 0)
    assert files["new.md"]["status"] == "renamed"
    assert files["tests/<b>bold<b>.md"]["status"] == "added"
    assert (files["src/cell.c"]["status"], files["src/cell.c"]["additions"]) == ("modified", 4)


def test_dialog(shared):
    for run_id, folder in each(shared):
        lines = [json.loads(x) for x in read(folder, "archive", "dialog.jsonl").split("\n") if x]
        path = "/api/containers/%s/agent/dialog" % run_id
        assert shared.json(path)["entries"] == lines
        # An entry a line: the page cuts there to show the first ones at once.
        assert shared.get(path).body.count(b",\n") == len(lines) - 1
        assert shared.json(path + "?since=3")["entries"] == [e for e in lines if e["seq"] > 3]
        assert shared.json(path + "?since=999999")["entries"] == []


@pytest.mark.parametrize("since", ["", "-1", "x", "1.5", "%00", "1e3", " 1"])
def test_dialog_since_is_a_number(shared, since):
    r = shared.get("/api/containers/%s/agent/dialog?since=%s" % (RUN, since.replace(" ", "%20")))
    assert r.status == 400
    if since != "%00":
        assert r.json()["error"] == "Invalid since: expected a sequence number"


def test_result(shared):
    for run_id, folder in each(shared):
        whole = json.loads(read(folder, "result.json"))
        assert shared.json("/api/containers/%s/result" % run_id) == {
            "available": True, "patch_result": whole["patch_result"],
            "runtime_result": whole["runtime_result"]}


def test_review(shared):
    seen = set()
    for run_id, folder in each(shared):
        text = read(folder, "post-review.txt")
        seen.add(text is None)
        expected = {"available": False} if text is None else {"available": True, "text": text}
        assert shared.json("/api/containers/%s/review" % run_id) == expected
    assert seen == {True, False}


def test_reference_patch(shared):
    for run_id, folder in each(shared):
        assert shared.json("/api/containers/%s/reference/patch" % run_id) == {
            "diff": read(folder, "reference.patch")}
    assert shared.json("/api/containers/nobody/reference/patch", 404)["error"] == \
        "Container not found"


@pytest.mark.parametrize("what", ["project", "diff", "files", "agent/dialog", "result", "review"])
def test_unknown_run(shared, what):
    assert shared.json("/api/containers/nobody/" + what, 404)["error"] == "Run not found"


def test_logs_of_a_finished_run(shared):
    for run_id, folder in each(shared):
        expected = []
        for name in ("agent.log", "evaluator.log"):
            text = read(folder, name)
            if text and text.strip():
                expected += ["==> %s <==" % name] + [x for x in text.split("\n") if x.strip()]
        with shared.websocket("/api/containers/%s/logs-ws" % run_id) as ws:
            lines = []
            frame = ws.receive_json()
            while frame["type"] == "log":
                lines.append(frame["data"])
                frame = ws.receive_json()
            assert frame == {"type": "end", "data": {"exitCode": 0}}
            assert lines == expected, run_id


def test_the_whole_log_of_a_finished_run_as_a_file(shared):
    for run_id, folder in each(shared):
        expected = ""
        for name in ("agent.log", "evaluator.log"):
            text = read(folder, name) or ""
            if text.strip():
                expected += "==> %s <==\n" % name + text + ("" if text.endswith("\n") else "\n")
        r = shared.get("/api/containers/%s/logs" % run_id)
        assert r.status == 200 and r.body.decode("utf-8") == expected, run_id
        assert r.header("Content-Disposition") == 'attachment; filename="%s.log"' % run_id
        assert r.header("Content-Type") == "text/plain; charset=utf-8"
        packed = shared.get("/api/containers/%s/logs" % run_id, {"Accept-Encoding": "gzip"})
        assert gzip.decompress(packed.body) == r.body
    assert shared.request("HEAD", "/api/containers/%s/logs" % run_id).status == 200
    assert shared.json("/api/containers/nobody/logs", 404)["error"] == "Run not found"


def test_the_log_so_far_of_a_running_run_as_a_file(start, place):
    place.start_run("live-1", agent_seconds=60)
    server = start()
    log = process.wait_for(lambda: glob.glob(os.path.join(place.standin, "runs", "*", "log")),
                           what="the run's log")[0]
    with open(log, "ab") as f:
        f.write(b"".join(b"line %d of many\r\n\n" % i for i in range(150000)))
    before = read_bytes(log)
    r = server.get("/api/containers/live-1/logs")
    assert r.status == 200 and r.body.startswith(before), len(r.body)
    assert read_bytes(log).startswith(r.body), "to the byte"
    assert place.vectors("runs logs") == ["runs logs live-1"], "not --follow, which never ends"
    # One that goes away in the middle leaves no command behind (the fixture looks).
    with server.connect() as c:
        c.send(head("GET", server.base + "/api/containers/live-1/logs",
                    server.headers({"Connection": "close"})))
        c.sock.recv(100)
    place.knobs(crash={"logs": 9})
    assert server.json("/api/containers/live-1/logs", 502)["error"] == \
        "The log of this run cannot be read"
    place.knobs()


def test_a_live_run_is_listed_first(start, place):
    place.start_run("live-1")
    server = start()
    process.wait_for(lambda: (server.runs()[0]["id"], server.runs()[0]["status"]) ==
                     ("live-1", "running"), what="the live run")
    c = server.runs()[0]
    assert (c["source"], c["status"], c["taskId"]) == ("container", "running",
                                                        "tinyjson-overflow-12")
    assert c["name"].startswith("ssebench-") and c["image"] and c["createdAt"]
    assert len(server.runs()) == len(place.finished()) + 1


def test_a_live_run_wins_over_a_finished_one(start, place):
    run = place.finished()[0]["run_id"]
    place.knobs(extra=[{"run_id": run, "name": "n", "state": "running", "exit_code": None,
                        "image": "", "created_at": None, "task": None, "model": None,
                        "agent": None, "reference_run": False, "results_dir": None,
                        "labels": {}}])
    server = start()
    found = process.wait_for(lambda: [c for c in server.runs() if c["id"] == run and
                                      c["source"] == "container"], what="the live one")
    assert len(found) == 1 and len([c for c in server.runs() if c["id"] == run]) == 1
    assert (found[0]["taskId"], found[0]["model"], found[0]["createdAt"]) == (
        "unknown", "unknown", "")


def test_a_run_that_ends_is_never_in_neither_list(start, place):
    """Stopped and removed while many look: it goes on, then it is over, and never gone between."""
    for i in range(3):
        place.start_run("kept-%d" % i, agent_seconds=0.2)
    server, over, missing = start(), threading.Event(), []

    def sources():
        return {c["id"]: c["source"] for c in server.runs() if c["id"].startswith("kept-")}

    def look():
        while not over.is_set():
            found = sources()
            if len(found) < 3:
                missing.append(found)
    process.wait_for(lambda: len(sources()) == 3 and len(server.runs()) > 3, what="the runs")
    threads = [threading.Thread(target=look) for _ in range(4)]
    for t in threads:
        t.start()
    try:
        for i in range(3):
            for what in ("stop", "remove"):
                assert server.post("/api/containers/kept-%d/%s" % (i, what)).status == 200
            process.wait_for(lambda: sources().get("kept-%d" % i) == "results", what="its end")
    finally:
        over.set()
        for t in threads:
            t.join()
    assert missing == []


def test_a_kept_run_is_graded_before_it_ends(start, place):
    """Its summary comes when it is stopped; the grade is in its result.json long before."""
    place.start_run("kept", agent_seconds=0.2)
    server = start({"SSEBENCH_WEBUI_WORKERS": "1"})  # another may look a second later

    def listed(query=""):
        found = server.json("/api/containers" + query)["containers"]
        return next((c for c in found if c["id"] == "kept"), None)
    run = process.wait_for(lambda: (listed() or {}).get("grade") and listed(),
                           what="the kept run's grade")
    assert (run["source"], run["status"]) == ("container", "running")
    patch = server.json("/api/containers/kept/result")["patch_result"]
    assert run["grade"] == patch["status"] and run["durationSeconds"] >= 0
    assert run["spend"] is None, "the command tells it at the end"
    assert listed("?grade=" + run["grade"]) == run and listed("?grade=none") is None
    assert server.json("/api/containers/kept")["container"] == run
    server.post("/api/containers/kept/stop")
    over = process.wait_for(lambda: listed()["spend"] is not None and listed(),
                            what="the summary")
    assert over["grade"] == run["grade"]


def test_a_new_finished_run_appears_and_goes(start, place):
    import shutil
    server = start()
    count = len(server.runs())
    source = place.finished()[0]["dir"]
    target = os.path.join(os.path.dirname(source), "copied-1")
    shutil.copytree(source, target)
    summary = json.loads(read(target, "summary.json"))
    summary["run_id"] = "copied-1"
    with open(os.path.join(target, "summary.json"), "w", encoding="utf-8") as f:
        json.dump(summary, f)
    process.wait_for(lambda: len(server.runs()) == count + 1, what="the new run")
    shutil.rmtree(target)
    process.wait_for(lambda: len(server.runs()) == count, what="the run is gone")


def put_run(folder, summary, **files):
    os.makedirs(folder)
    for name, text in {"summary_json": json.dumps(summary), **files}.items():
        with open(os.path.join(folder, name.replace("_", ".")), "w", encoding="utf-8") as f:
            f.write(text)


def test_an_agent_replaces_no_other_runs_results(start, place):
    victim = place.finished()[0]
    before = json.loads(read(victim["dir"], "summary.json"))
    summary = {**before, "started_at": "9999-12-31T23:59:59.000000Z"}
    server = start()
    diff = "/api/containers/%s/diff" % victim["run_id"]
    true_diff, true_ids = server.json(diff), {c["id"] for c in server.runs()}
    place.start_run("attacker", agent_seconds=300)
    listed = process.wait_for(lambda: [d for d, _, _ in os.walk(place.results)
                                       if os.path.basename(d) == "attacker"])
    archive = os.path.join(listed[0], "archive")
    for name in "x", "deep/x", victim["run_id"]:
        put_run(os.path.join(archive, name), summary, final_patch="FORGED\n", result_json="{}")
    put_run(os.path.join(archive, "invented"), {**summary, "run_id": "invented"})
    # Somebody's copy elsewhere: a later start alone does not make it the run.
    put_run(os.path.join(place.results, "archive", "copy"), summary, final_patch="COPY\n")
    put_run(os.path.join(place.results, "archive", "last"), {**summary, "run_id": "last"})
    process.wait_for(lambda: "last" in {c["id"] for c in server.runs()}, what="a walk after that")
    assert server.json(diff) == true_diff
    assert {c["id"] for c in server.runs()} == true_ids | {"attacker", "last"}


@pytest.mark.once
def test_a_list_that_was_cut_says_so(start, place):
    server = start()
    assert "resultsCut" not in server.json("/api/containers")
    put_run(os.path.join(place.results, *["deep"] * 33), {"run_id": "deep", "task": {"id": "t"}})
    process.wait_for(lambda: "too deep" in server.json("/api/containers").get("resultsCut", ""),
                     what="the notice")
    assert "too deep" in server.json("/api/containers?limit=1")["resultsCut"]
    assert any("results-cut" in line and "reason=depth" in line for line in server.err)


def test_further_results_roots(start, place):
    import shutil
    other = os.path.join(place.top, "more")
    shutil.copytree(os.path.join(place.results, "mdtable-escape-21"),
                    os.path.join(other, "mdtable-escape-21"), symlinks=True)
    path = os.path.join(other, "mdtable-escape-21/lab/mini-7b/opencode/hostile-output.1/summary.json")
    summary = json.loads(read(path))
    summary["run_id"] = "elsewhere.1"
    with open(path, "w", encoding="utf-8") as f:
        json.dump(summary, f)
    server = start({"SSEBENCH_WEBUI_RESULTS": other})
    ids = [c["id"] for c in server.runs()]
    assert "elsewhere.1" in ids and RUN in ids
    assert server.json("/api/containers/elsewhere.1/diff")["diff"]


ODD = [
    ("not JSON", "{"), ("a list", "[]"), ("no task", '{"run_id": "odd-1"}'),
    ("task without id", '{"run_id": "odd-2", "task": {}}'), ("empty", ""),
    ("invalid id", '{"run_id": "latest", "task": {"id": "t"}}'),
    ("id of another type", '{"run_id": {"a": 1}, "task": {"id": "t"}}'),
    ("only what must be", '{"run_id": "odd-3", "task": {"id": "t"}}'),
    ("null id: the folder's name", '{"run_id": null, "task": {"id": "t"}}'),
    ("types that do not fit", '{"run_id": "odd-4", "task": {"id": "t", "files": 3}, "config": '
     '{"model": 7, "agent": null, "reference_run": "true"}, "started_at": 5}'),
]


@pytest.mark.once
def test_odd_summaries_are_read_as_the_command_reads_them(start, place):
    for number, (_, text) in enumerate(ODD):
        folder = os.path.join(place.results, "t", "m", "a", "folder-%d" % number)
        os.makedirs(folder)
        with open(os.path.join(folder, "summary.json"), "w", encoding="utf-8") as f:
            f.write(text)
    big = os.path.join(place.results, "t", "m", "a", "big")
    os.makedirs(big)
    with open(os.path.join(big, "summary.json"), "w", encoding="utf-8") as f:
        f.write('{"run_id": "big", "task": {"id": "t"}, "x": "%s"}' % ("y" * (8 * 1024 * 1024)))
    server = start()
    got = [(c["id"], c["taskId"], c["model"] if c["model"] != "unknown" else None)
           for c in server.runs()]
    assert got == [(r["run_id"], r["task"], r["model"]) for r in place.finished()]
    for c in server.runs():
        for what in ("project", "diff", "files", "agent/dialog", "result", "review"):
            assert server.get("/api/containers/%s/%s" % (c["id"], what)).status in (200, 404)
