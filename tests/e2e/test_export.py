"""`ssebench-webui export`: the site's data says what the server says, and no trap gets in."""
import fcntl
import json
import os
import re
import subprocess

import pytest

import harness
import process

pytestmark = pytest.mark.once  # a site, and no server

MARKER = ".ssebench-webui-export"
LIMIT_FILE = 32 * 1024 * 1024
LIMIT_SUMMARY = 8 * 1024 * 1024
PARTS = {"container", "project", "diff", "files", "dialog", "result", "referencePatch", "review",
         "logs"}
SECRET = "the-secret-outside-of-every-run"


def export(*argv, **more):
    return subprocess.run([harness.SERVER, "export", *argv], capture_output=True, text=True,
                          timeout=120, stdin=subprocess.DEVNULL, **more)


def write_site(place, out):
    r = export("--results", place.results, "--out", out)
    assert r.returncode == 0, r.stderr
    assert r.stderr == "" or "no Landlock in this kernel" in r.stderr, r.stderr
    return r


def load(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return json.load(f)


def names(*path):
    return sorted(os.listdir(os.path.join(*path)))


def make_run(place, run_id, started="2026-01-01T00:00:00.000000Z", **more):
    folder = os.path.join(place.results, "made", "m", "a", run_id)
    os.makedirs(os.path.join(folder, "archive"))
    with open(os.path.join(folder, "summary.json"), "w", encoding="utf-8") as f:
        json.dump({"run_id": run_id, "task": {"id": "made"}, "started_at": started,
                   "config": {"model": "m", "agent": "a"}, **more}, f)
    return folder


def put(folder, name, data):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def log_lines(server, run_id):
    lines = []
    with server.websocket("/api/containers/%s/logs-ws" % run_id) as ws:
        frame = ws.receive_json()
        while frame["type"] == "log":
            lines.append(frame["data"])
            frame = ws.receive_json()
    return lines


def check_same(server, run, document):
    """Every part against the route for it."""
    def route(name):
        return server.get("/api/containers/%s/%s" % (run["id"], name))
    assert set(document) - {"dialogTruncated"} == PARTS
    assert document["container"] == run
    for part, name, member in (("project", "project", None), ("diff", "diff", "diff"),
                               ("files", "files", "files"), ("result", "result", None)):
        r = route(name)
        if r.status == 404:
            assert document[part] == ([] if part == "files" else None)
        else:
            assert document[part] == (r.json()[member] if member else r.json()), (run, part)
    dialog = route("agent/dialog").json()
    assert document["dialog"] == dialog["entries"]
    assert document.get("dialogTruncated", False) == dialog.get("truncated", False)
    assert document["review"] == route("review").json()
    assert document["referencePatch"] == route("reference/patch").json()["diff"]
    # A socket cuts very long lines.
    assert document["logs"].replace("\n", "") == "".join(log_lines(server, run["id"]))


@pytest.fixture
def out(place):
    return os.path.join(place.top, "site")


def test_says_what_the_server_says(start, place, out):
    odd = make_run(place, "odd-files")
    put(odd, "agent.log", b"bad \xff\xfe bytes\n" + "€".encode() * 50000 + b"\n\n\x1b[31mred")
    put(odd, "evaluator.log", b" \n\t\n")
    put(odd, "final.patch", b"")
    put(odd, "reference.patch", "é".encode() * 100000 + b"\xc3")
    put(odd, "post-review.txt", "<script>alert(1)</script>\n")
    put(odd, "archive/dialog.jsonl", "".join(
        json.dumps({"seq": n, "content": "x" * (n % 7 * 40000)}) + "\n" for n in range(30)) +
        "no JSON\n{\"seq\":\"0\"}\n{\"seq\":99}")
    make_run(place, "empty-run")
    write_site(place, out)
    server = start()
    runs = server.runs()
    assert load(out, "data/runs.json") == {"containers": runs}
    assert names(out, "data/runs") == sorted("%s.json" % r["id"] for r in runs)
    for run in runs:
        check_same(server, run, load(out, "data/runs", run["id"] + ".json"))
    health = load(out, "data/health.json")
    stamp = health.pop("timestamp")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stamp)
    assert health == {"status": "ok", "version": server.json("/api/health")["version"],
                      "runner": True, "backend": "static", "terminal": False,
                      "assistant": False, "hosted": True}


def test_the_page(place, out):
    write_site(place, out)
    assert names(out) == [MARKER, "assets", "data", "index.html"]
    with open(os.path.join(out, "index.html"), encoding="utf-8") as f:
        page = f.read()
    assert '<html lang="en" data-mode="static">' in page and '<base href="./">' in page
    assert page.index("Content-Security-Policy") < page.index("<script")
    for name in re.findall(r'(?:src|href)="\./(assets/[^"]+)"', page):
        assert os.path.getsize(os.path.join(out, name)) > 0


def test_two_runs_of_one_id(place, out):
    make_run(place, "twin", "2026-01-01T00:00:00Z")
    for name, started in ("twin", "2026-02-01T00:00:00Z"), ("a-copy", "2026-03-01T00:00:00Z"):
        folder = os.path.join(place.results, "made", "m", "b", name)
        os.makedirs(folder)
        put(folder, "summary.json", json.dumps({"run_id": "twin", "started_at": started,
                                                "task": {"id": "later" if name == "twin" else name}}))
    write_site(place, out)
    assert load(out, "data/runs/twin.json")["container"]["taskId"] == "later"


def test_an_agent_makes_no_runs(place, out):
    make_run(place, "victim", "2026-01-01T00:00:00Z")
    going = os.path.join(place.results, "made", "m", "a", "going")
    archived = os.path.join(place.results, "archive", "batch", "kept")
    beside = os.path.join(place.results, "made", "m", "a", "older", "beside")
    forged = [os.path.join(going, "archive", name) for name in ("victim", "x", "deep/victim")]
    for folder in [*forged, archived, beside]:
        os.makedirs(folder)
    for folder in forged:
        put(folder, "summary.json", json.dumps({"run_id": "victim", "task": {"id": "forged"},
                                                "started_at": "9999"}))
    put(forged[1], "summary.json", json.dumps({"run_id": "invented", "task": {"id": "forged"}}))
    put(going, "result.json", "")
    put(os.path.dirname(beside), "result.json", "{}")
    put(beside, "summary.json", json.dumps({"task": {"id": "beside"}}))
    put(archived, "summary.json", json.dumps({"task": {"id": "kept"}}))
    write_site(place, out)
    tasks = {c["id"]: c["taskId"] for c in load(out, "data/runs.json")["containers"]}
    assert (tasks["victim"], tasks["kept"], tasks["beside"]) == ("made", "kept", "beside")
    assert not {"invented", "going"} & set(tasks)


def test_a_list_that_was_cut_says_so(place, out):
    write_site(place, out)
    assert "resultsCut" not in load(out, "data/runs.json")
    os.makedirs(os.path.join(place.results, *["deep"] * 33))
    r = export("--results", place.results, "--out", out)
    assert r.returncode == 0 and "1 directories were left out" in r.stderr
    assert "too deep" in load(out, "data/runs.json")["resultsCut"]


def test_many_runs(place, out):
    made = ["many-%d" % n for n in range(3000)]
    for run_id in made:
        make_run(place, run_id)
    write_site(place, out)
    assert len(load(out, "data/runs.json")["containers"]) == len(names(out, "data/runs"))
    assert set(m + ".json" for m in made) <= set(names(out, "data/runs"))


# --- traps ---------------------------------------------------------------------------------

FILES = ["archive/dialog.jsonl", "final.patch", "result.json", "post-review.txt",
         "reference.patch", "agent.log", "evaluator.log"]
NOTHING = {"diff": None, "files": [], "dialog": [], "result": None, "referencePatch": "",
           "review": {"available": False}, "logs": ""}


def plant(kind, path, outside):
    if kind == "link":
        os.symlink(outside, path)
    elif kind == "relative link":
        os.symlink(os.path.relpath(outside, os.path.dirname(path)), path)
    elif kind == "proc link":
        os.symlink("/proc/self/environ", path)
    elif kind == "link to itself":
        os.symlink(os.path.basename(path), path)
    elif kind == "directory":
        os.mkdir(path)
    else:
        os.mkfifo(path)


def outside_file(place):
    path = os.path.join(place.top, "outside")
    put(place.top, "outside", json.dumps({
        "seq": 1, "content": SECRET, "task": {"id": SECRET}, "patch_result": {"status": SECRET},
        "runtime_result": {}}) + "\n")
    return path


@pytest.mark.parametrize("kind", ["link", "relative link", "proc link", "link to itself",
                                  "directory", "fifo"])
def test_traps_read_as_missing(place, out, kind):
    outside = outside_file(place)
    folder = make_run(place, "trap")
    for name in FILES:
        plant(kind, os.path.join(folder, name), outside)
    bad = os.path.join(place.results, "made", "m", "a", "bad-summary")
    os.makedirs(bad)
    plant(kind, os.path.join(bad, "summary.json"), outside)
    write_site(place, out)
    document = load(out, "data/runs/trap.json")
    assert {k: document[k] for k in NOTHING} == NOTHING
    assert "bad-summary.json" not in names(out, "data/runs")
    assert subprocess.run(["grep", "-rl", SECRET, out]).returncode == 1


@pytest.mark.parametrize("level", ["archive", "run", "model"])
def test_linked_directories(place, out, level):
    folder = make_run(place, "trap")
    put(folder, "archive/dialog.jsonl", json.dumps({"seq": 1, "content": SECRET}) + "\n")
    moved = {"archive": os.path.join(folder, "archive"), "run": folder,
             "model": os.path.dirname(os.path.dirname(folder))}[level]
    os.rename(moved, os.path.join(place.top, "away"))
    os.symlink(os.path.join(place.top, "away"), moved)
    write_site(place, out)
    assert ("trap.json" in names(out, "data/runs")) == (level == "archive")
    assert subprocess.run(["grep", "-rl", SECRET, out]).returncode == 1


def test_huge_files(place, out):
    folder = make_run(place, "huge")
    for name in FILES:
        with open(os.path.join(folder, name), "wb") as f:
            f.truncate(LIMIT_FILE + 1)
    late = os.path.join(place.results, "made", "m", "a", "huge-summary")
    os.makedirs(late)
    put(late, "summary.json", json.dumps({"task": {"id": "t"}}) + " " * LIMIT_SUMMARY)
    write_site(place, out)
    document = load(out, "data/runs/huge.json")
    assert document["dialogTruncated"] is True
    assert {k: document[k] for k in NOTHING if k != "logs"} == \
        {k: v for k, v in NOTHING.items() if k != "logs"}
    assert document["logs"].split("\n") == [
        "==> agent.log <==", "(agent.log is over 32 MiB and is not shown)",
        "==> evaluator.log <==", "(evaluator.log is over 32 MiB and is not shown)"]
    assert "huge-summary.json" not in names(out, "data/runs")


def test_the_largest_dialog(start, place, out):
    folder = make_run(place, "long")
    with open(os.path.join(folder, "archive/dialog.jsonl"), "w", encoding="ascii") as f:
        f.writelines('{"seq":%d}\n' % n for n in range(200001))
    put(folder, "final.patch", b"+" * LIMIT_FILE)
    write_site(place, out)
    document = load(out, "data/runs/long.json")
    assert len(document["dialog"]) == 200000 and document["dialogTruncated"] is True
    assert len(document["diff"]) == LIMIT_FILE


# --- the folder ------------------------------------------------------------------------------

def test_a_folder_with_something_else(place, out):
    os.mkdir(out)
    put(out, "thesis.tex", "three years of work")
    r = export("--results", place.results, "--out", out)
    assert r.returncode == 1 and "is not empty and no earlier export" in r.stderr
    assert names(out) == ["thesis.tex"]
    os.symlink("thesis.tex", os.path.join(out, MARKER))
    assert export("--results", place.results, "--out", out).returncode == 1


def test_a_second_export_replaces_the_first(place, out):
    folder = make_run(place, "goes")
    changes = make_run(place, "changes")
    os.mkdir(out)
    write_site(place, out)
    assert "goes.json" in names(out, "data/runs")
    os.rename(folder, os.path.join(place.top, "gone"))
    put(changes, "final.patch", "now\n")
    put(out, "CNAME", "bench.example\n")
    put(out, "data/runs/.changes.json.new", "cut off")
    put(out, "assets/page-OLDOLD00.js", "old")
    secret = outside_file(place)
    os.unlink(os.path.join(out, "data/runs.json"))
    os.symlink(secret, os.path.join(out, "data/runs.json"))
    write_site(place, out)
    assert names(out) == [MARKER, "CNAME", "assets", "data", "index.html"]
    runs = [r["id"] for r in load(out, "data/runs.json")["containers"]]
    assert "goes" not in runs and names(out, "data/runs") == sorted(r + ".json" for r in runs)
    assert load(out, "data/runs/changes.json")["diff"] == "now\n"
    assert "page-OLDOLD00.js" not in names(out, "assets")
    with open(secret, encoding="utf-8") as f:
        assert SECRET in f.read(), "a link is replaced, not written through"


def test_a_folder_of_the_site_is_a_link(place, out):
    write_site(place, out)
    away = os.path.join(place.top, "away")
    os.mkdir(away)
    subprocess.run(["rm", "-r", os.path.join(out, "data")], check=True)
    os.symlink(away, os.path.join(out, "data"))
    r = export("--results", place.results, "--out", out)
    assert r.returncode == 1 and "Cannot write to" in r.stderr
    assert os.listdir(away) == []


@pytest.mark.parametrize("argv,told", [
    ([], "--results DIR"), (["--results", "/tmp"], "--out DIR"),
    (["--out", "/nowhere/site", "--results", "/tmp"], "Cannot write to /nowhere/site"),
    (["--results", "/nowhere", "--out", "/nowhere/site"], "Cannot read /nowhere"),
    (["--nonsense"], "Usage"), (["--results", "/tmp", "--out", "/nowhere/s", "more"], "Usage")])
def test_wrong_arguments(argv, told):
    r = export(*argv)
    assert r.returncode == 1 and told in r.stderr and r.stdout == ""


def test_help():
    assert "--results DIR --out DIR" in export("--help").stdout


def test_runs_confined_and_without_our_environment(place, out):
    """Its last line goes into a pipe that is full, so it can be looked at."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETFL, os.O_NONBLOCK)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        fcntl.fcntl(writer, fcntl.F_SETFL, 0)
    p = subprocess.Popen([harness.SERVER, "export", "--results", place.results, "--out", out],
                         stdout=writer, stdin=subprocess.DEVNULL,
                         env={"SSEBENCH_WEBUI_TOKEN": harness.TOKEN})
    os.close(writer)
    try:
        process.wait_for(lambda: os.path.exists(os.path.join(out, "index.html")), 20, "a site")

        def state():
            with open("/proc/%d/status" % p.pid, encoding="ascii") as f:
                return dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        assert state()["Seccomp"] == "2" and state()["NoNewPrivs"] == "1"
        if os.geteuid() == 0:
            with open("/proc/%d/environ" % p.pid, "rb") as f:
                assert f.read() == b""
    finally:
        with open(reader, "rb") as f:
            f.read()
    assert p.wait(20) == 0
